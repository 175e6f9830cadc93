// Pictures of numbers: the attention of a head, the channels of a convolution.

import { colour, draw, make } from "./page.js";

const shade = (row, at) => parseInt(row.slice(2 * at, 2 * at + 2), 16) / 255;

function sharp(width, height) {
  const canvas = make("canvas");
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  return [canvas, context];
}

function short(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let cut = text;
  while (cut.length > 1 && context.measureText(`${cut}…`).width > room) cut = cut.slice(0, -1);
  return `${cut}…`;
}

// Rows are the queries of a head, columns its keys; the chosen position has a frame.
export function heatMap(story, head, choose) {
  const { tokens, start, position } = story;
  const count = tokens.length;
  const size = Math.max(5, Math.min(26, Math.floor(300 / count)));
  const labelled = size >= 11;
  const left = labelled ? Math.min(72, 14 + 7 * Math.max(...tokens.map((token) => token.length))) : 4;
  const top = labelled ? Math.min(64, left) : 4;
  const [canvas, context] = sharp(left + count * size + 2, top + count * size + 2);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  const ink = colour("muted");
  for (let query = 0; query < count; query += 1) {
    const here = start + query === position;
    if (labelled) {
      context.fillStyle = here ? colour("accent") : ink;
      context.textAlign = "right";
      context.fillText(short(context, tokens[query], left - 8), left - 5, top + (query + 0.5) * size);
      context.save();
      context.translate(left + (query + 0.5) * size, top - 5);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillStyle = ink;
      context.fillText(short(context, tokens[query], top - 8), 0, 0);
      context.restore();
    }
    for (let key = 0; key < count; key += 1) {
      const x = left + key * size;
      const y = top + query * size;
      context.fillStyle = colour("sunk");
      context.fillRect(x, y, size - 1, size - 1);
      const weight = shade(head.pattern[query], key);
      if (weight > 0.004) {
        context.globalAlpha = 0.12 + 0.88 * weight;
        context.fillStyle = colour("accent");
        context.fillRect(x, y, size - 1, size - 1);
        context.globalAlpha = 1;
      }
    }
    if (here) {
      context.strokeStyle = colour("accent");
      context.strokeRect(left - 1, top + query * size - 0.5, count * size + 1, size);
    }
  }
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Attention of ${head.name}: rows look at columns`);
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const cell = (offset, first) => Math.floor((offset - first) / size);
    return [cell(event.clientY - box.top, top), cell(event.clientX - box.left, left)];
  };
  canvas.addEventListener("click", (event) => {
    const [query] = at(event);
    if (query >= 0 && query < count) choose(start + query);
  });
  canvas.addEventListener("mousemove", (event) => {
    const [query, key] = at(event);
    const inside = query >= 0 && query < count && key >= 0 && key < count;
    canvas.title = inside ? `${tokens[query]} attends to ${tokens[key]}: ${shade(head.pattern[query], key).toFixed(2)}` : "";
  });
  return make("div", { class: "scroll" }, canvas);
}

export function pictures(list) {
  const cards = list.map(({ name, top, rows }) => {
    const columns = rows[0].length / 2;
    const size = Math.max(3, Math.min(12, Math.floor(120 / Math.max(columns, rows.length))));
    const [canvas, context] = sharp(columns * size, rows.length * size);
    rows.forEach((row, y) => {
      for (let x = 0; x < columns; x += 1) {
        context.globalAlpha = 1;
        context.fillStyle = colour("sunk");
        context.fillRect(x * size, y * size, size - 0.5, size - 0.5);
        context.globalAlpha = shade(row, x);
        context.fillStyle = colour("accent");
        context.fillRect(x * size, y * size, size - 0.5, size - 0.5);
      }
    });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${name}, up to ${top}`);
    return make("figure", { class: "map" }, canvas, make("figcaption", {}, `${name} `, make("span", { class: "quiet" }, `up to ${top}`)));
  });
  return make("div", { class: "maps" }, cards);
}

// The same weights as arcs over the tokens, from each query to what it attends to; those of the chosen position stand out.
export function arcs(story, head, choose) {
  const { tokens, start, position } = story;
  const step = Math.max(20, Math.min(64, Math.floor(420 / tokens.length)));
  const height = Math.min(110, 18 + 9 * Math.min(tokens.length, 10));
  const x = (at) => (at + 0.5) * step;
  const parts = [];
  head.pattern.forEach((row, query) => {
    for (let key = 0; key < tokens.length; key += 1) {
      const weight = shade(row, key);
      if (weight < 0.02) continue;
      const here = start + query === position;
      const rise = Math.min(height - 4, 14 + (Math.abs(query - key) * (height - 18)) / Math.max(1, Math.min(tokens.length - 1, 10)));
      const path = query === key ? `M${x(query) - 4} ${height} a4.5 7 0 1 1 8 0` : `M${x(query)} ${height} C${x(query)} ${height - rise * 1.3} ${x(key)} ${height - rise * 1.3} ${x(key)} ${height}`;
      const arc = draw("path", { d: path, class: here ? "arc here" : "arc", opacity: here ? 0.25 + 0.75 * weight : 0.6 * weight, "stroke-width": here ? 1 + 2 * weight : 1 });
      arc.append(draw("title", {}, `${tokens[query]} attends to ${tokens[key]}: ${weight.toFixed(2)}`));
      if (here) parts.push(arc);
      else parts.unshift(arc);
    }
  });
  const letters = Math.max(2, Math.floor(step / 7));
  tokens.forEach((token, at) => {
    const text = draw("text", { x: x(at), y: height + 14, "text-anchor": "middle", class: start + at === position ? "here" : "" }, token.length > letters ? `${token.slice(0, letters - 1)}…` : token);
    text.addEventListener("click", () => choose(start + at));
    parts.push(text);
  });
  const width = tokens.length * step;
  const svg = draw("svg", { class: "arcs", viewBox: `0 0 ${width} ${height + 20}`, width, height: height + 20, role: "img", "aria-label": `Attention of ${head.name} as arcs over the tokens` }, ...parts);
  return make("div", { class: "scroll" }, svg);
}
