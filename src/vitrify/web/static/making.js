// From a spec to a net and its certificate.

import { ask, complain, find, follow, make, number, show } from "./page.js";

// What the options of `vitrify build` are, by the name under which a construction has them.
const OPTIONS = {
  attention: { label: "attention", choices: ["soft", "sparse", "hard"] },
  max_length: { label: "longest input, in tokens", least: 1 },
  positions: { label: "position code", choices: ["dyadic", "quadratic", "sqrt"] },
  window: { label: "answer from the last n−1 words, n", least: 1 },
  depth: { label: "drop derivations deeper than", least: 1 },
  tolerance: { label: "what soft attention may do to an output", real: true },
  mode: { label: "ways to compare counts", choices: ["bounded", "layernorm"] },
  dimension: { label: "numbers in the code of a word", least: 1 },
  units: { label: "hidden units", least: 1 },
  seed: { label: "seed of the random codes", least: 0 },
};

let spec = null; // what the app said of the given spec
let job = null; // what is being built

export function prepareMaking(state, built) {
  const example = find("example");
  example.addEventListener("change", () => void takeExample());
  find("file").addEventListener("change", () => void takeFile());
  find("shape").addEventListener("change", showShape);
  find("build").addEventListener("click", () => void build(state, built));
  find("stop").addEventListener("click", () => job && void ask("DELETE", `/api/glass/jobs/${job}`));
  find("check").addEventListener("click", () => void check(state));
  const wanted = new URLSearchParams(location.search).get("example"); // so that other pages can point to one
  if ([...example.options].some((option) => option.value === wanted)) example.value = wanted;
  void takeExample().then(() => spec && build(state, built));
}

async function takeExample() {
  const name = find("example").value;
  find("file").value = "";
  const answer = await fetch(`/api/glass/examples/${encodeURIComponent(name)}`);
  await take(name, new Blob([await answer.arrayBuffer()]));
}

async function takeFile() {
  const file = find("file").files[0];
  if (file) await take(file.name, file);
}

let taken = 0; // the number of the newest spec

async function take(name, body) {
  const mine = ++taken;
  spec = null;
  find("build").disabled = true;
  complain("spec-complaint");
  complain("build-complaint");
  try {
    const found = await ask("POST", `/api/glass/specs?name=${encodeURIComponent(name)}`, { body });
    if (mine !== taken) return;
    spec = found;
  } catch (refusal) {
    if (mine !== taken) return;
    complain("spec-complaint", refusal.message);
  }
  if (spec?.warnings.length) complain("spec-complaint", spec.warnings.join("\n"));
  await showText(name, body);
  showShapes();
}

async function showText(name, body) {
  const text = find("spec-text");
  show(text);
  const readable = !/\.(gz|safetensors)$/.test(name);
  text.dataset.name = name;
  text.querySelector("code").textContent = readable ? (await body.text()).slice(0, 20000) : "not a text";
}

function showShapes() {
  const shape = find("shape");
  const shapes = spec ? spec.shapes : [];
  shape.replaceChildren(...shapes.map((one) => make("option", { value: one.shape, selected: one.default }, one.shape)));
  shape.disabled = find("build").disabled = !shapes.length;
  showShape();
}

function showShape() {
  const chosen = spec?.shapes.find((one) => one.shape === find("shape").value);
  find("shape-summary").textContent = chosen ? chosen.summary : "";
  show(find("options"), Boolean(chosen));
  const names = chosen ? Object.keys(OPTIONS).filter((name) => chosen.choices.includes(name)) : [];
  if (chosen && spec.depth) names.push("depth");
  find("option-fields").replaceChildren(...names.map(field));
}

function field(name) {
  const { label, choices, least, real } = OPTIONS[name];
  const id = `option-${name}`;
  const control = choices
    ? make("select", { id }, make("option", { value: "" }, "as usual"), choices.map((one) => make("option", {}, one)))
    : make("input", { id, type: "number", min: least, step: real ? "any" : 1, placeholder: "as usual" });
  control.dataset.option = name;
  return make("div", { class: "field" }, make("label", { for: id }, label), control);
}

function options() {
  const found = {};
  for (const control of find("option-fields").querySelectorAll("[data-option]")) {
    if (control.value === "") continue;
    found[control.dataset.option] = control.type === "number" ? Number(control.value) : control.value;
  }
  return found;
}

async function build(state, built) {
  complain("build-complaint");
  busy(true);
  try {
    const data = { spec: spec.spec, shape: find("shape").value, options: options() };
    job = (await ask("POST", "/api/glass/nets", { data })).job;
    const net = await follow(job, (told) => progress("doing", told));
    showNet(net);
    built(net);
    void check(state);
  } catch (refusal) {
    complain("build-complaint", refusal.message);
  }
  job = null;
  busy(false);
}

function busy(now) {
  find("build").disabled = now || !spec;
  show(find("stop"), now);
  show(find("progress"), now);
  find("doing").textContent = "";
}

function progress(place, { doing, done, total }) {
  const share = total ? `, ${Math.floor((100 * done) / total)} %` : "";
  find(place).textContent = `${doing}${share}`;
}

function showNet(net) {
  const size = net.ledger;
  show(find("made"));
  const called = net.name === "spec" ? "" : `${net.name}, `; // programs are called after their file, which is ours
  find("what").textContent = `${net.given}: ${called}${net.what}`;
  const sizes = [
    ["layers", size.layers],
    ["heads", size.heads],
    ["width", size.d_model],
    ["hidden units", size.units],
    ["weights that are not 0", size.nonzero.toLocaleString("en")],
    ["of", size.dense.toLocaleString("en")],
    ["largest", number(size.max_abs)],
  ];
  find("ledger").replaceChildren(...sizes.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
}

let checking = 0; // the number of the newest check
let checked = null; // its job

export async function check(state) {
  const mine = ++checking;
  if (checked) void ask("DELETE", `/api/glass/jobs/${checked}`); // nobody waits for it any more
  const net = state.net;
  verdict("pending", "checking");
  find("evidence").replaceChildren();
  try {
    const { job: begun } = await ask("POST", `/api/glass/nets/${net.net}/check`);
    if (mine === checking) checked = begun;
    const found = await follow(begun, (told) => mine === checking && progress("checking", told));
    if (mine !== checking) return;
    checked = null;
    verdict(found.verdict, found.verdict);
    find("evidence").replaceChildren(...facts(found));
  } catch (refusal) {
    if (mine !== checking) return;
    checked = null;
    verdict("undecided", "not checked");
    find("evidence").replaceChildren(make("dl", { class: "facts" }, fact("why", refusal.message)));
  }
  find("checking").textContent = "";
}

function verdict(kind, text) {
  const badge = find("verdict");
  badge.className = `badge ${kind}`;
  badge.textContent = text;
  find("check-card").dataset.verdict = kind;
}

const fact = (name, value, kind) => [make("dt", {}, name), make("dd", { class: kind }, value)];

function facts(found) {
  const rows = [];
  if (found.witness) {
    const told = Object.entries(found.witness).map(([name, value]) => make("div", {}, make("b", {}, `${name}: `), words(value)));
    rows.push(...fact("witness", told, "witness"));
  }
  rows.push(...fact("method", found.method), ...fact("domain", found.domain.split("; ").map((part) => make("div", {}, part))));
  const shown = rows.length;
  rows.push(...fact("cases", found.cases.toLocaleString("en")));
  for (const [name, value] of Object.entries(found.measured).slice(0, 6)) {
    const allowed = name in found.declared ? ` (allowed ${words(found.declared[name])})` : "";
    rows.push(...fact(name, words(value) + allowed));
  }
  rows.push(...fact("time", `${found.seconds} s`));
  for (const note of found.notes) rows.push(...fact("note", note));
  const [first, rest] = [rows.slice(0, shown), rows.slice(shown)];
  return [make("dl", { class: "facts" }, first), make("details", {}, make("summary", {}, "The numbers"), make("dl", { class: "facts" }, rest))];
}

function words(value) {
  if (Array.isArray(value)) return value.length > 40 ? `${value.length} numbers` : value.map(words).join(" ") || "nothing";
  if (value && typeof value === "object") return Object.entries(value).map(([name, one]) => `${name} ${words(one)}`).join(", ");
  return typeof value === "number" ? number(value) : String(value);
}
