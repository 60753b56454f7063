// The host of an MCP App: JSON-RPC over postMessage (SEP-1865, revision 2026-01-26).

export class Host {
  static async connect(seconds = 20) { // a busy machine takes its time
    if (window.parent === window) return null;
    const host = new Host();
    try {
      const given = await host.request("ui/initialize", {
        protocolVersion: "2026-01-26", appInfo: { name: "graphrag-mcp explorer", version: "1" },
        appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
      }, seconds);
      host.context = given.hostContext || {}; host.offers = given.hostCapabilities || {};
      host.notify("ui/notifications/initialized", {});
      host.theme(host.context);
      new ResizeObserver(() => host.size()).observe(document.documentElement);
      return host;
    } catch { host.close(); return null; }
  }

  constructor() {
    this.waiting = new Map(); this.last = 0; this.result = null; this.input = {}; this.onresult = null;
    this.listener = (event) => { if (event.source === window.parent) this.take(event.data); };
    window.addEventListener("message", this.listener);
  }

  close() { window.removeEventListener("message", this.listener); }
  send(message) { window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*"); }
  notify(method, params) { this.send({ method, params }); }

  request(method, params, seconds = 50) {
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => { this.waiting.delete(id); reject(new Error("The host did not answer.")); }, seconds * 1000);
      this.waiting.set(id, { resolve, reject, timer });
      this.send({ id, method, params });
    });
  }

  take(message) {
    if (!message || message.jsonrpc !== "2.0") return;
    if (message.id !== undefined && !message.method) {
      const one = this.waiting.get(message.id);
      if (!one) return;
      this.waiting.delete(message.id); clearTimeout(one.timer);
      message.error ? one.reject(new Error(String(message.error.message))) : one.resolve(message.result || {});
    } else if (message.method === "ui/notifications/tool-result") {
      this.result = message.params; this.onresult?.(message.params);
    } else if (message.method === "ui/notifications/tool-input") {
      this.input = message.params?.arguments || {};
    } else if (message.method === "ui/notifications/host-context-changed") {
      this.theme(message.params || {});
    } else if (message.method === "ui/resource-teardown") {
      this.send({ id: message.id, result: {} });
    } else if (message.id !== undefined) {
      this.send({ id: message.id, error: { code: -32601, message: "unknown method" } });
    }
  }

  theme(context) { if (context.theme) document.documentElement.dataset.theme = context.theme === "dark" ? "dark" : "light"; }
  // What the person looks at, for the model: by ids alone, since names are words of documents.
  tell([view, id, other]) {
    const letter = { entity: "e", community: "c", document: "d", passage: "", path: "e", drift: "" }[view];
    if (!this.offers.updateModelContext || letter === undefined || !/^[\w.-]{1,80}$/.test(id || "")) return;
    const ids = letter + id + (view === "path" && /^\d{1,12}$/.test(other || "") ? ` and e${other}` : "");
    this.request("ui/update-model-context", { content: [{ type: "text", text: `On the explorer page the person is looking at ${ids}.` }] }, 10).catch(() => {});
  }

  size() { this.notify("ui/notifications/size-changed", { width: document.documentElement.scrollWidth, height: 620 }); }

  async data(view, parameters) {
    const values = Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, String(value)]));
    const corpus = this.corpus ? { corpus: this.corpus } : {};
    const given = await this.request("tools/call", { name: "explore_data", arguments: { view, ...values, ...corpus } });
    if (given.isError) throw new Error(given.content?.[0]?.text || "The tool failed.");
    this.corpus ||= given.structuredContent.corpus;
    return given.structuredContent;
  }
}
