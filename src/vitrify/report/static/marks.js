// Ticks, and marks of figures as SVG: lines, points, bands, matrices, boxes, rules, segments, texts. See figure.js.
"use strict";
const MARKS = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const CHARACTER = 6.6; // pixels that a character of a tick is wide
  const DASHES = { "--": "6 4", ":": "2 3", "-.": "7 3 2 3" };

  function svg(kind, attributes, ...children) {
    const made = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  const raised = (power) => [...String(power)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");

  function short(value) {
    const size = Math.abs(value);
    if (value === 0 || value === null) return value === 0 ? "0" : "–";
    if (size >= 1e6 || size < 1e-3) {
      const [front, power] = value.toExponential(2).split("e").map(Number);
      return `${front === 1 ? "" : `${front}·`}10${raised(power)}`.replace("-", "−");
    }
    return Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 }).replace("-", "−");
  }

  function paint(color) {
    if (!color) return "none";
    if (/^C\d$/.test(color)) return `var(--c${color[1]})`;
    return color[0] === "#" ? `color-mix(in oklab, ${color} 80%, var(--ink))` : `var(--${color})`;
  }

  // Axes -----------------------------------------------------------------------------------------------------------
  function bend(axis) {
    if (axis.scale === "log") return [Math.log10, (value) => 10 ** value];
    if (axis.scale !== "symlog") return [(value) => value, (value) => value];
    return [
      (value) => Math.sign(value) * (Math.abs(value) < 1 ? Math.abs(value) : 1 + Math.log10(Math.abs(value))),
      (value) => Math.sign(value) * (Math.abs(value) < 1 ? Math.abs(value) : 10 ** (Math.abs(value) - 1)),
    ];
  }

  function linear(low, high, count) {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at += 1) found.push(Number((at * step).toPrecision(12)));
    return found;
  }

  function powers(low, high, base, count) {
    const ends = [low, high].map((value) => Math.log(value) / Math.log(base));
    const [first, last] = [Math.ceil(ends[0] - 1e-9), Math.floor(ends[1] + 1e-9)];
    const every = Math.max(1, Math.ceil((last - first + 1) / count));
    const found = [];
    for (let power = first; power <= last; power += every) found.push(Number((base ** power).toPrecision(12)));
    if (found.length > 2 || base !== 10) return found.length > 1 ? found : linear(low, high, count);
    const more = [];
    for (let power = first - 1; power <= last; power += 1) more.push(...[1, 2, 5].map((one) => one * 10 ** power));
    const inside = more.filter((value) => value >= low * 0.999 && value <= high * 1.001);
    return inside.length > 1 ? inside : linear(low, high, count);
  }

  function ticks(axis, low, high, count) {
    const names = Object.keys(axis.names).map(Number);
    if (axis.quiet) return [];
    if (names.length) return names.filter((value) => value >= low && value <= high);
    if (axis.scale === "log") return powers(low, high, axis.base, count);
    if (axis.scale === "symlog" && high > 20) return [0, ...powers(1, high, 10, count)].filter((value) => value >= low);
    return linear(low, high, count);
  }

  function scale(axis, view, from, to, count) {
    const [there, back] = bend(axis);
    const place = (value) => from + ((there(value) - view[0]) / (view[1] - view[0])) * (to - from);
    const value = (at) => back(view[0] + ((at - from) / (to - from)) * (view[1] - view[0]));
    const [low, high] = [back(Math.min(...view)), back(Math.max(...view))];
    const shown = (each) => each !== null && each !== undefined && Number.isFinite(there(each));
    return { place, value, low, high, shown, ticks: ticks(axis, low, high, count), from, to };
  }

  const named = (axis, value) => axis.names[String(value)] ?? short(value);
  const cut = (text, most) => (text.length > most ? `${text.slice(0, Math.max(most - 1, 1))}…` : text);

  // Marks ----------------------------------------------------------------------------------------------------------
  function path(mark, x, y) {
    let text = "";
    let down = false;
    mark.x.forEach((value, at) => {
      const seen = x.shown(value) && y.shown(mark.y[at]);
      const [px, py] = seen ? [x.place(value).toFixed(1), y.place(mark.y[at]).toFixed(1)] : [];
      if (seen) text += down ? (mark.steps ? `H${px}V${py}` : `L${px},${py}`) : `M${px},${py}`;
      down = seen;
    });
    return text;
  }

  function symbol(marker, px, py, size, looks) {
    const half = Math.max(1.3 * size, 5) / 2;
    const line = { ...looks, fill: "none", stroke: looks.fill, "stroke-width": 1.8 };
    if (marker === "x") return svg("path", { d: `M${px - half},${py - half}l${2 * half},${2 * half}m0,${-2 * half}l${-2 * half},${2 * half}`, ...line });
    if (marker === "_") return svg("path", { d: `M${px - half},${py}h${2 * half}`, ...line, "stroke-width": 2.2 });
    if (marker === "s") return svg("rect", { x: px - half, y: py - half, width: 2 * half, height: 2 * half, ...looks });
    if (marker === "^" || marker === "v") {
      const up = marker === "^" ? 1 : -1;
      return svg("path", { d: `M${px - half},${py + up * half}h${2 * half}l${-half},${-2 * up * half}z`, ...looks });
    }
    return svg("circle", { cx: px, cy: py, r: marker === "." ? half * 0.6 : half, ...looks });
  }

  function points(mark, x, y) {
    const found = [];
    mark.x.forEach((value, at) => {
      if (!x.shown(value) || !y.shown(mark.y[at])) return;
      const looks = { fill: paint(mark.each?.[at] ?? mark.color), "fill-opacity": mark.alpha ?? undefined };
      found.push(symbol(mark.marker, x.place(value), y.place(mark.y[at]), mark.size, looks));
    });
    return found;
  }

  function matrix(mark, x, y) {
    const [left, bottom, right, top] = mark.ends;
    const [rows, columns] = [mark.levels.length, mark.levels[0].length];
    return mark.levels.flatMap((row, down) =>
      row.map((level, across) => {
        const ends = [across, across + 1].map((at) => x.place(left + ((right - left) * at) / columns));
        const sides = [down, down + 1].map((at) => y.place(top + ((bottom - top) * at) / rows));
        const place = { x: Math.min(...ends), y: Math.min(...sides), width: Math.abs(ends[1] - ends[0]) + 0.3, height: Math.abs(sides[1] - sides[0]) + 0.3 };
        if (level === null) return svg("rect", { ...place, fill: "var(--sunk)" });
        if (mark.colors.length) return svg("rect", { ...place, fill: mark.colors[level] });
        return svg("rect", { ...place, fill: "var(--accent)", "fill-opacity": (level / 31).toFixed(2) });
      }),
    );
  }

  function box(mark, x, y) {
    const within = (axis, ends) => (ends ?? [axis.low, axis.high]).map((end) => axis.place(axis.shown(end) ? end : axis.low));
    const [across, up] = [within(x, mark.x), within(y, mark.y)];
    const place = { x: Math.min(...across), y: Math.min(...up), width: Math.abs(across[1] - across[0]), height: Math.abs(up[1] - up[0]) };
    const looks = mark.filled ? { fill: paint(mark.color), "fill-opacity": mark.alpha ?? 0.85 } : { fill: "none", stroke: paint(mark.color), "stroke-width": 2 };
    return [svg("rect", { ...place, ...looks })];
  }

  function words(mark, x, y, cell) {
    const lines = mark.text.split("\n");
    const inside = ["#ffffff", "ink"].includes(mark.color) && cell;
    if (inside && (Math.max(...lines.map((each) => each.length)) * 6 > cell[0] || lines.length * 12 > cell[1])) return [];
    const px = mark.share.includes("x") ? x.from + mark.x * (x.to - x.from) : x.place(mark.x);
    const py = mark.share.includes("y") ? y.from + mark.y * (y.to - y.from) : y.place(mark.y);
    const anchor = { right: "end", left: "start" }[mark.anchor] ?? "middle";
    const fill = inside ? (mark.color === "ink" ? "#000000" : mark.color) : undefined;
    const text = svg("text", { class: "note", y: py + (mark.above ? -4 : 4 - 6 * (lines.length - 1)), "text-anchor": anchor, fill });
    lines.forEach((each, at) => text.append(svg("tspan", { x: px, dy: at ? 12 : 0 }, each)));
    return [text];
  }

  /** Move texts up that would stand on others. */
  function spread(texts) {
    const taken = [];
    const places = texts.map((text) => [text, Number(text.getAttribute("y")), Number(text.firstChild.getAttribute("x"))]);
    for (const [text, y, x] of places.sort((one, two) => two[1] - one[1])) {
      let at = y;
      while (taken.some(([other, beside]) => Math.abs(other - at) < 12 && Math.abs(beside - x) < 90)) at -= 4;
      taken.push([at, x]);
      text.setAttribute("y", at);
    }
  }

  function draw(mark, x, y, cell) {
    const stroke = { fill: "none", stroke: paint(mark.color), "stroke-opacity": mark.alpha ?? undefined, "stroke-dasharray": DASHES[mark.dash], "stroke-width": mark.width ?? 1.5 };
    if (mark.kind === "line") return [svg("path", { d: path(mark, x, y), ...stroke }), ...(mark.marker ? points(mark, x, y) : [])];
    if (mark.kind === "points") return points(mark, x, y);
    if (mark.kind === "area") return [svg("path", { d: `${path(mark, x, y)}Z`.replace(/^Z$/, ""), fill: paint(mark.color), "fill-opacity": mark.alpha ?? 0.2 })];
    if (mark.kind === "matrix") return matrix(mark, x, y);
    if (mark.kind === "box") return box(mark, x, y);
    if (mark.kind === "text") return words(mark, x, y, cell);
    if (mark.kind === "rule") {
      const d = mark.x === undefined ? `M${x.from},${y.place(mark.y)}H${x.to}` : `M${x.place(mark.x)},${y.from}V${y.to}`;
      return [svg("path", { d, ...stroke })];
    }
    const d = mark.segments.map(([x0, y0, x1, y1]) => `M${x.place(x0)},${y.place(y0)}L${x.place(x1)},${y.place(y1)}`).join("");
    return [svg("path", { d, ...stroke })];
  }

  return { CHARACTER, DASHES, bend, cut, draw, named, paint, scale, short, spread, svg, symbol, ticks };
})();
