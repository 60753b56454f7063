// The page: addresses, the search box, and which view stands where.

import { byId, element, icon, link, redrawn, say, short, visible } from "./dom.js";
import { Host } from "./bridge.js";
import { Map2D } from "./map.js";
import { Refused, Transport } from "./transport.js";
import { Server } from "./server.js";
import { Tree } from "./tree.js";
import * as graph from "./graph.js";
import * as timeline from "./timeline.js";
import * as views from "./views.js";
import * as ask from "./ask.js";
import * as library from "./library.js";
import * as source from "./source.js";

// Three sections by what a person does. Each leads to its first view; the others stand beside it.
const SECTIONS = [["ask", "Ask", { history: "" }], ["graph", "Graph", { graph: "Entities", map: "Topics", links: "Links", timeline: "Timeline" }], ["library", "Library", { library: "Documents", changes: "Changes", drift: "DRIFT sessions" }]];
const WITHIN = { search: "history", community: "map", entity: "graph", path: "graph", document: "library", passage: "library" }; // of a view that stands in no section by itself
const OF_SERVER = ["library", "history"], ROOMY = ["search", "passage", "library", "history", "drift"]; // views with no picture beside them
let shownTime = null;
let transport, server, map, tree, net, recent = null, turn = 0, newer = false;

const go = (view) => { location.hash = "#" + view; };
const open = (name) => server.there || !OF_SERVER.includes(name) && (transport.kind !== "file" || transport.embedded.views[name + "?"]);

function navigation(shown) {
  byId("views").replaceChildren(); byId("within").replaceChildren();
  for (const [image, title, views] of SECTIONS) {
    const names = Object.keys(views).filter(open), here = names.includes(shown);
    if (!names.length) continue;
    const made = element("a", { href: "#" + names[0], "aria-current": here ? "true" : null }, icon(image), title);
    if (names[0] === "history") made.addEventListener("click", (event) => { if (!event.ctrlKey && !event.metaKey) { byId("query").value = ""; byId("query").focus(); } });
    byId("views").append(made);
    if (here && names.length > 1) byId("within").append(...names.map((name) => element("a", { href: "#" + name, "aria-current": name === shown ? "page" : null }, views[name])));
  }
}

// Parts are decoded one by one: a slash inside of a question is no separator.
function parts() {
  const [view, ...rest] = (location.hash.slice(1) || "map").split("/");
  try { return [view, ...rest.map(decodeURIComponent)]; } catch { return [view, ...rest]; }
}

async function route() {
  const mine = ++turn, [asked, ...rest] = parts();
  ask.leave();
  let view = asked;
  say("Loading…");
  try {
    if (server.there && (await server.state()).empty) { view = "library"; history.replaceState(null, "", "#library"); }
  } catch (error) { if (mine === turn) stopped(error); return; }
  if (mine !== turn) return;
  if (view !== "document") room(ROOMY.includes(view));
  if (SECTIONS.some(([, , views]) => Object.hasOwn(views, view)) && document.activeElement !== byId("query")) byId("query").value = "";
  navigation(WITHIN[view] || (Object.hasOwn(VIEWS, view) ? view : "map"));
  try {
    if (!map.started && !server.known?.empty) { await map.start(); map.started = true; }
    const shown = await (Object.hasOwn(VIEWS, view) ? VIEWS[view] : VIEWS.map)(rest);
    if (mine !== turn) return; // another address was opened meanwhile
    redrawn(byId("side"), () => byId("side").replaceChildren(...shown.flat(Infinity).filter((one) => one !== "")));
    byId("side").scrollTop = 0;
    document.title = visible(byId("side").querySelector("h1")?.textContent || "graphrag-mcp") + " · explorer";
    const mark = byId("side").querySelector(".passage mark");
    if (mark && mark.getBoundingClientRect().bottom > byId("side").getBoundingClientRect().bottom) mark.scrollIntoView({ block: "center" });
    transport.host?.tell([view, ...rest]);
    say(newer ? "The index has changed. This is its newest state." : ""); newer = false;
  } catch (error) {
    if (mine === turn) stopped(error);
  }
}

function stopped(error) {
  byId("side").replaceChildren(...(error instanceof Refused ? refused(error.message) : failed(error)));
  say(error instanceof Refused ? "No access." : error.message, true);
}

const failed = (error) => [element("h1", {}, "This cannot be shown"), element("p", {}, visible(error.message)), element("p", {}, link("map", "Back to the map"))];

function refused(why) {
  if (why === "used") return [element("h1", {}, "This address is no longer valid"), element("p", {}, "It opens the page once, and its server may have ended since. Run graphrag-mcp explore again.")];
  const field = element("input", { type: "password", "aria-label": "Token", autocomplete: "off" });
  const form = element("form", { onsubmit: (event) => { event.preventDefault(); transport.keep(field.value.trim()); route(); } }, field, element("button", { type: "submit" }, "Open"));
  return [element("h1", {}, "This server asks for a token"), element("p", {}, "It is the one that MCP clients of this server use."), form];
}

const room = (wide) => { document.body.dataset.room = wide ? "wide" : ""; };
const onMap = () => { byId("timeline").hidden = true; net.hide(); map.draw(); };
const onGraph = () => { byId("timeline").hidden = true; };
const calm = () => { map.light(new Map()); if (map.borrowed) map.paintBy("topic"); };

// The data of a view, unless another address was opened meanwhile: what comes late draws nothing.
async function load(view, given) {
  const mine = turn, found = await transport.load(view, given);
  if (mine !== turn) throw new Error("Another address was opened.");
  return found;
}

const VIEWS = {
  async map() {
    onMap(); calm();
    const found = await load("overview");
    corpora(found);
    map.show(0); map.whole();
    return [...views.overview(found), ...(map.roots().length ? [element("h2", {}, "All topics"), tree.render()] : [])];
  },
  async community([n]) {
    onMap(); calm();
    const found = await load("community", { id: n });
    for (const one of [...found.parents, found]) await map.open_(one.n);
    map.show(found.n);
    return views.community(found);
  },
  async entity([n]) {
    const found = await load("entity", { id: n });
    onGraph(); net.entity(found);
    const other = recent && recent.n !== found.n && transport.kind !== "file" ? recent : null;
    recent = { n: found.n, title: found.title };
    return views.entity(found, [other ? element("p", {}, link(`path/${other.n}/${found.n}`, `How is this connected with ${short(other.title, 50)}?`)) : "", transport.kind === "file" ? "" : connecting(found)]);
  },
  async passage([id, span]) {
    onMap();
    const [unit, part] = String(id).split("."), found = await load("passage", { id: unit });
    map.light(new Map(found.communities.map((one) => [one.n, 1])));
    return server.there ? source.passage(server, await server.state(), found, Number(part || 0), span) : views.passage(found, Number(part || 0), span, (id) => transport.holds("passage", { id }));
  },
  async document([n]) {
    const found = await load("document", { id: n });
    const alone = !found.links.in.length && !found.links.out.some((one) => one.to);
    room(alone); // nothing is drawn for a document without links
    if (!alone) { onGraph(); net.document(found); }
    const [only] = found.units.length === 1 ? found.units : [];
    let text = "";
    if (only) try { text = views.passage(await transport.load("passage", { id: only.id }), 0)[3]; } catch { /* a file that does not hold it: its first words are shown */ }
    const { heading, main, beside } = views.document_(found, text), act = source.actions(server, await server.state(), found.n);
    if (!alone) return [heading, act, ...(text ? [...main, ...beside] : [...beside, ...main])];
    return [element("div", { class: "columns" }, element("div", {}, heading, act, ...main), element("div", { class: "beside" }, ...beside))];
  },
  async search(rest) {
    onMap();
    const { query } = ask.read(rest);
    byId("query").value = query;
    const { shown, found } = server.there ? await ask.view(server, load, rest, go) : await plain(query);
    map.light(new Map([...found.lit, ...found.entities.map((one) => ["e" + one.n, 1])])); map.show(0); map.whole();
    return shown;
  },
  async history() { return ask.history(await load("overview")); },
  async library() {
    onMap();
    const state = await server.state(), page = { server, transport, state, again };
    if (state.empty) return library.start(page);
    transport.kept.delete("library?"); // files on disk change without a new generation
    page.data = await load("library");
    return library.view(page);
  },
  async path([from, to]) { const found = await load("path", { id: from, to }); onGraph(); net.path(found); return views.path(found); },
  async drift([id]) { return views.drift(await load("drift", { id: id || "" })); },
  async timeline([period]) {
    net.hide();
    const found = await load("timeline");
    room(!found.periods.length);
    shownTime = found; timeline.draw(found);
    return views.timeline(found, period);
  },
  async graph() {
    const found = await load("graph");
    onGraph(); net.whole_(found, "entity");
    return views.graph_(found);
  },
  async links() {
    const found = await load("links");
    room(!found.nodes.length);
    if (found.nodes.length) { onGraph(); net.whole_(found, "document"); }
    return views.links(found);
  },
  async changes([since]) {
    onMap();
    const found = await load("changes", { since: since || "" });
    room(found.since === null); // then there is nothing to draw
    calm();
    map.changed = new Map(found.communities.added.map((one) => [one.n, 1])); if (found.since !== null) map.paintBy("changes");
    map.whole();
    return views.changes(found);
  },
};

async function plain(query) {
  const found = await load("search", { query });
  return { found, shown: views.search(found, transport.kind !== "file") };
}

// The view that is open is drawn again, where the person has not left it.
async function again() { if (parts()[0] === "library") await route(); }

// Asks for a second entity, and shows how the two are connected.
function connecting(found) {
  const field = element("input", { type: "search", "aria-label": "Another entity", placeholder: "Connected with … (an entity)", maxlength: 300 });
  return element("form", { onsubmit: async (event) => {
    event.preventDefault();
    const name = field.value.trim(), other = name && (await transport.load("search", { query: name })).entities.find((one) => one.n !== found.n);
    if (other) go(`path/${found.n}/${other.n}`); else say(name ? "No other entity like that is in this corpus." : "Type the name of an entity first.", true);
  } }, field, element("button", { type: "submit" }, "Connect"));
}

function corpora(found) {
  if (byId("corpora").childElementCount || transport.kind !== "server" || found.corpora.length < 2) return;
  const chosen = element("select", { "aria-label": "Corpus", onchange: (event) => { const to = new URL(location.href); to.hash = ""; to.searchParams.set("corpus", event.target.value); location.assign(to); } },
    found.corpora.map((name) => element("option", { value: name, selected: name === found.corpus }, short(name, 40))));
  byId("corpora").append(chosen);
}

function searched(event) {
  event.preventDefault();
  const text = byId("query").value.trim(), id = /^([etcd])(\d{1,12})(\.\d{1,6})?$/i.exec(text);
  if (!text) go("map");
  else if (id) go({ e: "entity/", c: "community/", d: "document/", t: "passage/t" }[id[1].toLowerCase()] + id[2] + (id[1] === "t" && id[3] ? id[3] : ""));
  else go("search/" + encodeURIComponent(text));
}

// In a frame made of text (srcdoc) the address of a link is the host's: only the fragment is ours to change.
function followed(event) {
  const to = event.target.closest?.("a")?.getAttribute("href");
  if (!to?.startsWith("#") || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault(); location.hash = to;
}

async function start() {
  const embedded = JSON.parse(byId("data").textContent || "{}"), host = embedded.app ? await Host.connect() : null;
  transport = new Transport(embedded, host); server = new Server(transport);
  map = new Map2D(transport, go); tree = new Tree(map, go); net = new graph.Graph(transport, go); net.palette = () => map.palette?.keys(); // a frequent type has the same colour in every view
  new ResizeObserver(() => { if (!byId("timeline").hidden && shownTime) timeline.draw(shownTime); }).observe(byId("picture"));
  transport.onnewer = async () => { ask.forget(); map.clear(); await map.start(); newer = true; };
  net.onpaint = async () => { if (parts()[0] === "graph") { const shown = views.graph_(await transport.load("graph")); redrawn(byId("side"), () => byId("side").replaceChildren(...shown)); } };
  views.drawn.tone = (n) => net.shown && net.nodes.has(n) ? net.tone(net.group(net.nodes.get(n))) : "";
  byId("home").append(icon("graph")); byId("search").querySelector("button").append(icon("send"));
  window.graphragExplorer = { map, transport, graph: net };
  byId("search").addEventListener("submit", searched);
  window.addEventListener("hashchange", route);
  document.addEventListener("click", followed);
  for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault()); // else a file that misses its place opens
  try { await transport.start(); } catch (error) { byId("side").replaceChildren(...refused(error.message)); say("No access.", true); return; }
  if (host) {
    const follow = (result) => {
      const shown = result?._meta?.["graphrag/explorer"] || {}, asked = host.input.query || host.input.start;
      host.corpus = shown.corpus || host.corpus;
      const view = shown.view || (asked ? "search/" + encodeURIComponent(asked) : "map");
      if ("#" + view !== location.hash) go(view); else route();
    };
    host.onresult = follow;
    if (host.result) { follow(host.result); return; }
  }
  await route();
}

start();
