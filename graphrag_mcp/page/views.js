// What stands beside the picture: one function per view, from the server's data to elements.

import { element, kind, link, number, short, visible, whole } from "./dom.js";

const heading = (text) => element("h2", {}, text);
const list = (items, plain = true) => element("ul", plain ? { class: "plain" } : {}, items.map((one) => element("li", {}, one)));
const some = (title, items) => (items.length ? [heading(title), list(items)] : []);
const left = (count, what) => (count > 0 ? element("p", { class: "note" }, `and ${number(count)} more ${what}, not shown`) : "");
export const note = (text) => (text ? element("p", { class: "note", dir: "auto" }, whole(text)) : "");
export const counted = (count, thing) => `${number(count)} ${count === 1 ? thing : thing.endsWith("y") ? thing.slice(0, -1) + "ies" : thing + "s"}`;

export const place = (cite) => "passage/" + cite.id + (cite.end ? `/${cite.start}-${cite.end}` : "");

export function cited(cite) {
  const file = cite.uri && !cite.uri.includes(cite.title) ? short(cite.uri.split("/").at(-1), 60) : ""; // the whole path is a hint at it
  const where = [file, cite.place].filter(Boolean).join(" ");
  return element("span", { class: "where" }, element("span", {}, kind(cite.uri, cite.code), link(place(cite), `[${cite.id}] ${short(cite.title, 60)}`, "Show the source")),
    where ? element("span", { class: "file", dir: "auto", title: visible(cite.uri) }, " " + visible(where)) : "", cite.date && !cite.title.includes(cite.date) ? [" ", day(cite.date)] : "");
}

// What a document says: lines of code keep their form.
export const quoted = (one, words) => one.cites?.some((cite) => cite.code) ? element("code", { class: "code", dir: "ltr" }, words) : element("span", { dir: "auto" }, words);

export const day = (date) => element("span", { class: "day" }, date);
export const sources = (cites) => cites.length ? element("div", { class: "wheres" }, cites.slice(0, 4).map(cited)) : "";

// A sentence of a Markdown file is shown without the marks of bold and leaning words: pairs that stand around words.
// Other stars are text, as in 2**10 and docs/**/*.md. Nor are the signs of headings and of links to other notes shown.
// In code all signs are text. Dropped marks become NUL first, so that offsets hold.
const PAIR = /(?<![\w*\/\\])(\*{1,3})(?=[\p{L}\p{N}\p{Ps}\p{Pi}"'`])([^*\n]*[^\s*\/\\(,])\1(?![\w*\/])/gu;
const HALF = /^([^*\n]{1,80}[.:!?。：！？])(\*{2,3})(?=\s|$)/u; // the sentence begins inside of bold words
const markdown = (uri) => /\.(md|markdown)(#|$)/i.test(uri || "");
const HASHES = /^ {0,3}#{1,6}[ \t]+/, NOTE = /(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|(!?\[\[(?:[^[\]|\n]*\|)?)([^[\]|\n]+)(\]\])/g;
const nothing = (mark) => "\0".repeat(mark.length);
export const veiled = (text, cites) => cites?.some((one) => markdown(one.uri) && !one.code) ? text.replace(HASHES, nothing).replace(NOTE, (all, code, mark, words, end) => code ? all : nothing(mark) + words + nothing(end)).replace(HALF, (_, words, mark) => words + nothing(mark)).replace(PAIR, (_, mark, words) => nothing(mark) + words + nothing(mark)) : text;
export const unveiled = (text) => text.replaceAll("\0", "");
const statement = (one) => [element("span", { dir: "auto" }, whole(unveiled(veiled(one.text, one.cites)))), sources(one.cites)];
export const drawn = { tone: () => "" }; // the colour that an entity has in the picture beside
const swatch = ({ n }) => drawn.tone(n) ? element("span", { class: "swatch", style: `background:var(${drawn.tone(n)})` }) : "";
export const named = (one) => [swatch(one), link("entity/" + one.n, short(one.title, 120)), one.type && one.type !== "other" ? element("span", { class: "type" }, " " + visible(one.type)) : ""];
export const topic = (one) => [link("community/" + one.n, short(one.title, 120)), element("span", { class: "type day" }, " " + counted(one.size, "text unit"))];
const said = (text) => text ? element("div", { class: "note", dir: "auto" }, whole(text)) : "";
const paper = (one) => [link("document/" + one.n, short(one.title, 120)), one.date ? element("span", { class: "type day" }, " " + one.date) : "", said(one.summary)];
const trail = (many, view = "community/") => element("p", { class: "note" }, many.flatMap((one, at) => [at ? " › " : "", link(view + one.n, short(one.title, 60))]));
export const inline = (many) => element("p", { class: "row-of" }, many.map((one) => element("span", {}, named(one))));

export function overview(data) {
  const words = { documents: "document", entities: "entity", relationships: "relationship", communities: "topic" };
  const counts = Object.entries(words).filter(([kind]) => data.counts[kind]).map(([kind, word]) => counted(data.counts[kind], word));
  const empty = data.counts.documents ? "" : element("p", {}, "This corpus holds no document yet. Index a folder with graphrag-mcp index.");
  const without = data.counts.documents && !data.main.length ? element("p", {}, "This corpus has no topics: it is too small, or they have not been computed yet.") : "";
  return [element("h1", { dir: "auto" }, visible(data.title)), note(counts.join(", ") + (data.from ? `; dated ${data.from} to ${data.to}` : "")),
    note(data.note), data.stale ? note("Documents have changed since the topics were computed.") : "", empty, without,
    ...(data.main.length ? [heading("Largest topics")] : []),
    ...(data.main.length ? [list(data.main.map((one) => [...topic(one), said(short(one.summary, 280))]))] : []),
    ...(data.central.length ? [heading("Most connected entities"), inline(data.central)] : [])];
}

export function community(data) {
  const report = data.report, parts = report.paragraphs.length + report.findings.length;
  const told = new Set(report.paragraphs.map((one) => one.text)); // a report without a model opens with its first findings
  const findings = report.findings.map((one) => ({ ...one, statements: one.statements.filter((each) => !told.has(each.text)) })).filter((one) => one.statements.length);
  const written = report.method === "extractive" ? "sentences of the documents" : `report by ${report.method || "an unknown author"}`;
  return [data.parents.length ? trail(data.parents) : "", element("h1", { dir: "auto" }, visible(data.title)),
    note(`Topic c${data.n}, ${counted(data.size, "text unit")}; ${written}`),
    parts ? "" : element("p", {}, "This topic has no report yet."),
    ...report.paragraphs.map((one) => element("p", {}, statement(one))),
    ...(findings.length ? [heading("Findings")] : []),
    ...findings.flatMap((one) => [one.title ? element("h3", { dir: "auto" }, visible(one.title)) : "", list(one.statements.map(statement))]),
    ...some("Passages", (data.passages || []).map((one) => [link("passage/" + one.id, `[${one.id}] ${short(one.title, 60)}`), element("div", { class: "note", dir: "auto" }, visible(short(one.first, 160)))])),
    ...some("Topics inside", data.children.map(topic)),
    ...some("Topics that share documents with it", (data.shared || []).map((one) => [link("community/" + one.n, short(one.title, 120)), element("span", { class: "type" }, " " + counted(one.documents, "document"))])),
    ...(data.members.length ? [heading("Entities"), inline(data.members)] : []), left(data.more.members, "entities"),
    ...some("Documents", data.documents.map(paper)), left(data.more.documents, "documents")];
}

export function entity(data, others) {
  const facts = [`e${data.n}`, data.type === "other" ? "" : data.type, data.aliases.length ? "also " + data.aliases.join(", ") : "", "named in " + counted(data.texts, "text unit")];
  return [data.communities.length ? trail(data.communities) : "", element("h1", { dir: "auto" }, visible(data.title)), note(facts.filter(Boolean).join(" · ")),
    data.description ? element("p", { dir: "auto" }, visible(data.description)) : "",
    ...others,
    ...some("What the documents say", data.statements.map(statement)),
    ...some("Relationships", data.relations.map((one) => [element("div", {}, named(one.other)), ...statement(one)])), left(data.more.relations, "relationships"),
    data.relations.length ? "" : note("It has no relationship with another entity.")];
}

// Offsets count characters as Python does: an emoji is one.
function marked(text, spans, kinds) {
  const points = [...text], parts = [];
  let at = 0, unit = 0;
  const part = (end) => { const words = points.slice(at, end).join(""), made = dressed(words, kinds.slice(unit, unit + words.length)); at = end; unit += words.length; return made; };
  for (const [start, end] of spans) {
    if (start < at || end <= start) continue;
    parts.push(...part(start), element("mark", {}, part(end)));
  }
  return [...parts, ...part(points.length)];
}

// Of each character of Markdown: is it part of a heading, of bold words, or a sign of these? Nothing is left out.
function kindsOf(text, uri) {
  const kinds = new Array(text.length).fill("");
  if (!markdown(uri)) return kinds;
  for (const one of text.matchAll(/^( {0,3}#{1,6})[ \t]+\S.*$/gm)) kinds.fill("head", one.index, one.index + one[0].length).fill("head sign", one.index, one.index + one[1].length);
  for (const one of text.matchAll(PAIR)) {
    const from = one.index + one[1].length, to = from + one[2].length;
    if (one[1].length > 1) for (let at = from; at < to; at++) kinds[at] ||= "strong";
    kinds.fill("sign", one.index, from).fill("sign", to, to + one[1].length);
  }
  return kinds;
}

function dressed(text, kinds) {
  const parts = [];
  for (let from = 0, to; from < text.length; from = to) {
    to = kinds.findIndex((kind, at) => at > from && kind !== kinds[from]);
    if (to < 0) to = text.length;
    parts.push(kinds[from] ? element("span", { class: kinds[from] }, visible(text.slice(from, to))) : visible(text.slice(from, to)));
  }
  return parts;
}

// Page, slide, cells or time of a passage or a span of a text unit, else of the whole.
export function placeOf(data, part, span) {
  const at = /^\d{1,9}-\d{1,9}$/.test(span || "") ? data.parts.findIndex(([from, to]) => from <= parseInt(span, 10) && parseInt(span, 10) < to) : part - 1;
  return data.places?.[at] || data.place;
}

// `held`: may this text unit be opened? A file does not hold all.
export function passage(data, part, span, held = () => true) {
  const parts = data.parts[part - 1], between = /^(\d{1,9})-(\d{1,9})$/.exec(span || "");
  const spans = between ? [[Number(between[1]), Number(between[2])]] : parts && data.parts.length > 1 ? [parts] : [];
  const step = (id, text) => (id && held(id) ? link("passage/" + id, text) : element("span", { class: "note" }, text));
  const place = placeOf(data, part, span);
  const lines = place ? `, ${place}` : !data.line ? "" : data.last_line > data.line ? `, lines ${data.line} to ${data.last_line}` : `, line ${data.line}`;
  return [element("h1", { dir: "auto" }, visible(data.title)),
    element("p", { class: "note", dir: "auto" }, `[${data.id}] `, link("document/" + data.document.n, data.document.uri || data.title), lines, data.document.date ? [", ", day(data.document.date)] : ""),
    data.before || data.after ? element("p", {}, step(data.before, "‹ text before"), " ", step(data.after, "text after ›")) : note("This is the whole document."),
    element("div", { class: data.document.code ? "passage code" : "passage", dir: "auto", tabindex: "-1" }, marked(data.text, spans, kindsOf(data.text, data.document.uri))),
    ...(data.entities.length ? [heading("Entities in this text unit"), inline(data.entities)] : []),
    ...(data.communities.length ? [heading("Topics of this text unit"), trail(data.communities)] : [])];
}

// Two entities of a question are asked about together.
export function pair(data) {
  const asked = data.query.toLowerCase(), held = data.entities.filter((one) => asked.includes(one.title.toLowerCase()));
  const [one, other] = held.filter((name) => !held.some((longer) => longer !== name && longer.title.toLowerCase().includes(name.title.toLowerCase())));
  return other ? element("p", {}, link(`path/${one.n}/${other.n}`, `How are ${short(one.title, 50)} and ${short(other.title, 50)} connected?`)) : "";
}

export function search(data, paths) {
  const nothing = data.passages.length + data.entities.length + data.communities.length === 0;
  return [element("h1", { dir: "auto" }, "“" + visible(short(data.query, 120)) + "”"), note(data.hint),
    nothing ? element("p", {}, "Nothing in this corpus speaks of that.") : "", ...some("Did you mean", data.near.map(named)),
    ...(data.entities.length ? [heading("Entities"), inline(data.entities)] : []), paths ? pair(data) : "", ...some("Topics", data.communities.map(topic)), ...some("Passages", data.passages.map(statement))];
}

export function path(data) {
  const step = (one) => element("li", {}, element("div", {}, ...named(one.from), " – ", ...named(one.to)), ...statement(one));
  const none = `No connection was found: ${counted(data.reached[0], "entity")} can be reached from one side and ${number(data.reached[1])} from the other.`;
  return [element("h1", { dir: "auto" }, `${visible(short(data.from.title, 60))} – ${visible(short(data.to.title, 60))}`),
    element("p", { class: "note" }, link("entity/" + data.from.n, short(data.from.title, 60)), " and ", link("entity/" + data.to.n, short(data.to.title, 60))),
    data.paths.length ? "" : element("p", {}, none),
    ...data.paths.flatMap((steps, at) => [heading(`${at ? "Another way" : "The strongest way"}, ${counted(steps.length, "step")}`), element("ol", {}, steps.map(step))])];
}

export function drift(data) {
  if (!data.nodes) {
    const line = (one) => [link("drift/" + one.id, short(one.query, 140)), element("span", { class: "where" }, `${one.answered} answered, ${one.open} open, ${one.frontier} waiting, ${one.pruned} pruned, ${one.dropped} dropped`)];
    return [element("h1", {}, "DRIFT sessions"), note("A session is a question that an agent followed through the graph, with its follow-up questions."),
      data.sessions.length ? list(data.sessions.map(line)) : element("p", {}, "No session on this corpus yet. An agent begins one with the tool drift_search.")];
  }
  const below = new Map(), words = { answered: "answered", open: "open", frontier: "waiting", pruned: "pruned", dropped: "dropped" };
  for (const node of data.nodes) below.set(node.parent, [...(below.get(node.parent) || []), node]);
  const folded = (title, body) => element("details", {}, element("summary", {}, title), body);
  const branch = (node) => element("li", { class: node.status },
    element("span", { class: "q", dir: "auto" }, visible(node.query)), element("span", { class: "type" }, ` ${words[node.status]}${node.score === null ? "" : ", score " + node.score}`),
    node.answer ? folded("answer", [element("p", { dir: "auto" }, visible(node.answer)), ...node.cites.map(cited)]) : "",
    node.context.length ? folded("what was read", node.context.map(cited)) : "",
    below.has(node.id) ? element("ul", {}, below.get(node.id).map(branch)) : "");
  return [element("p", { class: "note" }, link("drift", "DRIFT sessions")), element("h1", { dir: "auto" }, visible(data.query)), note(`Session ${data.id}, begun in generation ${data.began}`),
    element("ul", { class: "plain tree" }, (below.get("") || []).map(branch))];
}

export function changes(data) {
  if (data.since === null) return [element("h1", {}, "What changed"), element("p", {}, `This is the first generation that is kept (${data.now}), so there is nothing to compare it with. After the next change of a document this view shows what came, went and changed.`)];
  const group = (name, items, show) => some(`${name} (${number(items.length)})`, items.slice(0, 60).map(show));
  const lists = [...group("New documents", data.documents.added, paper), ...group("Changed documents", data.documents.changed, paper),
    ...group("Documents gone", data.documents.removed, (one) => visible(one.title)), ...group("New entities", data.names, named), ...group("New or changed topics", data.communities.added, topic),
    ...group("Topics as they were before", data.communities.removed, (one) => visible(one.title))];
  return [element("h1", {}, `What changed since generation ${data.since}`), note(`${counted(data.communities.kept, "topic")} stayed as before; the map colours the others.`),
    element("p", { class: "row-of" }, "Compare with:", data.generations.map((one) => element("span", {}, link("changes/" + one.generation, `${one.generation} (${one.time.slice(0, 16).replace("T", " ")})`)))),
    ...(lists.length ? lists : [element("p", {}, "No document and no topic has changed.")]), left(data.more, "documents")];
}

export function graph_(data) {
  return [element("h1", {}, "Graph"), note(`The ${counted(data.nodes.length, "entity")} of most relationships.`),
    note("Click an entity for what the documents say of it, a line for its sentence. Double click to expand, drag to move, scroll to zoom."),
    ...(data.nodes.length ? [heading("Most connected entities"), element("ul", { class: "plain ranked" }, data.nodes.slice(0, 60).map((one) => element("li", {}, element("span", {}, named(one)), element("span", { class: "size" }, number(one.degree), element("span", { class: "hidden" }, one.degree === 1 ? " relationship" : " relationships")))))] : []), left(data.more, "entities")];
}

export function timeline(data, period) {
  const most = Math.max(1, ...data.periods.map((one) => one.count));
  const row = (one) => [element("strong", {}, one.period), " ", element("span", { class: "bar", style: `width:${Math.max(2, Math.round((90 * one.count) / most))}px` }), element("span", { class: "type" }, ` ${counted(one.count, "document")}`),
    element("div", {}, one.documents.flatMap((doc, at) => [at ? ", " : "", link("document/" + doc.n, short(doc.title, 80))]), one.more ? ` and ${number(one.more)} more` : ""), note(one.terms.join(", "))];
  return [element("h1", {}, "Timeline"), data.periods.length ? "" : element("p", {}, "No document states a date of its own, so there is nothing to order by time."),
    data.undated ? note(`${counted(data.undated, "document")} without a date`) : "", list([...data.periods].sort((a, b) => (b.period === period) - (a.period === period)).map(row))];
}

// A document: its heading and what it holds, and what stands beside that. `text` is the text of a document of one text unit.
export function document_(data, text = "") {
  const [only] = data.units, units = list(data.units.map((one) => [link("passage/" + one.id, `[${one.id}]`), one.place ? ` ${one.place} ` : " ", element("span", { dir: "auto" }, visible(one.first)), said(one.summary)]));
  const where = element("p", { class: "note", dir: "auto" }, text ? [link("passage/" + only.id, `[${only.id}]`), " · "] : "", visible(`d${data.n} · ${data.uri}`), data.date ? [" · ", day(data.date)] : "");
  return {
    heading: element("h1", { dir: "auto" }, visible(data.title)),
    main: [where, said(data.summary), ...(text ? [said(only.summary), text] : [heading("Text units"), units, left(data.more, "text units")])],
    beside: [...(data.communities.length ? [heading("Topics"), ...data.communities.map((one) => element("p", {}, topic(one)))] : []), ...some("Mails of its thread, by time", data.thread.map(paper)), ...linked(data.links)],
  };
}

const written = (one) => [element("span", { dir: "auto" }, visible(one.written)), element("br"), ...statement(one)];
const linking = (end) => (one) => [...paper(one[end]), one.part && end === "to" ? ` › ${visible(one.part)}` : "", element("br"), ...statement(one)];

// The links of one document.
function linked(data) {
  const lists = [...some("Links to it", data.in.map(linking("from"))), ...some("Its links", data.out.map(linking("to"))), ...some("Links to what is not in the index", data.missing.map(written))];
  return [note(data.tags.map((tag) => "#" + tag).join(" ")), ...lists, left(data.more, "links"),
    lists.length ? element("p", { class: "note" }, link("links", "Links of all documents")) : ""];
}

export function links(data) {
  const held = (one) => [element("span", { dir: "auto" }, visible(one.written)), ` ${counted(one.count, "link")}: `, ...one.documents.flatMap((doc, at) => [at ? ", " : "", link("document/" + doc.n, short(doc.title, 60))])];
  return [element("h1", {}, "Links between documents"), data.nodes.length ? "" : [element("p", {}, "No document of this corpus links to another one."), note("Links between Markdown notes, as [[Name]] or [words](file.md), and those of web pages are shown here as a graph, with the line that each stands in.")],
    ...some("Most linked", data.nodes.filter((one) => one.degree).map((one) => [...paper(one), ` ${counted(one.degree, "document")} ${one.degree === 1 ? "links" : "link"} to it`])), left(data.more.nodes, "documents"),
    ...some("Pages that links miss", data.missing.map(held)), left(data.more.missing, "pages"),
    ...some("Tags", data.tags.map((one) => `#${visible(one.tag)} ${counted(one.count, "document")}`))];
}
