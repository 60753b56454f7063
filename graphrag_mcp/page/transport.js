// Where data comes from: the page's own server, the data inside an exported file, or an MCP host.

export class Transport {
  constructor(embedded, host) {
    this.embedded = embedded; this.host = host; this.kept = new Map();
    const address = new URL(location.href);
    const token = /(?:^|[#&])token=([\w-]+)/.exec(address.hash);
    if (token) {
      this.token = token[1];
      try { sessionStorage.setItem("graphrag-token", this.token); } catch { /* storage is off */ }
      history.replaceState(null, "", address.pathname + address.search);
    } else {
      try { this.token = sessionStorage.getItem("graphrag-token") || ""; } catch { this.token = ""; }
    }
  }

  get kind() { return this.host ? "app" : this.embedded.views ? "file" : "server"; }

  async load(view, parameters = {}) {
    const key = view + "?" + new URLSearchParams(Object.entries(parameters).filter(([, v]) => v !== "" && v !== undefined));
    if (this.kept.has(key)) return this.kept.get(key);
    const found = await this.ask(view, parameters, key);
    if (found.error) throw new Error(found.error);
    if (found.generation && this.generation && found.generation !== this.generation) this.kept.clear();
    this.generation = found.generation || this.generation;
    if (this.kept.size > 200) this.kept.delete(this.kept.keys().next().value);
    this.kept.set(key, found);
    return found;
  }

  async ask(view, parameters, key) {
    if (this.host) return this.host.data(view, parameters);
    if (this.embedded.views) {
      const found = this.embedded.views[key];
      if (!found) throw new Error("This file does not hold that. Open the corpus with graphrag-mcp explore to see it.");
      return found;
    }
    const address = new URL("data/" + key.replace("?", location.search ? location.search + "&" : "?"), location.href);
    address.hash = "";
    const headers = this.token ? { Authorization: "Bearer " + this.token } : {};
    let response;
    try { response = await fetch(address, { headers, cache: "no-store", credentials: "omit" }); }
    catch { throw new Error("The server does not answer. It may have been stopped."); }
    if (response.status === 401) throw new Error("This address is no longer valid. Run graphrag-mcp explore again.");
    const text = await response.text();
    try { return JSON.parse(text); } catch { throw new Error(text.slice(0, 300) || "The server sent nothing."); }
  }
}
