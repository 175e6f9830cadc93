// A page with a network of its own: no server is asked.

import { find, make } from "./page.js";
import { encoded, inPage } from "./source.js";
import { unpack } from "./arrays.js";
import { forward } from "./forward.js";
import { open, prepare, state } from "./glass.js";
import { read } from "./typing.js";

async function check() {
  const { verdict, text, tried, words, position } = await state.source.check();
  const badge = find("verdict");
  badge.className = `badge ${verdict}`;
  badge.textContent = text;
  find("check-card").dataset.verdict = verdict;
  const said = !tried
    ? make("p", { class: "quiet" }, "This network is as its construction made it.")
    : words
      ? make("p", { class: "witness" }, `It answers wrongly on `, make("button", { type: "button", onclick: () => read(state, words, position) }, words.join(" ") || "the empty input"), ` (input ${tried} that was tried).`)
      : make("p", { class: "quiet" }, `On ${tried} inputs it answers as before: this weight may not matter, or only rarely.`);
  find("evidence").replaceChildren(said);
}

globalThis.vitrify = { encoded, forward, inPage, unpack }; // for those who want to compute with it

const data = document.getElementById("net-data");
if (data) {
  const linked = location.hash.startsWith("#net?");
  state.check = check;
  prepare();
  find("copy")?.addEventListener("click", () => {
    void navigator.clipboard.writeText(find("python").textContent).then(() => (find("copy").textContent = "Copied"));
  });
  void open(inPage(JSON.parse(data.textContent))).then(() => {
    void check();
    if (linked) find("glass").scrollIntoView();
  });
}
