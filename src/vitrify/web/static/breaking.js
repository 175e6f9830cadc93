// Changing single weights, and taking the changes back.

import { ask, complain, find, make, number } from "./page.js";
import { look } from "./glass.js";
import { check } from "./making.js";

let entries = [];
let tried = 0;

export function prepareBreaking(state) {
  find("break-random").addEventListener("click", () => void change(state, { seed: tried++ }));
  find("mend").addEventListener("click", () => void mend(state));
  find("array").addEventListener("change", () => void list(state));
  find("entry-search").addEventListener("input", () => void list(state));
  find("by-hand").addEventListener("toggle", () => void list(state));
  find("entry").addEventListener("change", () => {
    const chosen = entries[find("entry").value];
    if (chosen) find("value").value = chosen[2];
  });
  find("set").addEventListener("click", () => {
    const chosen = entries[find("entry").value];
    const value = find("value").valueAsNumber;
    if (!chosen || Number.isNaN(value)) {
      complain("break-complaint", "choose an entry and give it a number");
      return;
    }
    void change(state, { array: find("array").value, index: chosen[0], value });
  });
}

export function showArrays(state) {
  const options = state.net.arrays.map(({ name, nonzero }) =>
    make("option", { value: name }, `${name} (${nonzero.toLocaleString("en")})`),
  );
  find("array").replaceChildren(...options);
  find("entry").replaceChildren();
  showChanges([]);
  void list(state);
}

async function list(state) {
  if (!find("by-hand").open || !state.net) return;
  const query = new URLSearchParams({ array: find("array").value, search: find("entry-search").value });
  try {
    const found = await ask("GET", `/api/glass/nets/${state.net.net}/entries?${query}`);
    entries = found.entries;
    const options = entries.map(([, words, value], at) => make("option", { value: at }, `${words} = ${number(value)}`));
    if (found.more) options.push(make("option", { disabled: true }, `… and more: say what they are called`));
    find("entry").replaceChildren(...options);
  } catch (refusal) {
    complain("break-complaint", refusal.message);
  }
}

async function change(state, data) {
  complain("break-complaint");
  try {
    const { changes } = await ask("POST", `/api/glass/nets/${state.net.net}/changes`, { data });
    changed(state, changes);
  } catch (refusal) {
    complain("break-complaint", refusal.message);
  }
}

async function mend(state) {
  const { changes } = await ask("DELETE", `/api/glass/nets/${state.net.net}/changes`);
  changed(state, changes);
}

function changed(state, changes) {
  showChanges(changes);
  look();
  void list(state);
  void check(state);
}

function showChanges(changes) {
  find("mend").disabled = !changes.length;
  find("changes").replaceChildren(...changes.map((line) => make("li", {}, line)));
}
