// Changing single weights, and taking the changes back.

import { complain, find, make, number } from "./page.js";
import { look } from "./glass.js";

let listed = [];
let tried = 0;

export function prepareBreaking(state) {
  find("break-random").addEventListener("click", () => void change(state, { seed: tried++ }));
  find("mend").addEventListener("click", () => void mend(state));
  find("array").addEventListener("change", () => void listEntries(state));
  find("entry-search").addEventListener("input", () => void listEntries(state));
  find("by-hand").addEventListener("toggle", () => void listEntries(state));
  find("entry").addEventListener("change", () => {
    const chosen = listed[find("entry").value];
    if (chosen) find("value").value = chosen[2];
  });
  find("set").addEventListener("click", () => {
    const chosen = listed[find("entry").value];
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
  void listEntries(state);
}

async function listEntries(state) {
  if (!find("by-hand").open || !state.net) return;
  try {
    const found = await state.source.entries(find("array").value, find("entry-search").value);
    listed = found.entries;
    const options = listed.map(([, words, value], at) => make("option", { value: at }, `${words} = ${number(value)}`));
    if (found.more) options.push(make("option", { disabled: true }, `… and more: say what they are called`));
    find("entry").replaceChildren(...options);
  } catch (refusal) {
    complain("break-complaint", refusal.message);
  }
}

async function change(state, data) {
  complain("break-complaint");
  try {
    const { changes } = await state.source.change(data);
    state.changes.push(data);
    afterChange(state, changes);
  } catch (refusal) {
    complain("break-complaint", refusal.message);
  }
}

// Make changes that were made before, as far as they fit this network.
export async function replay(state, list) {
  for (const data of list) {
    try {
      showChanges((await state.source.change(data)).changes);
      state.changes.push(data);
    } catch {
      complain("break-complaint", "the address names a change that does not fit this network");
    }
  }
}

async function mend(state) {
  const { changes } = await state.source.mend();
  state.changes = [];
  afterChange(state, changes);
}

function afterChange(state, changes) {
  showChanges(changes);
  look();
  void listEntries(state);
  void state.check();
}

function showChanges(changes) {
  find("mend").disabled = !changes.length;
  find("changes").replaceChildren(...changes.map((line) => make("li", {}, line)));
}
