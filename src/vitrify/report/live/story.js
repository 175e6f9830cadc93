// What a page shows of a run: one stop of it, its named spaces, heads, hidden units and answers, as plain data.
// The app gets the same data from `vitrify.web.story`.

import { dense } from "./arrays.js";
import { groupsOf } from "./forward.js";

const [WINDOW, BARS, HEADS, UNNAMED, CHANNELS] = [64, 12, 32, 40, 48];
const [UNITS, TERMS, SYMBOLS, SHOWN, LISTED] = [24, 8, 6, 12, 3];
const MOVED = 1e-9; // smaller differences are rounding
const TIE = 1e-6; // logits nearer to each other than this are tied
const DECIDED = ["recognizer", "transducer", "class"]; // the symbol with the largest logit is the answer

const span = (count) => Array.from({ length: count }, (_, at) => at);
const column = (m, row, dim) => m.data[row * m.cols + dim];
const vector = (m, row, dims) => dims.map((dim) => column(m, row, dim));
export const largest = (row) => row.reduce((best, value, at) => (value > row[best] ? at : best), 0);
const rounded = (value, digits = 4) => (Number.isFinite(value) ? Number(value.toPrecision(digits)) : null);

// A number in a few characters, as Python's %g writes it.
function general(value, digits) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (value === 0) return "0";
  const [body, exponent] = value.toExponential(digits - 1).split("e");
  if (exponent >= -4 && exponent < digits) return String(Number(value.toPrecision(digits)));
  const size = String(Math.abs(exponent)).padStart(2, "0");
  return `${Number(body)}e${exponent < 0 ? "-" : "+"}${size}`;
}

// Weights in 255 steps, two hexadecimal digits each; halves go to the even step.
function shades(values) {
  return values.map((value) => {
    const exact = 255 * Math.min(Math.max(value || 0, 0), 1);
    const step = exact % 1 === 0.5 ? 2 * Math.round(exact / 2) : Math.round(exact);
    return step.toString(16).padStart(2, "0");
  }).join("");
}

// Named spaces

export function spacesAt(live, moment, groups = []) {
  const normed = groups.map(String);
  return live.labels.spaces
    .filter((space) => space.born <= moment && moment <= space.dies)
    .map((space) => (normed.includes(String(space.dims)) ? { ...space, name: `norm of ${space.name}` } : space));
}

export function dimensionNames(live, moment, groups = []) {
  const names = new Map();
  for (const { name, dims, ends } of spacesAt(live, moment, groups)) dims.forEach((dim, at) => names.set(dim, name + ends[at]));
  return (dim) => names.get(dim) ?? `dimension ${dim}`;
}

export function labelMoment(net, moment) {
  return moment === 0 || !net.blocks || net.loops === 1 ? moment : 1 + ((moment - 1) % (2 * net.blocks.length));
}

const known = new WeakMap(); // the codes of kinds

function codes(kind) {
  if (!known.has(kind)) known.set(kind, codesOf(kind));
  return known.get(kind);
}

function codesOf({ tag, values, size }) {
  if (tag === "bits") return values.map((_, number) => span(size).map((bit) => ((number >> bit) & 1 ? 1 : -1)));
  return values.map((_, number) => {
    const angle = (2 * Math.PI * number) / values.length;
    return [Math.cos(angle), Math.sin(angle)].map((x) => (Math.abs(x - Math.round(x)) < 1e-12 ? Math.round(x) : x));
  });
}

const dot = (one, other) => one.reduce((sum, value, at) => sum + value * other[at], 0);
const apart = (one, other) => Math.max(...one.map((value, at) => Math.abs(value - other[at])));

// The distance of a vector from the nearest one that a kind of space allows.
function deviation(kind, x) {
  const far = (distance) => x.reduce((most, value, at) => (distance(value, at) <= most ? most : distance(value, at)), 0);
  const orZero = (distance) => (kind.void ? Math.min(distance, far(Math.abs)) : distance);
  if (kind.tag === "onehot") {
    const best = largest(x);
    return orZero(far((value, at) => Math.abs(value - Number(at === best))));
  }
  if (kind.tag === "bits") return orZero(far((value) => Math.abs(Math.abs(value) - 1)));
  if (kind.tag === "circle") return Math.min(far(Math.abs), ...codes(kind).map((code) => apart(code, x)));
  const inside = (value) => Math.min(Math.max(value, kind.low), kind.high);
  if (kind.tag === "integers") return far((value) => Math.abs(value - inside(Math.round(value))));
  if (kind.tag === "reals") return far((value) => Math.abs(value - inside(value)));
  return far((value) => Math.min(Math.abs(value), Math.abs(value - 1)));
}

function decode(kind, x) {
  const best = kind.tag === "onehot" ? x : ["bits", "circle"].includes(kind.tag) ? codes(kind).map((code) => dot(code, x)) : null;
  if (best) return x.some((value) => value !== 0) ? kind.values[largest(best)] : null;
  if (kind.tag === "multihot") return kind.values.filter((_, at) => x[at] > 0.5);
  const numbers = x.map((value) => Math.round(value) + 0);
  return numbers.length === 1 ? numbers[0] : numbers;
}

const bare = (end) => end.replace(/^[=∋[\]]+|[=∋[\]]+$/g, "");

function spaceText({ kind, ends }, x) {
  if (!kind || kind.tag === "reals") {
    if (x.length <= 4) return x.map((value) => general(value, 3)).join(" ");
    const there = span(x.length).filter((at) => Math.abs(x[at]) > MOVED);
    if (there.length > 3 || x.length <= BARS) return "";
    return there.map((at) => `${bare(ends[at])} ${general(x[at], 3)}`).join(" ");
  }
  const value = decode(kind, x);
  if (value === null) return "–";
  if (!Array.isArray(value)) return String(value);
  if (kind.tag === "multihot") return value.length <= 4 ? value.join(" ") : `${value.slice(0, 3).join(" ")} … ${value.length}`;
  return value.length <= 4 ? value.join(" ") : "";
}

function space(one, now, before, shown, moment) {
  const { dims, kind, ends } = one;
  const vectors = shown.map((row) => vector(now, row, dims));
  const fresh = Boolean(kind) && moment > 0 && (one.born === moment || !before);
  const old = before && Math.max(...dims) < before.cols;
  const changed = shown.map((row, at) => Number(Boolean(old) && apart(vectors[at], vector(before, row, dims)) > MOVED));
  const row = {
    name: one.name,
    kind: kind ? kind.tag : "number",
    size: dims.length,
    new: fresh,
    last: Boolean(kind) && one.dies === moment,
    changed,
    texts: vectors.map((x) => spaceText(one, x)),
    off: [],
  };
  if (kind) row.off = span(vectors.length).filter((at) => !(deviation(kind, vectors[at]) <= Math.max(2 * one.error, 1e-6)));
  if (dims.length <= BARS) {
    row.bars = vectors.map((x) => x.map((value) => (Math.abs(value) <= MOVED ? 0 : rounded(value))));
    row.names = ends.map(bare);
  }
  return row;
}

function spaces(live, run, stop, shown) {
  const now = run.moments[stop.moment];
  const moment = labelMoment(live.net, stop.moment);
  const earlier = live.facts.stops.filter((other) => other.moment < stop.moment).map((other) => other.moment);
  const before = stop.kind !== "answer" && stop.moment && live.net.blocks ? run.moments[Math.max(0, ...earlier)] : null;
  const named = spacesAt(live, moment);
  const taken = new Set(named.flatMap(({ dims }) => dims));
  const rowsOfNow = span(now.rows);
  const moving = span(now.cols).filter((dim) => !taken.has(dim) && rowsOfNow.some((row) => Math.abs(column(now, row, dim)) > MOVED));
  const unnamed = moving.slice(0, UNNAMED).map((dim) => ({ name: `dimension ${dim}`, dims: [dim], kind: null, ends: [""] }));
  const { starts } = live.arrays["unembed.W_U"];
  const read = ({ dims }) => dims.some((dim) => starts[dim + 1] > starts[dim]);
  const rows = [...named, ...unnamed].filter((one) => stop.kind !== "answer" || read(one)).map((one) => space(one, now, before, shown, moment));
  const rank = (row) => (row.new ? 0 : 2) + (row.changed.some(Boolean) ? 0 : 1);
  return rows.sort((one, two) => rank(one) - rank(two));
}

// Hidden units

const unitLabels = (live, block, part) => live.labels.units.filter((label) => label.block === block && label.part === part);
const labelAt = (labels, unit) => labels.find((label) => label.start <= unit && unit < label.stop);

function unitName(labels, part, unit) {
  const label = labelAt(labels, unit);
  if (!label) return { run: part, row: `unit ${unit}` };
  return { run: label.name, row: label.unit_names.length ? label.unit_names[unit - label.start] : `unit ${unit}` };
}

function termsOf(products, names, values) {
  const there = span(products.length).filter((at) => Math.abs(products[at]) > 1e-12);
  const order = there.sort((one, two) => Math.abs(products[two]) - Math.abs(products[one]) || one - two);
  const shown = order.slice(0, TERMS).map((at) => [names(at), rounded(products[at]), ...(values ? [rounded(values[at])] : [])]);
  return { terms: shown, more: order.length - shown.length };
}

function unitsAt(live, run, block, turn, position) {
  const { net } = live;
  const shape = net.blocks?.[block];
  const seen = [...run.seen[turn].data.subarray(position * run.seen[turn].cols, (position + 1) * run.seen[turn].cols)];
  const inputNames = dimensionNames(live, 2 * block + 1, shape ? groupsOf(net, 2 * block + 1, seen.length) : []);
  const outputNames = dimensionNames(live, 2 * block + 2);
  const first = net.residual === "concatenate" ? seen.length : 0; // the first dimension that is written
  const chosen = run.experts[turn]?.[position] ?? [];
  const parts = !shape || shape.units ? [{ part: "mlp", reads: span(seen.length), writes: (at) => first + at }] : [];
  for (const number of chosen) {
    const { reads, writes } = shape.experts[number];
    parts.push({ part: `moe.experts.${number}`, reads, writes: (at) => writes[at] });
  }
  let [count, fired, erased] = [0, 0, 0];
  const units = [];
  for (const { part, reads, writes } of parts) {
    const [wIn, wOut] = ["W_in", "W_out"].map((name) => live.arrays[`blocks.${block}.${part}.${name}`]);
    const bias = dense(live.arrays[`blocks.${block}.${part}.b_in`], 0);
    const own = reads.map((dim) => seen[dim]);
    const pre = Float64Array.from(bias);
    const because = new Map(); // by unit, what each dimension contributes
    own.forEach((value, at) => {
      for (let entry = wIn.starts[at]; entry < wIn.starts[at + 1]; entry += 1) pre[wIn.cols[entry]] += value * wIn.values[entry];
    });
    count += pre.length;
    const labels = unitLabels(live, block, part);
    const working = span(pre.length).filter((unit) => pre[unit] > MOVED);
    fired += working.length;
    const shown = working.filter((unit) => labelAt(labels, unit)?.name !== "erase");
    erased += working.length - shown.length;
    const strongest = shown
      .map((unit) => [unit, dense(wOut, unit).map((weight) => weight * pre[unit])])
      .map(([unit, written]) => ({ unit, written, strength: written.reduce((most, value) => Math.max(most, Math.abs(value)), 0) }))
      .sort((one, two) => two.strength - one.strength || one.unit - two.unit)
      .slice(0, UNITS);
    strongest.forEach(({ unit }) => because.set(unit, new Float64Array(own.length)));
    own.forEach((value, at) => {
      for (let entry = wIn.starts[at]; entry < wIn.starts[at + 1]; entry += 1) {
        const products = because.get(wIn.cols[entry]);
        if (products) products[at] = value * wIn.values[entry];
      }
    });
    units.push(...strongest.map(({ unit, written, strength }) => ({
      unit,
      part,
      name: unitName(labels, part, unit),
      value: rounded(pre[unit]),
      bias: rounded(bias[unit]),
      because: termsOf(because.get(unit), (at) => inputNames(reads[at]), own),
      writes: termsOf(written, (at) => outputNames(writes(at))),
      strength,
    })));
  }
  units.sort((one, two) => two.strength - one.strength);
  const expert = chosen.length ? labelAt(unitLabels(live, block, `moe.experts.${chosen[0]}`), 0)?.name ?? String(chosen[0]) : null;
  return { count, fired, erased, expert, shown: units.slice(0, UNITS) };
}

function logitsOf(live, run, position) {
  const { net, arrays } = live;
  const last = net.blocks ? 2 * net.blocks.length : live.facts.moments - 1;
  const width = run.final.cols;
  const names = dimensionNames(live, last, net.blocks ? groupsOf(net, last, width) : []);
  const stream = vector(run.final, position, span(width));
  const logits = vector(run.logits, position, span(run.logits.cols));
  const order = span(logits.length).sort((one, two) => (logits[two] || 0) - (logits[one] || 0) || one - two);
  const bias = dense(arrays["unembed.b_U"], 0);
  const rows = span(width).map((dim) => (stream[dim] ? dense(arrays["unembed.W_U"], dim) : null));
  return order.slice(0, SYMBOLS).map((symbol) => ({
    symbol: net.output.symbols[symbol],
    logit: rounded(logits[symbol]),
    bias: rounded(bias[symbol]),
    because: termsOf(stream.map((value, dim) => (rows[dim] ? value * rows[dim][symbol] : 0)), names, stream),
  }));
}

// Convolutional nets

function mapsOf(live, run, layer) {
  const { net } = live;
  const names = (block, count) => {
    const rows = live.labels.units.filter((label) => label.block === block).flatMap((label) => label.unit_names);
    return span(count).map((at) => rows[at] ?? `channel ${at}`);
  };
  if (layer < run.maps.length) {
    const { channels, rows, columns, data } = run.maps[layer];
    const called = layer ? names(layer - 1, channels) : net.pixels === "symbols" ? net.symbols : ["the image"];
    const planes = span(channels).map((at) => [...data.subarray(at * rows * columns, (at + 1) * rows * columns)]);
    const order = span(channels).sort((one, two) => Number(planes[two].some(Boolean)) - Number(planes[one].some(Boolean)) || one - two);
    const pictures = order.slice(0, CHANNELS).map((at) => {
      const top = planes[at].reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      const lines = span(rows).map((row) => shades(planes[at].slice(row * columns, (row + 1) * columns).map((value) => (top ? value / top : 0))));
      return { name: called[at], top: rounded(top), rows: lines };
    });
    return { maps: pictures };
  }
  const values = [...run.numbers[layer - run.maps.length]];
  const last = layer - run.maps.length === run.numbers.length - 1;
  const called = last ? net.output.symbols : names(layer - 2, values.length);
  const order = span(values.length).sort((one, two) => Number(!values[one]) - Number(!values[two]) || one - two);
  return { numbers: order.slice(0, CHANNELS).map((at) => [called[at], rounded(values[at])]) };
}

// Answers

export function answersOf(output, logits) {
  const { kind, scores } = output;
  return span(logits.rows).map((at) => {
    const row = vector(logits, at, span(logits.cols));
    if (kind === "values") return row;
    if (kind === "next") return row.map((value) => Number(value > 0));
    if (kind !== "lm") return row.map((_, symbol) => Number(symbol === largest(row)));
    if (scores === "log") return row.map(Math.exp);
    const best = Math.max(...row);
    const shares = scores === "linear" ? row : row.map((value) => Math.exp(value - best));
    const total = shares.reduce((sum, value) => sum + value, 0);
    return shares.map((value) => value / total);
  });
}

// The other symbols whose logit is as large as that of the first answer: then no symbol is the answer.
export function tied(output, logits) {
  if (!DECIDED.includes(output.kind)) return [];
  const best = largest(logits);
  return output.symbols.filter((_, at) => at !== best && logits[best] - logits[at] <= TIE);
}

function shortAnswer({ kind, symbols }, row, listed) {
  if (kind === "values" && !listed) return row.slice(0, LISTED).map((value) => general(value, 4)).join(" ") + (row.length > LISTED ? " …" : "");
  if (kind === "next" || kind === "values") {
    const legal = symbols.filter((_, at) => row[at] > 0.5);
    return legal.slice(0, LISTED).join(" ") + (legal.length > LISTED ? ` +${legal.length - LISTED}` : "") || "nothing";
  }
  return symbols[largest(row.map((value) => value || 0))];
}

function answerDetail(output, row, right, logits) {
  const weight = row.map((value, at) => Math.max(Math.abs(value) || 0, Math.abs(right[at]) || 0));
  const order = span(row.length);
  if (output.kind !== "values") order.sort((one, two) => weight[two] - weight[one] || one - two);
  const some = order.slice(0, SHOWN);
  return {
    symbols: some.map((at) => [output.symbols[at], ...[row, right, logits].map((values) => rounded(values[at], 6))]),
    more: row.length - some.length,
    accepting: output.accepting.slice(0, SHOWN),
    tied: tied(output, logits),
  };
}

function answered(net, logits) {
  if (net.reads === "tokens" || net.reads === "rows") {
    const first = net.reads === "tokens" ? net.pads - 1 : 0;
    return { rows: logits.rows - first, cols: logits.cols, data: logits.data.subarray(first * logits.cols) };
  }
  return { rows: 1, cols: logits.cols, data: logits.data.subarray((logits.rows - 1) * logits.cols) };
}

// The answers of a run beside those of the network as it was built, whose certificate says that they are right.
function beside(live, run, built, position) {
  const { output, reads, pads } = live.net;
  const [logits, wanted] = [run, built].map((one) => answered(live.net, one.logits));
  const first = reads === "tokens" ? pads - 1 : 0;
  const [rows, right] = [logits, wanted].map((one) => answersOf(output, one));
  const near = Math.max(1e-6, 1.5 * output.error);
  const row = (at) => vector(logits, at, span(logits.cols));
  const passes = rows.map((own, at) => own.every((value, symbol) => Math.abs(value - right[at][symbol]) <= near) && (run === built || !tied(output, row(at)).length));
  const at = Math.min(Math.max(position - first, 0), rows.length - 1);
  return {
    kind: output.kind,
    first,
    answers: rows.map((own) => shortAnswer(output, own, reads === "rows")),
    right: passes,
    at,
    detail: answerDetail(output, rows[at], right[at], row(at)),
    accepts: output.kind === "recognizer" ? output.accepting.includes(output.symbols[largest(rows[rows.length - 1])]) : null,
  };
}

// The whole story of one stop, for a run and that of the network as it was built.
export function storyAt(live, run, built, tokens, number, place) {
  const stop = live.facts.stops[Math.min(Math.max(number, 0), live.facts.stops.length - 1)];
  const count = tokens.length;
  const position = Math.min(Math.max(place ?? count - 1, 0), Math.max(count - 1, 0));
  const answer = beside(live, run, built, position);
  if (run.maps) return { stop, tokens, ...mapsOf(live, run, stop.moment), answer };
  const start = Math.max(0, Math.min(position - (WINDOW * 3) / 4, count - WINDOW));
  const shown = span(count).slice(start, start + WINDOW);
  const turn = Math.max(0, Math.floor((stop.moment - 1) / 2));
  const story = { stop, tokens: tokens.slice(start, start + WINDOW), start, position, count, spaces: spaces(live, run, stop, shown), answer };
  if (stop.kind === "attention") {
    const labels = new Map(live.labels.heads.filter((label) => label.block === stop.block).map((label) => [label.index, label]));
    story.heads = run.patterns[turn].slice(0, HEADS).map((pattern, index) => ({
      index,
      name: labels.get(index)?.name ?? `head ${index}`,
      writes: labels.get(index)?.writes ?? "",
      pattern: shown.map((query) => shades(vector(pattern, query, shown))),
    }));
  } else if (stop.kind === "units") story.units = unitsAt(live, run, stop.block, turn, position);
  else if (stop.kind === "answer") story.readout = logitsOf(live, run, position);
  return story;
}
