"""The agent as the model: open requests as work items, and the results that agents submit.

An item is a question that indexing asks and no model answers: indexing is run with an asker that only
listens, so there is no second list of what to ask. A submitted result is checked, and put into the
reply cache, where the next indexing finds it; an agent is told what was left out, and can correct it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.index.communities import Hierarchy
from graphrag_mcp.index.extraction import extract_unit
from graphrag_mcp.index.losses import UNCOUNTED, listed
from graphrag_mcp.index.models import TOP_LEVELS, Models, choose, reads_in_full
from graphrag_mcp.index.records import Records
from graphrag_mcp.index.report_reply import Draft, no_source_of
from graphrag_mcp.index.reporting import Library, Reporting, library_of
from graphrag_mcp.index.summaries import Summary, params_from, parts_of, texts_of
from graphrag_mcp.index.summaries import ask as ask_for
from graphrag_mcp.index.summaries_stage import COLUMNS
from graphrag_mcp.index.summaries_stage import KIND as SUMMARY
from graphrag_mcp.index.tree import stored_tree
from graphrag_mcp.index.units import Context, stored
from graphrag_mcp.llm.asker import Answer, Ask, Asker, BadReply
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.decode import clean
from graphrag_mcp.store import leases, shared_replies
from graphrag_mcp.store.leases import Lease
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.reply_cache import AnswerBook, Stored
from graphrag_mcp.store.schema import doubts
from graphrag_mcp.store.tables import Snapshot, notes_of, open_questions, open_snapshot
from graphrag_mcp.text.terms import counted
from graphrag_mcp.trust import fencing


def read_result(result: Mapping[str, Any], ask: Ask[Any]) -> tuple[str, str]:
    """The text of a result as it is kept, without the records that are refused, and what was left
    out. Raises BadReply where nothing is left."""
    text = _summary_text(result) if ask.kind == SUMMARY else _text(result, ask.schema or {})
    value = ask.parse(text)
    if isinstance(value, Records):
        dropped = {why: count for why, count in value.dropped.items() if why not in UNCOUNTED}
        left_out = [listed(dropped, value.lost)] if dropped else []
        if value.repaired:
            left_out.append(f"kept with a value of ours: {listed(value.repaired)}")
        return value.as_json() if dropped else text, "; ".join(left_out)
    if isinstance(value, dict) and isinstance(summary := value.get(1), Summary):
        told = [_doubted("summary", doubts(summary.unsupported))] if summary.unsupported else []
        if summary.cut:
            told.append(f"the text after its first {len(summary.text)} characters")
        if summary.left_out:
            told.append(f"{counted(summary.left_out, 'labels or names')} that are no text")
        return summary.as_json(), "; ".join(told)
    if isinstance(value, Draft):
        told = []
        if value.left_out:
            told.append(f"{counted(value.left_out, 'statements')} without a row of the question")
        if value.unsupported:
            told.append(_doubted("report", no_source_of(value.unsupported)))
        return text, "; ".join(told)
    parts = value if isinstance(value, tuple) else ()
    lost = next((part for part in parts if isinstance(part, Counter)), {})
    return text, listed(lost)


def _doubted(what: str, doubts: str) -> str:
    return (
        f"{doubts}; the {what} is kept; submit it again without these, else it is shown with a mark"
    )


def _summary_text(result: Mapping[str, Any]) -> str:
    """The reply about one text that a result with "text", "labels" and "names" stands for."""
    text = result.get("text")
    if isinstance(text, str) and text.lstrip().startswith("{"):
        return clean(text)
    summary = {"id": 1, "text": text, "labels": result.get("labels"), "names": result.get("names")}
    return clean(json.dumps({"summaries": [summary]}, ensure_ascii=False))


def _text(result: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """The reply that was handed in: as JSON text, as an object, or as the parts of the object beside the
    work_id."""
    text, names = result.get("text"), schema.get("properties", ())
    if isinstance(text, str) and text.strip():
        return clean(text).strip()
    parts = text or {name: result[name] for name in names if result.get(name) is not None}
    return clean(json.dumps(parts, ensure_ascii=False))


Row = dict[str, Any]
# What an agent asks for -> kinds of the table `pending`, in the order in which the work makes
# sense.
KINDS: dict[str, tuple[str, ...]] = {
    "extract": ("extract",),
    "report": ("report",),
    "summary": ("summary",),
}
MOST_ITEMS = 100
READ_AT_ONCE = 50  # documents
LOOKED_AT = 200  # pending rows that one claim looks at; more only while it finds nothing to give


@dataclass(frozen=True, slots=True)
class Item:
    """One question. `ask_kind`: extract, report or summary; `prompt`: all of it."""

    work_id: str
    ask_kind: str
    prompt: str


@dataclass
class Claimed:
    """`items` are those that were leased. `remaining` rows of `pending` by kind, the claimed ones
    included; `held`: open questions that others have; `too_long`: questions that cannot be shown in
    one reply. `agents`: the index is one that agents are to read."""

    items: list[Item] = field(default_factory=list)
    remaining: dict[str, int] = field(default_factory=dict)
    held: int = 0
    too_long: int = 0
    agents: bool = False


@dataclass
class Submitted:
    """`rejected` as {work_id, reason}; a rejected item stays claimed and may be submitted again.
    `left_out` the same for records of accepted items that were refused. `replaced`: accepted items
    that had an answer. `pending`: rows that are open until the next merge."""

    accepted: list[str] = field(default_factory=list)
    rejected: list[dict[str, str]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    pending: int = 0


class _Listener(Asker):
    """Answers from the reply cache, and keeps what it could not answer, and `also`."""

    def __init__(self, book: AnswerBook, also: Collection[str] = ()) -> None:
        super().__init__(book, None, None)
        self.open: dict[str, Ask[Any]] = {}
        self._also = also

    async def ask(
        self, ask: Ask[Any], *, on_text: Callable[[str], None] | None = None
    ) -> Answer[Any]:
        answer = await super().ask(ask)
        key = ask.key
        if not answer.by or key in self._also:
            self.open[key] = ask
        return answer


def claim(
    folder: Path,
    settings: Settings,
    client: str,
    *,
    kind: str = "any",
    level: int | None = None,
    max_items: int = 5,
    process: int = 0,
    fits: Callable[[Claimed], bool] = lambda _: True,
) -> Claimed:
    """Lease the next open questions that no other client works on: first those that this client has
    claimed already.

    Of an index whose texts no agent reads, `kind` report gives the reports of the top communities.
    `level`: reports of communities down to this level alone. Only what is shown whole is leased:
    `fits` says whether these items can be. `process`: the server that the client came through."""
    if kind != "any" and kind not in KINDS:
        raise BadInput(f"kind {kind[:40]!r} is unknown", f"Use any, {', '.join(KINDS)}")
    snapshot = open_snapshot(folder, keep=False)
    claimed = Claimed(agents=bool(snapshot.manifest.parameters.get("agent")))
    rows = open_questions(snapshot)
    if kind == "report" and method_of(snapshot.manifest) == "reports":
        rows = _top(snapshot, level or 0)
    elif kind == SUMMARY:
        rows = _without_summary(snapshot)
    elif level is not None:
        ids = [row["subject"] for row in rows if row["kind"] == "report"]
        found = snapshot.served("communities", ids, ["id", "level"])
        kept = {row["id"] for row in found if row["level"] <= level}
        rows = [row for row in rows if row["subject"] in kept]
    claimed.remaining = dict(Counter(row["kind"] for row in rows))
    mine, taken = leases.of_client(folder, client), leases.taken(folder, client)
    order, most, leased = _in_order(rows, kind, mine), min(max_items, MOST_ITEMS), list[Lease]()
    asks: dict[str, Ask[Any]] = {}
    for lease, item, ask in _offered(folder, settings, snapshot, claimed, order, taken):
        if not fits(replace(claimed, items=[*claimed.items, item])):
            if claimed.items:
                break
            claimed.too_long += 1
            continue
        claimed.items.append(item)
        asks[lease.key] = ask
        leased.append(Lease(lease.work_id, lease.key, lease.kind, lease.subject, client, process))
        if len(leased) >= most:
            break
    book = shared_replies.book(folder)
    meanwhile: set[str] = set()  # keys of what another client has handed in since

    def answered(key: str) -> bool:
        # Leases are of this machine, and locked meanwhile: no look at a store over the network.
        if asks[key].first_readable(AnswerBook.get(book, key)):
            meanwhile.add(key)
        return key in meanwhile

    try:
        had = leases.take(folder, leased, answered=answered)
    finally:
        book.close()
    claimed.held += len(leased) - len(had) - len(meanwhile)
    claimed.items = [item for item in claimed.items if item.work_id in had]
    return claimed


def _in_order(rows: Sequence[Row], kind: str, claimed: Sequence[Lease]) -> list[Row]:
    """The rows of what is asked for: texts that the client holds, then all in the
    order in which the work makes sense. A report waits for what comes before it also where it is
    held: what the next merge takes in changes what it is about."""
    requested = [name for group in ([kind] if kind != "any" else KINDS) for name in KINDS[group]]
    mine = {f"{lease.kind}:{lease.subject}" for lease in claimed}
    asked = [row for row in rows if row["kind"] in requested]

    def place(row: Row) -> tuple[bool, int, bool, str]:
        other = row["id"] not in mine
        return other or row["kind"] == "report", requested.index(row["kind"]), other, row["id"]

    return sorted(asked, key=place)


def _offered(
    folder: Path,
    settings: Settings,
    snapshot: Snapshot,
    claimed: Claimed,
    rows: Sequence[Row],
    taken: Set[str],
) -> Iterator[tuple[Lease, Item, Ask[Any]]]:
    """Open questions in order, each once, without those that others have: these are counted. Reports
    come last, and wait while a text of these rows is open for this client or is not
    merged, since texts change what the report is about. They do not wait for what others have: who has
    it may have left. Where reports alone are asked for, the rows hold nothing that they wait for."""
    seen: set[str] = set()
    waits = False
    for place, (row, found) in enumerate(_questions(folder, settings, snapshot, rows)):
        report = row["kind"] == "report"
        if place >= LOOKED_AT and seen or waits and report:
            return
        waits = waits or not report and not found
        for key, ask in found.items():
            claimed.held += key in taken
            if key not in taken and key not in seen:  # the same text may stand in two documents
                seen.add(key)
                item = Item(leases.work_id(key), ask.kind, _prompt(ask))
                too_long = claimed.too_long
                yield Lease(item.work_id, key, row["kind"], row["subject"]), item, ask
                # What is too long for this client holds up nothing.
                waits = waits or not report and claimed.too_long == too_long


def submit(
    folder: Path,
    settings: Settings,
    who: str,
    results: Sequence[Any],
    before: Callable[[], None] = lambda: None,
    client: str = "",
) -> Submitted:
    """Check every result by itself; the good ones are durable in the reply cache when this returns.

    A result is {"work_id", "entities", "relationships"} or {"work_id", "text"}. The same one twice
    changes nothing, another one replaces the first. `who` stands beside what is kept; `client` is
    who claims (`who` where it is not given). `before` is called when there is something to write,
    before it is written."""
    done, snapshot, client = Submitted(), open_snapshot(folder, keep=False), client or who
    done.pending = len(open_questions(snapshot))
    book = shared_replies.book(folder)
    by_work_id = {
        str(result.get("work_id", "")).strip(): result
        for result in results
        if isinstance(result, dict)
    }
    known = leases.find(folder, list(by_work_id)) if by_work_id else {}
    for id in (work_id for work_id in by_work_id if work_id not in known):
        why = "there is no such work_id; take it from claim_work" if id else "no work_id is given"
        done.rejected.append(_refused(id or "(none)", why))
    if len(by_work_id) < len(results):
        what = "a result must be an object with a work_id, each work_id once"
        done.rejected.append(_refused("(none)", what))
    rows = [{"kind": lease.kind, "subject": lease.subject, "uri": ""} for lease in known.values()]
    keys = {lease.key for lease in known.values()}
    asks: dict[str, Ask[Any]] = {}
    for _, found in _questions(folder, settings, snapshot, rows, keys):
        asks |= found
    of_item = {id: asks[lease.key] for id, lease in known.items() if lease.key in asks}
    answers = []
    for id, lease in known.items():
        text, left_out = "", ""
        stored = book.get(lease.key)
        why = _not_to_be_replaced(stored, lease, who, client)
        if not why and id not in of_item:
            why = "what it was about has changed since; claim again"
        if not why:
            try:
                text, left_out = read_result(by_work_id[id], of_item[id])
                text = of_item[id].kept(text)
            except BadReply as error:
                why = f"{error}; correct it and submit it again"
        if why:
            done.rejected.append(_refused(id, why))
            continue
        done.accepted.append(id)
        done.left_out += [_refused(id, left_out)] if left_out else []
        if not any(reply.text == text for reply in stored):
            answers.append(Stored(lease.key, f"agent:{who}", of_item[id].kind, text))
            done.replaced += [id] if stored else []
    if answers:
        before()
        # First: killed in between, it is only read again.
        leases.correct(folder, [known[id] for id in done.replaced])
        book.replace(answers)
    book.close()
    leases.give_back(folder, done.accepted, client)
    return done


def _refused(id: str, reason: str) -> dict[str, str]:
    return {"work_id": fencing.visible(id[:40]), "reason": reason}


def _not_to_be_replaced(stored: Sequence[Stored], lease: Lease, who: str, client: str) -> str:
    """Why this client must not replace these answers; "" where it may."""
    if any(not reply.answerer.startswith("agent:") for reply in stored):
        return "it has been answered already, by a model"
    if (
        stored
        and lease.client != client
        and all(reply.answerer != f"agent:{who}" for reply in stored)
    ):
        return f"it has been answered already, by {stored[0].answerer}; who answered an item can correct it"
    return ""


def _prompt(ask: Ask[Any]) -> str:
    """The words of a question; of a second pass also what the first reply was."""
    return "\n\n".join(
        message.content if message.role == "user" else f"Your first reply was:\n{message.content}"
        for message in ask.messages
    )


# ---- what is open ------------------------------------------------------------------------------------


def method_of(manifest: Manifest) -> str:
    """The method by which an agent's answers come into an index: "agent" where all texts are read,
    "reports" where only the reports of the top communities are written, "auto" where a model writes
    summaries."""
    if manifest.parameters.get("light"):
        return "auto"
    return "agent" if reads_in_full(manifest) else "reports"


def _top(snapshot: Snapshot, level: int) -> list[Row]:
    """The top communities, the largest first, as rows of what is open."""
    if level >= TOP_LEVELS:
        raise BadInput(
            "without reading the texts, an agent writes the reports of level 0 alone",
            'Call claim_work(kind="report", level=0), or index_documents(paths=[...], method="agent") '
            "to read the texts first",
        )
    names = ["id", "n", "method", "n_text_units"]
    rows = snapshot.rows("reports", f"level <= {level:d}", names).to_pylist()
    rows.sort(key=lambda row: (-row["n_text_units"], row["id"]))
    return [
        {"id": f"{place:09d}", "kind": "report", "subject": row["id"], "uri": ""}
        for place, row in enumerate(rows)
        if row["method"] == "extractive"
    ]


def _without_summary(snapshot: Snapshot) -> list[Row]:
    """Documents without a summary, or with sections without one, as rows of what is open. Notes need none."""
    rows = [row for row in open_questions(snapshot) if row["kind"] == SUMMARY]
    have = set(snapshot.rows("summaries", columns=["document_id"])["document_id"].to_pylist())
    have |= {row["subject"] for row in rows} | notes_of(snapshot)
    for row in snapshot.rows("documents", columns=["id", "uri"]).to_pylist():
        if row["id"] not in have:
            rows.append(
                {"id": row["uri"], "kind": SUMMARY, "subject": row["id"], "uri": row["uri"]}
            )
    return rows


def _questions(
    folder: Path,
    settings: Settings,
    snapshot: Snapshot,
    rows: Sequence[Row],
    also: Collection[str] = (),
) -> Iterator[tuple[Row, dict[str, Ask[Any]]]]:
    """Each row with its questions by key: those that no one has answered, and `also`."""
    if not rows:
        return
    listener, known = _Listener(shared_replies.book(folder), also), dict[str, Context]()
    models = choose(method_of(snapshot.manifest), settings, snapshot.manifest, folder, listener)
    summary_params = params_from(models.settings, folder)
    try:
        tree: Hierarchy | None = None
        removed: Set[str] = frozenset()
        if any(row["kind"] == "report" for row in rows):
            tree = stored_tree(snapshot)
            removed = _gone(snapshot, tree)
        library: Library | None = None
        documents: dict[str, Row] = {}  # of this row and the next ones, read together
        for place, row in enumerate(rows):
            listener.open = {}
            if row["kind"] in KINDS["extract"]:
                _read_unit(models, snapshot, row, known)
            elif row["kind"] == SUMMARY:
                if row["subject"] not in documents:
                    ids = [row["subject"] for row in rows[place : place + READ_AT_ONCE]]
                    served = snapshot.served("documents", ids, COLUMNS)
                    documents = {document["id"]: document for document in served}
                if document := documents.get(row["subject"]):
                    parts = parts_of(document, summary_params.longest)
                    for part, written in texts_of(listener, parts, summary_params):
                        if written is None or also:
                            ask = ask_for([part], summary_params)
                            if written is None or ask.key in also:
                                listener.open[ask.key] = ask
            elif tree is not None and (community := tree.communities.get(row["subject"])):
                if removed.isdisjoint(community.members):
                    library = library or library_of(snapshot)
                    Reporting(snapshot, tree, models, {community.id}, library=library).write()
            yield row, dict(listener.open)
    finally:
        listener.close()


def _read_unit(
    models: Models, snapshot: Snapshot, row: Row, known_documents: dict[str, Context]
) -> None:
    unit = next(stored(snapshot, [row["subject"]], known_documents), None)
    if unit is None or models.extract is None:
        return
    _, text, context = unit
    columns = ["form", "strong", "by"]
    names = snapshot.by_key("mentions", [row["subject"]], columns=columns).to_pylist()
    known = [name["form"] for name in names if name["strong"] and not name["by"]]
    models.asker.wait(extract_unit(models.asker, text, known, models.extract, context))


def _gone(snapshot: Snapshot, tree: Hierarchy) -> Set[str]:
    """Members of communities that are no entities any more: an edit, or a run that others wait for,
    has taken them out, and the communities follow. A report on what is left is another question,
    asked then."""
    if not snapshot.manifest.stale:
        return frozenset()
    return tree.path.keys() - set(snapshot.rows("entities", columns=["id"])["id"].to_pylist())
