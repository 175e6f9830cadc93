// Small pieces that all parts of the page are made of.

export const find = (id) => document.getElementById(id);

// An element with attributes and children; text is text, never markup.
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export function draw(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function show(element, visible = true) {
  element.hidden = !visible;
}

export function complain(id, message) {
  const place = find(id);
  place.textContent = message || "";
  show(place, Boolean(message));
}

export class Refusal extends Error {}

// Ask the app; what it refuses is an error with its own words.
export async function ask(method, address, { body, data } = {}) {
  const settings = { method, headers: {} };
  if (data !== undefined) {
    settings.body = JSON.stringify(data);
    settings.headers["content-type"] = "application/json";
  } else if (body !== undefined) {
    settings.body = body;
  }
  let answer;
  try {
    answer = await fetch(address, settings);
  } catch {
    throw new Refusal("the app does not answer: is `vitrify serve` still running?");
  }
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refusal(said.error || `the app answers with ${answer.status}`);
  return said;
}

// Follow a job to its end; `told` hears of its progress.
export function follow(job, told) {
  return new Promise((resolve, reject) => {
    const source = new EventSource(`/api/glass/jobs/${job}`);
    source.addEventListener("progress", (event) => told(JSON.parse(event.data)));
    source.addEventListener("done", (event) => {
      source.close();
      resolve(JSON.parse(event.data));
    });
    source.addEventListener("failed", (event) => {
      source.close();
      reject(new Refusal(JSON.parse(event.data).error));
    });
    source.onerror = () => {
      source.close();
      reject(new Refusal("the app does not answer: is `vitrify serve` still running?"));
    };
  });
}

export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-4 ? value.toExponential(2) : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}

export const signed = (value) => (value > 0 ? `+${number(value)}` : number(value));

// Scroll a wide table sideways until the chosen column can be seen.
export function reveal(table) {
  const box = table?.closest(".scroll");
  const cell = table?.querySelector(".here");
  if (!box || !cell) return;
  const first = table.querySelector("th")?.offsetWidth ?? 0; // stays where it is
  if (cell.offsetLeft - first < box.scrollLeft) box.scrollLeft = cell.offsetLeft - first;
  const over = cell.offsetLeft + cell.offsetWidth - box.clientWidth;
  if (over > box.scrollLeft) box.scrollLeft = over;
}

// A colour of the theme.
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
