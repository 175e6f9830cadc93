// The landscape explorer: what is chosen goes to the server, what it answers is drawn.
import { chart, short } from "./chart.js";
import { Plane } from "./plane.js";

const $ = (id) => document.getElementById(id);
const KINDS = { tied: "s4", untied: "reads", "tied, start w = −1": "third" }; // of recorded networks
const number = (id) => Number($(id).value);
const chosen = { form: "tied", p: number("p"), q: number("q"), third: 0, e: number("e"), w: number("w") };
const plane = new Plane($("plane"), chosen, (e, w) => put({ e, w }));
const latest = {}; // of every question the last answer
const waiting = {}; // and what is being asked

/** Ask; an answer that is no longer wanted is dropped. */
async function ask(what, words) {
  waiting[what]?.abort();
  const mine = (waiting[what] = new AbortController());
  try {
    const answer = await fetch(`/api/landscape/${what}?${new URLSearchParams(words)}`, { signal: mine.signal });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error ?? "the server refused");
    $("trouble").hidden = true;
    latest[what] = found;
    return found;
  } catch (error) {
    if (error.name === "AbortError") return null;
    $("trouble").textContent = `No answer (${error.message}): is the app still running?`;
    $("trouble").hidden = false;
    return null;
  }
}

function words(...names) {
  const given = Object.fromEntries(names.map((name) => [name, chosen[name]]));
  return chosen.form === "tied" ? given : { ...given, third: chosen.third };
}

async function surface() {
  const found = await ask("surface", words("form", "p", "q"));
  if (!found) return;
  plane.landscape(found);
  $("plane-caption").textContent = `${found.caption} ${shares(found)}`;
  $("critical-points").replaceChildren(...found.critical_points.map(row));
  const [alone, rate] = [found.alone, found.rate].map((value) => value.toFixed(4));
  $("levels").textContent = `H(π) = ${alone}, entropy rate = ${rate}, right contrast ${short(found.contrast)} nats`;
}

function shares(found) {
  const part = Math.round(100 * found.share);
  if (found.share === 0) return "No region of this plane gets stuck.";
  return `The red region, ${part} % of this plane, leads to the loss H(π).`;
}

function row(point) {
  const made = document.createElement("tr");
  const cells = [point.name, point.where, point.kind, point.loss.toFixed(4)];
  made.append(...cells.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
  made.lastChild.className = "number";
  return made;
}

async function path() {
  const found = await ask("path", words("form", "p", "q", "e", "w"));
  if (!found) return;
  if (plane.edge) plane.way(found);
  const good = found.kind === "global minimum";
  $("kind").textContent = found.kind;
  $("kind").dataset.kind = found.kind;
  $("kind").className = `badge ${good ? "holds" : "fails"}`;
  $("path-caption").textContent = found.caption;
  const { third } = document.querySelector("input[name=form]:checked").dataset;
  const also = third ? `, ${third} = ${found.end.third.toFixed(3)}` : "";
  const ended = `ends at e = ${found.end.e.toFixed(3)}, w = ${found.end.w.toFixed(3)}${also}`;
  $("ended").textContent = ended.replaceAll("-", "−");
  overTime();
}

function overTime() {
  const [found, around] = [latest.path, latest.surface];
  if (!found || !around) return;
  const kind = found.kind === "global minimum" ? "reads" : "stuck";
  const gap = Math.max(around.alone - around.rate, 1e-3);
  const top = Math.min(Math.max(...found.loss), around.alone + 3 * gap);
  chart($("over-time"), {
    title: "The loss of this flow over time",
    height: 230,
    x: { label: "time of the flow", log: true, from: 0.01, to: 1e4, short: "time" },
    y: { label: "loss (nats per bit)", from: around.rate - 0.15 * gap, to: Math.max(top, around.alone) + 0.3 * gap },
    series: [{ name: "loss", kind, x: extended(found.times), y: [...found.loss, found.loss.at(-1)] }],
    levels: [
      { name: "H(π)", value: around.alone, kind: "alone" },
      { name: "entropy rate", value: around.rate, kind: "floor" },
    ],
  });
}

/** After convergence the loss stays constant. */
function extended(times) {
  return [...times, 1e4];
}

async function recorded() {
  const found = await ask("recorded", { form: chosen.form, p: chosen.p, q: chosen.q });
  if (!found) return;
  if (plane.edge) plane.networks(found.kinds, KINDS);
  const one = found.kinds[0];
  const on = found["measured on"];
  $("recorded-caption").textContent =
    `Recorded, not computed now: ${found.seeds} networks of each kind with d = ${found.d}, trained by AdamW on sequences of ` +
    `${found.length} bits at the nearest recorded chain, p = ${found.p}, q = ${found.q} (${on.device}, ${on.date}). ` +
    "In the plane above they are drawn by |e| and by the w that has their contrast.";
  $("recorded-kinds").replaceChildren(...found.kinds.map((each) => named(each.kind)));
  chart($("recorded"), {
    title: "The loss of recorded networks over training steps",
    height: 260,
    x: { label: "training step", log: true, from: 1, to: found.steps.at(-1), short: "step" },
    y: { label: "loss (nats per bit)" },
    series: found.kinds.flatMap((each) => band(each, found.steps)),
    levels: [
      { name: "H(π) on these rows", value: one.alone, kind: "alone" },
      { name: "optimal", value: one.floor, kind: "floor" },
    ],
  });
}

/** An entry of the legend. */
function named(kind) {
  const mark = Object.assign(document.createElement("i"), { className: `key ${KINDS[kind]}` });
  const made = document.createElement("li");
  made.append(mark, `${kind}: mean of its networks, and their range`);
  return made;
}

function band(each, steps) {
  const columns = steps.map((_, at) => each.loss.map((curve) => curve[at]));
  const mean = columns.map((column) => column.reduce((sum, value) => sum + value, 0) / column.length);
  const [low, high] = [columns.map((column) => Math.min(...column)), columns.map((column) => Math.max(...column))];
  return [{ name: each.kind, kind: KINDS[each.kind], x: steps, y: mean, low, high }];
}

/** Choose something, show it in the controls, and ask for what depends on it. */
function put(change) {
  const limited = (value) => Math.round(1e3 * Math.min(Math.max(value, -2.5), 2.5)) / 1e3;
  const before = { ...chosen };
  Object.assign(chosen, change);
  [chosen.e, chosen.w] = [limited(chosen.e), limited(chosen.w)];
  show();
  const plainly = ["form", "p", "q", "third"].some((name) => before[name] !== chosen[name]);
  if (plainly) soon("surface", surface);
  if (before.form !== chosen.form || before.p !== chosen.p || before.q !== chosen.q) soon("recorded", recorded);
  soon("path", path);
}

/** Once in a frame is enough. */
const due = {};
function soon(what, work) {
  due[what] ??= requestAnimationFrame(async () => {
    due[what] = undefined;
    await work();
    if (what === "surface") {
      if (latest.path) plane.way(latest.path);
      overTime();
      if (latest.recorded) plane.networks(latest.recorded.kinds, KINDS);
    }
  });
}

function show() {
  for (const name of ["p", "q"]) {
    $(name).value = chosen[name];
    $(`${name}-value`).textContent = chosen[name].toFixed(2);
  }
  $("third").value = chosen.third;
  $("third-value").textContent = chosen.third.toFixed(2);
  for (const name of ["e", "w"]) if (document.activeElement !== $(name)) $(name).value = chosen[name];
}

function listen() {
  for (const name of ["p", "q", "third"]) {
    $(name).addEventListener("input", () => put({ [name]: Number($(name).value) }));
  }
  for (const name of ["e", "w"]) $(name).addEventListener("input", () => put({ [name]: Number($(name).value) }));
  for (const radio of document.querySelectorAll("input[name=form]")) {
    radio.addEventListener("change", () => {
      const { third, means, first } = radio.dataset;
      $("third-row").hidden = !third;
      $("third-name").textContent = third ? `${third}: ${means}` : "";
      put({ form: radio.value, third: Number(first) });
    });
  }
  for (const button of document.querySelectorAll(".presets button")) {
    const given = Object.entries(button.dataset).map(([name, value]) => [name, Number(value)]);
    button.addEventListener("click", () => put(Object.fromEntries(given)));
  }
  for (const name of ["basins", "lines", "networks"]) {
    $(name).addEventListener("change", () => {
      plane.shown[name] = $(name).checked;
      if (latest.surface) plane.landscape(latest.surface);
      if (latest.recorded) plane.networks(latest.recorded.kinds, KINDS);
    });
  }
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  const again = () => {
    if (latest.surface) plane.paint();
    overTime();
  };
  new MutationObserver(again).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  window.addEventListener("resize", () => {
    overTime();
    if (latest.recorded) soon("recorded", recorded);
  });
}

listen();
show();
soon("surface", surface);
soon("path", path);
soon("recorded", recorded);
