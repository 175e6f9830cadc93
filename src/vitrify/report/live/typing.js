// What the net reads: tokens with completion, numbers, or the pixels of an image.

import { colour, complain, find, make, show } from "./page.js";
import { look } from "./glass.js";

const OFFERED = 8;
let vocabulary = [];
let chosen = -1; // the offer that the arrow keys have reached
let letters = false; // every symbol is one character: typing it is enough
let seed = 0;

export function prepareTyping(state) {
  const token = find("token");
  token.addEventListener("input", () => typed(state));
  token.addEventListener("keydown", (event) => pressed(event, state));
  token.addEventListener("blur", () => setTimeout(() => offer([]), 150));
  token.addEventListener("focus", () => offer(matching(state)));
  find("offers").addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) take(state, option.textContent);
  });
  find("typing").addEventListener("click", (event) => event.target === find("typing") && token.focus());
  find("suggest").addEventListener("click", () => void suggest(state));
  find("write").addEventListener("click", () => void write(state));
  find("clear").addEventListener("click", () => {
    read(state, []);
    token.focus();
  });
  const pixels = find("pixels");
  pixels.addEventListener("click", (event) => paint(event, state));
}

// A new net: how it is written to, and a first input, or the one that is given.
export function showTyping(state, words) {
  const { net } = state;
  vocabulary = net.reads === "rows" ? pairs(net.inputs) : net.inputs;
  letters = vocabulary.length > 0 && vocabulary.every((symbol) => [...symbol].length === 1);
  const drawn = net.reads === "image" && net.pixels !== "symbols";
  show(find("typing"), net.reads !== "vector" && !drawn);
  show(find("numbers"), net.reads === "vector");
  show(find("pixels"), drawn);
  show(find("write"), net.writes);
  show(find("clear"), net.reads === "tokens" || net.reads === "rows");
  find("token").value = "";
  find("limits").textContent = net.reads === "tokens" ? `reads up to ${net.most} tokens` : "";
  complain("input-complaint");
  seed = 0;
  if (words) read(state, words, state.position);
  else void suggest(state);
}

const pairs = (nodes) => nodes.flatMap((a, i) => nodes.slice(i + 1).map((b) => `${a}-${b}`)).slice(0, 5000);

export function read(state, words, position = null) {
  state.words = words;
  showWords(state);
  look({ position });
}

async function suggest(state) {
  try {
    const { words } = await state.source.suggest(seed++);
    read(state, words);
  } catch (refusal) {
    complain("input-complaint", refusal.message);
  }
}

async function write(state) {
  try {
    const { words } = await state.source.write({ words: state.words, steps: 16 });
    read(state, words);
  } catch (refusal) {
    complain("input-complaint", refusal.message);
  }
}

function showWords(state) {
  const { net, words } = state;
  if (net.reads === "vector") showNumbers(state);
  else if (net.reads === "image" && net.pixels !== "symbols") showPixels(state);
  else {
    const chips = words.map((word, at) =>
      make(
        "button",
        { type: "button", class: "chip", title: "remove", "aria-label": `remove ${word}`, onclick: () => without(state, at) },
        word,
      ),
    );
    find("chips").replaceChildren(...chips);
  }
}

function without(state, at) {
  read(state, state.words.filter((_, place) => place !== at));
  find("token").focus();
}

function showNumbers(state) {
  const { net, words } = state;
  const fields = find("numbers");
  if (fields.childElementCount !== net.inputs.length || fields.dataset.net !== net.net) {
    fields.dataset.net = net.net;
    fields.replaceChildren(
      ...net.inputs.map((name, at) => {
        const control = make("input", { type: "number", step: "0.1", id: `number-${at}`, class: "short" });
        control.addEventListener("input", () => {
          const given = [...fields.querySelectorAll("input")].map((one) => one.value || "0");
          state.words = given;
          look({ position: null });
        });
        return make("div", { class: "field" }, make("label", { for: `number-${at}` }, name), control);
      }),
    );
  }
  fields.querySelectorAll("input").forEach((control, at) => (control.value = words[at]));
}

// Completion

function matching(state) {
  const given = find("token").value.trim().toLowerCase();
  const first = state.story ? state.story.answer.detail.symbols.filter(([, net]) => net > 0).map(([symbol]) => symbol) : [];
  const next = ["lm", "next"].includes(state.story?.answer.kind) ? first.filter((symbol) => vocabulary.includes(symbol)) : [];
  const begin = (symbol) => symbol.toLowerCase().startsWith(given);
  const found = new Set([...next, ...vocabulary.slice(0, given ? undefined : 40)].filter(begin));
  return [...found].slice(0, OFFERED);
}

function offer(symbols) {
  const list = find("offers");
  chosen = -1;
  const options = symbols.map((symbol, at) =>
    make("li", { role: "option", id: `offer-${at}`, "aria-selected": "false", onmousedown: (event) => event.preventDefault() }, symbol),
  );
  list.replaceChildren(...options);
  show(list, symbols.length > 0);
  find("token").setAttribute("aria-expanded", String(symbols.length > 0));
  find("token").removeAttribute("aria-activedescendant");
}

function mark(by) {
  const options = [...find("offers").children];
  if (!options.length) return;
  chosen = (chosen + by + options.length) % options.length;
  options.forEach((option, at) => option.setAttribute("aria-selected", String(at === chosen)));
  options[chosen].scrollIntoView({ block: "nearest" });
  find("token").setAttribute("aria-activedescendant", options[chosen].id);
}

function typed(state) {
  const token = find("token");
  if (letters && state.net.reads === "tokens") {
    const symbols = [...token.value].filter((symbol) => symbol !== " ");
    if (symbols.length && symbols.every((symbol) => vocabulary.includes(symbol))) {
      token.value = "";
      read(state, [...state.words, ...symbols]);
      return;
    }
  }
  if (/\s$/.test(token.value)) take(state, token.value);
  else offer(matching(state));
}

function take(state, text) {
  const words = text.split(/\s+/).filter(Boolean);
  find("token").value = "";
  offer([]);
  if (words.length) read(state, [...state.words, ...words]);
}

function pressed(event, state) {
  const token = find("token");
  const open = !find("offers").hidden;
  if (event.key === "Enter" || (event.key === "Tab" && chosen >= 0)) {
    event.preventDefault();
    const option = find("offers").children[chosen];
    take(state, option ? option.textContent : token.value);
  } else if (event.key === "Backspace" && token.value === "" && state.words.length) {
    event.preventDefault();
    read(state, state.words.slice(0, -1));
  } else if (event.key === "Escape") {
    offer([]);
  } else if (open && event.key === "ArrowDown") {
    event.preventDefault();
    mark(1);
  } else if (open && event.key === "ArrowUp") {
    event.preventDefault();
    mark(-1);
  }
}

// Images

function showPixels(state) {
  const [rows, columns] = state.net.image;
  const canvas = find("pixels");
  const size = Math.max(6, Math.floor(240 / columns));
  canvas.width = columns * size;
  canvas.height = rows * size;
  const context = canvas.getContext("2d");
  const values = state.words.map(Number);
  const low = Math.min(0, ...values);
  const high = Math.max(1, ...values);
  context.fillStyle = colour("card");
  context.fillRect(0, 0, canvas.width, canvas.height);
  values.forEach((value, at) => {
    context.globalAlpha = (value - low) / (high - low || 1);
    context.fillStyle = colour("ink");
    context.fillRect((at % columns) * size, Math.floor(at / columns) * size, size - 1, size - 1);
  });
  context.globalAlpha = 1;
}

function paint(event, state) {
  const [rows, columns] = state.net.image;
  const box = find("pixels").getBoundingClientRect();
  const column = Math.min(columns - 1, Math.floor(((event.clientX - box.left) / box.width) * columns));
  const row = Math.min(rows - 1, Math.floor(((event.clientY - box.top) / box.height) * rows));
  const words = [...state.words];
  const at = row * columns + column;
  words[at] = Number(words[at]) > 0.5 ? "0" : "1";
  read(state, words);
}
