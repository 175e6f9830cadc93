// The glass box: what is built, what it reads, and at which stop of a run we look. Other files draw it.

import { ask, complain, find, show } from "./page.js";
import { prepareMaking } from "./making.js";
import { prepareBreaking, showArrays } from "./breaking.js";
import { prepareTyping, showTyping } from "./typing.js";
import { showAnswers } from "./answers.js";
import { showStage, showStops } from "./stage.js";

export const state = {
  net: null, // what the app said of the built net
  words: [], // what it reads
  stop: 0, // the stop of the run that is looked at
  position: null, // the position that is looked at; null: the last one
  story: null, // what the app said of that stop
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
      const story = await ask("POST", `/api/glass/nets/${net.net}/run`, { data });
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

function built(net) {
  state.net = net;
  state.story = null; // what was read before is not for this net
  state.words = [];
  show(find("look"));
  show(find("check-card"));
  show(find("break-card"));
  showTyping(state);
  showArrays(state);
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

find("back").addEventListener("click", () => step(-1));
find("forth").addEventListener("click", () => step(1));
document.addEventListener("keydown", keys);
new MutationObserver(render).observe(document.documentElement, { attributeFilter: ["data-theme"] });
prepareTyping(state);
prepareBreaking(state);
prepareMaking(state, built);
