"""The agent as the model: what is still to be answered as work items, and answers handed in as a
model's would be.

Takes a corpus folder and settings; gives items to read (texts, descriptions to merge, communities
to report) and puts what an agent submits into the answer book, through the same parsers that read a
model's replies. The next indexing finds it there. An item is a question that the straight-line code
of indexing asks and nobody answers: it is run with an asker that only listens, so there is no
second list of what to ask. Knows no tool and writes no table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.index import communities_stage, descriptions
from graphrag_mcp.index.claims import claims_of_unit
from graphrag_mcp.index.communities import Hierarchy
from graphrag_mcp.index.extraction import extract_unit, locate
from graphrag_mcp.index.models import Models, choose
from graphrag_mcp.llm.asker import Answer, Ask, Asker, BadReply, key_of
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.decode import clean
from graphrag_mcp.store import leases
from graphrag_mcp.store.leases import Lease
from graphrag_mcp.store.reply_cache import AnswerBook, Stored
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.credentials import masked

Row = dict[str, Any]
# What an agent asks for -> kinds of the table `pending`, in the order in which the work makes
# sense.
KINDS = {
    "extract": ("extract", "claims"),
    "describe": ("entity", "relationship"),
    "report": ("report",),
}
MOST_ITEMS = 20
LOOKED_AT = 200  # pending rows that one claim looks at; more only while it finds nothing to give


@dataclass(frozen=True, slots=True)
class Item:
    """One question. `ask_kind` says what is wanted: extract, claims, describe or report; `prompt`
    is all of it.
    """

    work_id: str
    ask_kind: str
    prompt: str
    tokens: int


@dataclass
class Claimed:
    """`remaining` rows of `pending` by kind, the claimed ones included; `held`: open questions that
    others have. `agents`: the index is one that agents are to read."""

    items: list[Item] = field(default_factory=list)
    remaining: dict[str, int] = field(default_factory=dict)
    held: int = 0
    agents: bool = False


@dataclass
class Submitted:
    """`rejected` as {work_id, reason}; a rejected item stays claimed and may be submitted again.
    `left_out` the same for records that an accepted item lost. `pending`: rows that are open until
    the next merge."""

    accepted: list[str] = field(default_factory=list)
    rejected: list[dict[str, str]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    pending: int = 0


class _Listener(Asker):
    """Answers from the book alone, and keeps what it could not answer."""

    def __init__(self, book: AnswerBook) -> None:
        super().__init__(book, None, None)
        self.open: dict[str, Ask[Any]] = {}

    async def ask(
        self, ask: Ask[Any], *, on_text: Callable[[str], None] | None = None
    ) -> Answer[Any]:
        answer = await super().ask(ask)
        if not answer.by:
            self.open[key_of(ask.messages, ask.schema)] = ask
        return answer


def claim(
    folder: Path,
    settings: Settings,
    who: str,
    *,
    kind: str = "any",
    max_items: int = 5,
    max_tokens: int = 6000,
    gone: Callable[[str], bool] = lambda who: False,
) -> Claimed:
    """The next open questions that nobody else works on, at least one however long it is. `gone`
    says of a holder whether it is known to work no more."""
    if kind != "any" and kind not in KINDS:
        raise BadInput(f"kind {kind[:40]!r} is unknown", f"Use any, {', '.join(KINDS)}")
    snapshot = open_snapshot(folder)
    claimed, spent = Claimed(agents=bool(snapshot.manifest.parameters.get("agent"))), 0
    rows = _pending(snapshot)
    for row in rows:
        claimed.remaining[row["kind"]] = claimed.remaining.get(row["kind"], 0) + 1
    wanted = [name for one in ([kind] if kind != "any" else KINDS) for name in KINDS[one]]
    mine = [row for row in rows if row["kind"] in wanted]
    order = sorted(mine, key=lambda row: (wanted.index(row["kind"]), row["id"]))
    leases.free(folder, gone)
    taken = leases.taken(folder, who)
    held: list[Lease] = []
    unmerged = False  # an answer that the next merge takes in changes what the reports are about
    for place, (row, found) in enumerate(_questions(folder, settings, snapshot, order)):
        if place >= LOOKED_AT and held or unmerged and row["kind"] == "report":
            break
        unmerged = unmerged or row["kind"] != "report" and not found
        for key, ask in found.items():
            text = _prompt(ask)
            tokens = count_tokens(text)
            full = len(held) >= min(max_items, MOST_ITEMS) or (held and spent + tokens > max_tokens)
            claimed.held += key in taken
            if (
                key in taken or full or any(key == one.key for one in held)
            ):  # the same text in two documents
                continue
            held.append(Lease(leases.work_id(key), key, row["kind"], row["subject"], who))
            claimed.items.append(Item(leases.work_id(key), ask.kind, text, tokens))
            spent += tokens
        if len(held) >= min(max_items, MOST_ITEMS) or spent >= max_tokens:
            break
    had = leases.take(folder, held)
    claimed.items = [item for item in claimed.items if item.work_id in had]
    claimed.held += len(held) - len(had)
    return claimed


def submit(
    folder: Path,
    settings: Settings,
    who: str,
    results: Sequence[Any],
    before: Callable[[], None] = lambda: None,
) -> Submitted:
    """Check every result by itself; the good ones are durable in the answer book when this returns.

    A result is {"work_id", "entities", "relationships"} or {"work_id", "text"}. The same one twice
    changes nothing. `before` is called when there is something to write, before it is written.
    """
    done, snapshot = Submitted(), open_snapshot(folder)
    done.pending = len(_pending(snapshot))
    book = AnswerBook(folder)
    given = {str(one.get("work_id", "")).strip(): one for one in results if isinstance(one, dict)}
    known = leases.find(folder, list(given)) if given else {}
    done.rejected += [_refused(id or "(none)", _unknown(id)) for id in given if id not in known]
    if len(given) < len(results):
        done.rejected.append(
            _refused("(none)", "a result must be an object with a work_id, each work_id once")
        )
    rows = [{"kind": lease.kind, "subject": lease.subject, "uri": ""} for lease in known.values()]
    asks = {
        key: ask
        for _, found in _questions(folder, settings, snapshot, rows)
        for key, ask in found.items()
    }
    answers = []
    for id, lease in known.items():
        text = _reply(given[id])
        stored = book.get(lease.key)
        if any(one.answerer == f"agent:{who}" and one.text == text for one in stored):
            done.accepted.append(id)  # handed in before
            continue
        ask = asks.get(lease.key)
        if ask is None:
            why = (
                "it has been answered already"
                if stored
                else "what it was about has changed since; claim again"
            )
            done.rejected.append(_refused(id, why))
            continue
        try:
            value = ask.parse(text)
        except BadReply as error:
            done.rejected.append(_refused(id, f"{error}; correct it and submit it again"))
            continue
        if other := _of_another(
            value, ask, {at: asks[one.key] for at, one in known.items() if one.key in asks}
        ):
            done.rejected.append(
                _refused(id, f"its names stand in the text of {other}, none in its own; swapped?")
            )
            continue
        answers.append(Stored(lease.key, f"agent:{who}", ask.kind, text))
        done.accepted.append(id)
        lost = {
            why: count for why, count in getattr(value, "dropped", {}).items() if why != "duplicate"
        }
        if lost:
            done.left_out.append(
                _refused(id, ", ".join(f"{count} x {why}" for why, count in sorted(lost.items())))
            )
    if answers:
        before()
    book.put(answers)
    book.close()
    leases.give_back(folder, done.accepted)
    return done


def _refused(id: str, reason: str) -> dict[str, str]:
    return {"work_id": id[:40], "reason": reason}


def _unknown(id: str) -> str:
    return "no work_id is given" if not id else "there is no such work_id; take it from claim_work"


def _of_another(value: Any, ask: Ask[Any], asks: Mapping[str, Ask[Any]]) -> str:
    """The item in whose text all the names stand of which none stands in that of its own; "" where
    there is none.
    """
    names = [one.name for one in getattr(value, "entities", ())]
    if not names or any(locate(_text_of(ask), name) for name in names):
        return ""
    return next(
        (id for id, one in asks.items() if all(locate(_text_of(one), name) for name in names)), ""
    )


def _text_of(ask: Ask[Any]) -> str:
    return ask.messages[0].content.rpartition("<text>")[2]


def _reply(result: Row) -> str:
    """What a model would have said: the text handed in, or the records as JSON; without what no
    file can hold.
    """
    text = result.get("text")
    if isinstance(text, str) and text.strip():
        return clean(text).strip()
    if isinstance(text, dict | list):  # a report handed in as an object
        return clean(json.dumps(text, ensure_ascii=False))
    records = {name: result.get(name) or [] for name in ("entities", "relationships")}
    return clean(json.dumps(records, ensure_ascii=False))


def _prompt(ask: Ask[Any]) -> str:
    """The words of a question; of a second pass also what the first reply was."""
    return "\n\n".join(
        message.content if message.role == "user" else f"Your first reply was:\n{message.content}"
        for message in ask.messages
    )


# ---- what is open ------------------------------------------------------------------------------------


def _pending(snapshot: Snapshot) -> list[Row]:
    return snapshot.rows("pending").to_pylist() if "pending" in snapshot.manifest.tables else []


def _questions(
    folder: Path, settings: Settings, snapshot: Snapshot, rows: Sequence[Row]
) -> Iterator[tuple[Row, dict[str, Ask[Any]]]]:
    """Each row with the questions that it stands for and nobody has answered, by key."""
    if not rows:
        return
    listener = _Listener(AnswerBook(folder))
    models = choose("agent", settings, snapshot.manifest, folder, listener)
    try:
        if any(row["kind"] == "report" for row in rows):
            tree = communities_stage.stored_tree(snapshot)
            gone = _gone(snapshot, tree)
        for row in rows:
            listener.open = {}
            if row["kind"] in KINDS["extract"]:
                _read_unit(models, snapshot, row)
            elif row["kind"] in descriptions.OF_TABLE:
                started = descriptions.begin(snapshot, [row], models, {})
                for future in started.futures.values():
                    future.result()
            elif row["subject"] in tree.communities and gone.isdisjoint(
                tree.communities[row["subject"]].members
            ):
                numbers = dict(snapshot.manifest.next)
                communities_stage.report(
                    snapshot, tree, set(), numbers, models=models, retry={row["subject"]}
                )
            yield row, dict(listener.open)
    finally:
        listener.close()


def _read_unit(models: Models, snapshot: Snapshot, row: Row) -> None:
    units = snapshot.by_key("text_units", [row["subject"]], "id", ["id", "text"]).to_pylist()
    if not units or models.extract is None:
        return
    text = masked(units[0]["text"])  # as the indexing asks, else its answer would never be found
    if row["kind"] == "claims":
        if models.claims is not None:
            models.asker.wait(claims_of_unit(models.asker, text, models.claims))
        return
    names = snapshot.by_key(
        "mentions", [row["subject"]], "text_unit_id", ["form", "strong", "by"]
    ).to_pylist()
    known = [one["form"] for one in names if one["strong"] and not one["by"]]
    models.asker.wait(extract_unit(models.asker, text, lambda: known, models.extract))


def _gone(snapshot: Snapshot, tree: Hierarchy) -> Set[str]:
    """Members of communities that are no entities any more: an edit, or a run that others wait for,
    has taken them out, and the communities follow. A report on what is left is another question,
    asked then."""
    if not snapshot.manifest.stale:
        return frozenset()
    return tree.path.keys() - set(snapshot.rows("entities", columns=["id"])["id"].to_pylist())


def waits(folder: Path) -> int:
    """How many pending rows there are. NotFound when nothing was ever indexed there."""
    try:
        return len(_pending(open_snapshot(folder)))
    except NotFound:
        return 0
