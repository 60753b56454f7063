// Where data comes from: the page's own server, the data inside an exported file, or an MCP host.

export class Refused extends Error {}

export class Transport {
  constructor(embedded, host) {
    this.embedded = embedded; this.host = host; this.kept = new Map(); this.onnewer = null;
    const address = new URL(location.href), token = /(?:^|[#&])token=([\w.~+/=-]+)/.exec(address.hash);
    this.given = token ? token[1] : "";
    this.token = this.stored();
    if (token) history.replaceState(null, "", address.pathname + address.search);
  }

  get kind() { return this.host ? "app" : this.embedded.views ? "file" : "server"; }

  stored() { try { return localStorage.getItem("graphrag-token") || ""; } catch { return ""; } }

  keep(token) {
    this.token = token;
    try { localStorage.setItem("graphrag-token", token); } catch { /* storage is off: the token lasts as long as the page */ }
  }

  // A token of the address is used once, where the server says so: it is exchanged for that of the session.
  async start() {
    if (!this.given || this.kind !== "server") return;
    if (!this.embedded.exchange) { this.keep(this.given); return; }
    const response = await fetch(new URL("session", location.href), { method: "POST", headers: { Authorization: "Bearer " + this.given }, credentials: "omit" });
    if (response.ok) this.keep((await response.json()).token);
    else if (!this.token) throw new Refused("used");
  }

  async load(view, parameters = {}) {
    const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined).map(([name, value]) => [name, String(value)]);
    const key = view + "?" + new URLSearchParams(given);
    if (this.kept.has(key)) return this.kept.get(key);
    const found = await this.ask(view, parameters, key);
    if (found.error) throw new Error(found.error);
    const newer = this.generation && found.generation !== this.generation;
    if (newer) this.kept.clear();
    this.generation = found.generation;
    if (this.kept.size > 200) this.kept.delete(this.kept.keys().next().value);
    this.kept.set(key, found);
    if (newer) await this.onnewer?.();
    return found;
  }

  async ask(view, parameters, key) {
    if (this.host) return this.host.data(view, parameters);
    if (this.embedded.views) return view === "search" ? this.search(parameters.query) : this.inside(key);
    const address = new URL("data/" + key.replace("?", location.search ? location.search + "&" : "?"), location.href);
    address.hash = "";
    const headers = this.token ? { Authorization: "Bearer " + this.token } : {};
    let response;
    try { response = await fetch(address, { headers, cache: "no-store", credentials: "omit" }); }
    catch { throw new Error("The server does not answer. It may have been stopped: run the command again."); }
    if (response.status === 401) throw new Refused(this.embedded.exchange ? "used" : "token");
    const text = await response.text();
    try { return JSON.parse(text); } catch { throw new Error(text.slice(0, 300) || "The server sent nothing."); }
  }

  holds(view, parameters) { return !this.embedded.views || Object.hasOwn(this.embedded.views, view + "?" + new URLSearchParams(parameters)); }

  inside(key) {
    const found = this.embedded.views[key];
    if (found) return found;
    throw new Error("This file does not hold that. It has the largest topics and the most connected entities; the others are in the index, which graphrag-mcp explore shows.");
  }

  // In a file there is no index to search with: names, titles and sentences that hold all the words.
  search(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean), holds = (text) => { const low = String(text).toLowerCase(); return words.every((word) => low.includes(word)); };
    const found = { query, hint: "", entities: [], near: [], communities: [], passages: [], lit: [], generation: this.embedded.generation };
    for (const [n, title, type] of this.embedded.names || []) if (holds(title)) found.entities.push({ n, title, type });
    for (const [key, data] of Object.entries(this.embedded.views)) {
      if (key.startsWith("community?") && holds(data.title)) { found.communities.push(data); found.lit.push([data.n, 1]); }
      if (!key.startsWith("passage?") || !holds(data.text)) continue;
      const points = [...data.text], at = [...data.text.slice(0, Math.max(0, data.text.toLowerCase().indexOf(words[0])))].length;
      const [start, end] = [Math.max(0, at - 60), Math.min(points.length, at + 220)];
      found.passages.push({ text: points.slice(start, end).join(""), cites: [{ ...data.document, id: data.id, start: at, end: at + [...words[0]].length, line: data.line, place: data.place }] });
      for (const one of data.communities) found.lit.push([one.n, 1]);
    }
    found.entities = found.entities.slice(0, 12); found.communities = found.communities.slice(0, 6); found.passages = found.passages.slice(0, 20);
    return found;
  }
}
