// The forward pass of a network in float64: what `vitrify.net` computes with NumPy, for one input at a time.
// A matrix of activations is {rows, cols, data}; an array of the network keeps its non-zero entries (arrays.js).

import { dense } from "./arrays.js";

const matrix = (rows, cols, data = new Float64Array(rows * cols)) => ({ rows, cols, data });
const rowOf = (m, at) => m.data.subarray(at * m.cols, (at + 1) * m.cols);
const fromRows = (rows, cols) => {
  const out = matrix(rows.length, cols);
  rows.forEach((row, at) => out.data.set(row, at * cols));
  return out;
};

const flat = (array) => (array.rows === 1 ? dense(array, 0) : fromRows(Array.from({ length: array.rows }, (_, row) => dense(array, row)), array.width).data);

// out += x W, for rows of x and the rows of W from `first` on.
function accumulate(out, x, array, first = 0) {
  const { starts, cols, values } = array;
  for (let row = 0; row < x.rows; row += 1) {
    const target = row * out.cols;
    for (let dim = 0; dim < x.cols; dim += 1) {
      const value = x.data[row * x.cols + dim];
      if (value === 0) continue;
      for (let at = starts[first + dim]; at < starts[first + dim + 1]; at += 1) out.data[target + cols[at]] += value * values[at];
    }
  }
  return out;
}

const times = (x, array, first = 0) => accumulate(matrix(x.rows, array.width), x, array, first);

function affine(x, array, bias, first = 0, row = 0) {
  const out = times(x, array, first);
  const shift = dense(bias, row);
  for (let from = 0; from < out.data.length; from += out.cols) {
    for (let at = 0; at < out.cols; at += 1) out.data[from + at] += shift[at];
  }
  return out;
}

const map = (m, change) => matrix(m.rows, m.cols, m.data.map(change));
const relu = (m) => map(m, (value) => (value > 0 ? value : value === value ? 0 : value));
const picked = (m, dims) => fromRows(Array.from({ length: m.rows }, (_, at) => dims.map((dim) => m.data[at * m.cols + dim])), dims.length);
const sigmoid = (x) => (1 + Math.tanh(x / 2)) / 2;

// Attention

function allowed(head, query, key, pads) {
  const offset = query - key;
  if (head.mask === "after" && offset >= 0) return false;
  if (head.mask === "causal" && offset < 0) return false;
  if (head.mask === "strict" && offset < 1) return false;
  if (head.window !== null && (offset < 0 || offset >= head.window)) return false;
  const segment = (position) => Math.floor((position - pads) / head.segment);
  return !head.segment || key < pads || segment(query) === segment(key);
}

function turned(m, head) {
  if (!head.rotary) return m;
  const half = m.cols / 2;
  const out = matrix(m.rows, m.cols);
  for (let row = 0; row < m.rows; row += 1) {
    for (let c = 0; c < half; c += 1) {
      const angle = row * head.rotary ** (-c / half);
      const [left, right] = [m.data[row * m.cols + c], m.data[row * m.cols + c + half]];
      out.data[row * m.cols + c] = left * Math.cos(angle) - right * Math.sin(angle);
      out.data[row * m.cols + c + half] = left * Math.sin(angle) + right * Math.cos(angle);
    }
  }
  return out;
}

// The weights of one query: `keys` are those that it may attend to, in order, `scores` theirs.
function weigh(head, scores) {
  const best = Math.max(...scores);
  if (head.attention === "linear") return scores;
  if (head.attention === "softmax") {
    const shares = scores.map((score) => Math.exp(score - best));
    const total = shares.reduce((sum, share) => sum + share, 0);
    return shares.map((share) => share / total);
  }
  if (head.attention === "sparsemax") {
    const ordered = scores.map((score) => score - best).sort((one, two) => two - one);
    let [total, tau] = [0, 0];
    ordered.forEach((score, at) => {
      total += score;
      if (1 + (at + 1) * score > total) tau = (total - 1) / (at + 1);
    });
    return scores.map((score) => Math.max(score - best - tau, 0));
  }
  const tied = scores.map((score) => score >= best - head.resolution);
  const only = head.ties === "left" ? tied.indexOf(true) : tied.lastIndexOf(true);
  const count = tied.filter(Boolean).length;
  return tied.map((is, at) => (head.ties === "average" ? Number(is) / Math.max(count, 1) : Number(at === only)));
}

function attention(net, block, part, x, run) {
  const arrays = (name) => part(`attn.${name}`);
  const betas = dense(arrays("beta"), 0);
  const heads = block.heads.map((head, index) => {
    const letter = (name) => affine(x, arrays(`W_${name}`), arrays(`b_${name}`), index * x.cols, index);
    const q = turned(map(letter("Q"), (value) => value * betas[index]), head);
    const k = turned(letter("K"), head);
    const v = letter("V");
    const bias = block.window && head.window !== null ? dense(arrays("b_rel"), index) : null;
    const pattern = matrix(x.rows, x.rows);
    const mixed = matrix(x.rows, v.cols);
    for (let query = 0; query < x.rows; query += 1) {
      const keys = [];
      for (let key = 0; key < x.rows; key += 1) if (allowed(head, query, key, net.pads)) keys.push(key);
      if (!keys.length) continue;
      const scores = keys.map((key) => {
        let score = 0;
        for (let dim = 0; dim < q.cols; dim += 1) score += q.data[query * q.cols + dim] * k.data[key * k.cols + dim];
        return bias ? score + bias[Math.min(Math.max(query - key, 0), bias.length - 1)] : score;
      });
      weigh(head, scores).forEach((weight, at) => {
        pattern.data[query * x.rows + keys[at]] = weight;
        if (weight === 0) return;
        for (let dim = 0; dim < v.cols; dim += 1) mixed.data[query * v.cols + dim] += weight * v.data[keys[at] * v.cols + dim];
      });
    }
    return { pattern, mixed };
  });
  run.patterns.push(heads.map(({ pattern }) => pattern));
  const outputs = heads.map(({ mixed }, index) => times(mixed, arrays("W_O"), index * block.d_value));
  if (net.residual === "concatenate") return outputs;
  return [outputs.reduce((sum, one) => matrix(sum.rows, sum.cols, sum.data.map((value, at) => value + one.data[at])))];
}

// Recurrences

function states(cell, part, x) {
  const [transition, size] = [part("rec.W_A"), cell.state];
  const driven = times(x, part("rec.W_B"));
  const bias = ["positive", "signed", "lstm"].includes(cell.kind) ? dense(part("rec.b"), 0) : null;
  const scales = { diagonal: (value) => value, positive: sigmoid, signed: Math.tanh }[cell.kind];
  const decays = scales ? times(x, transition) : null;
  if (decays) decays.data = decays.data.map((value, at) => scales(bias ? value + bias[at % size] : value));
  let h = new Float64Array(size);
  let c = new Float64Array(size);
  const hidden = [];
  for (let row = 0; row < x.rows; row += 1) {
    const now = rowOf(driven, row);
    const before = matrix(1, size, h);
    if (cell.kind === "lstm") {
      const gates = times(before, transition).data.map((value, at) => value + now[at] + bias[at]);
      const gate = (number, at) => gates[number * size + at];
      c = c.map((value, at) => sigmoid(gate(1, at)) * value + sigmoid(gate(0, at)) * Math.tanh(gate(2, at)));
      h = c.map((value, at) => sigmoid(gate(3, at)) * Math.tanh(value));
    } else if (decays) {
      h = h.map((value, at) => value * decays.data[row * size + at] + now[at]);
    } else if (cell.kind === "householder") {
      const one = matrix(1, x.cols, rowOf(x, row));
      for (let factor = 0; factor < cell.factors; factor += 1) {
        const v = times(one, transition, factor * x.cols).data;
        const along = h.reduce((sum, value, at) => sum + value * v[at], 0);
        h = h.map((value, at) => value - along * v[at]);
      }
      h = h.map((value, at) => value + now[at]);
    } else if (cell.kind === "full") {
      const next = Float64Array.from(now);
      rowOf(x, row).forEach((weight, input) => {
        if (weight !== 0) times(before, transition, input * size).data.forEach((value, at) => (next[at] += weight * value));
      });
      h = next;
    } else {
      h = times(before, transition).data.map((value, at) => value + now[at]);
      if (cell.kind === "relu") h = h.map((value) => Math.max(value, 0));
    }
    hidden.push(h);
  }
  return fromRows(hidden, size);
}

// Hidden units and experts

function layer(x, part, name, before = "W_in", after = "W_out") {
  const pre = affine(x, part(`${name}.${before}`), part(`${name}.b_in`));
  return { pre, out: affine(relu(pre), part(`${name}.${after}`), part(`${name}.b_out`)) };
}

function mixture(block, part, x, width, run) {
  const { experts, gate } = block;
  const seen = block.router ? relu(affine(x, part("moe.router.W_in"), part("moe.router.b_in"))) : x;
  const scores = affine(seen, part("moe.router.W_out"), part("moe.router.b_out"));
  const shift = gate && gate.by !== "expert" ? dense(part("moe.router.b_choice"), 0) : null;
  const out = matrix(x.rows, width);
  const chosen = [];
  for (let row = 0; row < x.rows; row += 1) {
    const own = rowOf(scores, row);
    const order = [...own.keys()].sort((one, two) => (shift ? own[two] + shift[two] - own[one] - shift[one] : own[two] - own[one]) || one - two);
    const active = order.slice(0, gate ? (gate.by === "expert" ? experts.length : gate.top) : 1);
    const best = Math.max(...own);
    const over = gate && gate.over === "chosen" ? active : order;
    const total = over.reduce((sum, expert) => sum + Math.exp(own[expert] - best), 0);
    chosen.push(active);
    for (const number of active) {
      const share = gate ? Math.exp(own[number] - best) / total : 1;
      const { reads, writes } = experts[number];
      const written = layer(picked(matrix(1, x.cols, rowOf(x, row)), reads), part, `moe.experts.${number}`).out.data;
      writes.forEach((dim, at) => (out.data[row * width + dim] += share * written[at]));
    }
  }
  run.experts[run.experts.length - 1] = chosen;
  return out;
}

function normed(net, part, name, x, half) {
  const groups = groupsOf(net, half, x.cols);
  if (!groups.length) return x;
  const [scale, shift] = [dense(part(`${name}.w`), 0), dense(part(`${name}.b`), 0)];
  const out = matrix(x.rows, x.cols, x.data.slice());
  for (let row = 0; row < x.rows; row += 1) {
    let at = 0;
    for (const dims of groups) {
      const values = dims.map((dim) => x.data[row * x.cols + dim]);
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length + net.eps;
      const root = Math.sqrt(variance > 0 ? variance : 1);
      for (const [place, dim] of dims.entries()) {
        out.data[row * x.cols + dim] = ((values[place] - mean) / root) * scale[at] + shift[at];
        at += 1;
      }
    }
  }
  return out;
}

export function groupsOf(net, half, width) {
  if (!net.norm) return [];
  return net.groups.length ? net.groups[half] : [Array.from({ length: width }, (_, dim) => dim)];
}

function join(net, x, outputs) {
  if (net.residual === "concatenate") {
    const parts = [x, ...outputs];
    const rows = Array.from({ length: x.rows }, (_, row) => parts.flatMap((part) => [...rowOf(part, row)]));
    return fromRows(rows, parts.reduce((sum, part) => sum + part.cols, 0));
  }
  const sum = x.data.slice();
  for (const one of outputs) for (let at = 0; at < sum.length; at += 1) sum[at] += one.data[at];
  return matrix(x.rows, x.cols, sum);
}

// Whole networks. A run is {moments, patterns, pres, seen, experts, final, logits}: streams after each half layer, and by
// turn (the passes of a loop count one by one) attention, sums of the hidden units, what these read, experts chosen.

const emptyRun = () => ({ moments: [], patterns: [], pres: [], seen: [], experts: [] });

export function forward(net, arrays, input) {
  return { transformer, recurrent, convolutional }[net.architecture](net, arrays, input);
}

function formulas(net, rows) {
  const out = matrix(rows, net.d_model);
  for (const { dim, coefficients, function: kind } of net.formulas ?? []) {
    for (let row = 0; row < rows; row += 1) {
      let t = Math.max(row - net.pads + 1, 0);
      if (kind === "polynomial of t mod 2") t %= 2;
      const value = coefficients.reduceRight((sum, coefficient) => sum * t + coefficient, 0);
      out.data[row * net.d_model + dim] = kind === "logarithm" ? Math.log(Math.max(value, 1)) : value;
    }
  }
  return out;
}

const lookUp = (array, ids) => fromRows(ids.map((id) => dense(array, id)), array.width);

function transformer(net, arrays, input) {
  const run = emptyRun();
  let x = net.reads === "tokens" ? lookUp(arrays["embed.W_E"], input) : times(fromRows(input, input[0].length), arrays["embed.W_E"]);
  if (net.reads === "vector") x = fromRows(Array.from({ length: net.max_length }, () => x.data), x.cols);
  const places = [...Array(x.rows).keys()];
  x = join({ residual: "add" }, x, [arrays["pos_embed.W_pos"] ? lookUp(arrays["pos_embed.W_pos"], places) : formulas(net, x.rows)]);
  run.moments.push(x);
  for (let turn = 0; turn < net.loops * net.blocks.length; turn += 1) {
    const index = turn % net.blocks.length;
    const block = { ...net.blocks[index], window: Math.max(0, ...net.blocks[index].heads.map((head) => head.window ?? 0)) };
    const part = (name) => arrays[`blocks.${index}.${name}`];
    run.experts.push(null);
    if (block.heads.length || block.cell) {
      const seen = normed(net, part, "ln1", x, 2 * index);
      const outputs = block.heads.length ? attention(net, block, part, seen, run) : (run.patterns.push([]), []);
      if (block.cell) outputs.push(times(states(block.cell, part, seen), part("rec.W_C")));
      x = join(net, x, outputs);
    } else run.patterns.push([]);
    run.moments.push(x);
    const seen = block.units || block.experts.length ? normed(net, part, "ln2", x, 2 * index + 1) : x;
    const outputs = [];
    run.pres.push(null);
    run.seen.push(seen);
    if (block.units) {
      const { pre, out } = layer(seen, part, "mlp");
      run.pres[turn] = pre;
      outputs.push(out);
    }
    if (block.experts.length) outputs.push(mixture(block, part, seen, net.residual === "concatenate" ? block.d_out : net.d_model, run));
    x = join(net, x, outputs);
    run.moments.push(x);
  }
  run.final = normed(net, (name) => arrays[name], "ln_final", x, 2 * net.blocks.length);
  run.logits = affine(run.final, arrays["unembed.W_U"], arrays["unembed.b_U"]);
  return run;
}

function recurrent(net, arrays, ids) {
  const run = emptyRun();
  const part = (name) => arrays[`blocks.0.${name}`];
  const x = lookUp(arrays["embed.W_E"], ids);
  const h = states(net.cell, part, x);
  run.moments.push(x, h);
  run.seen.push(h);
  run.experts.push(null);
  run.final = h;
  if (net.units) {
    const { pre, out } = layer(h, part, "mlp");
    run.pres.push(pre);
    run.moments.push(out);
    run.final = out;
  }
  run.logits = affine(run.final, arrays["unembed.W_U"], arrays["unembed.b_U"]);
  return run;
}

// Maps are {channels, rows, columns, data}.
function convolve(x, weights, bias, { channels, kernel, stride, pad, shared = true }) {
  const size = (length, axis) => Math.floor((length + 2 * pad[axis] - kernel[axis]) / stride[axis]) + 1;
  const [rows, columns] = [size(x.rows, 0), size(x.columns, 1)];
  const places = rows * columns;
  const out = new Float64Array(channels * places);
  const row_entries = x.channels * kernel[0];
  for (let own = 0; own < (shared ? 1 : places); own += 1) {
    for (let channel = 0; channel < channels; channel += 1) {
      const at_places = shared ? [...Array(places).keys()] : [own];
      for (let line = 0; line < row_entries; line += 1) {
        const row = (own * channels + channel) * row_entries + line;
        const [plane, i] = [Math.floor(line / kernel[0]), line % kernel[0]];
        for (let at = weights.starts[row]; at < weights.starts[row + 1]; at += 1) {
          for (const place of at_places) {
            const r = Math.floor(place / columns) * stride[0] + i - pad[0];
            const c = (place % columns) * stride[1] + weights.cols[at] - pad[1];
            if (r < 0 || c < 0 || r >= x.rows || c >= x.columns) continue;
            out[channel * places + place] += weights.values[at] * x.data[(plane * x.rows + r) * x.columns + c];
          }
        }
      }
    }
  }
  const shifts = flat(bias);
  const shifted = out.map((value, at) => {
    const [channel, place] = [Math.floor(at / places), at % places];
    return value + shifts[shared ? channel : place * channels + channel];
  });
  return { channels, rows, columns, data: shifted };
}

function convolutional(net, arrays, planes) {
  const run = { ...emptyRun(), maps: [], numbers: [] };
  let x = { channels: net.planes, rows: net.rows, columns: net.columns, data: Float64Array.from(planes) };
  run.maps.push(x);
  net.convolutions.forEach((layer, index) => {
    const before = convolve(x, arrays[`conv.${index}.W`], arrays[`conv.${index}.b`], layer);
    x = { ...before, data: before.data.map((value) => Math.max(value, 0)) };
    run.maps.push(x);
  });
  const places = x.rows * x.columns;
  let y = matrix(1, x.channels);
  x.data.forEach((value, at) => (y.data[Math.floor(at / places)] += value));
  run.numbers.push(y.data);
  net.dense.forEach((_, index) => {
    y = relu(affine(y, arrays[`dense.${index}.W_in`], arrays[`dense.${index}.b_in`]));
    run.numbers.push(y.data);
  });
  run.logits = affine(y, arrays["unembed.W_U"], arrays["unembed.b_U"]);
  run.numbers.push(run.logits.data);
  return run;
}
