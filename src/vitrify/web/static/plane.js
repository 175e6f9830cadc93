// The plane of e and w: heights and basins on a canvas; contours, flow lines, critical points and the way in SVG above.
import { draw, ticks } from "./chart.js";

const SIZE = 640;
const MARGIN = { top: 10, right: 12, bottom: 46, left: 54 };
const SHARES = [0.05, 0.2, 0.5, 0.9, 1.4, 2.5, 6, 20]; // contours, in parts of the way from the entropy rate to H(π)

export class Plane {
  /** A plane in an element that holds a canvas and an SVG; `moved(e, w)` is told where `start` is to be put. */
  constructor(element, start, moved) {
    this.start = start;
    this.canvas = element.querySelector("canvas");
    this.svg = element.querySelector("svg");
    this.moved = moved;
    this.shown = { basins: true, lines: true, networks: true };
    this.inner = { width: SIZE - MARGIN.left - MARGIN.right, height: SIZE - MARGIN.top - MARGIN.bottom };
    this.svg.setAttribute("viewBox", `0 0 ${SIZE} ${SIZE}`);
    this.layers = {};
    const clip = draw("clipPath", { id: "plane-clip" }, draw("rect", this.inner));
    const plane = draw("g", { transform: `translate(${MARGIN.left},${MARGIN.top})` });
    this.svg.append(draw("defs", {}, clip), plane);
    for (const name of ["axes", "contours", "lines", "points", "networks", "way", "here"]) {
      this.layers[name] = draw("g", name === "axes" ? {} : { "clip-path": "url(#plane-clip)" });
      plane.append(this.layers[name]);
    }
    this.dragging = false;
    this.svg.addEventListener("pointerdown", (event) => this.drag(event, true));
    this.svg.addEventListener("pointermove", (event) => this.dragging && this.drag(event, true));
    this.svg.addEventListener("pointerup", (event) => this.drag(event, false));
    this.svg.addEventListener("pointermove", (event) => this.tell(event));
    this.svg.addEventListener("pointerleave", () => this.layers.here.replaceChildren());
    this.svg.addEventListener("keydown", (event) => this.press(event));
  }

  x(e) {
    return ((e + this.edge) / (2 * this.edge)) * this.inner.width;
  }

  y(w) {
    return ((this.edge - w) / (2 * this.edge)) * this.inner.height;
  }

  /** The e and w under the pointer, kept inside the plane. */
  under(event) {
    const box = this.svg.getBoundingClientRect();
    const across = ((event.clientX - box.left) / box.width) * SIZE - MARGIN.left;
    const down = ((event.clientY - box.top) / box.height) * SIZE - MARGIN.top;
    const inside = (part) => Math.min(Math.max(part, 0), 1) * 2 * this.edge - this.edge;
    return [inside(across / this.inner.width), -inside(down / this.inner.height)];
  }

  /** Say the loss under the pointer. */
  tell(event) {
    if (!this.found) return;
    const [e, w] = this.under(event);
    const { loss } = this.found;
    const at = (value) => ((value + this.edge) / (2 * this.edge)) * (loss.length - 1);
    const said = `e ${e.toFixed(2)}, w ${w.toFixed(2)}: loss ${between(loss, at(w), at(e)).toFixed(3)}`;
    const place = { class: "readout", x: this.inner.width - 8, y: this.inner.height - 10, "text-anchor": "end" };
    this.layers.here.replaceChildren(draw("text", place, said.replaceAll("-", "−")));
  }

  drag(event, held) {
    if (event.type === "pointerdown") this.svg.setPointerCapture(event.pointerId);
    this.dragging = held;
    if (!held || !this.edge) return;
    this.moved(...this.under(event));
    event.preventDefault();
  }

  press(event) {
    const step = event.shiftKey ? 0.25 : 0.05;
    const ways = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    const way = ways[event.key];
    if (!way) return;
    this.moved(this.start.e + way[0], this.start.w + way[1]);
    event.preventDefault();
  }

  /** Show a landscape. */
  landscape(found) {
    this.found = found;
    this.edge = found.edge;
    this.axes();
    this.paint();
    this.contours();
    this.flow();
    this.points();
  }

  axes() {
    if (this.layers.axes.childElementCount) return;
    const { width, height } = this.inner;
    const parts = [draw("rect", { class: "frame", width, height })];
    for (const value of ticks(-this.edge, this.edge, 5)) {
      const said = String(value).replace("-", "−");
      parts.push(draw("text", { class: "tick", x: this.x(value), y: height + 18, "text-anchor": "middle" }, said));
      parts.push(draw("text", { class: "tick", x: -8, y: this.y(value), dy: "0.32em", "text-anchor": "end" }, said));
    }
    parts.push(draw("text", { class: "label", x: width / 2, y: height + 38, "text-anchor": "middle" }, "e: embedding"));
    const turned = `translate(-38,${height / 2}) rotate(-90)`;
    parts.push(draw("text", { class: "label", transform: turned, "text-anchor": "middle" }, "w: units"));
    this.layers.axes.replaceChildren(...parts);
  }

  /** The heights: the stronger the colour the lower; its hue tells where starts end. */
  paint() {
    const { loss, trapped, rate, alone } = this.found;
    const style = getComputedStyle(document.documentElement);
    const [paper, reads, stuck] = ["--card", "--accent", "--fails"].map((name) => colour(style.getPropertyValue(name)));
    const count = trapped.length;
    const gap = Math.max(alone - rate, 1e-3);
    const image = new ImageData(count, count);
    const last = loss.length - 1;
    for (let row = 0; row < count; row += 1) {
      const w = count - 1 - row; // the first row of an image is its highest
      for (let e = 0; e < count; e += 1) {
        const [i, j] = [(w * last) / (count - 1), (e * last) / (count - 1)];
        const over = Math.max(between(loss, i, j) - rate, 0) / gap;
        const strength = 0.85 * (1 - over / (over + 1)) + 0.06;
        const hue = this.shown.basins && trapped[w][e] === "1" ? stuck : reads;
        for (let part = 0; part < 3; part += 1) {
          image.data[4 * (row * count + e) + part] = paper[part] + strength * (hue[part] - paper[part]);
        }
        image.data[4 * (row * count + e) + 3] = 255;
      }
    }
    this.canvas.width = count;
    this.canvas.height = count;
    this.canvas.getContext("2d", { willReadFrequently: true }).putImageData(image, 0, 0);
  }

  contours() {
    const { loss, rate, alone } = this.found;
    const gap = Math.max(alone - rate, 1e-3);
    const drawn = SHARES.map((share) => draw("path", { class: "contour", d: this.level(loss, rate + share * gap) }));
    this.layers.contours.replaceChildren(...drawn);
  }

  /** The set of points with one value, cell by cell: where two sides of a cell are cut a piece of line joins them. */
  level(grid, value) {
    const last = grid.length - 1;
    const at = (i) => -this.edge + (2 * this.edge * i) / last;
    const cut = (one, two) => (value - one) / (two - one);
    let text = "";
    for (let i = 0; i < last; i += 1) {
      for (let j = 0; j < last; j += 1) {
        const [a, b, c, d] = [grid[i][j], grid[i][j + 1], grid[i + 1][j + 1], grid[i + 1][j]];
        const below = (a < value) + (b < value) + (c < value) + (d < value);
        if (below === 0 || below === 4) continue;
        const ends = [];
        if (a < value !== b < value) ends.push([j + cut(a, b), i]);
        if (b < value !== c < value) ends.push([j + 1, i + cut(b, c)]);
        if (d < value !== c < value) ends.push([j + cut(d, c), i + 1]);
        if (a < value !== d < value) ends.push([j, i + cut(a, d)]);
        for (let k = 0; k + 1 < ends.length; k += 2) {
          text += path([ends[k], ends[k + 1]].map(([x, y]) => [this.x(at(x)), this.y(at(y))]));
        }
      }
    }
    return text;
  }

  flow() {
    const drawn = this.shown.lines ? this.found.lines.flatMap((line) => this.arrow(line)) : [];
    this.layers.lines.replaceChildren(...drawn);
  }

  arrow(line) {
    const points = line.map(([e, w]) => [this.x(e), this.y(w)]);
    const [head, before] = [points[points.length - 1], points[points.length - 2]];
    const turn = Math.atan2(head[1] - before[1], head[0] - before[0]);
    const still = Math.hypot(head[0] - before[0], head[1] - before[1]) < 0.5;
    const found = [draw("path", { class: "flow", d: path(points) })];
    if (still) return found;
    const wing = (by) => [head[0] - 7 * Math.cos(turn + by), head[1] - 7 * Math.sin(turn + by)];
    return [...found, draw("path", { class: "head", d: `${path([wing(0.45), head, wing(-0.45)])}Z` })];
  }

  points() {
    const parts = this.found.goals.map((goal) => {
      return draw("path", { class: "goal", d: path(goal.map(([e, w]) => [this.x(e), this.y(w)])) });
    });
    for (const point of this.found.critical_points) {
      if (!point.w) continue;
      const [low, high] = point.w.map((w) => this.y(Math.min(Math.max(w, -this.edge), this.edge)));
      const kind = point.kind === "saddle" ? "saddle" : "local";
      if (low === high) parts.push(draw("circle", { class: "pass", cx: this.x(0), cy: low, r: 5 }));
      else parts.push(draw("line", { class: kind, x1: this.x(0), x2: this.x(0), y1: low, y2: high }));
    }
    this.layers.points.replaceChildren(...parts);
  }

  /** Show the way from a start. */
  way(found) {
    const points = found.way.map(([e, w]) => [this.x(e), this.y(w)]);
    const end = points[points.length - 1];
    const kind = found.kind === "global minimum" ? "reads" : "stuck";
    const mark = `M${end[0] - 6},${end[1] - 6}l12,12m0,-12l-12,12`;
    const parts = [
      draw("path", { class: "casing", d: path(points) }),
      draw("path", { class: `way ${kind}`, d: path(points) }),
      draw("path", { class: "casing", d: mark }),
      draw("path", { class: `end ${kind}`, d: mark }),
      draw("circle", { class: "handle", cx: points[0][0], cy: points[0][1], r: 8 }),
    ];
    this.layers.way.replaceChildren(...parts);
  }

  /** Show the ways of recorded networks, each kind in its colour. */
  networks(kinds, colours) {
    const shown = this.shown.networks ? kinds.filter((one) => one.kind !== "untied") : [];
    const drawn = shown.flatMap((one) => {
      const kind = `network ${colours[one.kind]}`;
      const points = one.way.map((way) => way.map(([e, w]) => [this.x(e), this.y(w)]));
      return points.map((way) => draw("path", { class: kind, d: path(way) }));
    });
    this.layers.networks.replaceChildren(...drawn);
  }
}

function path(points) {
  return points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
}

/** The value between the points of a grid. */
function between(grid, i, j) {
  const [a, b] = [Math.min(Math.floor(i), grid.length - 2), Math.min(Math.floor(j), grid.length - 2)];
  const [u, v] = [i - a, j - b];
  const low = grid[a][b] * (1 - v) + grid[a][b + 1] * v;
  const high = grid[a + 1][b] * (1 - v) + grid[a + 1][b + 1] * v;
  return low * (1 - u) + high * u;
}

function colour(text) {
  const said = text.trim().replace("#", "");
  const whole = said.length === 3 ? [...said].map((sign) => sign + sign).join("") : said;
  return [0, 2, 4].map((at) => parseInt(whole.slice(at, at + 2), 16));
}
