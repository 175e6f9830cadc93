// The glass box: a network, what it reads, and at which stop of a run we look. Other files draw it.
// `source` answers questions about the network: the app's server, or the page itself (source.js).

import { complain, find, show } from "./page.js";
import { prepareBreaking, replay, showArrays } from "./breaking.js";
import { prepareTyping, showTyping } from "./typing.js";
import { showAnswers } from "./answers.js";
import { showStage, showStops } from "./stage.js";

export const state = {
  source: null,
  check: () => {}, // compares a network that was changed with what is right
  net: null, // what is said of the network before any input
  changes: [], // to its weights
  words: [], // what it reads
  stop: 0, // the stop of the run that is looked at
  position: null, // the position that is looked at; null: the last one
  story: null, // what is said of that stop
};

let wanted = null; // the newest question that was not put yet
let asking = false;

// Ask for the story of the present words and stop; while an answer is on its way, only the newest question waits.
export function look(changes = {}) {
  Object.assign(state, changes);
  wanted = { since: performance.now(), net: state.net };
  if (!asking) void next();
}

async function next() {
  asking = true;
  while (wanted) {
    const { since, net } = wanted;
    wanted = null;
    const data = { words: state.words, stop: state.stop, position: state.position };
    try {
      const story = await state.source.run(data);
      if (net !== state.net) continue;
      state.story = story;
      complain("input-complaint");
      render();
      find("stage").dataset.ms = (performance.now() - since).toFixed(1); // from the key to the page
    } catch (refusal) {
      complain("input-complaint", refusal.message);
    }
    find("stage").dataset.words = data.words.length;
  }
  asking = false;
  clearTimeout(noting);
  noting = setTimeout(note, 400);
}

// What is seen is in the address, as #net?words=…&stop=…: a link to it shows the same.

let noting = 0;

function note() {
  if (!state.net || !state.story || location.protocol === "about:") return; // a frame in a notebook has no address
  const said = new URLSearchParams({ words: JSON.stringify(state.words), stop: state.story.stop.name });
  if (state.position !== null) said.set("position", state.position);
  if (state.source.packed && state.changes.length) said.set("changes", JSON.stringify(state.changes));
  history.replaceState(null, "", `#net?${said}`);
}

function noted() {
  const said = new URLSearchParams(location.hash.startsWith("#net?") ? location.hash.slice(5) : "");
  const list = (name) => {
    try {
      const value = JSON.parse(said.get(name));
      return Array.isArray(value) ? value : null;
    } catch {
      return null;
    }
  };
  return { words: list("words"), changes: list("changes") ?? [], stop: said.get("stop"), position: said.has("position") ? Number(said.get("position")) : null };
}

export function render() {
  if (!state.story) return;
  showAnswers(state);
  showStops(state);
  showStage(state);
}

export function step(by) {
  const stop = state.stop + by;
  if (state.story && stop >= 0 && stop < state.net.stops.length) look({ stop });
}

export function choose(position) {
  if (!state.story || position < 0 || position >= (state.story.count ?? 0)) return;
  look({ position });
}

// Look into a network; the first time, at what the address says.
let fresh = true;

export async function open(source) {
  const { words, changes, stop, position } = fresh ? noted() : { changes: [] };
  fresh = false;
  const first = source.facts.stops.findIndex((one) => one.name === stop);
  const net = source.facts;
  Object.assign(state, { source, net, story: null, words: [], changes: [], position: position ?? null });
  state.stop = first >= 0 ? first : Math.min(1, net.stops.length - 1);
  for (const id of ["look", "check-card", "break-card"]) show(find(id));
  showArrays(state);
  if (source.packed) await replay(state, changes);
  showTyping(state, words?.every((word) => typeof word === "string") ? words : null);
}

function keys(event) {
  const target = event.target;
  const writing = target.matches("input, select, textarea") && !(target.id === "token" && target.value === "");
  if (!state.story || writing || event.altKey || event.ctrlKey || event.metaKey) return;
  const open = !find("offers").hidden;
  const moves = { ArrowLeft: () => step(-1), ArrowRight: () => step(1) };
  if (!open) {
    moves.ArrowUp = () => choose(state.story.position - 1);
    moves.ArrowDown = () => choose(state.story.position + 1);
  }
  if (event.key in moves) {
    event.preventDefault();
    moves[event.key]();
  }
}

export function prepare() {
  find("back").addEventListener("click", () => step(-1));
  find("forth").addEventListener("click", () => step(1));
  document.addEventListener("keydown", keys);
  new MutationObserver(render).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  prepareTyping(state);
  prepareBreaking(state);
}
