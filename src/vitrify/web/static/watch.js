// Watching learning: a slider through the checkpoints of a run; another network reads the same words beside it.
import { chart } from "./chart.js";
import { heatMap } from "../live/maps.js";
import { ask, complain, find, make, show } from "../live/page.js";

const nets = new Map();
const asked = { left: 0, right: 0, extract: 0 }; // the number of the latest question: older answers are dropped
let points = [];

const chosen = (side) => nets.get(find(side).value);
const words = () => find("words").value.split(/\s+/).filter(Boolean);
const steps = () => chosen("left")?.steps ?? [];
const step = () => steps()[Number(find("step").value)];

async function begin() {
  const found = await ask("GET", "/api/watch/nets");
  for (const one of found.nets) nets.set(one.key, one);
  const options = () => found.nets.map((one) => make("option", { value: one.key }, one.name));
  find("left").replaceChildren(...options());
  find("right").replaceChildren(make("option", { value: "" }, "nothing"), ...options());
  if (!found.nets.length) {
    complain("trouble", "No network is here yet: train one, or name one with vitrify serve.");
    return;
  }
  const named = found.nets.find((one) => one.key.startsWith("net:"));
  if (named && found.nets.length > 1) find("right").value = named.key;
  await another();
}

/** Another run is shown: its checkpoints, its curves, and words that it reads. */
async function another() {
  const last = Math.max(steps().length - 1, 0);
  find("step").max = last;
  find("step").value = last;
  find("step").disabled = !last;
  const { key, curves } = chosen("left");
  const first = ["induction", "loss"].find((name) => curves.includes(name)) ?? curves[0];
  find("curve").replaceChildren(...curves.map((name) => make("option", { selected: name === first }, name)));
  show(find("over"), curves.length > 0);
  if (!words().length) find("words").value = (await ask("GET", `/api/watch/words?net=${encodeURIComponent(key)}`)).words.join(" ");
  points = curves.length ? (await ask("GET", `/api/watch/curves?net=${encodeURIComponent(key)}`)).points : [];
  await both();
}

async function look(side, data) {
  const mine = (asked[side] += 1);
  const found = await ask("POST", "/api/watch/look", { data });
  if (mine !== asked[side]) return;
  const at = data.step === undefined ? "" : `, step ${data.step.toLocaleString("en")}`;
  find(`${side}-name`).textContent = `${found.name}${at}`;
  const story = { tokens: found.tokens, start: 0, position: -1 };
  const heads = found.heads.map((head) =>
    make("article", { class: "head" }, make("h3", {}, head.name), heatMap(story, head, () => {})),
  );
  const more = found.more ? [make("p", { class: "quiet" }, `and ${found.more} more heads`)] : [];
  find(`${side}-heads`).replaceChildren(...heads, ...more);
  const rows = found.answers.map((best, place) => {
    const said = best.map(([symbol, share]) => (share === null ? symbol : `${symbol} ${share.toFixed(3)}`));
    return make("tr", {}, make("th", { scope: "row" }, found.tokens[found.first + place]), make("td", {}, said.join(" · ")));
  });
  find(`${side}-answers`).replaceChildren(...rows);
}

async function both() {
  forget();
  find("at").textContent = steps().length ? `step ${step().toLocaleString("en")}` : "the end";
  const beside = chosen("right");
  show(find("beside"), Boolean(beside));
  drawn();
  try {
    const left = look("left", { net: chosen("left").key, words: words(), ...(steps().length ? { step: step() } : {}) });
    await Promise.all([left, beside ? look("right", { net: beside.key, words: words(), beside: chosen("left").key }) : null]);
    complain("trouble", "");
  } catch (refused) {
    complain("trouble", refused.message);
  }
}

function drawn() {
  const name = find("curve").value;
  if (!points.length || !name) return;
  const x = points.map((point) => point.step || 0.5); // on a logarithmic axis there is no step 0
  const values = points.map((point) => point[name]).map((value) => (Array.isArray(value) ? value : [value]));
  const series = values[0].map((_, at) => ({
    name: values[0].length > 1 ? `${name} ${at}` : name,
    kind: `s${at % 10}`,
    x,
    y: values.map((row) => row[at]),
  }));
  const every = values.flat().filter(Number.isFinite);
  if (steps().length) {
    const here = step() || 0.5;
    series.push({ name: "now", kind: "third", dashed: true, x: [here, here], y: [Math.min(...every), Math.max(...every)] });
  }
  const floors = name === "loss" ? Object.entries(points.at(-1)).filter(([key]) => /^floor(\.|$)/.test(key)) : [];
  chart(find("chart"), {
    title: `${name} against training steps`,
    height: 220,
    x: { label: "training step", log: true, short: "step" },
    y: { label: name },
    series,
    levels: floors.map(([key, value]) => ({ name: key === "floor" ? "optimal" : key.slice(6), value, kind: key === "floor" ? "floor" : "" })),
  });
}

/** Nothing is shown of a network, a checkpoint or symbols that are not chosen any more. */
function forget() {
  asked.extract += 1;
  find("known").textContent = "";
  show(find("spec"), false);
  find("facts").replaceChildren();
}

/** The spec of the network on the left at its checkpoint; an answer about another one is dropped. */
async function extract(event) {
  event.preventDefault();
  forget();
  const mine = asked.extract;
  find("known").textContent = "running words …";
  try {
    const at = steps().length ? { step: step() } : {};
    const data = { net: chosen("left").key, words: words(), kind: find("kind").value, ...at };
    const found = await ask("POST", "/api/watch/extract", { data });
    if (mine !== asked.extract) return;
    find("known").textContent = `${found.verdict}: ${found.known}`;
    find("spec").textContent = found.spec;
    show(find("spec"), true);
    find("facts").replaceChildren(
      ...found.facts.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value))),
    );
  } catch (refused) {
    if (mine === asked.extract) find("known").textContent = refused.message;
  }
}

let typing = 0;
find("extract").addEventListener("submit", extract);
find("words").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(both, 100);
});
find("step").addEventListener("input", both);
find("left").addEventListener("change", () => {
  find("words").value = "";
  another();
});
find("right").addEventListener("change", both);
find("curve").addEventListener("change", drawn);
find("controls").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("resize", drawn);
begin().catch((refused) => complain("trouble", refused.message));
