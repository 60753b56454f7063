// The graph: entities with their relationships, or documents with their links, on a canvas that can be worked with.

import { byId, cut, element, enlarged, icon, link, measured, meet, number, pointers, redrawn, short, touches, visible } from "./dom.js";
import { FONT, TURNED, WORDS } from "./map.js";
import * as views from "./views.js";

const LENGTH = 80; // pixels at which an edge is at rest
const REACH = 3 * LENGTH; // beyond it two nodes do not push each other
const TICKS = 240; // of a new layout: its places depend on the data alone, never on time
const CELLS = 128; // of the grid, at most, in each direction
const MANY = 1000; // nodes from which dots have no rim, edges from which all are hairlines: a browser without a GPU draws 8,000 of them in 20 ms, of wider ones in 900
const LETTERS = 30; // of a title in the picture
const LEGEND = 20; // of a title in the legend
const FIRST = 40; // titles of the most connected nodes, at most a quarter, that may cover a dot
const ROOM = 16_000; // square pixels for each of them
const APART = 90; // pixels between two nodes at which dots are not made smaller; in a crowd they are
const TITLES = 150, MOVING = 40; // titles at rest, and while the picture moves
const STILL = 0.02; // movement below which the layout rests
const TONES = 8; // colours of the style sheet, --c0 to --c7
const HUES = TONES - 1; // the last is grey, of what has no colour of its own
const FEWEST = [0.03, 3]; // limits of zoom: 400 nodes have room on a phone
const STRONGEST = 3; // edges of each node that shape the layout and are drawn in full; the others are faint
const STRETCH = 1.6; // at most, of a new layout, to the proportions of its room

export class Graph {
  constructor(transport, open) {
    this.transport = transport; this.open = open; this.kind = ""; this.nodes = new Map(); this.edges = new Map(); this.past = []; this.tones = new Map(); this.by = "topic"; this.topics = new Map(); this.known = null; this.dragged = false; this.large = enlarged(); this.least = 0.75; this.most = 1;
    this.view = { x: 0, y: 0, k: 1 }; this.heat = 0; this.frames = 0; this.chosen = null; this.over = null; this.edge = null; this.from = ""; this.to = ""; this.without = new Set();
    this.canvas = element("canvas", { "aria-hidden": "true" }); this.context = this.canvas.getContext("2d"); this.wide = measured(this.context);
    this.bar = element("div", { class: "work", role: "toolbar", "aria-label": "Graph" }); this.key = element("div", { class: "key-bar", role: "group", "aria-label": "Filters of the graph" });
    this.told = element("div", { class: "told", role: "status" });
    this.listed = element("details", { class: "nodes", ontoggle: () => this.list() });
    byId("graph").append(this.canvas, this.key, this.bar, this.listed, this.told);
    this.buttons(); this.listen(); this.hide();
    new ResizeObserver(() => { this.resize(); this.fold(); }).observe(byId("picture"));
  }

  // ---- what is shown ----------------------------------------------------------------------------------

  get shown() { return !byId("graph").hidden; }

  hide() { byId("graph").hidden = true; for (const id of ["canvas", "tools", "legend", "crumbs"]) byId(id).hidden = false; }

  show() { byId("graph").hidden = false; for (const id of ["canvas", "tools", "legend", "crumbs", "leaf"]) byId(id).hidden = true; this.resize(); }

  begin(kind, label) {
    this.kind = kind; this.nodes = new Map(); this.edges = new Map(); this.known = null; this.past = []; this.chosen = this.over = this.edge = null; this.from = this.to = ""; this.without = new Set(); this.mode = ""; this.most = 1; this.topics = new Map();
    byId("graph").setAttribute("aria-label", label); byId("graph").setAttribute("role", "group");
    this.show();
  }

  node(one, at) {
    const known = this.nodes.get(one.n);
    this.most = Math.max(this.most, one.degree || 0);
    if (known) { known.degree = Math.max(known.degree, one.degree || 0); return known; }
    // On a spiral around the place where it comes from, by the order in which nodes come.
    const turn = this.nodes.size * 2.399963, far = 0.45 * LENGTH * Math.sqrt(at?.spread ? this.nodes.size % 12 + 1 : this.nodes.size + 1);
    const made = { n: one.n, title: visible(one.title), type: one.type || "", topic: one.topic || 0, degree: one.degree || 0, date: one.date || "", x: (at?.x || 0) + far * Math.cos(turn), y: (at?.y || 0) + far * Math.sin(turn), vx: 0, vy: 0, parent: at?.n || 0 };
    this.nodes.set(one.n, made); this.known = null;
    return made;
  }

  line(a, b, weight, more = {}) {
    if (a === b || !this.nodes.has(a) || !this.nodes.has(b)) return;
    const key = Math.min(a, b) + " " + Math.max(a, b);
    this.edges.set(key, { ...this.edges.get(key), a: this.nodes.get(a), b: this.nodes.get(b), weight, ...more }); this.known = null;
  }

  // The relationships of one entity, all or those to nodes that are shown.
  take(found, all) {
    const centre = this.node(found);
    for (const one of found.relations) if (all || this.nodes.has(one.other.n)) {
      this.node(one.other, centre);
      this.line(found.n, one.other.n, one.weight, { text: one.text, cites: one.cites, date: earliest(one.cites) });
    }
    for (const [a, b, weight, date] of found.edges || []) this.line(a, b, weight, date ? { date } : {});
    return centre;
  }

  whole_(found, kind) {
    this.begin(kind, kind === "entity" ? "The most connected entities" : "Documents by their links");
    const room = 0.8 * LENGTH * Math.sqrt(found.nodes.length);
    this.topics = colours(found.topics || []);
    for (const one of found.nodes) this.node(one, one.x === undefined ? null : { x: one.x * room, y: one.y * room, spread: true });
    for (const [a, b, weight, date] of found.edges) this.line(a, b, weight, date ? { date } : {});
    this.settle();
  }

  stays(kind, n) { const one = this.nodes.get(n); return this.kind === kind && one && !one.hidden && (this.shown || this.chosen === one); }

  // An entity that is shown already is only chosen: the graph around it stays as the person left it.
  entity(found) {
    const stays = this.stays("entity", found.n);
    if (stays) { this.show(); this.take(found, false); this.chosen = this.nodes.get(found.n); this.told.replaceChildren(); this.into(this.chosen); this.after(); return; }
    this.begin("entity", `${visible(found.title)} and its neighbours`);
    this.chosen = this.take(found, true); this.chosen.centre = true; this.settle();
  }

  document(found) {
    const stays = this.stays("document", found.n);
    if (!stays) this.begin("document", `${visible(found.title)} and the documents that it links to, or that link to it`);
    else this.show();
    const centre = this.node(found);
    for (const one of found.links.in) this.linked(one, one.from, centre, stays);
    for (const one of found.links.out) if (one.to) this.linked(one, one.to, centre, stays);
    this.chosen = centre;
    if (stays) { this.into(centre); this.after(); } else { centre.centre = true; this.settle(); }
  }

  linked(one, other, centre, known) {
    if (known && !this.nodes.has(other.n)) return;
    this.node(other, centre); this.line(one.from.n, one.to.n, 1, { text: one.text, cites: one.cites, date: other.date });
  }

  // The ways between two entities: the ends to the left and right, each way in a row of its height.
  path(found) {
    this.begin("entity", "The ways between two entities");
    const direct = found.paths.some((steps) => steps.length === 1), placed = new Set();
    let row = direct ? 1 : 0; // nothing stands on the line of a direct connection
    const wide = Math.max(170 * Math.max(1, ...found.paths.map((steps) => steps.length)), 440), rows = row + new Set(found.paths.map((steps) => steps.slice(0, -1).map((one) => one.to.n).join())).size;
    const high = Math.min(Math.max((0.5 * wide * (this.height || 1)) / (this.width || 1) / Math.max(1, rows - 1), 130), 260); // rows take the room that is there
    const put = (one, x, y) => { const made = this.node(one); if (!placed.has(one.n)) { placed.add(one.n); Object.assign(made, { x, y, fixed: true }); } return made; };
    put(found.from, 0, 0).centre = true; put(found.to, wide, 0).centre = true;
    for (const steps of found.paths) {
      const before = placed.size, y = (row % 2 ? -1 : 1) * Math.ceil(row / 2) * high;
      steps.slice(0, -1).forEach((one, at) => put(one.to, (wide * (at + 1)) / steps.length, y));
      if (placed.size > before) row++;
      for (const one of steps) this.line(one.from.n, one.to.n, one.weight, { text: one.text, cites: one.cites, date: earliest(one.cites), way: true });
    }
    this.after(); this.whole(); this.draw();
  }

  // ---- work -------------------------------------------------------------------------------------------

  keep() {
    this.past.push({ nodes: [...this.nodes].map(([n, one]) => [n, { ...one }]), edges: [...this.edges], chosen: this.chosen?.n });
    if (this.past.length > 30) this.past.shift();
  }

  back() {
    const last = this.past.pop();
    if (!last) return;
    this.nodes = new Map(last.nodes); this.chosen = this.nodes.get(last.chosen) || null; this.over = this.edge = null;
    this.edges = new Map(last.edges.map(([key, one]) => [key, { ...one, a: this.nodes.get(one.a.n), b: this.nodes.get(one.b.n) }]));
    this.after();
  }

  async expand(one = this.chosen) {
    if (!one) return;
    try {
      const found = await this.transport.load(this.kind, { id: one.n });
      this.keep();
      const before = this.nodes.size;
      if (this.kind === "entity") this.take(found, true);
      else { for (const each of found.links.in) this.linked(each, each.from, one, false); for (const each of found.links.out) if (each.to) this.linked(each, each.to, one, false); }
      for (const each of this.neighbours(one)) each.hidden = false;
      this.say(this.nodes.size > before ? `${number(this.nodes.size - before)} added around ${one.title}` : `Everything connected with ${one.title} is shown`);
      this.refit = true; this.warm(0.9);
    } catch (error) { this.say(error.message); }
  }

  neighbours(one) { return [...this.edges.values()].filter(({ a, b }) => a === one || b === one).map(({ a, b }) => (a === one ? b : a)); }

  // Takes in what came by expanding this node, and the neighbours that nothing else holds here.
  collapse(one = this.chosen) {
    if (!one) return;
    this.keep();
    const gone = this.neighbours(one).filter((other) => !other.centre && !other.hidden && (other.parent === one.n || this.neighbours(other).filter((each) => !each.hidden).length < 2));
    for (const other of gone) other.hidden = true;
    this.say(gone.length ? `${number(gone.length)} taken in` : `All neighbours of ${one.title} have other relationships here`); this.after();
  }

  put_away(one = this.chosen) { if (one) { this.keep(); one.hidden = true; this.chosen = null; this.say(`${one.title} is hidden`); this.after(); } }

  all() { this.keep(); for (const one of this.nodes.values()) one.hidden = false; this.without.clear(); this.from = this.to = ""; this.told.replaceChildren(); this.after(); }

  choose(one) {
    if (this.mode === "path" && this.chosen && one && one !== this.chosen) { this.mode = ""; this.open(`path/${this.chosen.n}/${one.n}`); return; }
    this.mode = ""; this.chosen = one;
    if (one) this.open(`${this.kind}/${one.n}`);
    this.after();
  }

  // The sentence of an edge, with its source.
  async sentence(edge) {
    const kept = () => [...this.edges.values()].find(({ a, b }) => a === edge.a && b === edge.b);
    this.edge = edge; this.draw();
    if (edge.text === undefined) {
      let found = null;
      try { found = await this.transport.load(this.kind, { id: edge.a.n }); } catch { /* the ends are named all the same */ }
      if (found && this.kind === "entity") this.take(found, false);
      if (found && this.kind === "document") for (const one of [...found.links.in, ...found.links.out]) if (one.to && [one.from.n, one.to.n].includes(edge.b.n)) Object.assign(edge, { text: one.text, cites: one.cites });
      if (this.kind === "entity" && kept()?.text === undefined) {
        try { const way = (await this.transport.load("path", { id: edge.a.n, to: edge.b.n })).paths.find((steps) => steps.length === 1); if (way) Object.assign(edge, { text: way[0].text, cites: way[0].cites }); } catch { /* as above */ }
      }
      edge = this.edge = Object.assign(kept() || edge, edge.text === undefined ? {} : { text: edge.text, cites: edge.cites });
    }
    const ends = element("strong", { dir: "auto" }, `${edge.a.title} – ${edge.b.title}`);
    this.told.replaceChildren(ends, element("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => { this.edge = null; this.told.replaceChildren(); this.draw(); } }, "×"),
      element("p", { dir: "auto" }, visible(edge.text ? views.unveiled(views.veiled(edge.text, edge.cites)) : "No sentence is kept for this relationship.")), views.sources((edge.cites || []).slice(0, 3)));
    this.draw();
  }

  say(text) { this.told.replaceChildren(element("p", { dir: "auto" }, visible(text))); }

  // ---- buttons, filters and the list ---------------------------------------------------------------------

  buttons() {
    const button = (image, text, label, act) => element("button", { type: "button", "aria-label": text || label, title: label, onclick: act }, icon(image), text ? element("span", {}, text) : "");
    this.on_node = [
      button("expand", "Expand", "Show what is connected with the chosen node (e)", () => this.expand()), button("collapse", "Collapse", "Take in the neighbours that came with the chosen node (c)", () => this.collapse()),
      button("hide", "Hide", "Hide the chosen node (h)", () => this.put_away()), button("path", "Path to …", "Choose a second entity and show the ways between the two (p)", () => this.ask())];
    this.undo = button("undo", "Undo", "Take back the last change of the graph (u)", () => this.back());
    this.every = button("all", "Show all", "Show hidden nodes and take filters away", () => this.all());
    this.more = element("button", { type: "button", class: "more", onclick: () => { this.unfolded = !this.unfolded; this.fold(); } });
    this.bar.append(button("plus", "", "Zoom in", () => this.zoom(1.4)), button("minus", "", "Zoom out", () => this.zoom(1 / 1.4)), button("fit", "Fit", "Show the whole graph", () => { this.whole(); this.draw(); }), ...this.on_node, this.every, this.undo);
  }

  ask() { if (this.chosen && this.kind === "entity") { this.mode = "path"; this.say(`From ${this.chosen.title} to …: choose the second entity.`); } }

  // After a change of what is shown: buttons, filters and the list are those of the new state.
  after() {
    this.known = null;
    for (const one of this.on_node) one.hidden = !this.chosen; // what does nothing now takes no room
    this.on_node[3].hidden ||= this.kind !== "entity" || this.transport.kind === "file";
    this.undo.hidden = !this.past.length;
    this.every.hidden = !this.without.size && !this.from && !this.to && ![...this.nodes.values()].some((one) => one.hidden);
    const counted = (of) => { const counts = new Map(); for (const one of this.nodes.values()) counts.set(of(one), (counts.get(of(one)) || 0) + 1); return [...counts].sort((a, b) => !a[0] - !b[0] || b[1] - a[1] || (a[0] < b[0] ? -1 : 1)); };
    this.colour(counted((one) => one.type).map(([type]) => type).filter(Boolean));
    const groups = counted((one) => this.group(one));
    const chips = groups.length < 2 && !this.without.size ? [] : groups.map(([group, count]) => element("button", { type: "button", class: "chip", "aria-pressed": String(!this.without.has(group)), title: `Show or hide ${this.called(group)}`,
      onclick: () => { if (!this.without.delete(group)) this.without.add(group); this.after(); } }, element("span", { class: "swatch", style: `background:var(${this.tone(group)})` }), element("span", { dir: "auto" }, short(this.called(group), LEGEND)), " ", number(count)));
    const by = this.topics.size < 2 ? "" : element("select", { "aria-label": "Colour by", onchange: (event) => { this.by = event.target.value; this.without.clear(); this.after(); this.onpaint?.(); } },
      [["topic", "topic"], ["type", "type"]].map(([name, text]) => element("option", { value: name, selected: name === this.by }, "by " + text)));
    const years = [...new Set([...this.edges.values()].map((one) => (one.date || "").slice(0, 4)).filter(Boolean))].sort();
    const year = (name, label, text) => element("select", { "aria-label": label, onchange: (event) => { this[name] = event.target.value; this.after(); } },
      element("option", { value: "" }, text), years.map((one) => element("option", { value: one, selected: one === this[name] }, one)));
    redrawn(this.key, () => this.key.replaceChildren(by, ...chips, ...(years.length > 1 ? [element("span", { class: "years" }, year("from", "From year", "from"), year("to", "To year", "to"))] : []), this.more));
    this.fold(); this.list(); this.draw();
  }

  // Filters take one row; those without room in it come with a click.
  fold() {
    const items = [...this.key.children].filter((one) => one !== this.more), top = this.key.offsetTop;
    for (const one of items) one.hidden = false;
    this.more.hidden = false; this.more.textContent = "less"; this.more.setAttribute("aria-expanded", String(Boolean(this.unfolded)));
    const second = (one) => one.offsetTop - items[0].offsetTop > 8;
    if (!items.some(second)) this.more.hidden = true;
    else if (!this.unfolded) for (let at = items.length - 1; at > 0 && (items.slice(0, at + 1).some(second) || second(this.more)); at--) { items[at].hidden = true; this.more.textContent = `${items.length - at} more`; }
  }

  // A frequent type has its colour of the map in every view. The rare ones share the last colour there: here each takes
  // the first that no other type of the view has, and keeps it.
  colour(types) {
    const frequent = [...(this.palette?.() || [])].slice(0, TONES - 1), taken = new Set();
    for (const [at, type] of frequent.entries()) { this.tones.set(type, at); if (types.includes(type)) taken.add(at); }
    const rare = types.filter((type) => !frequent.includes(type)).sort((a, b) => this.tones.has(b) - this.tones.has(a));
    for (const type of rare) {
      const free = Array.from({ length: TONES }, (_, at) => at).find((at) => !taken.has(at)) ?? TONES - 1;
      if (!this.tones.has(type) || taken.has(this.tones.get(type))) this.tones.set(type, free);
      taken.add(this.tones.get(type));
    }
  }

  // Colours and filters of the whole graph are those of its largest topics, or of types; elsewhere of types. 0 or "" is
  // the group of all others.
  get topical() { return this.by === "topic" && this.topics.size > 1; }
  group(one) { return !this.topical ? one.type : this.topics.get(one.topic)?.tone === undefined ? 0 : one.topic; }
  called(group) { return this.topical ? visible(this.topics.get(group)?.title || "other topics") : visible(group) || "no type"; }
  tone(group) { return this.topical ? `--c${this.topics.get(group)?.tone ?? HUES}` : this.tones.has(group) ? `--c${this.tones.get(group)}` : "--plain"; }

  list() {
    const { many } = this.current(), what = this.kind === "document" ? "documents" : "entities";
    const summary = this.listed.querySelector("summary") || element("summary");
    summary.replaceChildren(icon("list"), element("span", {}, "List of "), number(many.length), element("span", {}, ` ${what}`));
    if (!this.listed.open) { this.listed.replaceChildren(summary); return; }
    redrawn(this.listed, () => this.listed.replaceChildren(summary, element("ul", { class: "plain" }, many.slice(0, 500).map((one) => element("li", {}, this.listing(one), one === this.chosen ? " ●" : "", one.type && one.type !== "other" ? element("span", { class: "type" }, " " + visible(one.type)) : "", " ",
      element("button", { type: "button", "aria-label": `Expand ${one.title}`, onclick: () => this.expand(one) }, icon("expand")), element("button", { type: "button", "aria-label": `Hide ${one.title}`, onclick: () => this.put_away(one) }, icon("hide")))))));
  }

  // A name in the list is chosen as its node is: also as the second of a path.
  listing(one) {
    const made = link(`${this.kind}/${one.n}`, short(one.title, 60));
    made.addEventListener("click", (event) => { if (this.mode === "path") { event.preventDefault(); event.stopPropagation(); this.choose(one); } });
    return made;
  }

  // What is drawn, the most connected first, and the edges between: worked out once a change, not once a frame.
  current() {
    if (!this.known) {
      const many = this.visible().sort(important), edges = this.drawnEdges(new Set(many));
      cut(many.map((one) => one.title), LETTERS).forEach((label, at) => { many[at].label = label; });
      this.known = { many, edges }; backbone(many, edges);
    }
    return this.known;
  }

  visible() { return [...this.nodes.values()].filter((one) => !one.hidden && !this.without.has(this.group(one)) && this.timely(one)); }

  inTime(edge) { return (!this.from && !this.to) || (edge.date && edge.date.slice(0, 4) >= this.from && (!this.to || edge.date.slice(0, 4) <= this.to)); }

  timely(one) {
    if (!this.from && !this.to || one.centre) return true;
    if (!this.held || this.held.span !== this.from + "-" + this.to || this.held.size !== this.edges.size) {
      this.held = { span: this.from + "-" + this.to, size: this.edges.size, ends: new Set() };
      for (const edge of this.edges.values()) if (this.inTime(edge)) this.held.ends.add(edge.a.n).add(edge.b.n);
    }
    return this.held.ends.has(one.n);
  }

  // ---- layout: springs along edges, nodes push each other, all are drawn to the middle ---------------------
  // After Fruchterman and Reingold (1991) with their grid: only nodes of neighbouring cells push each other. A spring
  // is the weaker the more edges its ends have, as in d3-force: else hubs pull everything into one heap.

  settle() {
    for (let at = 0; at < TICKS; at += this.nodes.size > MANY ? 3 : 1) this.tick(1 - at / TICKS);
    this.heat = 0; this.after(); this.stretch(); this.whole(); this.draw();
  }

  // A new layout is about round; it is drawn out to the proportions of its room.
  stretch() {
    const { many } = this.current(), [wide, high] = ["x", "y"].map((name) => Math.max(...many.map((one) => one[name])) - Math.min(...many.map((one) => one[name])));
    if (many.length < 3 || !wide || !high || !this.width) return;
    const by = Math.min(Math.max((this.width / this.height) / (wide / high), 1 / STRETCH), STRETCH);
    for (const one of many) if (by > 1) one.x *= by; else one.y /= by;
  }

  warm(heat) { this.heat = Math.max(this.heat, heat); this.after(); }

  tick(heat) {
    const { many, edges } = this.current(), wide = Math.min(Math.max((this.width || 1) / (this.height || 1), 0.5), 2);
    repel(many, heat);
    for (const { a, b, strong } of edges) {
      const dx = b.x - a.x, dy = b.y - a.y, far = Math.hypot(dx, dy) || 1, share = a.links / (a.links + b.links);
      const pull = ((far - LENGTH) / far) * heat * (strong ? 0.5 / Math.min(a.links, b.links) : 0.001) * (a.topic === b.topic ? 1 : 0.5);
      a.vx += dx * pull * (1 - share); a.vy += dy * pull * (1 - share); b.vx -= dx * pull * share; b.vy -= dy * pull * share;
    }
    for (const one of many) {
      one.vx -= 0.02 * one.x * heat; one.vy -= 0.02 * wide * one.y * heat;
      if (one.fixed) { one.vx = one.vy = 0; continue; }
      const speed = Math.hypot(one.vx, one.vy), most = 40; // a step stays below half of an edge
      if (speed > most) { one.vx *= most / speed; one.vy *= most / speed; }
      one.x += one.vx; one.y += one.vy; one.vx *= 0.6; one.vy *= 0.6;
    }
  }

  drawnEdges(many) { return [...this.edges.values()].filter((edge) => many.has(edge.a) && many.has(edge.b) && this.inTime(edge)); }

  // ---- the view ---------------------------------------------------------------------------------------

  resize() {
    const box = byId("picture").getBoundingClientRect(), ratio = window.devicePixelRatio || 1, first = !this.width;
    if (!this.shown || !box.width || !box.height) return;
    if (this.width === box.width && this.height === box.height) return;
    this.large = enlarged();
    [this.width, this.height] = [box.width, box.height];
    this.canvas.width = box.width * ratio; this.canvas.height = box.height * ratio; this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (!first || this.nodes.size) this.whole();
    this.draw();
  }

  // Room is left for titles beside the outermost nodes, for the filters above and the buttons below.
  whole() {
    const many = this.visible(), [width, height] = [this.width || 600, this.height || 400];
    if (!many.length) return;
    this.least = Math.min(0.75, Math.max(0.3, Math.sqrt((width * height) / many.length) / APART));
    const left = Math.min(...many.map((one) => one.x)), right = Math.max(...many.map((one) => one.x)), top = Math.min(...many.map((one) => one.y)), bottom = Math.max(...many.map((one) => one.y));
    const aside = Math.min(many.length < FIRST ? 110 : 70, width / 6), above = Math.min(this.key.offsetTop + this.key.offsetHeight + 38, height / 3), below = Math.min(this.bar.offsetHeight + 44, height / 3);
    const k = Math.min(Math.max(Math.min((width - 2 * aside) / (right - left || 1), (height - above - below) / (bottom - top || 1)), FEWEST[0]), 1.8 * this.large);
    this.view = { k, x: width / 2 - (k * (left + right)) / 2, y: (height + above - below) / 2 - (k * (top + bottom)) / 2 };
  }

  // Brings a node that is outside of the picture into it.
  into(one) {
    const [px, py] = [this.view.x + one.x * this.view.k, this.view.y + one.y * this.view.k];
    if (px < 30 || py < 50 || px > this.width - 30 || py > this.height - 60) { this.view.x += this.width / 2 - px; this.view.y += this.height / 2 - py; }
  }

  zoom(by, x = this.width / 2, y = this.height / 2) {
    this.refit = false;
    const k = Math.min(Math.max(this.view.k * by, FEWEST[0]), FEWEST[1]), real = k / this.view.k;
    this.view = { k, x: x - (x - this.view.x) * real, y: y - (y - this.view.y) * real }; this.draw();
  }

  listen() {
    const { canvas } = this; let from = null;
    pointers(canvas, {
      down: (x, y) => { const one = this.at(x, y); from = { view: { ...this.view }, one }; this.refit = false; },
      drag: (dx, dy, x, y) => {
        if (from.one && !this.dragged) this.keep();
        this.dragged = true;
        if (from.one) { // a node that was dragged stays where it was put, the others follow
          Object.assign(from.one, { x: (x - this.view.x) / this.view.k, y: (y - this.view.y) / this.view.k, fixed: true });
          this.heat = Math.max(this.heat, 0.25);
        } else this.view = { ...from.view, x: from.view.x + dx, y: from.view.y + dy };
        this.draw();
      },
      end: () => { this.dragged = false; if (from.one) this.after(); else this.draw(); }, // with all its titles
      zoom: (by, x, y) => this.zoom(by, x, y), hover: (x, y) => this.hover(x, y), click: (x, y) => this.click(x, y),
    });
    canvas.addEventListener("pointerleave", () => { if (!this.dragged) { this.over = null; this.draw(); } });
    canvas.addEventListener("dblclick", (event) => { const one = this.at(event.offsetX, event.offsetY); if (one) this.expand(one); else this.zoom(1.6, event.offsetX, event.offsetY); });
    byId("graph").addEventListener("keydown", (event) => {
      const keys = { e: () => this.expand(), c: () => this.collapse(), h: () => this.put_away(), p: () => this.ask(), u: () => this.back(), Escape: () => { this.mode = ""; this.edge = null; this.told.replaceChildren(); this.draw(); } };
      if (!event.ctrlKey && !event.metaKey && event.target.tagName !== "SELECT" && keys[event.key]) { event.preventDefault(); keys[event.key](); }
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  at(px, py) {
    const { x, y, k } = this.view, near = this.current().many.filter((one) => Math.hypot(px - x - one.x * k, py - y - one.y * k) <= this.radius(one) + 4);
    if (near.length) return near.reduce((best, one) => (distance(one, px, py, this.view) < distance(best, px, py, this.view) ? one : best));
    return (this.boxes || []).find(({ box }) => px >= box[0] && px <= box[2] && py >= box[1] && py <= box[3])?.one || null;
  }

  edgeAt(px, py) {
    const { x, y, k } = this.view, [ux, uy] = [(px - x) / k, (py - y) / k];
    let best = null, least = 6 / k;
    for (const edge of this.current().edges) {
      const { a, b } = edge, dx = b.x - a.x, dy = b.y - a.y, share = Math.min(1, Math.max(0, ((ux - a.x) * dx + (uy - a.y) * dy) / (dx * dx + dy * dy || 1))), far = Math.hypot(ux - a.x - share * dx, uy - a.y - share * dy);
      if (far < least) { least = far; best = edge; }
    }
    return best;
  }

  hover(px, py) {
    const one = this.at(px, py), edge = one ? null : this.edgeAt(px, py);
    this.canvas.style.cursor = one || edge ? "pointer" : "grab";
    this.canvas.title = one ? `${one.title}${one.type && one.type !== "other" ? ", " + one.type : ""}${this.topical && this.topics.has(one.topic) ? `\nTopic: ${visible(this.topics.get(one.topic).title)}` : ""}` : edge ? short(visible(edge.text || `${edge.a.title} – ${edge.b.title}`), 300) : "";
    if (one !== this.over) { this.over = one; this.draw(); }
  }

  click(px, py) {
    const one = this.at(px, py), edge = one ? null : this.edgeAt(px, py);
    if (edge) { this.sentence(edge); return; }
    if (one) this.choose(one);
  }

  // ---- drawing ----------------------------------------------------------------------------------------

  // By the share of the most connected node that is here: a hub stands out in a crowd as well.
  radius(one) { return this.large * Math.max(one.centre ? 13 : 0, 3 + 19 * Math.sqrt((one.degree || 1) / Math.max(this.most, 20))) * Math.min(1.4, Math.max(this.least, Math.sqrt(this.view.k))); }

  draw() {
    if (this.pending || !this.shown) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      if (this.heat > STILL) { this.tick(this.heat); this.heat *= 0.94; if (this.refit) this.whole(); if (this.heat <= STILL) { this.heat = 0; this.refit = false; } this.draw(); }
      this.paint();
    });
  }

  paint() {
    const { context } = this, { x, y, k } = this.view, css = getComputedStyle(document.documentElement), shades = new Map(), shade = (name) => { if (!shades.has(name)) shades.set(name, css.getPropertyValue(name)); return shades.get(name); }, tone = (name) => shade("--" + name);
    const ink = tone("ink"), paper = tone("paper"), accent = tone("accent"), second = tone("second"), line = tone("edge");
    const { many, edges } = this.current(), moving = this.heat > 0 || this.dragged, focus = this.over || this.chosen;
    const lit = new Set(focus ? [focus, ...this.neighbours(focus)] : []), dim = this.over !== null || (this.chosen && lit.size > 1);
    context.clearRect(0, 0, this.width, this.height); context.lineCap = "round";
    const stroke = (group, colour, alpha, plus, fine = group.length > MANY) => { // if so three shades by weight instead of three widths
      context.strokeStyle = colour;
      for (const thick of [1, 1.8, 2.8]) { // a path each, not a call an edge
        context.globalAlpha = fine ? alpha * (0.3 + thick / 4) : alpha;
        context.beginPath(); context.lineWidth = fine ? 1 / (window.devicePixelRatio || 1) : thick + plus;
        for (const { a, b, weight } of group) if ((weight >= 6 ? 2.8 : weight >= 3 ? 1.8 : 1) === thick) { context.moveTo(x + a.x * k, y + a.y * k); context.lineTo(x + b.x * k, y + b.y * k); }
        context.stroke();
      }
    };
    const touching = edges.filter(({ a, b }) => a === focus || b === focus);
    const rest = edges.filter(({ a, b, way }) => a !== focus && b !== focus && !way), faint = rest.filter((one) => !one.strong);
    const crowd = rest.length > MANY;
    stroke(faint, line, dim || crowd ? 0.2 : 0.4, 0, crowd); 
    const strong = faint.length ? rest.filter((one) => one.strong) : rest, tint = ({ a, b }) => !crowd && this.group(a) && this.group(a) === this.group(b) ? this.tone(this.group(a)) : "--edge";
    for (const name of new Set(strong.map(tint))) stroke(strong.filter((one) => tint(one) === name), shade(name), dim ? 0.3 : name === "--edge" ? 0.8 : 0.6, 0.2, crowd);
    stroke(touching, accent, 0.75, 0.2); stroke(edges.filter((one) => one.way), accent, 0.9, 0.6);
    if (this.edge && edges.includes(this.edge)) stroke([this.edge], second, 1, 2);
    for (const one of [...many].reverse()) {
      const radius = this.radius(one), [px, py] = [x + one.x * k, y + one.y * k];
      if (px < -20 || py < -20 || px > this.width + 20 || py > this.height + 20) continue;
      context.globalAlpha = dim && !lit.has(one) ? 0.45 : 1;
      if (one === this.chosen || many.length <= MANY) { // a rim is filled as well: without a GPU to stroke a circle takes ten times as long
        context.beginPath(); context.arc(px, py, radius + 1.5, 0, 7); context.fillStyle = one === this.chosen ? ink : paper; context.fill();
      }
      context.fillStyle = this.kind === "document" && !one.type ? accent : shade(this.tone(this.group(one)));
      if (radius < 3 && moving) { context.fillRect(px - 0.88 * radius, py - 0.88 * radius, 1.76 * radius, 1.76 * radius); continue; } // a third of the time
      context.beginPath(); context.arc(px, py, radius, 0, 7); context.fill();
    }
    this.titles(many, lit, dim, { ink, paper });
    this.sentences(edges.filter((one) => one.way && one.text), { soft: tone("soft"), paper });
    context.globalAlpha = 1; this.frames++;
  }

  // Titles, those of the chosen and the most connected nodes first, each on the side of its node where the fewest lines
  // cross it. One that would cover another title or a node is left out; those of the chosen node, its neighbours and the
  // most connected nodes may cover others. While the picture moves a title keeps its side.
  titles(many, lit, dim, { ink, paper }) {
    const { context } = this, { x, y, k } = this.view, moving = this.heat > 0 || this.dragged, most = many.length <= MANY / 2 ? TITLES : moving ? MOVING : TITLES / 2;
    const inside = (px, py) => px > -20 && py > -20 && px < this.width + 20 && py < this.height + 20;
    const discs = moving || many.length > MANY ? [] : many.map((one) => ({ one, px: x + one.x * k, py: y + one.y * k, radius: this.radius(one) })).filter(({ px, py }) => inside(px, py));
    const lines = moving || many.length > MANY ? [] : this.current().edges.filter((edge) => edge.strong || edge.way || lit.has(edge.a) && lit.has(edge.b)).slice(0, MANY).map(({ a, b }) => [x + a.x * k, y + a.y * k, x + b.x * k, y + b.y * k]);
    this.boxes = []; context.textAlign = "center"; context.lineJoin = "round"; context.strokeStyle = paper; context.fillStyle = ink;
    const rank = (one) => 2 * (one.centre === true) + lit.has(one), order = [...many].sort((a, b) => rank(b) - rank(a));
    const hubs = new Set(order.slice(0, Math.min(FIRST, many.length / 4, (this.width * this.height) / ROOM))); // are named on a phone as well, where they stand in a crowd
    for (const one of order) {
      if (this.boxes.length >= most) break;
      const radius = this.radius(one), [px, py] = [x + one.x * k, y + one.y * k];
      if (px < 0 || py < 0 || px > this.width || py > this.height) continue;
      const strong = one.centre || one === this.chosen, size = this.large * (strong ? 14.5 : 11 + Math.round(8 * (one.degree || 1) / Math.max(this.most, 20)) / 2);
      context.font = `${strong ? 600 : 400} ${size}px ${FONT}`; context.direction = TURNED.test(one.title) ? "rtl" : "ltr";
      const title = one.label, half = this.wide(title) / 2 + 5, cx = Math.min(Math.max(px, half), this.width - half), aside = radius + 4 + half;
      const places = [[cx, py + radius + size + 1], [cx, py - radius - 5], [px + aside, py + size / 2 - 2], [px - aside, py + size / 2 - 2]];
      let best = null, least = Infinity;
      for (const [side, [middle, base]] of moving && one.side !== undefined ? [[one.side, places[one.side]]] : places.entries()) {
        const box = [middle - half, base - size, middle + half, base + 4];
        if (box[0] < -0.5 || box[2] > this.width + 0.5 || this.boxes.some((other) => meet(other.box, box))) continue;
        const hidden = discs.filter((disc) => disc.one !== one && touches(box, disc.px, disc.py, disc.radius)), covered = hidden.length;
        if (covered && !(strong || lit.has(one) || hubs.has(one))) continue;
        const crossed = lines.filter((line) => crosses(line, box)).length, cost = hidden.reduce((sum, disc) => sum + disc.radius, 0) + crossed + side / 10;
        if (cost < least) { least = cost; best = { side, middle, base, box, plate: crossed && !covered }; }
      }
      if (!best) continue;
      one.side = best.side; this.boxes.push({ box: best.box, one });
      context.globalAlpha = dim && !lit.has(one) ? 0.5 : 1; context.lineWidth = 4;
      if (best.plate) { const [left, top, right, bottom] = best.box; context.fillStyle = paper; context.fillRect(left + 1, top + 1, right - left - 2, bottom - top - 2); context.fillStyle = ink; } // no line runs through letters
      context.strokeText(title, best.middle, best.base); context.fillText(title, best.middle, best.base);
    }
  }

  // The sentences of a path beside its lines, in up to four rows: above or below a line that is about level, else on
  // its outer side. One that has no room is left out.
  sentences(edges, { soft, paper }) {
    const { context } = this, { x, y, k } = this.view, size = 12 * this.large, font = `400 ${size}px ${FONT}`;
    this.captions = [];
    Object.assign(context, { font, textAlign: "center", fillStyle: soft, strokeStyle: paper, lineWidth: 4, globalAlpha: 1 });
    const drawn = this.current().edges.map(({ a, b }) => [x + a.x * k, y + a.y * k, x + b.x * k, y + b.y * k]);
    for (const { a, b, text, cites } of edges) {
      const wide = Math.abs(b.x - a.x) * k, level = Math.abs(b.y - a.y) * k < wide / 8, mx = x + ((a.x + b.x) / 2) * k, my = y + ((a.y + b.y) / 2) * k, rows = [];
      const left = (b.x - a.x) * (b.y - a.y) < 0 === a.y + b.y < 0, room = level ? wide - 70 * this.large : Math.min((left ? mx : this.width - mx) - 20, 230 * this.large);
      if (room < 120 * this.large) continue;
      for (const word of visible(views.unveiled(views.veiled(text, cites))).match(WORDS) || []) {
        if (rows.length && this.wide(rows.at(-1) + word) <= room) rows.push(rows.pop() + word); else rows.push(word.trim());
      }
      if (rows.length > 4) rows.splice(3, rows.length, rows[3] + " …");
      const half = Math.max(...rows.map((row) => this.wide(row))) / 2 + 3, tall = (rows.length - 1) * size * 1.35;
      const places = level ? [[mx, my - 10 - tall], [mx, my + 10 + size]] : [[left ? mx - half - 8 : mx + half + 8, my - (a.y + b.y < 0 ? tall : -size)]];
      const free = ([middle, base]) => {
        const box = [middle - half, base - size, middle + half, base + tall + 4];
        return !drawn.some((line) => crosses(line, box)) && ![...this.boxes, ...this.captions].some((other) => meet(other.box, box)) && box;
      };
      const place = places.find(free), box = place && free(place);
      if (!box) continue;
      const [middle, base] = place;
      context.direction = TURNED.test(text) ? "rtl" : "ltr";
      rows.forEach((row, at) => { context.strokeText(row, middle, base + at * size * 1.35); context.fillText(row, middle, base + at * size * 1.35); });
      this.captions.push({ box, rows });
    }
  }
}

// The largest topics have a colour each: that of the map, where no larger one of the graph has it already.
function colours(topics) {
  const made = new Map(topics.map((one) => [one.n, { title: one.title }])), free = Array.from({ length: HUES }, (_, at) => at);
  for (const { n, colour } of topics.slice(0, HUES)) made.get(n).tone = free.splice(Math.max(0, free.indexOf(colour % TONES)), 1)[0];
  return made;
}

// Marks the edges that each node has for its strongest, by weight in proportion to the relationships of both ends:
// else the strongest of every node leads to the same hubs. `links` counts those of a node.
function backbone(many, edges) {
  const of = new Map(many.map((one) => [one, []]));
  for (const edge of edges) { edge.strong = false; edge.near = edge.weight / Math.sqrt((edge.a.degree || 1) * (edge.b.degree || 1)); of.get(edge.a).push(edge); of.get(edge.b).push(edge); }
  for (const [one, its] of of) {
    if (its.length > STRONGEST) its.sort((a, b) => b.near - a.near || a.a.n - b.a.n || a.b.n - b.b.n);
    for (const edge of its.slice(0, STRONGEST)) edge.strong = true;
  }
  for (const [one, its] of of) one.links = its.filter((edge) => edge.strong).length || 1;
}

// Does a line cross a box? (Liang and Barsky 1984)
function crosses([x1, y1, x2, y2], [left, top, right, bottom]) {
  let [from, to] = [0, 1];
  for (const [step, room] of [[x1 - x2, x1 - left], [x2 - x1, right - x1], [y1 - y2, y1 - top], [y2 - y1, bottom - y1]]) {
    if (step === 0) { if (room < 0) return false; continue; }
    const at = room / step;
    if (step < 0) from = Math.max(from, at); else to = Math.min(to, at);
    if (from > to) return false;
  }
  return true;
}

const important = (a, b) => b.degree - a.degree || a.n - b.n;
const distance = (one, px, py, { x, y, k }) => Math.hypot(px - x - one.x * k, py - y - one.y * k);
const earliest = (cites) => (cites || []).map((one) => one.date).filter(Boolean).sort()[0] || "";

// Nodes of one cell and of its neighbours push each other, each pair once. In arrays, since there are 300,000 pairs
// for 5,000 nodes.
function repel(many, heat) {
  if (!many.length) return; // filters may leave no node, and so no grid
  const count = many.length, [x, y, ax, ay] = [0, 0, 0, 0].map(() => new Float64Array(count)), cell = new Int32Array(count);
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  many.forEach((one, at) => { x[at] = one.x; y[at] = one.y; left = Math.min(left, one.x); right = Math.max(right, one.x); top = Math.min(top, one.y); bottom = Math.max(bottom, one.y); });
  const size = Math.max(REACH, (right - left) / CELLS, (bottom - top) / CELLS), across = Math.floor((right - left) / size) + 1, down = Math.floor((bottom - top) / size) + 1;
  const start = new Int32Array(across * down + 1), inside = new Int32Array(count);
  for (let at = 0; at < count; at++) { cell[at] = Math.floor((y[at] - top) / size) * across + Math.floor((x[at] - left) / size); start[cell[at] + 1]++; }
  for (let at = 0; at < across * down; at++) start[at + 1] += start[at];
  const next = start.slice();
  for (let at = 0; at < count; at++) inside[next[cell[at]]++] = at;
  const against = (one, from, to) => {
    for (let at = from; at < to; at++) {
      const other = inside[at];
      let dx = x[other] - x[one], dy = y[other] - y[one], square = dx * dx + dy * dy;
      if (square > REACH * REACH) continue;
      if (square < 1) { dx = 1 + (many[one].n % 7); dy = 1 + (many[other].n % 5); square = dx * dx + dy * dy; }
      const force = Math.min((0.55 * LENGTH * LENGTH) / square, 0.5) * heat;
      ax[one] -= dx * force; ay[one] -= dy * force; ax[other] += dx * force; ay[other] += dy * force;
    }
  };
  for (let here = 0; here < across * down; here++) {
    const column = here % across, below = here + across;
    for (let at = start[here]; at < start[here + 1]; at++) {
      against(inside[at], at + 1, start[here + 1 + (column + 1 < across)]); // the rest of its cell and, behind it, the cell to the right
      if (below < across * down) against(inside[at], start[below - (column > 0)], start[below + 1 + (column + 1 < across)]); // the three below
    }
  }
  many.forEach((one, at) => { one.vx += ax[at]; one.vy += ay[at]; });
}
