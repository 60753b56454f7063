// The page: addresses, the search box, and which view stands where.

import { byId, element, link, say, short, visible } from "./dom.js";
import { Host } from "./bridge.js";
import { Map2D } from "./map.js";
import { Transport } from "./transport.js";
import { Tree } from "./tree.js";
import * as graph from "./graph.js";
import * as views from "./views.js";

const TABS = [["map", "map"], ["timeline", "timeline"], ["changes", "what changed"], ["drift", "DRIFT"]];
let transport, map, tree, recent = null, turn = 0;

const go = (view) => { location.hash = "#" + view; };

async function route() {
  const mine = ++turn, [view, ...rest] = decodeURIComponent(location.hash.slice(1) || "map").split("/");
  byId("views").replaceChildren(...TABS.map(([name, text]) => { const made = link(name, text); if (name === view) made.setAttribute("aria-current", "page"); return made; }));
  say("…");
  try {
    const shown = await (VIEWS[view] || VIEWS.map)(rest);
    if (mine !== turn) return; // another address was opened meanwhile
    byId("side").replaceChildren(...shown.filter((one) => one !== ""));
    byId("side").scrollTop = 0;
    document.title = visible(byId("side").querySelector("h1")?.textContent || "graphrag-mcp") + " · explorer";
    byId("side").querySelector("mark")?.scrollIntoView({ block: "center" });
    say("");
  } catch (error) {
    if (mine !== turn) return;
    byId("side").replaceChildren(element("h1", {}, "This cannot be shown"), element("p", {}, visible(error.message)), element("p", {}, link("map", "Back to the map")));
    say(error.message, true);
  }
}

const onMap = () => graph.hide();

const VIEWS = {
  async map() {
    onMap();
    const found = await transport.load("overview");
    map.show(0); map.whole();
    return [...views.overview(found), element("h2", {}, "All topics"), tree.render()];
  },
  async community([n]) {
    onMap();
    const found = await transport.load("community", { id: n });
    for (const one of [...found.parents, found]) if (!map.inside.get(one.n) && !map.asked.has(one.n)) await map.fetch(one.n);
    map.show(found.n);
    return views.community(found);
  },
  async entity([n]) {
    const found = await transport.load("entity", { id: n });
    graph.neighbourhood(found);
    const other = recent && recent.n !== found.n ? recent : null;
    recent = { n: found.n, title: found.title };
    return views.entity(found, other ? link(`path/${other.n}/${found.n}`, `How is this connected with ${short(other.title, 50)}?`) : null);
  },
  async passage([id, span]) { onMap(); return views.passage(await transport.load("passage", { id, span: span || "" })); },
  async document([n]) { onMap(); return views.document_(await transport.load("document", { id: n })); },
  async search(rest) {
    onMap();
    const query = rest.join("/");
    byId("query").value = query;
    const found = await transport.load("search", { query });
    map.light(new Map([...found.communities.map((one) => [one.n, one.score]), ...found.entities.map((one) => ["e" + one.n, 1])]));
    return views.search(found);
  },
  async path([from, to]) { const found = await transport.load("path", { id: from, to }); graph.ways(found); return views.path(found); },
  async drift([id]) { onMap(); return views.drift(await transport.load("drift", { id: id || "" })); },
  async timeline() { onMap(); return views.timeline(await transport.load("timeline")); },
  async changes([since]) {
    onMap();
    const found = await transport.load("changes", { since: since || "" });
    map.changed = new Map(found.communities.added.map((one) => [one.n, 1])); map.colour = "changes"; map.choice.value = "changes"; map.draw();
    return views.changes(found);
  },
};

function searched(event) {
  event.preventDefault();
  const text = byId("query").value.trim(), id = /^([etcd])(\d+)(\.\d+)?$/i.exec(text);
  if (!text) { map.light(new Map()); go("map"); }
  else if (id) go({ e: "entity/", c: "community/", d: "document/", t: "passage/t" }[id[1].toLowerCase()] + id[2] + (id[3] || ""));
  else go("search/" + encodeURIComponent(text));
}

async function start() {
  const embedded = JSON.parse(byId("data").textContent || "{}"), host = await Host.connect();
  transport = new Transport(embedded, host);
  map = new Map2D(transport, go); tree = new Tree(map, go);
  window.graphragExplorer = { map, transport };
  byId("search").addEventListener("submit", searched);
  window.addEventListener("hashchange", route);
  if (host) {
    const follow = (result) => {
      const shown = result?.structuredContent?.explorer || result?._meta?.["graphrag/explorer"] || {};
      host.corpus = shown.corpus || host.corpus;
      if (shown.view) go(shown.view); else route();
    };
    host.onresult = follow;
    if (host.result) { follow(host.result); }
  }
  try { await map.start(); } catch (error) { say(error.message, true); }
  await route();
}

start();
