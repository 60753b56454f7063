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
from typing import Any, TypeVar

from graphrag_mcp.errors import BadInput
from graphrag_mcp.index import losses
from graphrag_mcp.index.communities import Hierarchy
from graphrag_mcp.index.extraction import extract_unit
from graphrag_mcp.index.models import TOP_LEVELS, Models, choose, reads_in_full
from graphrag_mcp.index.records import Records
from graphrag_mcp.index.report_reply import Draft, no_source_of
from graphrag_mcp.index.reporting import Library, Reporting, library_of
from graphrag_mcp.index.summaries import Summary, params_from, parts_of, summarise
from graphrag_mcp.index.summaries_stage import COLUMNS, summarised_documents
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

Row = dict[str, Any]
T = TypeVar("T")
KINDS = ("extract", "summary", "report")  # of questions; texts change what a report is about
MOST_ITEMS = 100
READ_AT_ONCE = 50  # documents
LOOKED_AT = 200  # pending rows that one claim looks at; more only while it finds nothing to give


@dataclass(frozen=True, slots=True)
class Item:
    """One question. `ask_kind`: one of KINDS; `prompt`: all of it."""

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
    that had an answer."""

    accepted: list[str] = field(default_factory=list)
    rejected: list[dict[str, str]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)


class _Listener(Asker):
    """Answers from the reply cache, and keeps what it could not answer, and `also`."""

    def __init__(self, book: AnswerBook, also: Collection[str] = ()) -> None:
        super().__init__(book, None, None)
        self.open: dict[str, Ask[Any]] = {}
        self._also = also

    async def ask(self, ask: Ask[Any], *, on_text: Callable[[str], None] | None = None) -> Answer[Any]:
        answer = await super().ask(ask)
        if not answer.by or ask.key in self._also:
            self.open[ask.key] = ask
        return answer

    def known(self, ask: Ask[T]) -> Answer[T] | None:
        if ask.key in self._also:
            self.open[ask.key] = ask
        return super().known(ask)


# ---- what agents take -------------------------------------------------------------------------------


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
    """Lease the next open questions that no other client works on: of each kind first those that this
    client has claimed already, and reports last. These wait while a text is open for this client or is
    not merged; what others have may never come back.

    Of an index whose texts no agent reads, `kind` report gives the reports of the top communities.
    `level`: reports of communities down to this level alone. Only what is shown whole is leased:
    `fits` says whether these items can be. `process`: the server that the client came through."""
    if kind not in ("any", *KINDS):
        raise BadInput(f"kind {kind[:40]!r} is unknown", f"Use any, {', '.join(KINDS)}")
    snapshot = open_snapshot(folder, keep=False)
    claimed = Claimed(agents=bool(snapshot.manifest.parameters.get("agent")))
    rows = _open_rows(snapshot, kind, level)
    claimed.remaining = dict(Counter(row["kind"] for row in rows))
    taken = leases.taken(folder, client)
    mine = {(lease.kind, lease.subject) for lease in leases.of_client(folder, client)}
    rows = [row for row in rows if row["kind"] in (KINDS if kind == "any" else (kind,))]
    rows.sort(key=lambda row: (KINDS.index(row["kind"]), _about(row) not in mine, row["id"]))
    most, waits = min(max_items, MOST_ITEMS), False
    asks: dict[str, Ask[Any]] = {}
    leased: list[Lease] = []
    for place, (row, found) in enumerate(_questions(folder, settings, snapshot, rows)):
        report = row["kind"] == "report"
        if len(asks) >= most or (asks and place >= LOOKED_AT) or (report and waits):
            break
        waits |= not report and not found
        for key, ask in found.items():
            claimed.held += key in taken
            # the same text may stand in two documents
            if key in taken or key in asks or len(asks) >= most:
                continue
            item = Item(leases.work_id(key), ask.kind, _prompt(ask))
            if fits(replace(claimed, items=[*claimed.items, item])):
                asks[key] = ask
                claimed.items.append(item)
                leased.append(Lease(item.work_id, key, row["kind"], row["subject"], client, process))
                waits |= not report
            elif asks:
                most = len(asks)  # the reply is full
            else:
                claimed.too_long += 1
    had, meanwhile = _leased(folder, leased, asks)
    claimed.held += len(leased) - len(had) - meanwhile
    claimed.items = [item for item in claimed.items if item.work_id in had]
    return claimed


def _about(row: Row) -> tuple[str, str]:
    return row["kind"], row["subject"]


def _leased(folder: Path, leased: Sequence[Lease], asks: Mapping[str, Ask[Any]]) -> tuple[Set[str], int]:
    """The work_ids that this client has now, and how many another one has handed in since."""
    book = shared_replies.book(folder)
    meanwhile: set[str] = set()

    def answered(key: str) -> bool:
        # Leases are of this machine, and locked meanwhile: no look at a store over the network.
        if asks[key].first_readable(AnswerBook.get(book, key)):
            meanwhile.add(key)
        return key in meanwhile

    try:
        return leases.take(folder, leased, answered=answered), len(meanwhile)
    finally:
        book.close()


def _open_rows(snapshot: Snapshot, kind: str, level: int | None) -> list[Row]:
    """What is open: rows of `pending`, top communities without a written report, documents without a
    summary."""
    rows = open_questions(snapshot)
    if kind == "report" and method_of(snapshot.manifest) == "reports":
        return _top(snapshot, level or 0)
    if kind == SUMMARY:
        return _without_summary(snapshot, rows)
    if level is None:
        return rows
    ids = [row["subject"] for row in rows if row["kind"] == "report"]
    found = snapshot.served("communities", ids, ["id", "level"])
    kept = {row["id"] for row in found if row["level"] <= level}
    return [row for row in rows if row["subject"] in kept]


def _prompt(ask: Ask[Any]) -> str:
    """The words of a question; of a second pass also what the first reply was."""
    return "\n\n".join(
        message.content if message.role == "user" else f"Your first reply was:\n{message.content}"
        for message in ask.messages
    )


# ---- what agents hand in ----------------------------------------------------------------------------


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
    by_work_id = {str(result.get("work_id", "")).strip(): result for result in results if isinstance(result, dict)}
    known = leases.find(folder, list(by_work_id)) if by_work_id else {}
    for id in (id for id in by_work_id if id not in known):
        why = "there is no such work_id; take it from claim_work" if id else "no work_id is given"
        done.rejected.append(_told(id or "(none)", why))
    if len(by_work_id) < len(results):
        what = "a result must be an object with a work_id, each work_id once"
        done.rejected.append(_told("(none)", what))
    rows = [{"kind": lease.kind, "subject": lease.subject} for lease in known.values()]
    keys = {lease.key for lease in known.values()}
    asks: dict[str, Ask[Any]] = {}
    for _, found in _questions(folder, settings, snapshot, rows, keys):
        asks |= found
    answers: list[Stored] = []
    book = shared_replies.book(folder)
    for id, lease in known.items():
        stored = book.get(lease.key)
        try:
            _check_replaceable(stored, lease, who, client)
            if (ask := asks.get(lease.key)) is None:
                raise BadReply("what it was about has changed since; claim again")
            text, left_out = read_result(by_work_id[id], ask)
            text = ask.kept(text)
        except BadReply as error:
            done.rejected.append(_told(id, str(error)))
            continue
        done.accepted.append(id)
        done.left_out += [_told(id, left_out)] if left_out else []
        if not any(reply.text == text for reply in stored):
            answers.append(Stored(lease.key, f"agent:{who}", ask.kind, text))
            done.replaced += [id] if stored else []
    if answers:
        before()
        # First: killed in between, it is only read again.
        leases.correct(folder, [known[id] for id in done.replaced])
        book.replace(answers)
    book.close()
    leases.give_back(folder, done.accepted, client)
    return done


def _told(id: str, reason: str) -> dict[str, str]:
    return {"work_id": fencing.visible(id[:40]), "reason": reason}


def _check_replaceable(stored: Sequence[Stored], lease: Lease, who: str, client: str) -> None:
    """Raises BadReply where this client must not replace these answers."""
    if any(not reply.answerer.startswith("agent:") for reply in stored):
        raise BadReply("it has been answered already, by a model")
    own = lease.client == client or f"agent:{who}" in [reply.answerer for reply in stored]
    if stored and not own:
        by = stored[0].answerer
        raise BadReply(f"it has been answered already, by {by}; who answered an item can correct it")


def read_result(result: Mapping[str, Any], ask: Ask[Any]) -> tuple[str, str]:
    """The text of a result as it is kept, without the records that are refused, and what was left
    out. Raises BadReply where nothing is left."""
    text, told = _reply(result, ask), list[str]()
    try:
        value = ask.parse(text)
    except BadReply as error:
        raise BadReply(f"{error}; correct it and submit it again") from None
    if isinstance(value, Records):
        if dropped := losses.counted(value.dropped):
            told, text = [losses.listed(dropped, value.lost)], value.as_json()
        if value.repaired:
            told.append(f"kept with a value of ours: {losses.listed(value.repaired)}")
    elif isinstance(value, Draft):
        if value.left_out:
            told = [f"{counted(value.left_out, 'statements')} without a row of the question"]
        if value.unsupported:
            told.append(_doubted("report", no_source_of(value.unsupported)))
    else:
        summary: Summary = value[1]
        told = [_doubted("summary", doubts(summary.unsupported))] if summary.unsupported else []
        if summary.cut:
            told.append(f"the text after its first {len(summary.text)} characters")
        if summary.left_out:
            told.append(f"{counted(summary.left_out, 'labels or names')} that are no text")
        text = summary.as_json()
    return text, "; ".join(told)


def _doubted(what: str, doubts: str) -> str:
    return f"{doubts}; the {what} is kept; submit it again without these, else it is shown with a mark"


def _reply(result: Mapping[str, Any], ask: Ask[Any]) -> str:
    """The reply that was handed in: as JSON text, as an object, or as its parts beside the work_id; of
    a summary these are its text, labels and names."""
    text = result.get("text")
    if ask.kind == SUMMARY and not str(text).lstrip().startswith("{"):
        parts = {name: result.get(name) for name in ("text", "labels", "names")}
        text = {"summaries": [{"id": 1, **parts}]}
    elif isinstance(text, str) and text.strip():
        return clean(text).strip()
    elif not text:
        names = (ask.schema or {}).get("properties", ())
        text = {name: result[name] for name in names if result.get(name) is not None}
    return clean(json.dumps(text, ensure_ascii=False))


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


def _without_summary(snapshot: Snapshot, rows: Sequence[Row]) -> list[Row]:
    """Documents without a summary, or with sections without one, as rows of what is open. Notes need none."""
    rows = [row for row in rows if row["kind"] == SUMMARY]
    have = summarised_documents(snapshot) | {row["subject"] for row in rows} | notes_of(snapshot)
    for row in snapshot.rows("documents", columns=["id", "uri"]).to_pylist():
        if row["id"] not in have:
            rows.append({"id": row["uri"], "kind": SUMMARY, "subject": row["id"], "uri": row["uri"]})
    return rows


def _questions(
    folder: Path, settings: Settings, snapshot: Snapshot, rows: Sequence[Row], also: Collection[str] = ()
) -> Iterator[tuple[Row, dict[str, Ask[Any]]]]:
    """Each row with its questions by key: those that no one has answered, and `also`."""
    if not rows:
        return
    listener, known = _Listener(shared_replies.book(folder), also), dict[str, Context]()
    models = choose(method_of(snapshot.manifest), settings, snapshot.manifest, folder, listener)
    params = params_from(models.settings, folder)
    documents: dict[str, Row] = {}  # of this row and the next ones, read together
    tree: Hierarchy | None = None
    library: Library | None = None
    removed: Set[str] = frozenset()
    try:
        for place, row in enumerate(rows):
            listener.open, id = {}, row["subject"]
            if row["kind"] == "extract":
                _read_unit(models, snapshot, row, known)
            elif row["kind"] == SUMMARY:
                if id not in documents:
                    ids = [row["subject"] for row in rows[place : place + READ_AT_ONCE]]
                    served = snapshot.served("documents", ids, COLUMNS)
                    documents = {document["id"]: document for document in served}
                parts = parts_of(documents[id], params.longest) if id in documents else []
                listener.wait(summarise(listener, [parts], params, alone=True))
            elif row["kind"] == "report":
                if tree is None:
                    tree, library = stored_tree(snapshot), library_of(snapshot)
                    removed = _gone(snapshot, tree)
                community = tree.communities.get(id)
                if community is not None and removed.isdisjoint(community.members):
                    Reporting(snapshot, tree, models, {id}, library=library).write()
            yield row, dict(listener.open)
    finally:
        listener.close()


def _read_unit(models: Models, snapshot: Snapshot, row: Row, known_documents: dict[str, Context]) -> None:
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
