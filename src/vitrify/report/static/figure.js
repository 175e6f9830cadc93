// Figures, drawn from the data beside them: at the width of the page, in its colours, with ticks for what is in view.
// report/figures.py says what the data are. A plane is one pair of axes; a mark is what is drawn on them (marks.js).
"use strict";
(() => {
  const { CHARACTER, DASHES, bend, cut, draw, named, paint, scale, short, spread, svg, symbol, ticks } = MARKS;
  const MIN_PLANE = 300; // pixels that a plane is wide before planes go below each other
  const NEAR = 40; // pixels from a point within which the pointer means it
  const DRAG = 8; // pixels that a drag must go to mean a part
  let clips = 0;

  function html(kind, name, ...children) {
    const made = document.createElement(kind);
    made.className = name;
    made.append(...children);
    return made;
  }

  // A plane --------------------------------------------------------------------------------------------------------
  class Plane {
    constructor(figure, data) {
      Object.assign(this, { figure, data, chosen: null, from: null });
      this.home = [data.x, data.y].map((axis) => axis.limits.map(bend(axis)[0]));
      this.view = this.home;
      this.element = html("div", "plane");
      this.area = html("div", "area");
      this.area.tabIndex = 0;
      this.area.setAttribute("role", "group");
      this.area.setAttribute("aria-label", `${data.title || data.y.label || "figure"}: left and right step through the points, up and down through the series, plus and minus zoom, 0 resets`);
      if (data.title) this.element.append(html("p", "plane-title", data.title));
      if (data.legend.length) this.element.append(figure.entries(data.legend));
      for (const { scale: shown } of data.marks.filter((mark) => mark.kind === "matrix" && mark.scale?.label)) {
        this.element.append(html("p", "side", `colour: ${shown.label}, ${short(shown.range[0])} to ${short(shown.range[1])}`));
      }
      if (data.y.label) this.element.append(html("p", "side", `↑ ${data.y.label}`));
      this.element.append(this.area);
      if (data.x.label) this.element.append(html("p", "side right", `${data.x.label} →`));
      this.series = data.marks.filter((mark) => mark.x?.length && mark.y?.length && ["line", "points"].includes(mark.kind));
      this.listen();
    }

    draw() {
      const { data } = this;
      const width = this.area.clientWidth || MIN_PLANE;
      const most = Math.floor((width * 0.42) / CHARACTER);
      const rows = [3, 4, 5, 6].flatMap((some) => ticks(data.y, ...this.ends(1), some)).map((value) => cut(named(data.y, value), most));
      const left = Math.max(...rows.map((each) => each.length), 2) * CHARACTER + 10;
      const inner = width - left - 12;
      const count = Math.max(2, Math.min(8, Math.floor(inner / 62)));
      const marked = ticks(data.x, ...this.ends(0), count).map((value) => named(data.x, value));
      const longest = Math.max(...marked.map((each) => each.length), 1);
      const turned = Object.keys(data.x.names).length && longest * CHARACTER > inner / marked.length;
      const bottom = turned ? Math.min(longest, 20) * 4.8 + 16 : 24;
      const tall = Math.max(190, Math.min(430, inner * data.ratio));
      const x = scale(data.x, this.view[0], left, left + inner, count);
      const y = scale(data.y, this.view[1], 8 + tall, 8, Math.max(3, Math.min(6, Math.floor(tall / 45))));
      Object.assign(this, { x, y });
      const drawing = svg("svg", { width, height: tall + 8 + bottom, viewBox: `0 0 ${width} ${tall + 8 + bottom}`, "aria-hidden": "true" });
      const every = turned ? Math.ceil((15 * marked.length) / inner) : 1; // names that have room
      for (const [at, value] of x.ticks.entries()) {
        const px = x.place(value);
        const text = cut(named(data.x, value), turned ? Math.min(20, Math.floor(px / (0.8 * CHARACTER))) : 99);
        drawing.append(svg("path", { class: "grid", d: `M${px},8V${8 + tall}` }));
        const place = turned ? { transform: `translate(${px + 4},${tall + 20}) rotate(-35)`, "text-anchor": "end" } : { x: px, y: tall + 24, "text-anchor": "middle" };
        if (at % every === 0) drawing.append(svg("text", { class: "tick", ...place }, text));
      }
      for (const value of y.ticks) {
        drawing.append(svg("path", { class: "grid", d: `M${left},${y.place(value)}H${left + inner}` }));
        drawing.append(svg("text", { class: "tick", x: left - 6, y: y.place(value) + 4, "text-anchor": "end" }, cut(named(data.y, value), most)));
      }
      const clip = `clip-${(clips += 1)}`;
      drawing.append(svg("clipPath", { id: clip }, svg("rect", { x: left - 4, y: 4, width: inner + 8, height: tall + 8 })));
      const inside = svg("g", { "clip-path": `url(#${clip})` });
      const grid = data.marks.find((mark) => mark.kind === "matrix");
      if (grid) drawing.querySelectorAll(".grid").forEach((line) => line.remove());
      const cell = grid && [inner / grid.levels[0].length, tall / grid.levels.length];
      for (const mark of data.marks) if (!this.figure.hidden.has(mark.name)) inside.append(...draw(mark, x, y, cell));
      if (!grid) spread([...inside.querySelectorAll("text.note")]);
      this.ring = svg("circle", { class: "ring", r: 6, visibility: "hidden" });
      this.frame = svg("rect", { class: "frame", visibility: "hidden" });
      drawing.append(inside, this.ring, this.frame);
      this.area.replaceChildren(drawing);
    }

    ends(side) {
      const back = bend(side ? this.data.y : this.data.x)[1];
      return [Math.min(...this.view[side]), Math.max(...this.view[side])].map(back);
    }

    look(view) {
      this.view = view;
      this.element.classList.toggle("close", view !== this.home);
      this.figure.quiet();
      this.draw();
    }

    zoom(factor, [x, y]) {
      const wide = Math.abs((this.view[0][1] - this.view[0][0]) / (this.home[0][1] - this.home[0][0])) * factor;
      if (wide >= 1) return this.look(this.home);
      if (wide < 0.02) return undefined;
      const at = [[x, this.x], [y, this.y]].map(([spot, own], side) => {
        const share = (spot - own.from) / (own.to - own.from);
        return this.view[side][0] + share * (this.view[side][1] - this.view[side][0]);
      });
      return this.look(this.view.map((pair, side) => pair.map((end) => at[side] + (end - at[side]) * factor)));
    }

    // Reading ------------------------------------------------------------------------------------------------------
    tell(which, at) {
      const { data, x, y } = this;
      const mark = this.series[which];
      const [px, py] = [x.place(mark.x[at]), y.place(mark.y[at])];
      this.chosen = [which, at];
      for (const [name, value] of Object.entries({ cx: px, cy: py, visibility: "visible" })) this.ring.setAttribute(name, value);
      const lines = [mark.name, `${data.x.label || "x"}: ${named(data.x, mark.x[at])}`, `${data.y.label || "y"}: ${named(data.y, mark.y[at])}`];
      this.figure.say(lines.filter(Boolean).join("\n"), this.area, [px, py]);
    }

    read(spot) {
      let [best, least] = [null, NEAR];
      this.series.forEach((mark, which) => {
        if (this.figure.hidden.has(mark.name)) return;
        mark.x.forEach((value, at) => {
          if (!this.x.shown(value) || !this.y.shown(mark.y[at])) return;
          const far = Math.hypot(this.x.place(value) - spot[0], this.y.place(mark.y[at]) - spot[1]);
          if (far < least) [best, least] = [[which, at], far];
        });
      });
      if (best) return this.tell(...best);
      this.figure.quiet();
      const grid = this.data.marks.find((mark) => mark.kind === "matrix");
      if (!grid) return undefined;
      const [left, bottom, right, top] = grid.ends;
      const [rows, columns] = [grid.values.length, grid.values[0].length];
      const across = Math.floor(((this.x.value(spot[0]) - left) / (right - left)) * columns);
      const down = Math.floor(((this.y.value(spot[1]) - top) / (bottom - top)) * rows);
      const value = grid.values[down]?.[across];
      if (value === undefined) return undefined;
      const sides = [this.data.x.names[across] ?? `column ${across + 1}`, this.data.y.names[down] ?? `row ${down + 1}`];
      return this.figure.say([...sides, value === null ? "–" : short(value)].join("\n"), this.area, spot);
    }

    step(along, across) {
      const seen = this.series.map((mark, which) => which).filter((which) => !this.figure.hidden.has(this.series[which].name));
      if (!seen.length) return;
      const now = Math.max(this.chosen ? seen.indexOf(this.chosen[0]) : 0, 0);
      const which = seen[(now + across + seen.length) % seen.length];
      const count = this.series[which].x.length;
      this.tell(which, ((this.chosen ? Math.min(this.chosen[1], count - 1) + along : 0) + count) % count);
    }

    listen() {
      const { area } = this;
      const place = (event) => {
        const edge = area.getBoundingClientRect();
        return [event.clientX - edge.left, event.clientY - edge.top];
      };
      area.addEventListener("pointerdown", (event) => {
        if (event.pointerType === "touch") return this.read(place(event));
        if (event.button) return undefined;
        this.from = place(event);
        return area.setPointerCapture(event.pointerId);
      });
      area.addEventListener("pointermove", (event) => {
        const spot = place(event);
        if (!this.from) return this.read(spot);
        const [x, y] = [0, 1].map((side) => Math.min(this.from[side], spot[side]));
        const [width, height] = [0, 1].map((side) => Math.abs(this.from[side] - spot[side]));
        for (const [name, value] of Object.entries({ x, y, width, height, visibility: "visible" })) this.frame.setAttribute(name, value);
        return undefined;
      });
      area.addEventListener("pointerup", (event) => {
        const [from, spot] = [this.from, place(event)];
        this.from = null;
        if (!from) return;
        this.frame.setAttribute("visibility", "hidden");
        if (Math.abs(from[0] - spot[0]) < DRAG || Math.abs(from[1] - spot[1]) < DRAG) return;
        const sides = [[this.x, this.data.x], [this.y, this.data.y]];
        this.look(sides.map(([own, axis], side) => {
          const ends = [from[side], spot[side]].map((at) => bend(axis)[0](own.value(at)));
          return ends.sort((one, two) => (one - two) * Math.sign(this.home[side][1] - this.home[side][0]));
        }));
      });
      area.addEventListener("pointerleave", () => this.figure.quiet());
      area.addEventListener("dblclick", () => this.look(this.home));
      area.addEventListener("wheel", (event) => {
        // The page scrolls on, unless the plane is looked at closely or the wheel is meant for it.
        if (!event.ctrlKey && this.view === this.home) return;
        event.preventDefault();
        this.zoom(Math.exp(event.deltaY / 400), place(event));
      }, { passive: false });
      const middle = () => [(this.x.from + this.x.to) / 2, (this.y.from + this.y.to) / 2];
      const keys = {
        ArrowRight: () => this.step(1, 0),
        ArrowLeft: () => this.step(-1, 0),
        ArrowDown: () => this.step(0, 1),
        ArrowUp: () => this.step(0, -1),
        "+": () => this.zoom(0.8, middle()),
        "-": () => this.zoom(1.25, middle()),
        0: () => this.look(this.home),
        Escape: () => this.figure.quiet(),
      };
      area.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
        event.preventDefault();
        keys[event.key]();
      });
    }
  }

  // A figure -------------------------------------------------------------------------------------------------------
  class Figure {
    constructor(plot) {
      this.plot = plot;
      this.data = JSON.parse(plot.querySelector(".plot-data").textContent);
      this.hidden = new Set();
      this.readout = plot.querySelector(".readout");
      this.planes = this.data.planes.map((data) => new Plane(this, data));
      this.grid = html("div", this.planes.length > 1 ? "planes" : "planes single", ...this.planes.map((plane) => plane.element));
      if (this.data.title) plot.append(html("p", "plot-title", this.data.title));
      if (this.data.legend.length) plot.append(this.entries(this.data.legend));
      plot.append(this.grid);
      if (this.data.slider?.length) plot.prepend(this.slider(this.data.slider));
      plot.classList.add("ready");
      new ResizeObserver(() => this.draw()).observe(plot);
    }

    /** A slider that shows one plane at a time. */
    slider(names) {
      const range = html("input", "frames");
      const name = html("output", "frame-name");
      Object.assign(range, { type: "range", min: 0, max: names.length - 1, value: 0 });
      range.setAttribute("aria-label", "which picture");
      const show = () => {
        name.textContent = names[range.value];
        this.planes.forEach((plane, at) => (plane.element.hidden = at !== Number(range.value)));
        this.quiet();
        this.planes[range.value].draw();
      };
      range.addEventListener("input", show);
      this.data.columns = 1;
      setTimeout(show);
      return html("p", "sliding", range, name);
    }

    draw() {
      const width = this.plot.clientWidth;
      if (width === this.width) return;
      this.width = width;
      const columns = Math.max(1, Math.min(this.data.columns, this.planes.length, Math.floor(width / MIN_PLANE)));
      this.grid.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
      for (const plane of this.planes) plane.draw();
    }

    /** A legend whose names hide and show the series that have them. */
    entries(legend) {
      const all = html("p", "entries");
      for (const entry of legend) {
        const mark = { kind: entry.marker && entry.marker !== "None" ? "points" : "line", x: [0], y: [0], size: 8, ...entry };
        const sign = svg("svg", { width: 18, height: 10, "aria-hidden": "true" });
        if (mark.kind === "points") sign.append(symbol(entry.marker, 9, 5, 8, { fill: paint(entry.color) }));
        else sign.append(svg("path", { d: "M0,5H18", fill: "none", stroke: paint(entry.color), "stroke-width": 2.4, "stroke-dasharray": DASHES[entry.dash] }));
        const own = this.data.planes.some((plane) => plane.marks.some((each) => each.name === entry.name));
        const made = html(own ? "button" : "span", "entry", sign, entry.name);
        if (own) {
          made.type = "button";
          made.setAttribute("aria-pressed", "true");
          made.addEventListener("click", () => this.toggle(entry.name));
        }
        all.append(made);
      }
      return all;
    }

    toggle(name) {
      if (!this.hidden.delete(name)) this.hidden.add(name);
      for (const entry of this.plot.querySelectorAll("button.entry")) {
        if (entry.textContent === name) entry.setAttribute("aria-pressed", String(!this.hidden.has(name)));
      }
      this.quiet();
      for (const plane of this.planes) plane.draw();
    }

    say(text, area, [x, y]) {
      const { readout } = this;
      readout.textContent = text;
      readout.hidden = false;
      const [edge, own] = [this.plot.getBoundingClientRect(), area.getBoundingClientRect()];
      const left = Math.min(Math.max(own.left - edge.left + x + 12, 4), edge.width - readout.offsetWidth - 4);
      const above = own.top - edge.top + y - readout.offsetHeight - 10;
      readout.style.transform = `translate(${left}px, ${above > 4 ? above : own.top - edge.top + y + 14}px)`;
    }

    quiet() {
      this.readout.hidden = true;
      for (const plane of this.planes) plane.ring?.setAttribute("visibility", "hidden");
    }
  }

  document.querySelectorAll(".plot").forEach((plot) => new Figure(plot));
  document.querySelectorAll(".only-script").forEach((element) => (element.hidden = false));
})();
