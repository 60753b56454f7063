// The map: communities as nested circles on a canvas, at places that the server computed.

import { byId, element, enlarged, icon, link, measured, meet, pointers, short, touches, visible } from "./dom.js";
import * as views from "./views.js";

const MOST = 1500; // marks drawn at once
const OPEN = 90, DOTTED = 60, DOT = 8; // pixels of radius from which a circle shows the circles, or the names, inside; of a dot at most
const SCALE = ["#2c5aa0", "#4d7fb0", "#7f9f8f", "#c08a4a", "#c9601f"]; // old to new
const CHANGED = "#d9480f";
const WIDE = "\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"; // letters between which a line may end
export const WORDS = new RegExp(`\\s*(?:[${WIDE}][、，。]?|[^\\s${WIDE}]+)`, "gu");
export const TURNED = /^[^\p{L}]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u; // begins with a letter that is written from right to left
export const FONT = 'system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif';
const PALETTE = Array.from({ length: 8 }, (_, at) => `--c${at}`); // colours of the style sheet

// A title and its beginnings, without its last phrases: "Apple, music and users", "Apple, music", "Apple"; "广州、铁路", "广州".
function shorter(title) {
  const found = [title], last = title.lastIndexOf(" and ");
  for (let at = last > Math.max(title.lastIndexOf(", "), 0) ? last : 0, text = title; ; ) {
    if (at > 0) found.push(text = text.slice(0, at));
    at = Math.max(text.lastIndexOf(", "), text.lastIndexOf("、"), text.lastIndexOf(" · "));
    if (at <= 0) return found;
  }
}

export class Map2D {
  constructor(transport, open) {
    this.transport = transport; this.open = open;
    this.canvas = byId("canvas"); this.context = this.canvas.getContext("2d");
    const ruler = document.createElement("canvas").getContext("2d"); ruler.font = "10px " + FONT; this.wide = measured(ruler); this.cut = new Map();
    this.nodes = new Map(); this.inside = new Map(); this.asked = new Set(); this.drawn = [];
    this.shared = new Map(); this.hits = new Map(); this.changed = new Map(); this.selected = 0; this.colour = "topic"; this.borrowed = false; // a view chose the colour, not the person
    this.view = { x: 0, y: 0, k: 1 }; this.wanted = 0; this.types = new Map();
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
    this.listen(); this.buttons();
  }

  async start() { this.take(await this.transport.load("map")); this.whole(); }

  roots() { return this.inside.get(0) || []; }

  take(found) {
    for (const one of found.communities || []) {
      this.nodes.set(one.n, one);
      const siblings = this.inside.get(one.parent) || [];
      if (!siblings.some((other) => other.n === one.n)) siblings.push(one);
      this.inside.set(one.parent, siblings);
      if (one.type && !one.parent) this.types.set(one.type, (this.types.get(one.type) || 0) + one.size);
    }
    for (const dot of found.entities || []) {
      const key = "e" + dot.community, dots = this.inside.get(key) || [];
      if (!dots.some((other) => other.n === dot.n)) dots.push({ ...dot, dot: true });
      this.inside.set(key, dots);
    }
    for (const [a, b, count] of found.shared || []) this.shared.set(a + " " + b, { a, b, count });
    for (const name of ["from", "to", "first", "last"]) this[name] = found[name] ?? this[name];
    for (const one of this.nodes.values()) if (one.type && !this.types.has(one.type)) this.types.set(one.type, 0);
    this.palette = new Map([...this.types].sort((a, b) => b[1] - a[1]).map(([type], at) => [type, PALETTE[Math.min(at, PALETTE.length - 1)]]));
  }

  clear() { this.shared.clear(); this.nodes.clear(); this.inside.clear(); this.asked.clear(); this.types.clear(); }

  buttons() {
    const button = (text, label, act) => element("button", { type: "button", "aria-label": label, title: label, onclick: act }, icon(text));
    this.choice = element("select", { "aria-label": "Colour by", onchange: (event) => { this.paintBy(event.target.value); this.borrowed = false; } },
      [["topic", "topic"], ["type", "type of entities"], ["time", "time"], ["changes", "changes"]].map(([name, text]) => element("option", { value: name }, "colour: " + text)));
    byId("tools").append(
      button("plus", "Zoom in", () => this.zoom(1.5)), button("minus", "Zoom out", () => this.zoom(1 / 1.5)),
      button("up", "Up to the topic above", () => this.up()), button("fit", "Show the whole map", () => { this.selected = 0; this.whole(); }), this.choice);
  }

  listen() {
    let from = null;
    pointers(this.canvas, {
      down: () => { from = this.view; }, drag: (dx, dy) => { this.view = { ...from, x: from.x + dx, y: from.y + dy }; this.kept(); this.draw(); },
      zoom: (by, x, y) => this.zoom(by, x, y), hover: (x, y) => this.hover(x, y), click: (x, y) => this.click(x, y),
    });
    this.canvas.addEventListener("dblclick", (event) => this.zoom(2, event.offsetX, event.offsetY));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  resize() {
    const ratio = window.devicePixelRatio || 1, box = this.canvas.parentElement.getBoundingClientRect();
    const before = [this.width, this.height];
    if (!box.width || !box.height) return;
    [this.width, this.height] = [box.width, box.height];
    this.canvas.width = box.width * ratio; this.canvas.height = box.height * ratio;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (!before[0] || this.view === this.all) this.whole(); // all topics stay in the picture when a phone is turned
    else { this.view.x += (this.width - before[0]) / 2; this.view.y += (this.height - before[1]) / 2; this.draw(); }
  }

  // All topics, as large as there is room for above the buttons.
  whole() {
    const roots = this.roots(), [width, height] = [this.width || 1, (this.height || 1) - 50];
    const side = (name, sign) => (roots.length ? sign * Math.max(...roots.map((one) => sign * one[name] + one.r)) : sign);
    const [left, right, top, bottom] = [side("x", -1), side("x", 1), side("y", -1), side("y", 1)];
    const k = 0.95 * Math.min(width / (right - left), height / (bottom - top));
    this.view = { x: width / 2 - (k * (left + right)) / 2, y: height / 2 - (k * (top + bottom)) / 2, k }; this.draw(); this.all = this.view;
  }

  zoom(by, x = this.width / 2, y = this.height / 2) {
    const least = 0.3 * Math.min(this.width, this.height), k = Math.min(Math.max(this.view.k * by, least), Math.max(this.view.k, this.deepest(x, y))), real = k / this.view.k;
    this.view = { k, x: x - (x - this.view.x) * real, y: y - (y - this.view.y) * real }; this.kept(); this.draw();
  }

  // The topics at a point of the screen, the outermost first.
  way(px, py) {
    const { x, y, k } = this.view, [ux, uy] = [(px - x) / k, (py - y) / k], found = [];
    for (let below = this.roots(); below; ) {
      const one = below.find((each) => !each.dot && Math.hypot(ux - each.x, uy - each.y) <= each.r);
      if (!one) break;
      found.push(one); below = this.inside.get(one.n);
    }
    return found;
  }

  // The largest scale at a point: the innermost topic fills the picture, further in there is nothing to see.
  deepest(px, py) {
    const one = this.way(px, py).at(-1), smallest = Math.min(1, ...this.roots().map((each) => each.r));
    return (0.62 * Math.max(this.width, this.height)) / (one ? one.r : smallest);
  }

  // The map cannot be pushed out of the picture.
  kept() {
    const reach = 0.9 * this.view.k, clamp = (value, size) => Math.min(Math.max(value, size / 2 - reach), size / 2 + reach);
    this.view.x = clamp(this.view.x, this.width); this.view.y = clamp(this.view.y, this.height);
  }

  up() {
    const way = this.around(), above = way.at(-2);
    if (above) this.open("community/" + above.n); else { this.selected = 0; this.whole(); this.open("map"); }
  }

  // The topics that fill the picture, the outermost first.
  around() {
    const least = 0.3 * Math.min(this.width, this.height);
    return this.way(this.width / 2, this.height / 2).filter((one) => one.r * this.view.k >= least);
  }

  // Where the map is, and in a topic without subtopics its passages: never an empty picture.
  where() {
    const way = this.around(), key = way.map((one) => one.n).join(" "), last = way.at(-1);
    if (key !== this.placed) {
      this.placed = key;
      byId("crumbs").replaceChildren(...(way.length ? [link("map", "All topics"), ...way.flatMap((one) => [" › ", link("community/" + one.n, short(one.title, 40))])] : []));
    }
    const leaf = last && !last.children && last.r * this.view.k >= 0.42 * Math.min(this.width, this.height) ? last : null;
    byId("leaf").hidden = !leaf || byId("canvas").hidden;
    if (leaf && this.leaf !== leaf.n) { this.leaf = leaf.n; this.passages(leaf); }
  }

  async passages(leaf) {
    byId("leaf").replaceChildren();
    try {
      const found = await this.transport.load("community", { id: leaf.n });
      if (this.leaf !== leaf.n) return;
      byId("leaf").replaceChildren(element("h2", { dir: "auto" }, visible(short(found.title, 90))), element("ul", { class: "plain" }, (found.passages || []).map((one) =>
        element("li", {}, link("passage/" + one.id, `[${one.id}] ${short(one.title, 60)}`), element("div", { dir: "auto" }, visible(one.first))))));
    } catch { this.leaf = 0; byId("leaf").hidden = true; }
  }

  show(n) {
    // Bring a community into the middle, so large that what is inside can be seen.
    const node = this.nodes.get(n);
    this.selected = n;
    if (node) {
      const k = 0.36 * Math.min(this.width, this.height) / node.r;
      this.view = { k, x: this.width / 2 - node.x * k, y: this.height / 2 - node.y * k };
    }
    this.draw();
  }

  paintBy(colour) { this.borrowed = true; this.colour = this.choice.value = colour; this.draw(); }

  light(hits) { this.hits = hits; this.draw(); }

  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.paint(); });
  }

  // What is on the screen, large circles first, at most MOST marks.
  visible() {
    const { x, y, k } = this.view, found = [], queue = [...(this.inside.get(0) || [])];
    const onScreen = (one) => {
      const [px, py, pr] = [x + one.x * k, y + one.y * k, one.r * k];
      return px + pr > 0 && px - pr < this.width && py + pr > 0 && py - pr < this.height && pr > 2;
    };
    queue.sort((a, b) => b.r - a.r);
    for (let at = 0; at < queue.length && found.length < MOST; at++) {
      const one = queue[at];
      if (!onScreen(one)) continue;
      found.push(one);
      if (one.dot || one.r * k < (one.children ? OPEN : DOTTED)) continue;
      const below = this.inside.get(one.n), dots = this.inside.get("e" + one.n);
      if (!below && !dots && !this.asked.has(one.n)) this.fetch(one.n);
      queue.push(...(below || []), ...(dots || []));
    }
    return found;
  }

  async fetch(n) {
    this.asked.add(n);
    try { this.take(await this.transport.load("map", { under: n })); this.draw(); } catch { /* the list beside says what is wrong */ }
  }

  opened(one, pr) { return !one.dot && (this.inside.get(one.n) ? pr >= OPEN : pr >= DOTTED && this.inside.has("e" + one.n)); }

  async open_(n) { if (!this.inside.get(n) && !this.inside.get("e" + n) && !this.asked.has(n)) await this.fetch(n); }

  colourOf(one, styles) {
    const tone = (name) => styles[name.slice(2)] || styles.line;
    if (this.colour === "type") return tone(this.palette.get(one.type) || "--");
    if (this.colour === "time") {
      const day = one.dot ? this.nodes.get(one.community)?.day : one.day;
      if (!day || this.last <= this.first) return styles.line;
      return SCALE[Math.min(SCALE.length - 1, Math.max(0, Math.floor(((day - this.first) / (this.last - this.first + 1)) * SCALE.length)))];
    }
    if (this.colour === "changes") return this.changed.has(one.dot ? one.community : one.n) ? CHANGED : styles.line;
    return tone(PALETTE[((one.dot ? this.nodes.get(one.community)?.colour : one.colour) || 0) % PALETTE.length]);
  }

  paint() {
    const { context, width, height } = this, { x, y, k } = this.view, css = getComputedStyle(document.documentElement);
    const styles = Object.fromEntries(["disc-line", "ink", "paper", "hit", "accent", "second", "edge", ...PALETTE.map((name) => name.slice(2))].map((name) => [name.replace("disc-", ""), css.getPropertyValue("--" + name)]));
    context.clearRect(0, 0, width, height);
    this.drawn = this.visible();
    const lit = this.hits.size > 0;
    const shown = new Map(this.drawn.filter((one) => !one.dot).map((one) => [one.n, one])), lines = this.lines_(shown);
    this.edges(lines.get(0), shown, styles);
    for (const one of this.drawn) {
      const [px, py, pr] = [x + one.x * k, y + one.y * k, one.r * k], open = this.opened(one, pr);
      const hit = this.hits.get(one.dot ? "e" + one.n : one.n), chosen = one.n === this.selected && !one.dot;
      context.beginPath(); context.arc(px, py, one.dot ? this.dot(pr) : Math.max(pr, 1), 0, 7);
      if (!one.dot) { context.fillStyle = styles.paper; context.fill(); } // lines run behind the circles that they pass
      context.globalAlpha = (one.dot ? 0.9 : open ? 0.08 : 0.32) * (lit && !hit ? 0.5 : 1); context.fillStyle = this.colourOf(one, styles); context.fill();
      context.globalAlpha = 1;
      context.lineWidth = hit || chosen ? 3 : 1; context.strokeStyle = hit ? styles.hit : chosen ? styles.second : this.colourOf(one, styles);
      if (!one.dot || hit) context.stroke();
      if (!one.dot) this.edges(lines.get(one.n), shown, styles);
    }
    this.labels(styles);
    this.legend(); this.where();
    this.frames = (this.frames || 0) + 1;
  }

  dot(pr) { return Math.min(Math.max(pr, 2.5), DOT * enlarged()); }

  // By the topic that holds both ends: the lines between topics that share documents.
  lines_(shown) {
    const found = new Map();
    for (const one of this.shared.values()) {
      const [a, b] = [shown.get(one.a), shown.get(one.b)];
      if (!a || !b || Math.min(a.r, b.r) * this.view.k < 12) continue;
      if (!found.has(a.parent)) found.set(a.parent, []);
      found.get(a.parent).push(one);
    }
    return found;
  }

  // The more documents, the thicker; those of the chosen topic stand out.
  edges(lines, shown, styles) {
    const { context } = this, { x, y, k } = this.view, most = Math.max(1, ...(lines || []).map((one) => one.count));
    for (const { a, b, count } of lines || []) {
      const [one, other] = [shown.get(a), shown.get(b)], chosen = this.selected === a || this.selected === b;
      context.beginPath(); context.moveTo(x + one.x * k, y + one.y * k); context.lineTo(x + other.x * k, y + other.y * k);
      context.lineWidth = 1 + (4 * count) / most; context.strokeStyle = chosen ? styles.second : styles.edge; context.stroke();
    }
  }

  // Titles, those of large circles first; one that would cover another is left out.
  labels(styles) {
    const { context } = this, { x, y, k } = this.view, large = enlarged(), taken = this.covered(), dots = this.drawn.filter((one) => one.dot);
    context.textAlign = "center"; context.lineJoin = "round"; context.strokeStyle = styles.paper; context.fillStyle = styles.ink;
    for (const one of this.drawn) {
      const [px, py, pr] = [x + one.x * k, y + one.y * k, one.r * k];
      if (taken.length > 160 || pr < (one.dot ? 2 : 18)) continue;
      const opened = this.opened(one, pr);
      const size = large * (one.dot ? 11 : opened ? 13 : Math.min(14, Math.max(10.5, pr / large / 6)));
      context.font = `${opened ? 600 : 400} ${size}px ${FONT}`; context.direction = TURNED.test(one.title) ? "rtl" : "ltr";
      const lines = one.dot ? [this.fit(visible(one.title), 130 * large)] : opened ? [this.phrases(visible(one.title), Math.min(Math.max(pr * 1.9, 90), this.width - 20))] : this.lines(visible(one.title), pr, size);
      if (!lines.length) continue;
      const wide = Math.max(...lines.map((line) => context.measureText(line).width)), tall = lines.length * size * 1.2;
      const cx = opened ? Math.min(Math.max(px, wide / 2 + 6), this.width - wide / 2 - 6) : px;
      if (opened && Math.abs(cx - px) > 0.6 * pr) continue; // pushed back onto the screen it would stand in another circle
      const dot = this.dot(pr) + 2, aside = opened ? 8 : 3, rim = opened ? 3 : 1, beside = dot + aside + wide / 2;
      const places = one.dot ? [[px, py + dot], [px, py - dot - tall], [px + beside, py - tall / 2], [px - beside, py - tall / 2]] : [[cx, opened ? Math.max(py - pr - tall / 2, 6) : py - tall / 2]];
      const boxed = ([middle, top]) => [middle - wide / 2 - aside, top - rim, middle + wide / 2 + aside, top + tall + rim];
      const place = places.find((at) => {
        const box = boxed(at), around = this.nodes.get(one.community), far = (low, high, middle) => Math.max(Math.abs(low - middle), Math.abs(high - middle));
        if (taken.some((other) => meet(other, box))) return false;
        return !one.dot || Math.hypot(far(box[0], box[2], x + around.x * k), far(box[1], box[3], y + around.y * k)) < around.r * k + 8 && !dots.some((each) => each !== one && each.r > 0.6 * one.r && touches(box, x + each.x * k, y + each.y * k, this.dot(each.r * k)));
      });
      if (!place) continue;
      const box = boxed(place), [middle, top] = place;
      taken.push(box);
      if (opened) { // on the rim, as the legend of a group
        context.beginPath(); context.roundRect(box[0], box[1], box[2] - box[0], box[3] - box[1], 6); context.fillStyle = styles.paper; context.fill();
        context.lineWidth = 1; context.strokeStyle = this.colourOf(one, styles); context.stroke(); context.fillStyle = styles.ink; context.strokeStyle = styles.paper;
      }
      context.lineWidth = 3;
      lines.forEach((line, at) => { const base = top + size * (0.95 + at * 1.2); context.strokeText(line, middle, base); context.fillText(line, middle, base); });
    }
    this.boxes = taken;
  }

  // Boxes of what lies over the picture: where it is, its buttons.
  covered() {
    const { left, top } = this.canvas.getBoundingClientRect();
    return ["crumbs", "tools", "legend"].map((id) => byId(id).getBoundingClientRect()).filter((box) => box.width && box.height).map((box) => [box.left - left, box.top - top, box.right - left, box.bottom - top]);
  }

  // As much of a text as has room in so many pixels.
  fit(text, room) {
    if (this.context.measureText(text).width <= room) return text;
    let [low, high] = [0, Math.min(text.length, 200)];
    while (low < high) { const middle = (low + high + 1) >> 1; if (this.context.measureText(text.slice(0, middle) + "…").width <= room) low = middle; else high = middle - 1; }
    return low > 1 ? short(text, [...text.slice(0, low)].length + 1) : "";
  }

  // The longest form of a title that has room.
  phrases(title, room) {
    const all = shorter(title);
    return all.find((text) => this.context.measureText(text).width <= room) ?? this.fit(all.at(-1), room);
  }

  // A title inside of its circle, on up to four lines: all of it, else its first phrases, any phrase, its beginning.
  lines(title, radius, size) {
    const most = Math.max(1, Math.min(4, Math.floor((radius * 1.5) / (size * 1.2)))), all = shorter(title);
    for (const text of [...all, ...title.split(/, | and |、| · /).slice(1)]) {
      const words = this.words(text);
      for (let count = 1; count <= most; count++) {
        const half = (count * size * 1.2) / 2, room = 1.84 * Math.sqrt(Math.max(radius * radius - half * half, radius * radius * 0.3)) + 2;
        let [found, low, high] = [this.wrapped(words, (room * 10) / size, count), 0, (room * 10) / size];
        if (!found) continue;
        for (let turn = 0; turn < 5 && count > 1; turn++) { // lines of about the same length stand in the way of fewer others
          const middle = (low + high) / 2, narrow = this.wrapped(words, middle, count);
          if (narrow) { found = narrow; high = middle; } else low = middle;
        }
        return found;
      }
    }
    const cut = radius < 24 ? "" : this.fit(all.at(-1).trim(), 2 * radius - 8);
    return [...cut].length > 6 ? [cut] : []; // two letters say nothing
  }

  // Words on at most `count` lines of a width, at 10 pixels a letter; null where they do not fit.
  wrapped(words, room, count) {
    const lines = [];
    let left = -1;
    for (const word of words) {
      let wide = this.wide(word);
      if (wide > left) {
        if (lines.length === count || (wide = this.wide(word.trim())) > room) return null;
        lines.push(word.trim()); left = room - wide;
      } else { lines[lines.length - 1] += word; left -= wide; }
    }
    return lines.length ? lines : null;
  }

  // Once a text: a frame has no time to cut and to measure hundreds.
  words(text) {
    if (this.cut.size > 5_000) this.cut.clear();
    if (!this.cut.has(text)) this.cut.set(text, text.match(WORDS) || []);
    return this.cut.get(text);
  }

  legend() {
    const swatch = (colour, text) => element("span", { class: "key" }, element("span", { class: "swatch", style: `background:${colour}` }), visible(text));
    const time = this.from ? SCALE.map((colour, at) => swatch(colour, at === 0 ? this.from.slice(0, 4) : at === SCALE.length - 1 ? this.to.slice(0, 4) : "")) : ["no document states a date"];
    const keys = { topic: [], type: [...(this.palette || [])].slice(0, 8).map(([type, colour]) => swatch(`var(${colour})`, type)), time, changes: [swatch(CHANGED, "new or changed")] }[this.colour];
    const text = this.colour + this.drawn.some((one) => one.dot) + keys.length + this.roots().length + this.shared.size;
    if (text === this.told) return;
    this.told = text;
    const empty = this.roots().length ? "" : "No topics to draw: the corpus is empty or they have not been computed yet.";
    byId("legend").replaceChildren(...(empty ? [empty] : [...keys, ` A circle is a topic, its size the number of text units${this.shared.size ? "; a line joins topics that share documents" : ""}${this.drawn.some((one) => one.dot) ? "; a dot is an entity" : ""}. Scroll to zoom, click to open.`]));
  }

  at(px, py) {
    const { x, y, k } = this.view;
    return [...this.drawn].reverse().find((one) => Math.hypot(px - x - one.x * k, py - y - one.y * k) <= Math.max(one.r * k, 5));
  }

  hover(px, py) {
    const one = this.at(px, py);
    this.canvas.style.cursor = one ? "pointer" : "grab";
    this.canvas.title = one ? visible(one.title) + (one.size ? ` (${views.counted(one.size, "text unit")})` : "") : "";
  }

  click(px, py) {
    const one = this.at(px, py);
    if (one) this.open(one.dot ? "entity/" + one.n : "community/" + one.n);
  }
}
