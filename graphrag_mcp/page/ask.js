// Questions: hits with marked words, the documents as lines, and with a model an answer that streams in.

import { element, icon, kind, link, number, short, visible, whole } from "./dom.js";
import * as views from "./views.js";

const FILTERS = ["kind", "folder", "from", "to"], CHOICES = [...FILTERS, "answer"], KEPT = "graphrag-history", MOST = 50;
const answers = new Map(); // of models by address, of this tab: going back asks none again while the index is the same
let running = null, moved = false; // until the person moves, the address may be one that another page has made
window.addEventListener("hashchange", () => { moved = true; });

// #search/QUESTION/kind=pdf/folder=notes/from=2024/answer=all: what is no choice belongs to the question.
export function read(rest) {
  const chosen = {}, words = [];
  for (const part of rest) {
    const [, name, value] = /^(\w+)=(.*)$/s.exec(part) || [];
    if (words.length && CHOICES.includes(name)) chosen[name] = value; else words.push(part);
  }
  const { answer, ...filters } = chosen;
  return { query: words.join("/"), filters, answer };
}

export function address(query, filters = {}, answer = "") {
  const chosen = { ...filters, answer }, parts = CHOICES.filter((name) => chosen[name]).map((name) => `${name}=${chosen[name]}`);
  return ["search", query, ...parts].map(encodeURIComponent).join("/");
}

// ---- history of the session -----------------------------------------------------------------------

function kept() { try { return JSON.parse(sessionStorage.getItem(KEPT) || "[]"); } catch { return []; } }

function keep(query, to) {
  const listed = [{ query, to }, ...kept().filter((one) => one.to !== to)].slice(0, MOST);
  try { sessionStorage.setItem(KEPT, JSON.stringify(listed)); } catch { /* storage is off: there is no history */ }
}

const opened = (one) => element("a", { href: "#" + one.to, dir: "auto" }, visible(short(one.query, 160)));

// Where a question begins: those of before, and what the documents speak of.
export function history(found) {
  const listed = kept().map((one) => [icon("ask"), opened(one)]), names = found.central.length ? [element("h2", {}, "Names to begin with"), views.inline(found.central)] : [];
  return [element("div", { class: "one" }, element("h1", {}, "Ask"), element("p", {}, "Write a question, a name or an id into the field at the top. The documents answer with their own sentences, each with its source."),
    ...group("Questions of this session", listed), ...group("Topics to begin with", found.main.map(views.topic)), ...names)];
}

// ---- the view ---------------------------------------------------------------------------------------

// Offsets count characters as Python does.
function marked(text, spans, cites) {
  const points = [...views.veiled(text, cites)], parts = [], part = (start, end) => whole(views.unveiled(points.slice(start, end).join("")));
  let at = 0;
  for (const [start, end] of spans || []) {
    if (start < at || end <= start) continue;
    parts.push(part(at, start), element("mark", {}, part(start, end)));
    at = end;
  }
  return [...parts, part(at)];
}

function chooser(query, filters, facets, answer, go) {
  const change = (name) => (event) => go(address(query, { ...filters, [name]: event.target.value.trim() }, answer));
  const choice = (name, label, all, many) => many.length < 2 && !filters[name] ? "" : element("select", { "aria-label": label, onchange: change(name) },
    element("option", { value: "" }, all), many.map((one) => element("option", { value: one.name, selected: one.name === filters[name] }, `${short(visible(one.name), 40)} (${number(one.count)})`)));
  const day = (name, label, hint) => element("input", { "aria-label": label, value: filters[name] || null, placeholder: hint, maxlength: 10, onchange: change(name) });
  const some = FILTERS.some((name) => filters[name]);
  return element("form", { class: "filters", "aria-label": "Filters", onsubmit: (event) => event.preventDefault() },
    choice("kind", "Kind of file", "every kind", facets.kinds), choice("folder", "Folder", "every folder", facets.folders),
    facets.from ? element("span", { class: "days" }, day("from", "From day", "from " + facets.from.slice(0, 4)), day("to", "To day", "to " + facets.to.slice(0, 4))) : "",
    some ? element("a", { href: "#" + address(query, {}, answer) }, "no filter") : "");
}

// What is read for an answer: the passages that fit the question best, or all topics and documents.
function scopes(query, filters, whole) {
  const choice = (name, text, on) => element("a", { href: "#" + address(query, filters, name), "aria-current": on ? "true" : null }, text);
  return element("nav", { class: "choice", "aria-label": "Answer from" }, choice("passages", "Best passages", !whole), choice("all", "Whole collection", whole));
}

const hit = (one) => [views.quoted(one, marked(one.text, one.marks, one.cites)), views.sources(one.cites)];
const line = (one) => [kind(one.uri, one.code), link("document/" + one.n, short(one.title, 90)), one.date ? element("span", { class: "type day" }, " " + one.date) : "",
  element("span", { class: "type day" }, one.hits > 1 ? ` ${number(one.hits)} hits` : ""), one.summary ? element("div", { class: "note", dir: "auto" }, visible(one.summary)) : ""];
const group = (title, items, name = "plain lines") => items.length ? [element("h2", {}, title), element("ul", { class: name }, items.map((one) => element("li", {}, one)))] : [];

// The elements of a search, and its data for the map. Where the question asks about all documents, its words select
// no entity before another.
export async function view(server, load, rest, go) {
  const { query, filters, answer: chosen = "" } = read(rest);
  const found = await load("search", { query, ...filters }), state = await server.state();
  const to = address(query, filters, chosen), mine = moved || kept().some((one) => one.to === to);
  const choosable = query && state.tools.includes("global_search"), whole = choosable && (chosen ? chosen === "all" : found.whole);
  if (query) keep(query, to);
  const nothing = found.passages.length + found.entities.length + found.communities.length === 0;
  const answer = whole || state.model && query && found.passages.length ? element("section", { class: "answer", "aria-label": "Answer", "aria-live": "polite" }) : "";
  const beside = element("div", { class: "beside" }, ...(whole ? [] : group("Documents", (found.documents || []).map(line))), ...group("Topics", found.communities.map(views.topic)));
  const main = element("div", {}, element("h1", { dir: "auto" }, "“" + visible(short(query, 120)) + "”"), element("div", { class: "bar-of-choices" }, choosable ? scopes(query, filters, whole) : "", chooser(query, filters, found.facets, chosen, go)), views.note(found.hint), answer,
    nothing && !whole ? element("p", {}, "Nothing in this corpus speaks of that.") : "", ...group("Did you mean", found.near.map(views.named)),
    ...(found.entities.length && !found.whole ? [element("h2", {}, "Entities"), views.inline(found.entities)] : []), views.pair(found),
    ...(whole ? [] : group("Passages", found.passages.map(hit), "plain hits")), ...group("Ask next", (found.whole ? [] : found.follow_ups || []).map((one) => opened({ query: one, to: address(one, filters) }))));
  const ask = () => write(server, answer, beside, { query, filters: found.filters, whole }, to);
  if (answer && (mine || !state.model)) ask();
  else if (answer) answer.append(element("button", { type: "button", onclick: ask }, visible(`Answer with ${state.model}`)));
  return { shown: [element("div", { class: "columns" }, main, beside)], found };
}

export function forget() { answers.clear(); }

export function leave() { running?.abort(); running = null; }

// ---- the answer ---------------------------------------------------------------------------------

// Of a model; without one what the documents say, where all of them were asked.
async function write(server, box, beside, { query, filters, whole }, key) {
  leave();
  const control = running = new AbortController(), { model } = server.known, by = element("p", { class: "note" }, model ? `${model} answers …` : "All topics are read …");
  const show = (text, sources) => box.replaceChildren(by, ...paragraphs(text, sources));
  show("", []);
  try {
    let text = "";
    const result = answers.get(key) || await server.tool(whole ? "global_search" : "local_search", { query, filters, max_tokens: 3000, ...(model ? { answer: true } : {}) }, (event) => { text += event.message || ""; show(text, []); }, control.signal);
    const said = (result.answer || "").split("\n\n### References")[0];
    if (model && !said) by.textContent = visible(`${model} gave no answer. ${result.hint || ""}`);
    if (!said && whole) box.replaceChildren(model ? by : "", ...lines(result.text));
    if (said) answers.set(key, result);
    if (!said) return;
    by.textContent = visible(`Answer by ${model}${whole ? " from the whole collection" : ""}. ${result.hint || ""}`);
    show(said, result.citations || []);
    const order = cited(said), places = new Map((result.citations || []).map((one) => [one.id, one]));
    const listed = order.filter((id) => places.has(id)).map((id) => [element("strong", {}, `[${order.indexOf(id) + 1}] `), link(VIEW[id[0]]?.(id) ?? "passage/" + id, short(places.get(id).title, 80)), element("div", { class: "note", dir: "auto" }, visible([places.get(id).uri, places.get(id).place].filter(Boolean).join(" ")))]);
    beside.prepend(...group("Sources of the answer", listed, "plain lines sources"));
  } catch (error) {
    if (error.name !== "AbortError") by.textContent = visible(`No answer: ${error.message}`);
  }
}

const REFERENCE = /\[Data: ([^[\]]{1,1500})\]/g, ID = /\b([terc])(\d{1,9}(?:\.\d{1,6})?)\b/g;
const cited = (text) => [...new Set([...text.matchAll(REFERENCE)].flatMap((one) => [...one[1].matchAll(ID)].map((id) => id[0])))];
const LISTED = /\[([tec]\d{1,9}(?:\.\d{1,6})?)\]/;
const VIEW = { t: (id) => "passage/" + id, e: (id) => "entity/" + id.slice(1), c: (id) => "community/" + id.slice(1) };

// The text of a result: its lines without the fence, ids as links; what is indented is a list below its line. The title
// of a topic is the link to it.
function lines(text) {
  const parts = [], all = text.split("\n"), fences = all.flatMap((line, at) => /^<\W*documents-\d+/.test(line) ? [at] : []);
  for (const line of fences.length > 1 ? all.slice(fences[0] + 1, fences.at(-1)) : all) {
    if (!line.trim()) continue;
    const topic = /^\[(c\d{1,9})\] (.+): ([^:]+)$/.exec(line);
    if (topic) { parts.push(element("p", { dir: "auto", class: "topic" }, link(VIEW.c(topic[1]), topic[2]), element("span", { class: "type" }, ` ${topic[1]} · `, visible(topic[3])))); continue; }
    const words = line.replace(/^\s*(- )?/, "").split(LISTED).map((part, at) => at % 2 ? link(VIEW[part[0]](part), `[${part}]`, "Show the source") : visible(part));
    if (/^(\s|- )/.test(line)) { if (parts.at(-1)?.tagName !== "UL") parts.push(element("ul")); parts.at(-1).append(element("li", { dir: "auto" }, words)); }
    else parts.push(element("p", { dir: "auto", class: words[1]?.textContent?.startsWith("[c") ? "topic" : "" }, words));
  }
  return parts;
}

// Markdown of an answer as elements: paragraphs, lists, headings; everything else stays as it is.
function paragraphs(text) {
  const order = cited(text);
  const references = (body) => [...body.matchAll(ID)].flatMap((one) => VIEW[one[1]] ? [link(VIEW[one[1]](one[0]), `[${order.indexOf(one[0]) + 1}]`, "Show the source")] : []);
  const inline = (words) => {
    const parts = [];
    let at = 0;
    for (const one of words.matchAll(REFERENCE)) { parts.push(...bold(words.slice(at, one.index).trimEnd()), " ", ...references(one[1])); at = one.index + one[0].length; }
    return [...parts, ...bold(words.slice(at))];
  };
  const bold = (words) => words.split(/\*\*([^*]+)\*\*/).map((part, at) => at % 2 ? element("strong", {}, visible(part)) : visible(part));
  return text.split(/\n{2,}/).filter((block) => block.trim()).map((block) => {
    const lines = block.split("\n"), heading = /^#{1,6}\s+(.*)$/.exec(lines[0]);
    if (heading && lines.length === 1) return element("h3", { dir: "auto" }, inline(heading[1]));
    if (lines.every((one) => /^\s*([-*]|\d+[.)])\s/.test(one))) return element("ul", {}, lines.map((one) => element("li", { dir: "auto" }, inline(one.replace(/^\s*([-*]|\d+[.)])\s+/, "")))));
    return element("p", { dir: "auto" }, inline(lines.join(" ")));
  });
}
