// Line charts in SVG: series with bands, named levels, linear and logarithmic axes, and values where one points.
// chart(element, {x: {label, log}, y: {label, log, from, to}, series: [{name, kind, x, y, low, high, dashed}],
//                 levels: [{name, value}], marks: [{x, y, name}]})
const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { top: 12, right: 20, bottom: 44, left: 62 };

/** An SVG element with attributes and children. */
export function draw(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A number in a few characters. */
export function short(value, digits = 3) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3 || (size >= 1e4 && Number.isInteger(Math.log10(size)))) {
    const [front, power] = value.toExponential(2).split("e");
    const times = Number(front) === 1 ? "" : `${Number(front)}·`;
    return `${times}10${superscript(Number(power))}`;
  }
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

function superscript(power) {
  return [...String(power)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");
}

/** Round numbers between two, about so many. */
export function ticks(from, to, count = 5) {
  const rough = (to - from) / Math.max(count, 1);
  if (!(rough > 0)) return [from];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(from / step - 1e-9); at * step <= to + 1e-9 * step; at += 1) found.push(at * step);
  return found;
}

function logTicks(from, to) {
  const [low, high] = [Math.ceil(Math.log10(from) - 1e-9), Math.floor(Math.log10(to) + 1e-9)];
  const every = Math.max(1, Math.ceil((high - low + 1) / 7));
  const found = [];
  for (let power = low; power <= high; power += every) found.push(10 ** power);
  if (found.length >= 3) return found;
  const more = [];
  for (let power = low - 1; power <= high; power += 1) {
    for (const front of [1, 2, 5]) more.push(front * 10 ** power);
  }
  const inside = more.filter((value) => value >= from * 0.999 && value <= to * 1.001);
  return inside.length >= 2 ? inside : ticks(from, to, 4);
}

function scale(axis, values, size, turned) {
  const usable = values.filter((value) => Number.isFinite(value) && (!axis.log || value > 0));
  let from = axis.from ?? Math.min(...usable);
  let to = axis.to ?? Math.max(...usable);
  if (!usable.length) [from, to] = axis.log ? [0.1, 1] : [0, 1];
  if (!(to > from)) [from, to] = axis.log ? [from / 2, from * 2 || 1] : [from - 0.5, to + 0.5];
  const bend = axis.log ? Math.log10 : (value) => value;
  if (axis.from === undefined && axis.pad) {
    const room = axis.pad * (bend(to) - bend(from));
    from = axis.log ? from / 10 ** room : from - room;
    to = axis.log ? to * 10 ** room : to + room;
  }
  const [low, high] = [bend(from), bend(to)];
  const place = (value) => {
    const part = (bend(axis.log ? Math.max(value, from * 1e-3) : value) - low) / (high - low);
    return turned ? size * (1 - part) : size * part;
  };
  return { from, to, place, ticks: axis.log ? logTicks(from, to) : ticks(from, to) };
}

function line(xs, ys, across, up, log) {
  let text = "";
  let down = false;
  xs.forEach((x, at) => {
    const y = ys[at];
    const drawn = Number.isFinite(y) && Number.isFinite(x) && !(log.x && x <= 0) && !(log.y && y <= 0);
    if (drawn) text += `${down ? "L" : "M"}${across.place(x).toFixed(1)},${up.place(y).toFixed(1)}`;
    down = drawn;
  });
  return text;
}

/** Draw a chart into an element, in place of what was there. */
export function chart(element, spec) {
  const width = Math.max(element.clientWidth, 280);
  const height = spec.height ?? 260;
  const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const log = { x: spec.x.log, y: spec.y.log };
  const xs = spec.series.flatMap((one) => one.x);
  const ys = spec.series.flatMap((one) => [...one.y, ...(one.low ?? []), ...(one.high ?? [])]);
  const across = scale(spec.x, xs, inner.width, false);
  const known = (spec.levels ?? []).map((one) => one.value);
  const up = scale({ pad: 0.06, ...spec.y }, [...ys, ...known], inner.height, true);
  const svg = draw("svg", {
    class: "chart",
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": spec.title ?? `${spec.y.label} against ${spec.x.label}`,
  });
  const plane = draw("g", { transform: `translate(${MARGIN.left},${MARGIN.top})` });
  const clip = `clip-${element.id}`;
  const frame = draw("rect", { width: inner.width, height: inner.height });
  svg.append(draw("defs", {}, draw("clipPath", { id: clip }, frame)), plane);
  axes(plane, spec, across, up, inner);
  const inside = draw("g", { "clip-path": `url(#${clip})` });
  plane.append(inside);
  for (const one of spec.series) inside.append(...shapes(one, across, up, log));
  levels(plane, spec.levels ?? [], up, inner, spec.y.log);
  pointing(svg, plane, spec, across, up, inner);
  element.replaceChildren(svg);
}

function axes(plane, spec, across, up, inner) {
  for (const value of across.ticks) {
    const x = across.place(value).toFixed(1);
    plane.append(draw("line", { class: "grid", x1: x, x2: x, y1: 0, y2: inner.height }));
    plane.append(draw("text", { class: "tick", x, y: inner.height + 16, "text-anchor": "middle" }, short(value)));
  }
  for (const value of up.ticks) {
    const y = up.place(value).toFixed(1);
    plane.append(draw("line", { class: "grid", x1: 0, x2: inner.width, y1: y, y2: y }));
    plane.append(draw("text", { class: "tick", x: -6, y, dy: "0.32em", "text-anchor": "end" }, short(value)));
  }
  const below = { class: "label", x: inner.width / 2, y: inner.height + 36, "text-anchor": "middle" };
  const turned = `translate(${-MARGIN.left + 14},${inner.height / 2}) rotate(-90)`;
  plane.append(draw("text", below, spec.x.label));
  plane.append(draw("text", { class: "label", transform: turned, "text-anchor": "middle" }, spec.y.label));
}

function shapes(one, across, up, log) {
  const found = [];
  if (one.low && one.high) {
    const there = line(one.x, one.high, across, up, log);
    const back = line([...one.x].reverse(), [...one.low].reverse(), across, up, log).replace("M", "L");
    if (there && back) found.push(draw("path", { class: `band ${one.kind}`, d: `${there}${back}Z` }));
  }
  const kind = `line ${one.kind}${one.dashed ? " dashed" : ""}${one.thin ? " thin" : ""}`;
  found.push(draw("path", { class: kind, d: line(one.x, one.y, across, up, log) }));
  return found;
}

/** Horizontal lines with their names; names that would overlap move up. */
function levels(plane, wanted, up, inner, log) {
  const taken = [];
  const sorted = wanted.filter((one) => !log || one.value > 0).sort((one, two) => one.value - two.value);
  for (const one of sorted) {
    const y = up.place(one.value);
    if (y < -1 || y > inner.height + 1) continue;
    plane.append(draw("line", { class: `level ${one.kind ?? ""}`, x1: 0, x2: inner.width, y1: y, y2: y }));
    let at = y - 4;
    while (taken.some((other) => Math.abs(other - at) < 13)) at -= 13;
    taken.push(at);
    const place = { class: `name ${one.kind ?? ""}`, x: inner.width - 4, y: at, "text-anchor": "end" };
    plane.append(draw("text", place, `${one.name} ${short(one.value, 4)}`));
  }
}

/** A line at the pointer with the values of all series there. */
function pointing(svg, plane, spec, across, up, inner) {
  const rule = draw("line", { class: "rule", y1: 0, y2: inner.height, visibility: "hidden" });
  const label = draw("text", { class: "value", y: 12, visibility: "hidden" });
  plane.append(rule, label);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width - MARGIN.left;
    const told = spec.series.filter((one) => one.name).map((one) => nearest(one, x, across));
    if (x < 0 || x > inner.width || !told.length) return;
    const at = told[0].at;
    const right = at > inner.width * 0.6;
    rule.setAttribute("x1", at);
    rule.setAttribute("x2", at);
    label.setAttribute("text-anchor", right ? "end" : "start");
    const head = draw("tspan", { x: at + (right ? -6 : 6) }, `${spec.x.short ?? spec.x.label} ${short(told[0].x)}`);
    const rows = told.slice(0, 6).map((one) => {
      return draw("tspan", { x: at + (right ? -6 : 6), dy: 14 }, `${one.name}: ${short(one.y, 4)}`);
    });
    label.replaceChildren(head, ...rows);
    for (const one of [rule, label]) one.setAttribute("visibility", "visible");
  });
  svg.addEventListener("pointerleave", () => {
    for (const one of [rule, label]) one.setAttribute("visibility", "hidden");
  });
}

function nearest(one, x, across) {
  let best = 0;
  one.x.forEach((value, at) => {
    if (Math.abs(across.place(value) - x) < Math.abs(across.place(one.x[best]) - x)) best = at;
  });
  return { name: one.name, x: one.x[best], y: one.y[best], at: across.place(one.x[best]) };
}
