// What the index holds: adding files, folders and texts, removing with undo, the watch, open work, settings.

import { byId, element, kind, link, number, say, short, visible } from "./dom.js";
import * as views from "./views.js";

const FINAL = ["done", "failed", "cancelled"], SHOWN = 200, POLL = 2000;
const report = element("div", { class: "report", role: "log", "aria-label": "Progress" }); // stays while the view is drawn again
let busy = false;

const section = (title, ...parts) => element("section", { "aria-label": title }, element("h2", {}, title), ...parts);
const list = (items) => element("ul", { class: "plain lines" }, items.map((one) => element("li", {}, one)));
const button = (text, act, name = "") => element("button", { type: "button", class: name, onclick: act }, text);
const put = (part) => { report.append(part); part.scrollIntoView({ block: "nearest" }); return part; };
const tell = (...parts) => put(element("p", { dir: "auto" }, ...parts));
const why = (one) => [element("span", { dir: "auto" }, visible(short(one.uri ?? one.path, 120))), one.why || one.reason ? element("span", { class: "type" }, " " + visible(one.why || one.reason)) : ""];

// One thing at a time that writes; what goes wrong is told, and the view is drawn again behind it. Buttons come after
// that, from the function that `work` may return: a click is lost where its button moves meanwhile.
async function working(page, work) {
  if (busy) { say("Not done: an earlier change is still at work. Try it again after that.", true); return; }
  busy = true;
  if (report.contains(document.activeElement)) { report.tabIndex = -1; report.focus(); } // its button goes
  report.replaceChildren();
  let last;
  try { last = await work(); } catch (error) { tell(visible(error.message)); }
  busy = false; page.transport.kept.clear(); await page.server.state(true); await page.again();
  last?.();
}

// ---- indexing -----------------------------------------------------------------------------------------

async function index(page, given) {
  const now = put(element("p", { class: "now" }, "Indexing …")), stop = button("Stop", () => job && page.server.tool("cancel_job", { job_id: job }));
  let job = "";
  let result = await page.server.tool("index_documents", { wait_seconds: 45, ...given }, (event) => { now.textContent = visible(`Indexing: ${event.message || ""}`); });
  while (!FINAL.includes(result.status) && result.job_id) {
    job = result.job_id;
    now.after(stop);
    await new Promise((resolve) => setTimeout(resolve, POLL));
    const status = await page.server.tool("graph_status", { job_id: job });
    const [state] = status.jobs;
    now.textContent = visible(`Indexing: ${state.phase || state.status} ${state.total ? `${number(state.done)} of ${number(state.total)}` : ""}`);
    if (FINAL.includes(state.status)) result = { ...result, status: state.status, counts: status.counts, text: status.text };
  }
  now.remove(); stop.remove();
  const counts = ["added", "changed", "removed", "unchanged"].filter((name) => result.counts?.[name]).map((name) => `${number(result.counts[name])} ${name}`);
  tell(result.status === "done" ? `Done: ${counts.join(", ") || "nothing was new"}.` : visible(`Indexing ${result.status}. ${result.text || ""}`));
  const skipped = [...(result.errors || []), ...(result.skipped_files || [])];
  if (skipped.length) report.append(element("details", { open: true }, element("summary", {}, `${views.counted(skipped.length, "file")} not indexed`), list(skipped.slice(0, SHOWN).map(why))));
}

async function send(page, files, replace = false) {
  const { uploads, most } = page.state, left = [], again = [];
  const now = put(element("p", { class: "now" }));
  let sent = 0;
  for (const [at, { path, file }] of files.entries()) {
    now.textContent = visible(`Copying ${number(at + 1)} of ${number(files.length)}: ${path}`);
    if (path.split("/").some((part) => part.startsWith("."))) { left.push({ path, reason: "hidden" }); continue; }
    if (file.size > most) { left.push({ path, reason: `over ${number(most / 1e6)} MB` }); continue; }
    try { await page.server.upload(path, file, replace); sent++; }
    catch (error) { if (error.exists) again.push({ path, file }); else left.push({ path, reason: error.message }); }
  }
  now.remove();
  tell(`Copied ${number(sent)} of ${views.counted(files.length, "file")} to ${visible(uploads)}.`);
  if (left.length) report.append(element("details", { open: true }, element("summary", {}, `${views.counted(left.length, "file")} not copied`), list(left.slice(0, SHOWN).map(why))));
  if (sent) await index(page, { paths: [uploads] });
  if (again.length) return () => tell(`${again.length === 1 ? "1 file has" : number(again.length) + " files have"} the name of another one there: ${visible(short(again.map((one) => one.path).join(", "), 200))}. `,
    button("Replace them", () => working(page, () => send(page, again, true))));
}

// Files below what was dropped: a folder is walked, in the order of its names.
async function dropped(transfer) {
  const entries = [...transfer.items].map((one) => one.webkitGetAsEntry?.()).filter(Boolean), found = [];
  const walk = async (entry) => {
    if (entry.isFile) { found.push({ path: entry.fullPath.replace(/^\//, ""), file: await new Promise((resolve, reject) => entry.file(resolve, reject)) }); return; }
    const reader = entry.createReader();
    for (let some; (some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))).length; ) for (const one of some) await walk(one);
  };
  for (const entry of entries) await walk(entry);
  return found.length ? found : [...transfer.files].map((file) => ({ path: file.name, file }));
}

function adding(page) {
  const { state } = page, chosen = (event) => { const files = [...event.target.files].map((file) => ({ path: file.webkitRelativePath || file.name, file })); event.target.value = ""; if (files.length) working(page, () => send(page, files)); };
  const picker = (label, folder) => {
    const input = element("input", { type: "file", multiple: true, webkitdirectory: folder, class: "hidden", tabindex: "-1", "aria-label": label, onchange: chosen });
    return [input, button(label, () => input.click())];
  };
  const zone = state.uploads ? element("div", { class: "drop" }, element("p", {}, "Drop files or folders here, or"), element("p", { class: "actions" }, ...picker("choose files", false), ...picker("choose a folder", true)),
    element("p", { class: "note", dir: "auto" }, `They are copied to the folder ${visible(state.uploads)}`)) : element("p", { class: "note" }, "This server has no folder for files. Start it with --root FOLDER to add some.");
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", async (event) => { event.preventDefault(); zone.classList.remove("over"); const files = await dropped(event.dataTransfer); if (state.uploads && files.length) working(page, () => send(page, files)); });
  const title = element("input", { "aria-label": "Title", placeholder: "Title", maxlength: 300 }), text = element("textarea", { "aria-label": "Text", placeholder: "Paste a text", rows: 4 });
  const paste = element("form", { class: "paste", onsubmit: (event) => {
    event.preventDefault();
    const given = { text: text.value, ...(title.value.trim() ? { title: title.value.trim() } : {}) };
    if (given.text.trim()) working(page, () => index(page, { texts: [given] }));
  } }, title, text, element("button", { type: "submit" }, "Add the text"));
  const folder = element("input", { "aria-label": "Folder on this machine", value: state.roots[0] || null, maxlength: 2000, class: "wide" });
  const place = state.local && state.roots.length ? element("form", { onsubmit: (event) => { event.preventDefault(); working(page, () => index(page, { paths: [folder.value] })); } }, folder, element("button", { type: "submit" }, "Index this folder")) : "";
  return section("Add", zone, place, element("details", {}, element("summary", {}, "Paste a text"), paste));
}

export function start(page) {
  const known = page.state.writes ? "Add documents, then ask." : "This server only reads, so documents are added by graphrag-mcp index.";
  return [element("div", { class: "one" }, element("h1", {}, "Start here"), element("p", {}, `The index ${visible(page.state.corpus)} is empty. ${known}`), page.state.writes ? [adding(page), element("p", { class: "note" }, "Text, Markdown, PDF, Office files, web pages, mail, tables, notebooks and code are read. When they are indexed, the field at the top answers questions about them, and Graph shows what they speak of.")] : "", report)];
}

// ---- what is there ---------------------------------------------------------------------------------

async function remove(page, one, row) {
  const asked = await page.server.tool("remove_documents", { ids: ["d" + one.n], dry_run: true });
  const lost = Object.entries(asked.counts || {}).filter(([, count]) => count).map(([name, count]) => views.counted(count, name.replace("_", " ").replace(/ies$/, "y").replace(/s$/, ""))).join(", ");
  row.replaceChildren(element("td", { colspan: row.cells.length }, `Remove ${visible(short(one.title, 80))} (${lost})? The file itself stays. `,
    button("Remove", () => working(page, async () => { const done = await page.server.tool("remove_documents", { ids: ["d" + one.n], dry_run: false }); return () => tell(visible(`Removed ${one.title}.`), " ", button("Undo", () => undo(page, done.undo_id, one.uri))); })), " ", button("Keep", () => page.again())));
  row.querySelector("button").focus();
}

// Paths of folders that the server tells this caller: whole on its own machine, else below its first root.
const known = (data) => (data?.folders || []).map((one) => one.path).filter(Boolean);

const undo = (page, id, uri) => working(page, async () => {
  const text = uri.startsWith("text:") ? await page.server.get("removed", { uri }) : null; // what an older state of the index holds
  await page.server.tool("edit_graph", { op: "undo", ids: [id], dry_run: false });
  const paths = known(page.data);
  if (text) await index(page, { texts: [{ id: text.id, title: text.title, text: text.text, metadata: text.metadata }] });
  else if (paths.length) await index(page, { paths });
  else tell("It is back with the next indexing of its folder.");
});

function documents(page) {
  const { data, state } = page, removes = state.writes && state.tools.includes("remove_documents"), body = element("tbody");
  const tells = { Date: (one) => one.date, State: (one) => one.state !== "indexed", Summary: (one) => one.summary }; // a column that tells no two documents apart is left out
  const columns = [["Date", (one) => one.date], ["State", (one) => one.state], ["Summary", (one) => one.summary ? "yes" : ""]].filter(([name]) => data.documents.some(tells[name]));
  const row = (one) => {
    const made = element("tr", {}, element("td", { dir: "auto" }, kind(one.uri, one.code), link("document/" + one.n, short(one.title, 100)), element("div", { class: "note" }, visible(one.uri))),
      columns.map(([name, value]) => element("td", { class: name === "State" ? one.state : name.toLowerCase() }, value(one))), element("td", {}, removes ? button("Remove", () => remove(page, one, made).catch((error) => tell(visible(error.message)))) : ""));
    made.querySelector("button")?.setAttribute("aria-label", "Remove " + visible(short(one.title, 60)));
    return made;
  };
  const draw = (words) => {
    const low = words.toLowerCase(), found = data.documents.filter((one) => `${one.title} ${one.uri} ${one.date} ${one.state}`.toLowerCase().includes(low));
    body.replaceChildren(...found.slice(0, SHOWN).map(row));
    more.textContent = found.length + data.more > SHOWN ? `${number(Math.min(SHOWN, found.length))} of ${number(found.length + data.more)} are listed; narrow the list above.` : "";
  };
  const more = element("p", { class: "note" });
  draw("");
  return element("section", { "aria-label": "List of documents" }, element("input", { type: "search", "aria-label": "Narrow the list", placeholder: "Narrow the list: title, path, state", class: "wide", oninput: (event) => draw(event.target.value) }),
    element("table", { class: "documents" }, element("thead", {}, element("tr", {}, ["Document", ...columns.map(([name]) => name), element("span", { class: "hidden" }, "Remove")].map((name) => element("th", { scope: "col" }, name)))), body), more);
}

function open(page) {
  const { data, state } = page, pending = Object.entries(data.pending).map(([kind, count]) => `${number(count)} ${kind}`), price = element("span", { class: "note" });
  const ask = async () => {
    price.textContent = " counting …";
    try {
      const found = await page.server.get("price");
      const cost = (one) => one.cost ? `, about ${Number(one.cost).toPrecision(2)} by the prices in the settings` : ", no price is set";
      const asked = (one) => `${number(one.calls)} calls, ${number(one.prompt_tokens)} tokens in, ${number(one.output_tokens)} out${one.calls ? cost(one) : ""}`;
      price.textContent = ` ${asked(found)}`;
    } catch (error) { price.textContent = " " + visible(error.message); }
  };
  const who = state.model ? `The model ${visible(state.model)} writes them with the next indexing. ` : "No model is set: an agent can write them (claim_work), or a model that GRAPHRAG_MCP_CHAT_MODEL names. ";
  return section("Summaries and open work", element("p", {}, data.unsummarised ? `${data.unsummarised === 1 ? "1 document has" : number(data.unsummarised) + " documents have"} no summary. ${who}` : "Every document has a summary. ",
    pending.length ? `Open: ${pending.join(", ")}. ` : "", state.model && state.writes ? [button("What will it cost?", ask), price] : ""));
}

export async function view(page) {
  const { data, state } = page, paths = known(data), watchable = state.writes && state.watches && data.folders.length;
  const watch = element("input", { type: "checkbox", id: "watch", checked: state.watched, onchange: (event) => working(page, async () => { const { watched } = await page.server.post("watch", { on: event.target.checked, corpus: state.corpus }); tell(watched ? "Folders are watched: a change of a file is indexed at once, as long as this server runs." : "Folders are no longer watched."); }) });
  const again = state.writes && paths.length ? button("Index again", () => working(page, () => index(page, { paths }))) : "";
  const last = data.jobs[0], lists = [["Files that could not be read", data.unread], ["New files on disk", data.new.map((uri) => ({ uri }))]].filter(([, many]) => many.length);
  const beside = element("div", { class: "beside" }, state.writes ? adding(page) : "",
    data.folders.length ? section("Folders", list(data.folders.map((one) => element("span", { dir: "auto" }, visible(/[/\\]/.test(one.path) ? one.path : one.name)))), element("p", {}, again, watchable ? [" ", watch, element("label", { for: "watch" }, " watch for changes")] : "")) : "",
    ...lists.map(([title, many]) => section(title, list(many.map(why)))),
    last?.skipped.length ? element("details", {}, element("summary", {}, `Passed over by the last indexing: ${views.counted(last.skipped.length + last.more, "file")}`), list(last.skipped.map(why))) : "",
    open(page), element("details", {}, element("summary", {}, "Models and settings"), element("table", {}, element("tbody", {}, data.settings.map(([name, value]) => element("tr", {}, element("th", { scope: "row" }, name), element("td", { dir: "auto" }, visible(value))))))));
  const main = element("div", {}, documents(page),
    data.removed.length ? section("Taken out", list(data.removed.map((one) => [element("span", { dir: "auto" }, visible(one.uri)), " ", state.writes && state.tools.includes("edit_graph") ? button("Undo", () => undo(page, one.undo_id, one.uri)) : ""]))) : "");
  // On a phone what is added stands below the list: a button leads to it.
  const jump = state.writes ? button("Add documents", () => { const to = beside.querySelector("button"); to.scrollIntoView({ block: "center" }); to.focus(); }, "to-add") : "";
  return [element("h1", {}, "Documents"), element("p", { class: "note" }, `${views.counted(data.documents.length + data.more, "document")} in ${visible(data.title)} `, jump), report, element("div", { class: "columns" }, main, beside)];
}
