// The map: communities as nested circles on a canvas, at places that the server computed.

import { byId, element, short, visible } from "./dom.js";

const MOST = 1500; // marks drawn at once
const OPEN = 90; // pixels of radius from which a circle shows what is inside
const PALETTE = ["#0b6e75", "#b8561b", "#5b4b9a", "#3c7a36", "#a03a63", "#8a6d1a", "#2f6fb0", "#6d6d6d"];

export class Map2D {
  constructor(transport, open) {
    this.transport = transport; this.open = open;
    this.canvas = byId("canvas"); this.context = this.canvas.getContext("2d");
    this.nodes = new Map(); this.inside = new Map(); this.asked = new Set(); this.drawn = [];
    this.hits = new Map(); this.changed = new Map(); this.selected = 0; this.colour = "topic";
    this.view = { x: 0, y: 0, k: 1 }; this.wanted = 0; this.types = new Map();
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
    this.listen(); this.buttons();
  }

  async start() { this.take(await this.transport.load("map")); this.whole(); }

  take(found) {
    for (const one of found.communities || []) {
      this.nodes.set(one.n, one);
      const siblings = this.inside.get(one.parent || 0) || [];
      if (!siblings.some((other) => other.n === one.n)) siblings.push(one);
      this.inside.set(one.parent || 0, siblings);
      if (one.type) this.types.set(one.type, (this.types.get(one.type) || 0) + one.size);
    }
    for (const dot of found.entities || []) {
      const key = "e" + dot.community;
      const dots = this.inside.get(key) || [];
      if (!dots.some((other) => other.n === dot.n)) dots.push(dot);
      this.inside.set(key, dots);
    }
    this.first = found.from || this.first; this.last = found.to || this.last;
    this.palette = new Map([...this.types].sort((a, b) => b[1] - a[1]).map(([type], at) => [type, PALETTE[Math.min(at, PALETTE.length - 1)]]));
  }

  clear() { this.nodes.clear(); this.inside.clear(); this.asked.clear(); this.types.clear(); }

  buttons() {
    const button = (text, label, act) => element("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    this.choice = element("select", { "aria-label": "Colour by", onchange: (event) => { this.colour = event.target.value; this.draw(); } },
      ["topic", "type", "time", "changes"].map((name) => element("option", { value: name }, "colour: " + name)));
    byId("tools").append(
      button("+", "Zoom in", () => this.zoom(1.5)), button("−", "Zoom out", () => this.zoom(1 / 1.5)),
      button("whole", "Show the whole map", () => this.whole()), this.choice);
  }

  listen() {
    const canvas = this.canvas;
    let from = null, moved = false, pinch = 0;
    const points = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      points.set(event.pointerId, event); canvas.setPointerCapture(event.pointerId);
      from = { x: event.offsetX, y: event.offsetY, view: { ...this.view } }; moved = false;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (points.has(event.pointerId)) points.set(event.pointerId, event);
      if (points.size === 2) {
        const [a, b] = [...points.values()];
        const apart = Math.hypot(a.offsetX - b.offsetX, a.offsetY - b.offsetY);
        if (pinch) this.zoom(apart / pinch, (a.offsetX + b.offsetX) / 2, (a.offsetY + b.offsetY) / 2);
        pinch = apart; moved = true;
      } else if (from) {
        const [dx, dy] = [event.offsetX - from.x, event.offsetY - from.y];
        moved = moved || Math.hypot(dx, dy) > 4;
        this.view = { ...from.view, x: from.view.x + dx, y: from.view.y + dy }; this.draw();
      } else this.hover(event.offsetX, event.offsetY);
    });
    const end = (event) => {
      points.delete(event.pointerId); pinch = 0;
      if (from && !moved && event.type === "pointerup") this.click(event.offsetX, event.offsetY);
      from = null;
    };
    canvas.addEventListener("pointerup", end); canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("dblclick", (event) => this.zoom(2, event.offsetX, event.offsetY));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault(); this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  resize() {
    const ratio = window.devicePixelRatio || 1, box = this.canvas.parentElement.getBoundingClientRect();
    const before = [this.width, this.height];
    [this.width, this.height] = [box.width, box.height];
    this.canvas.width = box.width * ratio; this.canvas.height = box.height * ratio;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (!before[0]) this.whole();
    else { this.view.x += (this.width - before[0]) / 2; this.view.y += (this.height - before[1]) / 2; this.draw(); }
  }

  whole() {
    const k = 0.47 * Math.min(this.width || 1, this.height || 1);
    this.view = { x: (this.width || 0) / 2, y: (this.height || 0) / 2, k }; this.draw();
  }

  zoom(by, x = this.width / 2, y = this.height / 2) {
    const k = Math.min(Math.max(this.view.k * by, 40), 5e6), real = k / this.view.k;
    this.view = { k, x: x - (x - this.view.x) * real, y: y - (y - this.view.y) * real }; this.draw();
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
      if (one.r * k < OPEN || one.dot) continue;
      const below = this.inside.get(one.n), dots = this.inside.get("e" + one.n);
      if (!below && !dots && !this.asked.has(one.n)) this.fetch(one.n);
      if (below) queue.push(...below);
      if (dots) queue.push(...dots.map((dot) => ({ ...dot, dot: true, r: one.r * 0.035 })));
    }
    return found;
  }

  async fetch(n) {
    this.asked.add(n);
    try { this.take(await this.transport.load("map", { under: n })); this.draw(); } catch { /* the list beside says what is wrong */ }
  }

  colourOf(one, styles) {
    if (this.colour === "type" && one.type) return this.palette.get(one.type);
    if (this.colour === "time" && one.to && this.last > this.first) {
      const share = Math.min(Math.max((one.to - this.first) / (this.last - this.first), 0), 1);
      return `color-mix(in srgb, ${PALETTE[1]} ${Math.round(share * 100)}%, ${PALETTE[6]})`;
    }
    if (this.colour === "changes") return this.changed.has(one.n) ? PALETTE[1] : styles.disc;
    if (this.colour === "topic") return PALETTE[this.root(one) % PALETTE.length];
    return styles.disc;
  }

  root(one) {
    let node = one.dot ? this.nodes.get(one.community) : one;
    while (node && node.parent && this.nodes.get(node.parent)) node = this.nodes.get(node.parent);
    return (this.inside.get(0) || []).indexOf(node);
  }

  paint() {
    const { context, width, height } = this, { x, y, k } = this.view, css = getComputedStyle(document.documentElement);
    const styles = { disc: css.getPropertyValue("--disc"), line: css.getPropertyValue("--disc-line"), ink: css.getPropertyValue("--ink"),
      paper: css.getPropertyValue("--paper"), hit: css.getPropertyValue("--hit"), accent: css.getPropertyValue("--accent") };
    context.clearRect(0, 0, width, height);
    this.drawn = this.visible();
    for (const one of this.drawn) {
      const [px, py, pr] = [x + one.x * k, y + one.y * k, one.r * k], open = pr >= OPEN && !one.dot;
      const hit = one.dot ? this.hits.get("e" + one.n) : this.hits.get(one.n);
      context.beginPath(); context.arc(px, py, Math.max(pr, 1), 0, 7);
      context.globalAlpha = one.dot ? 0.85 : open ? 0.1 : 0.28; context.fillStyle = this.colourOf(one, styles); context.fill();
      context.globalAlpha = 1;
      context.lineWidth = one.n === this.selected && !one.dot ? 3 : hit ? 2.5 : 1;
      context.strokeStyle = hit ? styles.hit : one.n === this.selected && !one.dot ? styles.accent : styles.line;
      if (!one.dot || hit) context.stroke();
    }
    context.textAlign = "center"; context.lineJoin = "round"; context.strokeStyle = styles.paper; context.fillStyle = styles.ink;
    let labels = 0;
    for (const one of this.drawn) {
      const [px, py, pr] = [x + one.x * k, y + one.y * k, one.r * k], open = pr >= OPEN && !one.dot;
      if (labels > 160 || (one.dot ? pr < 3 : pr < 24)) continue;
      labels += 1;
      if (one.dot) this.label([short(visible(one.title), 22)], px, py + pr + 11, 11);
      else if (open && (this.inside.get(one.n) || this.inside.get("e" + one.n))) this.label([short(visible(one.title), Math.max(12, Math.floor(pr / 4)))], px, Math.max(py - pr - 5, 14), 13, true);
      else this.label(this.lines(visible(one.title), pr), px, py, Math.min(13, Math.max(10, pr / 5)), false, true);
    }
    const notes = { topic: "", type: [...(this.palette || [])].slice(0, 6).map(([type]) => type).join(", "), time: this.first ? `${this.first} (blue) to ${this.last} (orange)` : "no dates", changes: "orange: changed" };
    byId("legend").textContent = `${this.drawn.length} marks. ${notes[this.colour]}`;
    this.frames = (this.frames || 0) + 1;
  }

  lines(title, radius) {
    const parts = title.split(" · "), most = Math.max(6, Math.floor(radius / 3.4));
    const lines = parts.length > 1 ? parts : title.match(new RegExp(`.{1,${most}}(?=\\s|$)|.{1,${most}}`, "gu")) || [title];
    return lines.slice(0, radius > 45 ? 3 : radius > 32 ? 2 : 1).map((line) => short(line.trim(), most));
  }

  label(lines, x, y, size, strong = false, middle = false) {
    this.context.font = `${strong ? 600 : 400} ${size}px system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif`;
    const start = middle ? y - ((lines.length - 1) * size * 1.2) / 2 + size / 3 : y;
    lines.forEach((line, at) => {
      this.context.lineWidth = 3; this.context.strokeText(line, x, start + at * size * 1.2); this.context.fillText(line, x, start + at * size * 1.2);
    });
  }

  at(px, py) {
    const { x, y, k } = this.view;
    return [...this.drawn].reverse().find((one) => Math.hypot(px - x - one.x * k, py - y - one.y * k) <= Math.max(one.r * k, 5));
  }

  hover(px, py) {
    const one = this.at(px, py);
    this.canvas.style.cursor = one ? "pointer" : "grab";
    this.canvas.title = one ? visible(one.title) + (one.size ? ` (${one.size} texts)` : "") : "";
  }

  click(px, py) {
    const one = this.at(px, py);
    if (one) this.open(one.dot ? "entity/" + one.n : "community/" + one.n);
  }
}
