// A source: the text with what is cited marked, between the texts before and after it, and its original.

import { element, say, visible } from "./dom.js";
import * as views from "./views.js";

// The original in a tab of its own: a PDF at the first page of the place ("p. 3", "pp. 3-4").
export async function open(server, n, place = "") {
  const found = await server.get("original", { id: "d" + n }), page = /\bpp?\. (\d{1,6})/.exec(place);
  const address = new URL(found.address, location.href);
  if (address.origin !== location.origin) throw new Error("The server gave another address.");
  address.hash = page ? "page=" + page[1] : "";
  const made = element("a", { href: address.href, target: "_blank", rel: "noopener noreferrer" });
  document.body.append(made); made.click(); made.remove();
}

export function actions(server, state, n, place = "") {
  if (!server.there) return "";
  const act = (work) => async (event) => { event.target.disabled = true; try { say(await work() || ""); } catch (error) { say(error.message, true); } finally { event.target.disabled = false; } };
  const button = (text, work) => element("button", { type: "button", onclick: act(work) }, text);
  return element("p", { class: "actions" }, button("Open the original", () => open(server, n, place)),
    state.local ? button("Show its folder", async () => `Opened ${(await server.post("folder", { id: "d" + n })).folder}`) : "");
}

export function passage(server, state, data, part, span) {
  const [heading, where, steps, text, ...rest] = views.passage(data, part, span);
  const around = (name, label) => data.around?.[name]?.text ? element("div", { class: "around " + name, dir: "auto", role: "note", tabindex: "0", "aria-label": label }, visible(data.around[name].text)) : "";
  const main = element("div", {}, heading, where, actions(server, state, data.document.n, views.placeOf(data, part, span)), steps, around("before", "Text before"), text, around("after", "Text after"));
  return [element("div", { class: "columns" }, main, element("div", { class: "beside" }, rest))];
}
