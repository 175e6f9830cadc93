// The two maps of a head, over the names of the spaces that it reads and writes: which pair of features makes it
// attend (W_Q W_K transposed, times its β), and what is copied where (W_V W_O).

import { draw, make, number } from "./page.js";
import { dense } from "./arrays.js";
import { groupsOf } from "./forward.js";
import { dimensionNames, spacesAt } from "./story.js";

const MOST = 36; // rows or columns drawn one by one; of more, one for each space

// An array [head, in, d] as rows by dimension, with the bias as a last row.
function rowsOf({ arrays }, name, letter, head) {
  const weights = arrays[`${name}.W_${letter}`];
  const width = weights.shape[1];
  const rows = Array.from({ length: width }, (_, dim) => dense(weights, head * width + dim));
  return [...rows, dense(arrays[`${name}.b_${letter}`], head)];
}

const product = (one, other) => one.reduce((sum, value, at) => sum + value * other[at], 0);

function table(rows, columns, value, titles) {
  const entries = new Map();
  rows.forEach(({ at }, r) => columns.forEach(({ at: other }, c) => {
    const all = at.flatMap((i) => other.map((j) => value(i, j)));
    const largest = all.reduce((most, one) => (Math.abs(one) > Math.abs(most) ? one : most), 0);
    if (largest) entries.set(`${r},${c}`, largest);
  }));
  const used = (axis, list) => list.map((_, at) => at).filter((at) => [...entries.keys()].some((key) => Number(key.split(",")[axis]) === at));
  return { entries, rows: used(0, rows).map((at) => [at, rows[at].name]), columns: used(1, columns).map((at) => [at, columns[at].name]), titles };
}

// Dimensions by name, or, where they are many, spaces.
function axis(live, moment, groups, used, constant) {
  const names = dimensionNames(live, moment, groups);
  const single = used.map((dim) => ({ name: names(dim), at: [dim] }));
  const spaces = spacesAt(live, moment, groups).map(({ name, dims }) => ({ name, at: dims.filter((dim) => used.includes(dim)) })).filter(({ at }) => at.length);
  const chosen = used.length > MOST && spaces.length ? spaces : single.slice(0, MOST);
  return constant === null ? chosen : [...chosen, { name: "always", at: [constant] }];
}

function picture({ entries, rows, columns, titles }) {
  if (!rows.length) return make("p", { class: "quiet" }, `${titles[0]}: nothing`);
  const size = 15;
  const long = (list) => Math.min(150, 10 + 6.4 * Math.max(...list.map(([, name]) => name.length)));
  const [left, top] = [long(rows), long(columns)];
  const most = Math.max(...[...entries.values()].map(Math.abs));
  const [width, height] = [left + columns.length * size + 2, top + rows.length * size + 2];
  const cut = (name) => (name.length > 22 ? `${name.slice(0, 21)}…` : name);
  const parts = [];
  rows.forEach(([at, name], r) => {
    const y = top + r * size;
    parts.push(draw("text", { x: left - 4, y: y + 11, "text-anchor": "end" }, cut(name)));
    columns.forEach(([other, column], c) => {
      const value = entries.get(`${at},${other}`) ?? 0;
      const kind = value > 0 ? "plus" : value < 0 ? "minus" : "none";
      const cell = draw("rect", { class: `cell ${kind}`, x: left + c * size, y, width: size - 1, height: size - 1, opacity: value ? 0.2 + 0.8 * Math.abs(value / most) : 1 });
      cell.append(draw("title", {}, `${name} → ${column}: ${number(value)}`));
      parts.push(cell);
    });
  });
  columns.forEach(([, name], c) => {
    const x = left + c * size + 11;
    parts.push(draw("text", { x, y: top - 4, transform: `rotate(-90 ${x} ${top - 4})` }, cut(name)));
  });
  const svg = draw("svg", { class: "circuit", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${titles[0]}: ${titles[1]}` }, ...parts);
  return make("figure", { class: "circuit-figure" }, make("figcaption", {}, make("b", {}, `${titles[0]} `), make("span", { class: "quiet" }, `${titles[1]}; up to ${number(most)}`)), make("div", { class: "scroll" }, svg));
}

export function circuits(live, block, head) {
  const { net, arrays } = live;
  const name = `blocks.${block}.attn`;
  const [q, k, v] = [..."QKV"].map((letter) => rowsOf(live, name, letter, head));
  const beta = dense(arrays[`${name}.beta`], 0)[head];
  const width = q.length - 1;
  const groups = groupsOf(net, 2 * block, width);
  const used = (rows) => rows.slice(0, -1).map((_, dim) => dim).filter((dim) => rows[dim].some(Boolean));
  const reads = (rows) => axis(live, 2 * block, groups, used(rows), rows[width].some(Boolean) ? width : null);
  const size = net.blocks[block].d_value;
  const out = Array.from({ length: size }, (_, dim) => dense(arrays[`${name}.W_O`], head * size + dim));
  const columns = Array.from({ length: out[0]?.length ?? 0 }, (_, dim) => dim);
  const across = columns.map((dim) => out.map((row) => row[dim]));
  const targets = axis(live, 2 * block + 1, [], columns.filter((dim) => across[dim].some(Boolean)), null);
  return make(
    "div",
    { class: "circuits" },
    picture(table(reads(q), reads(k), (i, j) => beta * product(q[i], k[j]), ["QK", "rows: at the query, columns: at the key"])),
    picture(table(reads(v), targets, (i, j) => product(v[i], across[j]), ["OV", "rows: read at the key, columns: written"])),
  );
}
