// A network that is in the page: it answers the questions that the app's server answers for a network of its own.

import { Refusal, number } from "./page.js";
import { entriesOf, unpack, withEntries } from "./arrays.js";
import { forward } from "./forward.js";
import { answersOf, dimensionNames, largest, storyAt, tied } from "./story.js";

const [ENTRIES, TRIED, PATIENCE] = [200, 400, 400]; // entries that are listed, inputs of a search for an error, its milliseconds
const UNKNOWN = ["<unk>", "<UNK>"];

// What a list of words is for a network: its input, and the names of its positions.
export function encoded({ net, facts }, words) {
  const wrong = (text) => {
    throw new Refusal(text);
  };
  const numbers = () => words.map((word) => (word.trim() && Number.isFinite(Number(word)) ? Number(word) : wrong(`this network reads numbers, not “${word}”`)));
  const known = (symbols, word) => {
    const at = symbols.indexOf(word);
    return at < 0 ? wrong(`this network does not read “${word}”; it reads: ${symbols.slice(0, 20).join(" ")}${symbols.length > 20 ? " …" : ""}`) : at;
  };
  if (net.reads === "vector") return words.length === net.inputs.length ? [[numbers()], Array.from({ length: net.max_length }, (_, at) => String(at + 1))] : wrong(`this network reads ${net.inputs.length} numbers`);
  if (net.reads === "rows") {
    const rows = net.inputs.map((_, at) => net.inputs.map((_, other) => Number(at === other)));
    for (const word of words) {
      const [one, other] = word.split("-").map((node) => known(net.inputs, node));
      if (other === undefined) wrong(`an edge is given as two nodes, a-b, not “${word}”`);
      rows[one][other] = rows[other][one] = 1;
    }
    return [rows, net.inputs];
  }
  if (net.symbols) {
    const size = net.rows * net.columns;
    if (words.length !== size) wrong(`this network reads ${size} ${net.pixels === "symbols" ? "symbols" : "pixels"}, not ${words.length}`);
    if (net.pixels !== "symbols") return [numbers(), []];
    const planes = new Float64Array(net.planes * size);
    words.forEach((word, at) => (planes[known(net.symbols, word) * size + at] = 1));
    return [planes, words];
  }
  const symbols = net.inputs.slice(1);
  const fallback = UNKNOWN.map((name) => symbols.indexOf(name)).find((at) => at >= 0);
  const ids = words.map((word) => 1 + (fallback !== undefined && !symbols.includes(word) ? fallback : known(symbols, word)));
  const least = net.min_length || Number(net.pads === 0);
  if (words.length > facts.longest) wrong(`the sequence has ${words.length} tokens, the network was built for at most ${facts.longest}`);
  if (words.length < least) wrong(`the sequence has ${words.length} tokens, the network was built for at least ${least}`);
  return [[...Array(net.pads).fill(0), ...ids], [...Array(net.pads).fill(net.inputs[0]), ...words]];
}

// The names of the axes of an array, as functions of an index.
function axes(live, name) {
  const { net, arrays } = live;
  const { shape } = arrays[name];
  const block = name.startsWith("blocks.") ? Number(name.split(".")[1]) : 0;
  const plain = (word) => (at) => `${word} ${at}`.trim();
  if (net.architecture === "convolutional") return shape.map(() => plain(""));
  const stream = (moment) => dimensionNames(live, moment);
  const named = new Map(live.labels.heads.filter((label) => label.block === block).map((label) => [label.index, label.name]));
  const head = (at) => `head ${named.get(at) ?? at}`;
  const part = name.split(".").slice(2, -1).join(".");
  const unit = (at) => {
    const label = live.labels.units.find((one) => one.block === block && one.part === part && one.start <= at && at < one.stop);
    const called = label && (label.unit_names.length ? label.unit_names[at - label.start] : label.name);
    return `unit ${at}${called ? `, ${called}` : ""}`;
  };
  const output = (at) => net.output.symbols[at];
  const after = stream(net.blocks ? 2 * block + 2 : 2);
  const known = {
    W_E: [(at) => net.inputs[at], stream(0)],
    W_pos: [plain("position"), stream(0)],
    W_O: [head, plain("value"), stream(2 * block + 1)],
    beta: [head],
    W_U: [stream(net.blocks ? 2 * net.blocks.length : live.facts.moments - 1), output],
    b_U: [output],
    ...Object.fromEntries(Object.entries({ Q: "query", K: "key", V: "value" }).flatMap(([letter, word]) => [
      [`W_${letter}`, [head, stream(2 * block), plain(word)]],
      [`b_${letter}`, [head, plain(word)]],
    ])),
    ...(part === "mlp" ? { W_in: [stream(2 * block + 1), unit], b_in: [unit], W_out: [unit, after], b_out: [after] } : {}),
  }[name.split(".").pop()];
  return known && known.length === shape.length ? known : shape.map(() => plain(""));
}

function indices(shape, flat) {
  const place = [];
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    place.unshift(flat % shape[axis]);
    flat = Math.floor(flat / shape[axis]);
  }
  return place;
}

// Numbers that depend on a seed alone.
function random(seed) {
  let state = (seed * 2654435761 + 40503) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export function inPage(packed) {
  const { net, labels, facts, suggestions } = packed;
  const built = unpack(packed.arrays);
  const live = { net, labels, facts, arrays: built };
  const words_of = (array, flat) => indices(live.arrays[array].shape, flat).map((at, axis) => axes(live, array)[axis](at)).join(" → ");
  let changes = [];
  let latest = {}; // the last runs, of the network as it is and as it was built

  function runs(words) {
    const key = JSON.stringify(words);
    if (latest.key === key && latest.arrays === live.arrays) return latest;
    const [input, tokens] = encoded(live, words);
    const wanted = latest.key === key ? latest.wanted : forward(net, built, input);
    latest = { key, arrays: live.arrays, tokens, wanted, run: live.arrays === built ? wanted : forward(net, live.arrays, input) };
    return latest;
  }

  function changed(array, entries, line) {
    live.arrays = { ...live.arrays, [array]: withEntries(live.arrays[array], entries) };
    changes = [...changes, line];
    return { changes };
  }

  // An input of the network: a suggestion, cut or with other symbols, as far as such inputs can be read.
  function drawn(rng) {
    const words = [...suggestions[Math.floor(rng() * suggestions.length)]];
    if (net.reads !== "tokens" || rng() < 0.3) return words;
    const symbols = net.inputs.slice(1);
    const other = words.map((word) => (rng() < 0.3 ? symbols[Math.floor(rng() * symbols.length)] : word));
    return other.slice(0, Math.max(net.min_length ?? 0, 1, Math.ceil(rng() * other.length)));
  }

  // The first position at which the network answers otherwise than as it was built, or −1.
  function differs(words) {
    const { run, wanted } = runs(words);
    const [own, right] = [run, wanted].map(({ logits }) => answersOf(net.output, logits));
    const first = net.reads === "tokens" ? Math.max(net.pads - 1, 0) : net.reads === "rows" ? 0 : own.length - 1;
    const near = Math.max(1e-6, 1.5 * net.output.error);
    return own.findIndex((row, at) => at >= first && (row.some((value, symbol) => !(Math.abs(value - right[at][symbol]) <= near)) || tied(net.output, [...run.logits.data.subarray(at * row.length, (at + 1) * row.length)]).length));
  }

  return {
    facts: { ...facts, net: facts.name },
    packed: live,
    run: async ({ words, stop, position }) => {
      const { run, wanted, tokens } = runs(words);
      return storyAt(live, run, wanted, tokens, stop, position);
    },
    suggest: async (seed) => ({ words: suggestions[seed % suggestions.length] }),
    write: async ({ words, steps }) => {
      const written = [...words];
      while (written.length < Math.min(words.length + steps, facts.longest)) {
        const { logits } = forward(net, live.arrays, encoded(live, written)[0]);
        const symbol = net.output.symbols[largest(logits.data.subarray((logits.rows - 1) * logits.cols))];
        if (!net.inputs.slice(1).includes(symbol)) break;
        written.push(symbol);
      }
      return { words: written };
    },
    entries: async (array, search) => {
      const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
      const all = entriesOf(live.arrays[array]);
      const found = [];
      for (const [flat, value] of all) {
        if (found.length === ENTRIES) break;
        const words = words_of(array, flat);
        if (wanted.every((word) => words.toLowerCase().includes(word))) found.push([indices(live.arrays[array].shape, flat), words, value]);
      }
      return { entries: found, more: found.length === ENTRIES ? all.length - ENTRIES : 0 };
    },
    change: async ({ seed, array, index, value }) => {
      if (array !== undefined) {
        const flat = index.reduce((at, one, axis) => at * live.arrays[array].shape[axis] + one, 0);
        const old = entriesOf(live.arrays[array]).find(([at]) => at === flat)?.[1] ?? 0;
        return changed(array, [[flat, value]], `${array}[${index.join(", ")}] (${words_of(array, flat)}): ${number(old)} → ${number(value)}`);
      }
      const rows = Object.entries(live.arrays).flatMap(([name, { starts, rows: count }]) => Array.from({ length: count }, (_, row) => [name, row]).filter(([, row]) => !name.endsWith("beta") && starts[row + 1] > starts[row]));
      if (!rows.length) throw new Refusal("this network holds nothing that could be broken");
      const [name, row] = rows[Math.floor(random(seed + 1)() * rows.length)];
      const { starts, cols, width, shape } = live.arrays[name];
      const gone = [...cols.subarray(starts[row], starts[row + 1])].map((at) => [row * width + at, 0]);
      if (shape.length === 1) gone.splice(0, gone.length, gone[Math.floor(random(seed + 7)() * gone.length)]);
      const where = shape.length === 1 ? words_of(name, gone[0][0]) : words_of(name, gone[0][0]).split(" → ").slice(0, -1).join(" → ");
      return changed(name, gone, `${name}, ${where}: zeroed`);
    },
    mend: async () => {
      live.arrays = built;
      changes = [];
      return { changes };
    },
    // Look for an input on which the network does not answer as it was built to.
    check: async () => {
      if (live.arrays === built) return { verdict: "holds", text: "as built", tried: 0 };
      const [rng, since] = [random(1), performance.now()];
      let tried = 0;
      for (; tried < TRIED && performance.now() - since < PATIENCE; tried += 1) {
        const words = tried < suggestions.length ? suggestions[tried] : drawn(rng);
        const position = differs(words);
        if (position >= 0) return { verdict: "fails", text: "goes wrong", tried: tried + 1, words, position };
      }
      return { verdict: "undecided", text: "no error found", tried };
    },
  };
}
