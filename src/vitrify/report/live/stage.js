// One stop of a run: what the step did, and what the stream holds after it.

import { draw, find, make, number, reveal, signed } from "./page.js";
import { choose, step } from "./glass.js";
import { circuits } from "./circuit.js";
import { arcs, heatMap, pictures } from "./maps.js";

const ABOUT = {
  embedding: "Every token becomes a row of numbers, the residual stream. Each group of dimensions has a name and a meaning: a space.",
  attention: "Every head attends from each position (a row) to others (columns) and copies what it finds there into a space of its own.",
  recurrence: "The state goes from token to token; this is what it holds after each.",
  units: "Each hidden unit adds up what it reads. Where the sum is above 0 it fires, and writes into the stream.",
  maps: "What every channel holds, pixel by pixel: the stronger the color, the more.",
  answer: "The answer is read from the stream, symbol by symbol. These are the spaces that it is read from.",
};

export function showStops({ net, stop }) {
  const list = find("stops");
  if (list.dataset.net !== net.net) {
    list.dataset.net = net.net;
    list.replaceChildren(
      ...net.stops.map((one, at) => make("li", {}, make("button", { type: "button", onclick: () => step(at - state_stop()) }, one.name))),
    );
  }
  [...list.querySelectorAll("button")].forEach((button, at) => {
    if (at === stop) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
    if (at === stop) keepInView(list, button);
  });
  list.dataset.stop = stop;
  find("back").disabled = stop === 0;
  find("forth").disabled = stop === net.stops.length - 1;
}

const state_stop = () => Number(find("stops").dataset.stop);

function keepInView(list, button) {
  const left = button.offsetLeft - list.offsetLeft;
  if (left < list.scrollLeft || left + button.offsetWidth > list.scrollLeft + list.clientWidth) {
    list.scrollLeft = left - list.clientWidth / 2 + button.offsetWidth / 2;
  }
}

export function showStage(state) {
  const { story } = state;
  const { kind, name } = story.stop;
  const title = name[0].toUpperCase() + name.slice(1);
  find("stage-title").textContent = title;
  find("stage-about").textContent = ABOUT[kind];
  find("stage").dataset.stop = name;
  find("step").replaceChildren(...did(state));
  find("stream").replaceChildren(...(story.spaces ? stream(story) : []));
  reveal(find("stream").querySelector("table"));
}

function did({ story, net, source }) {
  if (story.maps) return [pictures(story.maps)];
  if (story.numbers) return [numbers(story.numbers)];
  const parts = story.heads ? [heads(story, net, source)] : story.units ? units(story) : story.readout ? readout(story) : [];
  const rules = net.cells.filter((cell) => cell.location === `recurrence ${story.stop.block}`);
  if (["attention", "recurrence"].includes(story.stop.kind) && rules.length) {
    parts.push(make("h3", {}, "How the state goes on"), make("ul", { class: "rules" }, rules[0].lines.map((line) => make("li", {}, line))));
  }
  return parts;
}

// Heads

// Which heads have their weights unfolded: they stay so from run to run.
const unfoldedHeads = new Set();

function weightsOf({ packed }, key, block, head) {
  const inside = make("div");
  const fill = () => inside.replaceChildren(circuits(packed, block, head));
  const details = make("details", { open: unfoldedHeads.has(key) }, make("summary", {}, "Its weights: QK and OV"), inside);
  details.addEventListener("toggle", () => {
    if (details.open) unfoldedHeads.add(key);
    else unfoldedHeads.delete(key);
    if (details.open) fill();
  });
  return details;
}

function heads(story, net, source) {
  const cards = story.heads.map((head) => {
    const lines = net.heads[`${story.stop.block}.${head.index}`];
    const found = where(story, head);
    return make(
      "article",
      { class: "head" },
      make("h3", {}, head.name),
      make("div", { class: "both" }, arcs(story, head, choose), heatMap(story, head, choose)),
      make("p", { class: "look-at" }, found),
      lines ? make("p", { class: "quiet" }, `It attends to ${lines.attends_to.join("; ")}. `, copies(lines)) : null,
      source.packed ? weightsOf(source, `${story.stop.block}.${head.index}`, story.stop.block, head.index) : null,
    );
  });
  return make("div", { class: cards.length > 2 ? "heads" : "heads few" }, cards);
}

const copies = (lines) => (lines.copies.length ? make("span", { class: "copies" }, lines.copies.slice(0, 3).join(", ")) : "");

// In words: where a head attends to from the chosen position.
function where(story, head) {
  const at = story.position - story.start;
  const row = head.pattern[at];
  const weights = story.tokens.map((_, key) => parseInt(row.slice(2 * key, 2 * key + 2), 16) / 255);
  const seen = weights.map((weight, key) => [weight, key]).filter(([weight]) => weight > 0.02);
  seen.sort((one, two) => two[0] - one[0]);
  const said = seen.slice(0, 3).map(([weight, key]) => `${story.tokens[key]} (position ${story.start + key}, ${number(weight, 2)})`);
  const more = seen.length > 3 ? ` and ${seen.length - 3} more` : "";
  return `From ${story.tokens[at]}, position ${story.position}: ${said.join(", ") || "nothing"}${more}`;
}

// Units

function units(story) {
  const { count, fired, erased, expert, shown } = story.units;
  const token = story.tokens[story.position - story.start];
  const line = [`At ${token}, position ${story.position}: ${fired} of ${count} units fire`];
  if (erased) line.push(`${erased} of them only clear dimensions for new spaces`);
  if (expert !== null) line.push(`the expert “${expert}” was chosen`);
  const said = make("p", {}, line.join("; ") + ".");
  if (!shown.length) return [said];
  const rows = shown.map((unit) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, unit.name.row, make("span", { class: "quiet run" }, unit.name.run)),
      make("td", {}, terms(unit.because), unit.bias ? make("span", { class: "term bias" }, `${signed(unit.bias)} always`) : null),
      make("td", { class: "number" }, make("b", {}, number(unit.value))),
      make("td", {}, terms(unit.writes)),
    ),
  );
  const head = ["unit", "because", "fires with", "writes"].map((name) => make("th", { scope: "col" }, name));
  const table = make("table", { class: "units" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
  const left = fired - erased - shown.length;
  return [said, make("div", { class: "scroll" }, table), left > 0 ? make("p", { class: "quiet" }, `and ${left} weaker ones`) : null].filter(Boolean);
}

function terms({ terms: list, more }) {
  const shown = list.map(([name, product, value]) => {
    const title = value === undefined ? null : `${name} is ${number(value)}, times ${number(product / (value || 1))}`;
    return make("span", { class: `term ${product > 0 ? "plus" : "minus"}`, title }, `${name} `, make("b", {}, signed(product)));
  });
  return [...shown, more > 0 ? make("span", { class: "quiet" }, ` and ${more} more`) : null];
}

function readout(story) {
  const rows = story.readout.map((one) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, one.symbol),
      make("td", { class: "number" }, make("b", {}, number(one.logit))),
      make("td", {}, terms(one.because), one.bias ? make("span", { class: "term bias" }, `${signed(one.bias)} always`) : null),
    ),
  );
  const head = ["symbol", "logit", "because"].map((name) => make("th", { scope: "col" }, name));
  const said = `The largest logits after ${story.tokens[story.position - story.start]}, position ${story.position}:`;
  return [make("p", {}, said), make("div", { class: "scroll" }, make("table", { class: "units" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)))];
}

function numbers(list) {
  const most = Math.max(1e-9, ...list.map(([, value]) => Math.abs(value ?? 0)));
  const rows = list.map(([name, value]) =>
    make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "number" }, number(value)), make("td", { class: "bar-cell" }, bars([value ?? 0], most, 100))),
  );
  return make("table", { class: "chances" }, make("tbody", {}, rows));
}

// The stream

let unfolded = false; // whether spaces that did not change are shown

function stream(story) {
  const empty = (space) => !space.off.length && space.kind !== "flag" && space.texts.every((text) => text === "" || text === "–") && (space.bars ?? [[1]]).flat().every((value) => value === 0);
  const fresh = story.spaces.filter((space) => (space.new && !empty(space)) || space.changed.some(Boolean) || space.off.length);
  const silent = story.spaces.filter((space) => space.new && !fresh.includes(space));
  const whole = story.stop.kind === "embedding" || story.stop.kind === "answer";
  const first = whole ? story.spaces : fresh;
  const rest = whole ? [] : story.spaces.filter((space) => !fresh.includes(space) && !silent.includes(space));
  const head = story.tokens.map((token, at) =>
    make(
      "th",
      { scope: "col", class: story.start + at === story.position ? "here" : "" },
      make("button", { type: "button", class: "bare", onclick: () => choose(story.start + at) }, token),
    ),
  );
  const more = make("tbody", { class: "rest", hidden: !unfolded }, rest.map((space) => line(story, space)));
  const toggle = make("button", { type: "button", class: "bare", "aria-expanded": String(unfolded) }, label(rest.length));
  toggle.addEventListener("click", () => {
    unfolded = !unfolded;
    find("stream").replaceChildren(...stream(story));
  });
  const table = make(
    "table",
    { class: "stream" },
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "space"), head)),
    make("tbody", {}, first.map((space) => line(story, space))),
    more,
  );
  const title = story.stop.kind === "answer" ? "What it is read from" : "The stream after this step";
  const nothing = whole || !silent.length ? null : make("p", { class: "quiet" }, `New, and empty here: ${silent.map((space) => space.name).join(", ")}.`);
  const shown = first.length || unfolded ? table : make("p", {}, "Nothing in the stream has changed.");
  return [make("h3", {}, title), make("div", { class: "scroll" }, shown), nothing, rest.length ? toggle : null].filter(Boolean);
}

const label = (count) => (unfolded ? "Hide" : "Show") + ` the ${count} space${count === 1 ? "" : "s"} that this step left as they were`;

const NUMERIC = ["reals", "integers", "number"];

function line(story, space) {
  const most = Math.max(1e-9, ...(space.bars ?? []).flat().map((value) => Math.abs(value ?? 0)));
  const many = NUMERIC.includes(space.kind) && !space.bars ? `${space.size} numbers` : "";
  const cells = space.texts.map((text, at) => {
    const off = space.off.includes(at);
    const classes = [story.start + at === story.position ? "here" : "", space.changed[at] || (space.new && story.stop.kind !== "answer") ? "changed" : "", off ? "off" : ""];
    const values = space.bars?.[at];
    const drawn = values && (off || (NUMERIC.includes(space.kind) && (space.size > 1 || text === "")));
    const inside = space.kind === "flag" && !off ? flag(text) : make("span", { class: text && text !== "–" ? "value" : "none" }, text || many || "·");
    return make("td", { class: classes.join(" ").trim(), title: told(space, at) }, off ? "✗ " : "", drawn ? bars(values, most, 6 * values.length) : null, drawn && text === "" ? null : inside);
  });
  const fresh = space.new && story.stop.kind !== "answer";
  const tag = fresh ? make("span", { class: "tag fresh" }, "new") : null;
  return make("tr", { class: fresh ? "new" : "" }, make("th", { scope: "row", title: `${space.kind}, ${space.size} dimension${space.size > 1 ? "s" : ""}` }, space.name, tag), cells);
}

const flag = (text) => make("span", { class: `flag ${text === "1" ? "on" : ""}`, "aria-label": text }, text === "1" ? "●" : "○");

function told(space, at) {
  const off = space.off.includes(at) ? " — not a value that this space may have" : "";
  if (!space.bars) return `${space.name}: ${space.texts[at]}${off}`;
  const parts = space.bars[at].map((value, dim) => `${space.names[dim]} ${number(value)}`.trim());
  return `${space.name}: ${parts.join(", ")}${off}`;
}

// Small signed bars around a middle line.
export function bars(values, most, width) {
  const step = width / values.length;
  const middle = values.some((value) => value < 0) ? 8 : 15;
  const parts = values.map((value, at) => {
    const size = (Math.abs(value ?? 0) / most) * (middle === 8 ? 7 : 14);
    const y = value >= 0 ? middle - size : middle;
    return draw("rect", { class: value >= 0 ? "bar-plus" : "bar-minus", x: at * step + 0.5, y, width: Math.max(step - 1, 1), height: Math.max(size, 0.4) });
  });
  return draw("svg", { class: "bars", viewBox: `0 0 ${width} 16`, width, height: 16, "aria-hidden": "true" }, ...parts);
}
