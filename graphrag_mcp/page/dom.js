// Elements made of text nodes only: no text of a document is ever parsed as markup.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== "") made.append(child);
  // Chinese and Japanese share signs that are drawn differently: kana tell them apart.
  if (attributes.dir === "auto" && /[\u3041-\u30ff]/.test(made.textContent)) made.lang = "ja";
  return made;
}

// How much larger than on a laptop letters are on this screen (style.css); a canvas has to be told.
export const enlarged = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1;

// The width of a text in the font of a canvas, measured once: a frame has no time for thousands.
export function measured(context) {
  const widths = new Map();
  return (text) => {
    const key = context.font + text;
    if (widths.size > 20_000) widths.clear();
    if (!widths.has(key)) widths.set(key, context.measureText(text).width);
    return widths.get(key);
  };
}

// Do two boxes [left, top, right, bottom] meet, or a box and a circle about so?
export const meet = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
export const touches = (box, x, y, r) => meet(box, [x - r, y - r, x + r, y + r]);

// What pointers do on a canvas: one drags or clicks, two zoom, as the wheel does.
export function pointers(canvas, { down, drag, end, zoom, hover, click }) {
  const points = new Map();
  let from = null, moved = false, pinch = 0;
  canvas.addEventListener("pointerdown", (event) => {
    points.set(event.pointerId, event); canvas.setPointerCapture(event.pointerId);
    if (moved) end?.(); // a second finger ends what the first dragged
    from = [event.offsetX, event.offsetY]; moved = false; down(...from);
  });
  canvas.addEventListener("pointermove", ({ pointerId, offsetX, offsetY }) => {
    if (points.has(pointerId)) points.set(pointerId, { offsetX, offsetY });
    if (points.size === 2) {
      const [a, b] = [...points.values()], apart = Math.hypot(a.offsetX - b.offsetX, a.offsetY - b.offsetY);
      if (pinch) zoom(apart / pinch, (a.offsetX + b.offsetX) / 2, (a.offsetY + b.offsetY) / 2);
      pinch = apart; from = null;
    } else if (!from) hover(offsetX, offsetY);
    else if (moved ||= Math.hypot(offsetX - from[0], offsetY - from[1]) > 4) drag(offsetX - from[0], offsetY - from[1], offsetX, offsetY);
  });
  const up = ({ pointerId, type, offsetX, offsetY }) => {
    points.delete(pointerId); pinch = 0;
    if (moved) end?.(); else if (from && type === "pointerup") click(offsetX, offsetY);
    from = null; moved = false;
  };
  canvas.addEventListener("pointerup", up); canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY); }, { passive: false });
}

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

const ring = (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`, EYE = "M3 12s3-6 9-6 9 6 9 6-3 6-9 6-9-6-9-6" + ring(12, 12, 2.5), SHEET = "M6 3h8l4 4v14H6zM14 3v4h4";
const ICONS = { // lines on a field of 24 by 24
  send: "M4 12h15M13 6l6 6-6 6", ask: "M4 4h16v12h-9l-5 4v-4H4zM8 8.5h8M8 12h5", graph: ring(6, 7, 2.5) + ring(18, 6, 2.5) + ring(12, 18, 2.5) + "M8.5 6.8l7-.6M7.2 9.2l3.6 6.6M16.8 8.2l-3.6 7.5", library: "M4 4h5v16H4zM9 4h5v16H9zM14.5 5.2l4-1.1 3 15-4 1z",
  plus: "M12 5v14M5 12h14", minus: "M5 12h14", fit: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5", up: "M12 20V5M6 11l6-6 6 6", all: EYE, hide: EYE + "M4 21L20 3", undo: "M9 5L4 10l5 5M4 10h10a5 5 0 0 1 0 10h-3",
  expand: ring(12, 12, 3) + "M12 9V3M12 15v6M9 12H3M15 12h6", collapse: ring(12, 12, 3) + "M4 4l4.5 4.5M20 4l-4.5 4.5M4 20l4.5-4.5M20 20l-4.5-4.5", path: ring(5, 18, 2) + ring(19, 6, 2) + "M7 18h6a3 3 0 0 0 0-6h-2a3 3 0 0 1 0-6h6", list: "M4 6h1M4 12h1M4 18h1M9 6h11M9 12h11M9 18h11",
  text: SHEET + "M9 12h6M9 16h6", pdf: SHEET + "M9.5 18v-6h2.5a1.7 1.7 0 0 1 0 3.4H9.5", table: "M4 5h16v14H4zM4 10h16M4 14.5h16M10 5v14", mail: "M3 6h18v12H3zM3 7l9 7 9-7", web: ring(12, 12, 9) + "M3 12h18M12 3c5 5 5 13 0 18M12 3c-5 5-5 13 0 18", code: "M8 7l-5 5 5 5M16 7l5 5-5 5M14 4l-4 16", slides: "M3 4h18v12H3zM12 16v4M8 20h8", picture: "M4 5h16v14H4zM4 17l5-5 4 4 3-3 4 4" + ring(15.5, 9.5, 1.2),
};
export const icon = (name) => shape("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, shape("path", { d: ICONS[name] }));

// The icon of a document, by the end of its file's name.
const KINDS = { pdf: /pdf/, table: /csv|tsv|xls[xm]?|ods|jsonl?|parquet/, mail: /eml|mbox|msg|mht(ml)?/, web: /x?html?/, slides: /pptx?|odp/, picture: /png|jpe?g|gif|webp|tiff?|bmp/ };
export const kind = (uri, code) => icon(code ? "code" : Object.keys(KINDS).find((name) => new RegExp(`\\.(${KINDS[name].source})(#|$)`, "i").test(uri || "")) || "text");

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

export const whole = (text) => visible(text).split(DAY).map((part, at) => at % 2 ? element("span", { class: "day" }, part) : part);

export const link = (view, text, title = "") => element("a", { href: "#" + view.split("/").map(encodeURIComponent).join("/"), title: title || null, dir: "auto" }, whole(text));

export const number = (value) => Number(value || 0).toLocaleString("en");

let fading = 0;

export function say(text, bad = false) {
  const status = byId("status");
  status.textContent = visible(text);
  status.className = bad ? "bad" : "";
  clearTimeout(fading);
  if (!bad && !text.endsWith("…")) fading = setTimeout(() => { status.textContent = ""; }, 8000); // it lies over the page
}
