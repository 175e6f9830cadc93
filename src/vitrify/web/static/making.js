// From a spec to a net and its certificate: the part of the glass box that takes a server.

import { open, prepare, state } from "../live/glass.js";
import { ask, complain, find, follow, make, number, show } from "../live/page.js";

// The one option that is of the spec and not of a construction; those of constructions come with the spec.
const DEPTH = { name: "depth", help: "drop derivations deeper than", kind: "int", low: 1, choices: [], default: null };

const SENTENCES = "the sun is up\nthe rain is down\nthe sun is down\n"; // a text for an n-gram model

let text_changed = false; // since the spec was given
let spec = null; // what the app said of the given spec
let job = null; // what is being built

// The server as the source of what is known of a network.
const served = (net, address = `/api/glass/nets/${net.net}`) => ({
  facts: net,
  run: (data) => ask("POST", `${address}/run`, { data }),
  suggest: (seed) => ask("GET", `${address}/suggestion?seed=${seed}`),
  write: (data) => ask("POST", `${address}/write`, { data }),
  entries: (array, search) => ask("GET", `${address}/entries?${new URLSearchParams({ array, search })}`),
  change: (data) => ask("POST", `${address}/changes`, { data }),
  mend: () => ask("DELETE", `${address}/changes`),
});

function prepareMaking() {
  state.check = check;
  const example = find("example");
  example.addEventListener("change", () => void takeExample());
  find("file").addEventListener("change", () => void takeFile());
  find("construction").addEventListener("change", showConstruction);
  find("build").addEventListener("click", () => void build());
  find("spec-edit").addEventListener("input", edited);
  for (const button of document.querySelectorAll(".kind")) button.addEventListener("click", () => void begin(button.dataset.example));
  find("copy").addEventListener("click", () => void navigator.clipboard.writeText(python()).then(() => (find("copy").textContent = "Copied")));
  find("stop").addEventListener("click", () => job && void ask("DELETE", `/api/glass/jobs/${job}`));
  find("check").addEventListener("click", () => void check());
  const wanted = new URLSearchParams(location.search).get("example"); // so that other pages can point to one
  if ([...example.options].some((option) => option.value === wanted)) example.value = wanted;
  void takeExample();
}

// An example is built as soon as it is chosen; until then the network that is shown is that of another spec.
async function takeExample() {
  const name = find("example").value;
  find("file").value = "";
  const answer = await fetch(`/api/glass/examples/${encodeURIComponent(name)}`);
  await take(name, new Blob([await answer.arrayBuffer()]));
  if (spec?.name === name) await build();
}

// A kind of spec, with an example of it to begin with.
async function begin(name) {
  const example = find("example");
  if ([...example.options].some((option) => option.value === name)) {
    example.value = name;
    await takeExample();
  } else await take(name, new Blob([SENTENCES]));
  find("spec-edit").focus();
}

// The text that was written is the spec that is built.
function edited() {
  if (!find("spec-text").dataset.name) return;
  text_changed = true;
  find("look").classList.add("stale");
  find("build").disabled = false;
}

async function takeFile() {
  const file = find("file").files[0];
  if (file) await take(file.name, file);
}

let taken = 0; // the number of the newest spec

async function take(name, body) {
  const mine = ++taken;
  spec = null;
  find("look").classList.add("stale");
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
  showConstructions();
}

async function showText(name, body) {
  const text = find("spec-edit");
  const readable = !/\.(gz|safetensors)$/.test(name);
  find("spec-text").dataset.name = name;
  text.value = readable ? await body.text() : "";
  text.disabled = !readable;
  text_changed = false;
}

// The same in Python: the file, the network, a run, the certificate.
function python() {
  const { net, words } = state;
  const name = find("spec-text").dataset.name;
  const text = find("spec-edit").value;
  const { depth, ...chosen } = options();
  const choices = Object.entries(chosen).map(([key, value]) => `, ${key}=${typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value)}`);
  const lines = ["import vitrify as v"];
  if (name.endsWith(".txt")) lines.push(`sentences = [line.split() for line in ${JSON.stringify(text)}.splitlines()]`, "spec = v.NGramModel.fit(sentences, 2)");
  else if (text) lines.push("from pathlib import Path", `Path(${JSON.stringify(name)}).write_text(${JSON.stringify(text)}, encoding="utf-8")`, `spec = v.read(${JSON.stringify(name)})`);
  else lines.push(`spec = v.read(${JSON.stringify(name)})`);
  if (depth) lines.push("from vitrify.spec import bounded", `spec = bounded(spec, ${depth})`);
  lines.push(`net = v.build(spec, ${JSON.stringify(find("construction").value)}${choices.join("")})`);
  if (net) lines.push(`print(v.run(net, ${JSON.stringify(words)}))`);
  return [...lines, "print(v.certify(net, spec).verdict)"].join("\n");
}

function showConstructions() {
  const select = find("construction");
  const entries = spec ? spec.constructions : [];
  select.replaceChildren(...entries.map((one) => make("option", { value: one.construction, selected: one.default }, one.construction)));
  select.disabled = find("build").disabled = !entries.length;
  showConstruction();
}

function showConstruction() {
  const chosen = spec?.constructions.find((one) => one.construction === find("construction").value);
  find("construction-summary").textContent = chosen ? chosen.summary : "";
  show(find("options"), Boolean(chosen));
  const offered = chosen ? [...chosen.choices, ...(spec.depth ? [DEPTH] : [])] : [];
  find("option-fields").replaceChildren(...offered.map(field));
}

function field({ name, help, kind, low, high, choices, default: usual }) {
  const id = `option-${name}`;
  const placeholder = usual === null ? "by default" : String(usual);
  const named = kind === "bool" ? ["true", "false"] : choices;
  const control = named.length
    ? make("select", { id }, make("option", { value: "" }, `by default, ${placeholder}`), named.map((one) => make("option", {}, String(one))))
    : kind === "text" || kind === "str"
      ? make("input", { id, type: "text", placeholder })
      : make("input", { id, type: "number", min: low, max: high, step: kind === "float" ? "any" : 1, placeholder });
  Object.assign(control.dataset, { option: name, kind });
  return make("div", { class: "field" }, make("label", { for: id }, help || name), control);
}

function options() {
  const found = {};
  for (const control of find("option-fields").querySelectorAll("[data-option]")) {
    if (control.value === "") continue;
    const { option, kind } = control.dataset;
    found[option] = kind === "int" || kind === "float" ? Number(control.value) : kind === "bool" ? control.value === "true" : control.value;
  }
  return found;
}

async function build() {
  if (text_changed) await take(find("spec-text").dataset.name, new Blob([find("spec-edit").value]));
  if (!spec) return;
  complain("build-complaint");
  busy(true);
  try {
    const data = { spec: spec.spec, construction: find("construction").value, options: options() };
    job = (await ask("POST", "/api/glass/nets", { data })).job;
    const net = await follow(job, (told) => progress("doing", told));
    showNet(net);
    await open(served(net));
    find("look").classList.remove("stale");
    void check();
  } catch (refusal) {
    complain("build-complaint", refusal.message);
  }
  job = null;
  busy(false);
}

function busy(now) {
  find("build").disabled = now || !(spec || text_changed);
  show(find("copy"), !now && Boolean(spec));
  find("copy").textContent = "Copy as Python";
  show(find("stop"), now);
  show(find("progress"), now);
  find("doing").textContent = "";
}

function progress(place, { doing, done, total }) {
  const share = total ? `, ${Math.floor((100 * done) / total)} %` : "";
  find(place).textContent = `${doing}${share}`;
}

function showNet(net) {
  const size = net.sizes;
  show(find("made"));
  const called = net.name === "spec" ? "" : `${net.name}, `; // programs are called after their file, which is ours
  find("what").textContent = `${net.file_name}: ${called}${net.what}`;
  const sizes = [
    ["layers", size.layers],
    ["heads", size.heads],
    ["width", size.d_model],
    ["hidden units", size.units],
    ["weights that are not 0", size.nonzero.toLocaleString("en")],
    ["of", size.dense.toLocaleString("en")],
    ["largest", number(size.max_abs)],
  ];
  find("sizes").replaceChildren(...sizes.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
}

let checking = 0; // the number of the newest check
let checked = null; // its job

async function check() {
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
  for (const [name, text] of found.words.links) rows.push(...fact(name, text));
  rows.push(...fact("tested", found.words.domains.map((part) => make("div", {}, part))));
  const shown = rows.length;
  rows.push(...fact("cases", found.cases.toLocaleString("en")));
  for (const [name, text] of found.words.quantities) rows.push(...fact(name, text));
  rows.push(...fact("time", `${number(found.seconds)} s`));
  for (const note of found.words.remarks) rows.push(...fact("note", note));
  const [first, rest] = [rows.slice(0, shown), rows.slice(shown)];
  return [make("dl", { class: "facts" }, first), make("details", {}, make("summary", {}, "The numbers"), make("dl", { class: "facts" }, rest))];
}

function words(value) {
  if (Array.isArray(value)) return value.length > 40 ? `${value.length} numbers` : value.map(words).join(" ") || "nothing";
  if (value && typeof value === "object") return Object.entries(value).map(([name, one]) => `${name} ${words(one)}`).join(", ");
  return typeof value === "number" ? number(value) : String(value);
}

prepare();
prepareMaking();
