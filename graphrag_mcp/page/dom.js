// Elements made of text nodes only: no text of a document is ever parsed as markup.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== "") made.append(child);
  // Chinese and Japanese share signs that are drawn differently: kana tell them apart.
  if (attributes.dir === "auto" && /[\u3041-\u30ff]/.test(made.textContent)) made.lang = "ja";
  return made;
}

// How much larger than on a laptop letters are on this screen (style.css); a canvas has to be told.
export const enlarged = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1;

// Draws a part of the page again. Where the keyboard was in it, it stays: at the control of the same name, else at the
// heading, so that the next key goes on from there and a screen reader says what is shown.
export function redrawn(root, draw) {
  const held = root.contains(document.activeElement) ? document.activeElement : null, name = (one) => one.getAttribute("aria-label") || one.getAttribute("href") || one.textContent;
  draw();
  if (!held || root.contains(document.activeElement)) return;
  const next = held.isConnected ? held : [...root.querySelectorAll("a, button, input, select, summary")].find((one) => name(one) === name(held)) || root.querySelector("h1, summary, button");
  if (next?.tagName === "H1") next.tabIndex = -1;
  next?.focus({ preventScroll: true });
}

const SVG = "http://www.w3.org/2000/svg";

export function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

export function short(text, most) {
  const points = [...String(text)];
  return points.length > most ? points.slice(0, most - 1).join("") + "…" : points.join("");
}

// Invisible and direction-changing characters are shown by their code, as in the tools' results.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function visible(text) {
  return String(text ?? "").replace(HIDDEN, (ch) => "\\u" + ch.codePointAt(0).toString(16).padStart(4, "0"));
}

// Where cut titles would be the same, as of minutes of many days, they are cut in their middle.
export function cut(titles, most) {
  const cuts = titles.map((title) => short(title, most)), same = new Map();
  titles.forEach((title, at) => same.set(cuts[at], (same.get(cuts[at]) || new Set()).add(title)));
  return cuts.map((text, at) => {
    const points = [...titles[at]], end = Math.floor(most / 2);
    return same.get(text).size > 1 ? points.slice(0, most - end - 1).join("") + "…" + points.slice(-end).join("") : text;
  });
}

const DAY = /(\d{4}-\d{2}-\d{2})/; // no line ends in the midst of it

export function link(view, text, title = "") {
  const words = visible(text).split(DAY).map((part, at) => at % 2 ? element("span", { class: "day" }, part) : part);
  return element("a", { href: "#" + view.split("/").map(encodeURIComponent).join("/"), title: title || null, dir: "auto" }, words);
}

export const number = (value) => Number(value || 0).toLocaleString("en");

let fading = 0;

export function say(text, bad = false) {
  const status = byId("status");
  status.textContent = visible(text);
  status.className = bad ? "bad" : "";
  clearTimeout(fading);
  if (!bad && !text.endsWith("…")) fading = setTimeout(() => { status.textContent = ""; }, 8000); // it lies over the page
}
