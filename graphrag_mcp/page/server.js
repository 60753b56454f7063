// The server behind the page, beside the data of its views: the tools as JSON, uploads, originals.

import { Refused } from "./transport.js";

export class Server {
  constructor(transport) { this.transport = transport; this.known = null; }

  // Only a page that its own server gave can do more than read.
  get there() { return this.transport.kind === "server"; }
  get writes() { return Boolean(this.known?.writes); }

  async state(anew = false) {
    if (!this.there) return { tools: [], roots: [], corpora: [] };
    if (anew || !this.known) this.known = await this.get("state");
    return this.known;
  }

  address(path, parameters = {}) {
    const address = new URL(path, location.href), named = new URLSearchParams(location.search).get("corpus");
    address.hash = ""; address.search = new URLSearchParams({ ...(named ? { corpus: named } : {}), ...parameters });
    return address;
  }

  async send(address, options) {
    const { token } = this.transport, headers = { ...options.headers, ...(token ? { Authorization: "Bearer " + token } : {}) };
    let response;
    try { response = await fetch(address, { ...options, headers, cache: "no-store", credentials: "omit" }); }
    catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("The server does not answer. It may have been stopped: run the command again.");
    }
    if (response.status === 401) throw new Refused(this.transport.embedded.exchange ? "used" : "token");
    return response;
  }

  async json(response) {
    const found = await response.json().catch(() => ({ error: "The server sent no JSON." }));
    if (!response.ok || found.error && !found.status) throw Object.assign(new Error(found.error || "The server refused that."), { exists: found.exists });
    return found;
  }

  async get(path, parameters) { return this.json(await this.send(this.address(path, parameters), {})); }

  async post(path, body) {
    const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    return this.json(await this.send(this.address(path), options));
  }

  async upload(name, file, replace) {
    const address = this.address("upload", { name, ...(replace ? { replace: "1" } : {}) });
    return this.json(await this.send(address, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file }));
  }

  // A tool with its arguments; `told` hears its progress. The corpus is that of the page.
  async tool(name, given, told = () => {}, signal = null) {
    const options = { method: "POST", headers: { "Content-Type": "application/json", Accept: "text/event-stream" }, signal };
    const address = new URL("../api/" + name, location.href);
    address.hash = address.search = "";
    const body = JSON.stringify({ ...(this.known?.corpus ? { corpus: this.known.corpus } : {}), ...given });
    const response = await this.send(address, { ...options, body });
    if (!(response.headers.get("content-type") || "").startsWith("text/event-stream")) return this.json(response);
    const reader = response.body.getReader(), decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      text += decoder.decode(value, { stream: !done });
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const event = /^event: (\w+)\ndata: (.*)$/s.exec(text.slice(0, end));
        text = text.slice(end + 2);
        if (!event) continue;
        const data = JSON.parse(event[2]);
        if (event[1] === "progress") told(data);
        else if (event[1] === "error") throw new Error(data.error);
        else return data;
      }
      if (done) throw new Error("The server ended the answer.");
    }
  }
}
