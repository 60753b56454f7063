// What stands beside the picture: one function per view, from the server's data to elements.

import { element, link, number, short, visible } from "./dom.js";

const heading = (text) => element("h2", {}, text);
const list = (items, plain = true) => element("ul", plain ? { class: "plain" } : {}, items.map((one) => element("li", {}, one)));
const some = (title, items) => (items.length ? [heading(title), list(items)] : []);
const left = (count, what) => (count > 0 ? element("p", { class: "note" }, `and ${number(count)} more ${what}`) : "");

export const place = (cite) => "passage/" + cite.id + (cite.end ? `/${cite.start}-${cite.end}` : "");

function cited(cite) {
  const lines = cite.lines ? ":" + cite.lines : "";
  return element("span", { class: "where" }, link(place(cite), `[${cite.id}] ${short(cite.title, 60)}`), element("span", { dir: "auto" }, ` ${visible(short(cite.uri || "", 60))}${lines}`),
    cite.date ? ` · ${cite.date}` : "");
}

const statement = (one) => [element("span", { dir: "auto" }, visible(one.text)), ...(one.cites || (one.cite ? [one.cite] : [])).slice(0, 4).map(cited)];
const named = (one) => [link("entity/" + one.n, short(one.title, 120)), one.type ? element("span", { class: "type" }, " " + visible(one.type)) : ""];
const topic = (one) => [link("community/" + one.n, short(one.title, 120)), element("span", { class: "type" }, ` ${number(one.size)} texts`)];
const paper = (one) => [link("document/" + one.n, short(one.title, 120)), one.date ? element("span", { class: "type" }, " " + one.date) : ""];
const trail = (many, view = "community/") => element("p", { class: "note" }, many.flatMap((one, at) => [at ? " › " : "", link(view + one.n, short(one.title, 60))]));

export function overview(data) {
  const counts = Object.entries(data.counts).filter(([, count]) => count).map(([name, count]) => `${number(count)} ${name.replace("_", " ")}`);
  return [element("h1", { dir: "auto" }, visible(data.title)), element("p", { class: "note" }, counts.join(", ") + (data.from ? `; dated ${data.from} to ${data.to}` : "")),
    ...data.main.flatMap((one) => [element("p", {}, topic(one)), element("p", { dir: "auto" }, visible(short(one.summary, 280)))])];
}

export function community(data) {
  const report = data.report;
  return [data.parents.length ? trail(data.parents) : "", element("h1", { dir: "auto" }, visible(data.title)),
    element("p", { class: "note" }, `c${data.n}, level ${data.level}, ${number(data.size)} texts, report: ${report.method || "none"}`),
    ...report.paragraphs.map((one) => element("p", {}, statement(one))),
    ...some("Findings", report.findings.map(statement)), ...some("Topics inside", data.children.map(topic)),
    ...some("People and things", data.members.map(named)), left(data.more.members, "names"),
    ...some("Documents", data.documents.map(paper)), left(data.more.documents, "documents")];
}

export function entity(data, others) {
  return [data.communities.length ? trail(data.communities) : "", element("h1", { dir: "auto" }, visible(data.title)),
    element("p", { class: "note" }, [`e${data.n}`, data.type, data.aliases.length ? "also " + data.aliases.join(", ") : "", `in ${number(data.texts)} texts`].filter(Boolean).map(visible).join(" · ")),
    data.description ? element("p", { dir: "auto" }, visible(data.description)) : "",
    others ? element("p", {}, others) : "",
    ...some("Statements", data.statements.map(statement)),
    ...some("Connected with", data.relations.map((one) => [...named(one.other), element("br"), ...statement(one)])), left(data.more.relations, "connections")];
}

export function passage(data) {
  const parts = [];
  let at = 0;
  for (const [start, end] of data.spans) {
    if (start < at) continue;
    parts.push(visible(data.text.slice(at, start)), element("mark", {}, visible(data.text.slice(start, end))));
    at = end;
  }
  parts.push(visible(data.text.slice(at)));
  const step = (id, text) => (id ? link("passage/" + id, text) : element("span", { class: "note" }, text));
  return [trail([data.document], "document/"), element("h1", { dir: "auto" }, visible(data.title)),
    element("p", { class: "note", dir: "auto" }, `[${data.id}] ${visible(data.document.uri)}:${data.lines} ${data.document.date || ""}`),
    element("p", {}, step(data.before, "‹ before"), " ", step(data.after, "after ›")),
    element("div", { class: "passage", dir: "auto", tabindex: "-1" }, parts), ...some("Names here", data.entities.map(named))];
}

export function search(data) {
  const hit = (one) => [element("span", { dir: "auto" }, marked(one.text, one.spans)), cited(one)];
  return [element("h1", { dir: "auto" }, "“" + visible(short(data.query, 120)) + "”"), data.hint ? element("p", { class: "note" }, visible(data.hint)) : "",
    ...some("Names", data.entities.map(named)), ...some("Topics", data.communities.map(topic)), ...some("Passages", data.passages.map(hit)),
    data.passages.length + data.entities.length ? "" : element("p", {}, "Nothing in this corpus.")];
}

function marked(text, spans) {
  const parts = [];
  let at = 0;
  for (const [start, end] of spans || []) { parts.push(visible(text.slice(at, start)), element("mark", {}, visible(text.slice(start, end)))); at = end; }
  return [...parts, visible(text.slice(at))];
}

export function path(data) {
  const step = (one) => element("li", {}, [...named(one.from), " – ", ...named(one.to), element("br"), ...statement(one)]);
  return [element("h1", { dir: "auto" }, `${visible(short(data.from.title, 60))} – ${visible(short(data.to.title, 60))}`),
    data.paths.length ? "" : element("p", {}, "They are not connected in this graph."),
    ...data.paths.flatMap((steps, at) => [heading(at ? `Another way, ${steps.length} steps` : `The strongest way, ${steps.length} steps`), element("ol", {}, steps.map(step))])];
}

export function drift(data) {
  if (!data.nodes) return [element("h1", {}, "DRIFT sessions"), data.sessions.length ? list(data.sessions.map((one) => [link("drift/" + one.id, short(one.query, 140)), element("span", { class: "where" }, `${one.answered} answered, ${one.open} open`)])) : element("p", {}, "No session yet. An agent begins one with drift_search.")];
  const below = new Map();
  for (const node of data.nodes) below.set(node.parent, [...(below.get(node.parent) || []), node]);
  const branch = (node) => element("li", { class: node.status },
    element("span", { class: "q", dir: "auto" }, visible(node.query)), element("span", { class: "type" }, ` ${node.status}${node.score === null ? "" : ", score " + node.score}`),
    node.answer ? element("details", {}, element("summary", {}, "answer"), element("p", { dir: "auto" }, visible(node.answer)), ...node.cites.map(cited)) : "",
    below.has(node.id) ? element("ul", {}, below.get(node.id).map(branch)) : "");
  return [element("h1", { dir: "auto" }, visible(data.query)), element("p", { class: "note" }, `session ${data.id}, generation ${data.generation}`), element("ul", { class: "plain" }, (below.get("") || []).map(branch))];
}

export function changes(data) {
  const group = (name, items, show) => some(`${name} (${number(items.length)})`, items.slice(0, 60).map(show));
  return [element("h1", {}, `Changed since generation ${data.since}`),
    element("p", {}, "Since: ", ...data.generations.flatMap((one) => [link("changes/" + one.generation, `${one.generation} (${one.time.slice(0, 16).replace("T", " ")})`), " "])),
    ...group("New documents", data.documents.added, paper), ...group("Changed documents", data.documents.changed, paper),
    ...group("Documents gone", data.documents.removed, (one) => visible(one.title)), ...group("New topics", data.communities.added, topic),
    ...group("Topics gone", data.communities.removed, (one) => visible(one.title))];
}

export function timeline(data) {
  const most = Math.max(1, ...data.periods.map((one) => one.count));
  const row = (one) => [element("strong", {}, one.period), " ", element("span", { class: "bar", style: `width:${Math.max(2, Math.round((90 * one.count) / most))}px` }), ` ${number(one.count)} `,
    element("span", { class: "note", dir: "auto" }, visible(one.terms.join(", "))), element("br"), ...one.documents.flatMap((doc, at) => [at ? ", " : "", ...paper(doc)])];
  return [element("h1", {}, "Timeline"), data.periods.length ? "" : element("p", {}, "No document states a date."),
    data.undated ? element("p", { class: "note" }, `${number(data.undated)} documents state no date`) : "", list(data.periods.map(row))];
}

export function document_(data) {
  return [element("h1", { dir: "auto" }, visible(data.title)), element("p", { class: "note", dir: "auto" }, `d${data.n} ${visible(data.uri)} ${data.date || ""}`),
    data.communities.length ? element("p", {}, data.communities.flatMap((one, at) => [at ? ", " : "in ", link("community/" + one.n, short(one.title, 60))])) : "",
    heading("Parts"), list(data.units.map((one) => [link("passage/" + one.id, `[${one.id}] `), element("span", { dir: "auto" }, visible(one.first))])), left(data.more, "parts")];
}
