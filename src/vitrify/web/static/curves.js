// Live training curves: a stream of server-sent events says what the store holds, and every event is drawn.
import { chart, short } from "./chart.js";

const $ = (id) => document.getElementById(id);
const chosen = { query: "", sweep: "", quantity: "loss" };
let stream = null;
let latest = null;

function connect() {
  stream?.close();
  stream = new EventSource(`/api/curves/stream?${new URLSearchParams(chosen)}`);
  stream.onmessage = (event) => {
    latest = JSON.parse(event.data);
    show();
  };
  stream.onerror = async () => {
    state("pending", "no connection");
    if (stream.readyState !== EventSource.CLOSED) return; // it tries again by itself
    const answer = await fetch(`/api/curves?${new URLSearchParams(chosen)}`).catch(() => null);
    const refusal = answer && !answer.ok ? await answer.json() : null;
    $("message").textContent = refusal?.error ?? "The app does not answer.";
  };
}

function state(kind, text) {
  $("live").className = `badge ${kind}`;
  $("live").textContent = text;
}

function show() {
  $("message").textContent = latest.message;
  $("results").hidden = !latest.chosen;
  const running = latest.sweeps.reduce((sum, one) => sum + (one.states.running ?? 0), 0);
  state(running ? "holds" : "", running ? `live: ${running} under way` : "live: nothing under way");
  if (!latest.chosen) return;
  $("sweeps").replaceChildren(...latest.sweeps.map(sweep));
  drawn(latest.chosen);
  listed(latest.chosen);
}

function element(name, text, ...children) {
  const made = document.createElement(name);
  made.append(text, ...children);
  return made;
}

function sweep(one) {
  const states = Object.entries(one.states).map(([name, count]) => `${count} ${name}`);
  const step = one.step === null ? "" : `; step ${one.step.toLocaleString("en")}`;
  const button = element("button", one.name, element("small", `${states.join(", ")}${step}`));
  button.type = "button";
  button.setAttribute("aria-pressed", String(one.name === latest.chosen.name));
  button.addEventListener("click", () => put({ sweep: one.name }));
  return element("li", button);
}

function drawn(found) {
  const { quantity, lines } = found;
  const nats = quantity === "accuracy" ? "" : " (nats per answer)";
  $("sweep").textContent = found.name;
  $("summary").textContent = summary(found);
  chart($("chart"), {
    title: `${quantity} of ${found.name} against training steps`,
    height: Math.max(320, Math.min(520, 0.5 * window.innerHeight)),
    x: { label: "training step", log: $("log-steps").checked, short: "step" },
    y: { label: `${quantity}${nats}`, log: $("log-values").checked },
    series: lines.map((line, at) => series(line, at)),
    levels: found.levels.map((one) => ({ ...one, kind: level(one) })),
  });
  $("legend").replaceChildren(...lines.map(key));
}

/** How a level is drawn: the optimal loss as a whole line, in the colour of its curve if it is of one alone. */
function level(one) {
  if (!one.name.startsWith("optimal")) return "";
  return one.line === null ? "floor" : `floor s${one.line % 10}`;
}

/** On a logarithmic axis there is no step 0: what was measured before the first step stands at 1/2. */
function series(line, at) {
  const x = $("log-steps").checked ? line.steps.map((step) => (step === 0 ? 0.5 : step)) : line.steps;
  const numbers = (values) => values.map((value) => value ?? NaN);
  const [y, low, high] = [numbers(line.mean), numbers(line.low), numbers(line.high)];
  const band = line.members > 1 ? { low, high } : {};
  return { name: line.label, kind: `s${at % 10}`, x, y, ...band };
}

function key(line, at) {
  const mark = document.createElement("i");
  mark.className = `key s${at % 10}`;
  const states = [line.running ? `${line.running} under way` : "", line.failed ? `${line.failed} failed` : ""];
  const more = states.filter(Boolean).map((text) => `, ${text}`);
  return element("li", mark, `${line.label} (${line.members} ${line.members === 1 ? "run" : "runs"}${more.join("")})`);
}

/** The curves in words. */
function summary(found) {
  const ends = found.lines.filter((line) => line.mean.length && line.mean.at(-1) !== null);
  if (!ends.length) return "Nothing has been measured yet.";
  const results = ends.slice(0, 3).map((line) => {
    const value = line.mean.at(-1);
    const floor = line.floors.floor;
    const above = found.quantity === "loss" && floor !== undefined ? `, ${short(value - floor)} above the optimum` : "";
    const steps = line.steps.at(-1).toLocaleString("en");
    return `${line.label}: ${found.quantity} ${short(value, 4)} after ${steps} steps${above}`;
  });
  const best = { excess: "0 would be the optimum.", kl: "0 would be the optimum." }[found.quantity] ?? "";
  const band = "Lines are means over members, bands reach from their 10th to their 90th percentile.";
  const rest = found["left out"] ? ` ${found["left out"]} more combinations are not drawn: ask for fewer runs.` : "";
  return `${results.join("; ")}. ${best} ${band}${rest}`;
}

function listed(found) {
  const shown = (value) => (value === null ? "–" : typeof value === "number" ? short(value, 5) : String(value));
  $("columns").replaceChildren(element("tr", "", ...found.columns.map((name) => element("th", name))));
  const cells = (row) => row.map((value) => element("td", shown(value)));
  $("rows").replaceChildren(...found.rows.map((row) => element("tr", "", ...cells(row))));
  const more = found["more rows"] ? ` (${found["more rows"]} more are not listed)` : "";
  $("table-of-runs").querySelector("summary").textContent = `${found.rows.length} runs${more}`;
}

function put(change) {
  Object.assign(chosen, change);
  connect();
}

let typing = 0;
$("query").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => put({ query: $("query").value, sweep: "" }), 300);
});
$("quantity").addEventListener("change", () => {
  $("log-values").checked = ["excess", "kl"].includes($("quantity").value);
  put({ quantity: $("quantity").value });
});
for (const name of ["log-steps", "log-values"]) $(name).addEventListener("change", () => latest && show());
$("filters").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("resize", () => latest?.chosen && drawn(latest.chosen));
window.addEventListener("pagehide", () => stream?.close());
connect();
