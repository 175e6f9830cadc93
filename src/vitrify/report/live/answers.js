// What the net says after every token, beside what its spec says.

import { draw, find, make, number, reveal } from "./page.js";
import { choose } from "./glass.js";

const TITLES = {
  lm: "the likeliest next token",
  next: "what may come next",
  recognizer: "the state",
  transducer: "the output",
  class: "the answer",
  values: "the value",
};
const SIGNS = { true: ["✓", "right"], false: ["✗", "wrong"], null: ["·", "the spec has no answer here"] };

export function showAnswers(state) {
  const { story, net } = state;
  const sequence = net.reads === "tokens" || net.reads === "rows";
  find("answer-table").replaceChildren(...(sequence ? alongside(story, state.source.packed) : []));
  find("detail").replaceChildren(...detail(state));
  reveal(find("answer-table"));
}

// A column for each position: the token, what the net says there, whether that is right.
function alongside(story, packed) {
  const { answer, tokens, start, position } = story;
  const columns = tokens.map((token, at) => ({ token, position: start + at, answer: start + at - answer.first }));
  const cell = (column, ...inside) =>
    make("td", { class: column.position === position ? "here" : "", onclick: () => choose(column.position) }, ...inside);
  const head = columns.map((column) =>
    make(
      "th",
      { scope: "col", class: column.position === position ? "here" : "" },
      make("button", { type: "button", class: "bare", onclick: () => choose(column.position) }, column.token),
    ),
  );
  const cells = columns.map((column) => cell(column, column.answer >= 0 ? answer.answers[column.answer] : ""));
  const right = columns.map((column) => {
    const [sign, words] = column.answer >= 0 ? SIGNS[answer.right[column.answer]] : ["", ""];
    return cell(column, make("span", { class: `sign ${words.split(" ")[0]}`, title: words, "aria-label": words }, sign));
  });
  return [
    make("thead", {}, make("tr", {}, make("th", { scope: "row" }, "position"), head)),
    make(
      "tbody",
      {},
      make("tr", {}, make("th", { scope: "row" }, TITLES[answer.kind]), cells),
      make("tr", {}, make("th", { scope: "row" }, packed ? "as it was built" : "as the spec says"), right),
    ),
  ];
}

// One answer symbol by symbol: a bar for the net, a mark for the spec.
function detail(state) {
  const { answer, tokens, start, position } = state.story;
  const choice = CHOICES.includes(answer.kind);
  const symbols = answer.detail.symbols.filter(([, actual, wanted]) => !choice || actual || wanted);
  const more = answer.detail.more + answer.detail.symbols.length - symbols.length;
  const right = answer.right[answer.at];
  const ties = answer.detail.tied;
  const words = ties.length && !right ? `tied with ${ties.slice(0, 3).join(", ")}${ties.length > 3 ? " …" : ""}` : SIGNS[right][1];
  const before = state.net.reads === "tokens" ? tokens.slice(Math.max(0, position - start - 5), position - start + 1).filter((token, at) => at || token !== tokens[0] || position === start).join(" ") : "";
  const badge = make("span", { class: `badge ${right === null ? "pending" : right ? "holds" : "fails"}` }, words);
  const row_of = state.net.reads === "rows" ? `At ${tokens[position - start]} ` : "The answer is ";
  const title = make("h3", {}, before ? `After ${before} ` : row_of, badge);
  const rows = symbols.map(([symbol, actual, wanted, logit]) => row(answer.kind, symbol, actual, wanted, logit));
  const table = make(
    "table",
    { class: "chances" },
    make(
      "thead",
      {},
      make("tr", {}, ...["symbol", "net", state.source.packed ? "as built" : "spec"].map((name, at) => make("th", { scope: "col", class: at ? "number" : "" }, name)), make("th", {})),
    ),
    make("tbody", {}, rows),
  );
  const accepted =
    answer.accepts === null
      ? null
      : make("p", {}, "In all: ", make("b", { class: answer.accepts ? "yes" : "no" }, answer.accepts ? "accepted" : "rejected"));
  return [title, table, more > 0 ? make("p", { class: "quiet" }, choice ? `not: ${more} other${more > 1 ? "s" : ""}` : `and ${more} more`) : null, accepted].filter(Boolean);
}

const CHOICES = ["next", "recognizer", "transducer", "class"];

function row(kind, symbol, actual, wanted, logit) {
  const choice = CHOICES.includes(kind);
  const text = (value) => (value === null ? "–" : choice ? (value ? "yes" : "no") : number(value));
  const differs = wanted !== null && (actual === null || Math.abs(actual - wanted) > 1e-4);
  const share = kind === "values" ? null : actual;
  return make(
    "tr",
    { class: differs ? "wrong" : "" },
    make("th", { scope: "row" }, symbol),
    make("td", { class: "number", title: `logit ${number(logit)}` }, text(actual)),
    make("td", { class: "number" }, text(wanted)),
    choice ? null : make("td", { class: "bar-cell" }, share === null ? "" : bar(share, wanted)),
  );
}

function bar(actual, wanted) {
  const width = 100;
  const parts = [draw("rect", { class: "bar-net", x: 0, y: 2, width: Math.max(0, Math.min(1, actual)) * width, height: 8, rx: 1 })];
  if (wanted !== null) {
    const at = Math.max(0.5, Math.min(1, wanted) * width - 0.5);
    parts.push(draw("line", { class: "bar-spec", x1: at, x2: at, y1: 0, y2: 12 }));
  }
  return draw("svg", { viewBox: `0 0 ${width} 12`, class: "bar-chart", "aria-hidden": "true", preserveAspectRatio: "none" }, ...parts);
}
