// A figure that answers: what is under the pointer, series that can be hidden, a part that can be looked at closely.
// The drawing is the SVG in the page; beside it stand the names, numbers and places of its points.
"use strict";
(() => {
  const NEAR = 40; // how far from a point, in points of the drawing, the pointer may be to mean it
  const DRAG = 8; // how far a drag must go to mean a part

  const SVG = "http://www.w3.org/2000/svg";
  const rounded = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(4))));
  const brief = (value) => (value === null ? "–" : rounded(value));
  const named = (axis, value) => axis.names[String(value)] || brief(value);

  function made(kind, attributes) {
    const element = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  function start(plot) {
    const svg = plot.querySelector("svg");
    const data = JSON.parse(plot.querySelector(".plot-data").textContent);
    const readout = plot.querySelector(".readout");
    const whole = [0, 0, ...data.size];
    let view = [...whole];
    let chosen = null; // what the keys stand on: the place of a series in `series`, and of a point in it
    let from = null; // where a drag began
    const hidden = new Set();
    const series = data.planes.flatMap((plane) => plane.series.map((each) => ({ plane, ...each })));
    const mark = made("circle", { r: 5, fill: "none", stroke: "#1c2329", "stroke-width": 1.6, visibility: "hidden" });
    const frame = made("rect", { fill: "#0b6470", "fill-opacity": 0.12, stroke: "#0b6470", visibility: "hidden" });
    svg.append(mark, frame);
    plot.classList.add("ready");

    // Places -------------------------------------------------------------------------------------------------------
    function place(event) {
      const spot = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return [spot.x, spot.y];
    }

    function look(next) {
      const width = Math.min(Math.max(next[2], whole[2] / 50), whole[2]);
      const height = Math.min(Math.max(next[3], whole[3] / 50), whole[3]);
      const left = Math.min(Math.max(next[0], 0), whole[2] - width);
      const top = Math.min(Math.max(next[1], 0), whole[3] - height);
      view = [left, top, width, height];
      svg.setAttribute("viewBox", view.map((number) => number.toFixed(2)).join(" "));
      mark.setAttribute("r", (5 * width) / whole[2]);
      plot.classList.toggle("close", width < whole[2]);
    }

    function zoom(factor, [x, y]) {
      look([x - (x - view[0]) * factor, y - (y - view[1]) * factor, view[2] * factor, view[3] * factor]);
    }

    // Reading ------------------------------------------------------------------------------------------------------
    function say(text, [x, y]) {
      readout.textContent = text;
      readout.hidden = false;
      const spot = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
      const box = plot.getBoundingClientRect();
      const left = Math.min(Math.max(spot.x - box.left + 12, 4), box.width - readout.offsetWidth - 4);
      const above = spot.y - box.top - readout.offsetHeight - 10;
      const top = above > 4 ? above : spot.y - box.top + 14;
      readout.style.transform = `translate(${left}px, ${top}px)`;
    }

    function quiet() {
      readout.hidden = true;
      mark.setAttribute("visibility", "hidden");
    }

    function tell(each, at) {
      const { plane } = each;
      const [x, y] = each.points[at];
      const lines = [each.name, `${plane.x.label || "x"}: ${named(plane.x, x)}`, `${plane.y.label || "y"}: ${named(plane.y, y)}`];
      mark.setAttribute("cx", each.at[at][0]);
      mark.setAttribute("cy", each.at[at][1]);
      mark.setAttribute("visibility", "visible");
      say(lines.filter(Boolean).join("\n"), each.at[at]);
    }

    function nearest([x, y]) {
      let best = null;
      let least = (NEAR * view[2]) / whole[2];
      series.forEach((each, which) => {
        const [left, top, right, bottom] = each.plane.box;
        if (hidden.has(each.name) || x < left - 5 || x > right + 5 || y < top - 5 || y > bottom + 5) return;
        each.at.forEach(([px, py], at) => {
          const far = Math.hypot(px - x, py - y);
          if (far < least) [least, best] = [far, [which, at]];
        });
      });
      return best;
    }

    function cell([x, y]) {
      for (const plane of data.planes) {
        for (const { corners, values } of plane.images) {
          const [[left, top], [right, bottom]] = corners;
          const row = Math.floor(((y - top) / (bottom - top)) * values.length);
          const column = Math.floor(((x - left) / (right - left)) * values[0].length);
          if (values[row] === undefined || values[row][column] === undefined) continue;
          const sides = [plane.x.names[column] ?? `column ${column + 1}`, plane.y.names[row] ?? `row ${row + 1}`];
          return [...sides, brief(values[row][column])].join("\n");
        }
      }
      return null;
    }

    // Series -------------------------------------------------------------------------------------------------------
    function toggle(name) {
      if (!hidden.delete(name)) hidden.add(name);
      for (const each of series) {
        const drawn = document.getElementById(each.id);
        if (drawn && each.name === name) drawn.toggleAttribute("data-hidden", hidden.has(name));
      }
      for (const entry of svg.querySelectorAll(".entry")) {
        if (entry.dataset.name === name) {
          entry.classList.toggle("off", hidden.has(name));
          entry.setAttribute("aria-pressed", String(!hidden.has(name)));
        }
      }
      quiet();
    }

    for (const { name, id } of data.legend) {
      if (!series.some((each) => each.name === name)) continue;
      const text = document.getElementById(`plot-name-${id}`);
      const sign = document.getElementById(`plot-sign-${id}`);
      for (const entry of [text, sign].filter(Boolean)) {
        entry.classList.add("entry");
        entry.dataset.name = name;
        entry.addEventListener("click", () => toggle(name));
      }
      if (!text) continue;
      const box = text.getBBox();
      text.append(made("rect", { x: box.x, y: box.y, width: box.width, height: box.height, "fill-opacity": 0 }));
      text.setAttribute("tabindex", "0");
      text.setAttribute("role", "button");
      text.setAttribute("aria-pressed", "true");
      text.setAttribute("aria-label", `series ${name}`);
      text.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        toggle(name);
      });
    }
    if (svg.querySelector(".entry")) svg.setAttribute("role", "group");

    // Pointer ------------------------------------------------------------------------------------------------------
    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch" || event.target.closest(".entry")) return;
      from = place(event);
      svg.setPointerCapture(event.pointerId);
    });

    svg.addEventListener("pointermove", (event) => {
      const spot = place(event);
      if (from) {
        const [x, y] = [0, 1].map((side) => Math.min(from[side], spot[side]));
        const [width, height] = [0, 1].map((side) => Math.abs(from[side] - spot[side]));
        for (const [name, value] of Object.entries({ x, y, width, height, visibility: "visible" })) {
          frame.setAttribute(name, value);
        }
        return;
      }
      const found = nearest(spot);
      if (found) {
        chosen = found;
        tell(series[found[0]], found[1]);
        return;
      }
      quiet();
      const said = cell(spot);
      if (said) say(said, spot);
    });

    svg.addEventListener("pointerup", (event) => {
      if (!from) return;
      const spot = place(event);
      const [width, height] = [0, 1].map((side) => Math.abs(from[side] - spot[side]));
      frame.setAttribute("visibility", "hidden");
      const least = (DRAG * view[2]) / whole[2];
      if (width > least && height > least) {
        const scale = Math.max(width / whole[2], height / whole[3]);
        const middle = [0, 1].map((side) => (from[side] + spot[side]) / 2);
        look([middle[0] - (scale * whole[2]) / 2, middle[1] - (scale * whole[3]) / 2, scale * whole[2], scale * whole[3]]);
      }
      from = null;
    });

    svg.addEventListener("pointerleave", quiet);
    svg.addEventListener("dblclick", () => look(whole));
    plot.addEventListener(
      "wheel",
      (event) => {
        // The page scrolls on, unless the figure is looked at closely or the wheel is meant for it.
        if (!event.ctrlKey && !plot.classList.contains("close") && document.activeElement !== plot) return;
        event.preventDefault();
        zoom(Math.exp(event.deltaY / 400), place(event));
      },
      { passive: false },
    );

    // Keys ---------------------------------------------------------------------------------------------------------
    const pointed = series.map((each, which) => [each, which]).filter(([each]) => each.points.length);

    function step(along, across) {
      const seen = pointed.filter(([each]) => !hidden.has(each.name));
      if (!seen.length) return;
      const now = Math.max(chosen ? seen.findIndex(([, which]) => which === chosen[0]) : 0, 0);
      const [each, which] = seen[(now + across + seen.length) % seen.length];
      const at = chosen ? Math.min(chosen[1], each.points.length - 1) + along : 0;
      chosen = [which, (at + each.points.length) % each.points.length];
      tell(each, chosen[1]);
    }

    const middle = () => [view[0] + view[2] / 2, view[1] + view[3] / 2];
    const keys = {
      ArrowRight: () => step(1, 0),
      ArrowLeft: () => step(-1, 0),
      ArrowDown: () => step(0, 1),
      ArrowUp: () => step(0, -1),
      "+": () => zoom(0.8, chosen ? series[chosen[0]].at[chosen[1]] : middle()),
      "-": () => zoom(1.25, middle()),
      0: () => look(whole),
      Escape: quiet,
    };
    plot.addEventListener("keydown", (event) => {
      if (event.target !== plot || event.ctrlKey || event.metaKey || event.altKey) return;
      const act = keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
  }

  document.querySelectorAll(".plot").forEach(start);
  document.querySelectorAll(".only-script").forEach((element) => (element.hidden = false));
})();
