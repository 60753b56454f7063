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

export function link(view, text, title = "") {
  return element("a", { href: "#" + view.split("/").map(encodeURIComponent).join("/"), title: title || null, dir: "auto" }, visible(text));
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
