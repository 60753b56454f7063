"""Threads of mail: mails that answer each other, by `Message-ID`, `In-Reply-To` and `References` (RFC 5322,
section 3.6.4), which the reader of mail keeps in the metadata; with what is attached to them."""

from __future__ import annotations

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.times import Document, documents
from graphrag_mcp.store.tables import Snapshot, once

SHOWN = 12  # mails of a thread that one line names
TITLE = 60  # characters of a title on that line
KEYS = ("message_id", "in_reply_to", "thread")


def of_document(snapshot: Snapshot, id: str) -> list[Document]:
    """The documents in the thread of a document (content id) by time, this document included; [] if
    it is in no thread, or alone in its thread."""
    return _threads(snapshot).get(id, [])


def position(snapshot: Snapshot, id: str) -> str:
    """`d13 is 2 of 3 in a thread: d12 2024-03-04 Offer; d13; d14 2024-03-06 Re: Offer.`; "" for none."""
    thread = of_document(snapshot, id)
    at = next((at for at, fact in enumerate(thread) if fact.id == id), -1)
    if at < 0:
        return ""
    first = max(0, min(at - SHOWN // 2, len(thread) - SHOWN))
    named = []
    for fact in thread[first : first + SHOWN]:
        other = f"{fact.alias} {fact.date} {one_line(fact.title, TITLE)}"
        named.append(fact.alias if fact.id == id else other)
    cut = " …" if len(thread) > SHOWN else ""
    return f"{thread[at].alias} is {at + 1} of {len(thread)} in a thread: {'; '.join(named)}{cut}."


@once
def _threads(snapshot: Snapshot) -> dict[str, list[Document]]:
    """Of every document (content id) in a thread of two or more the documents of that thread by time."""
    above: dict[str, str] = {}  # message id -> one that stands for the same thread

    def root(name: str) -> str:
        while above.setdefault(name, name) != name:
            above[name] = name = above[above[name]]
        return name

    mails = []
    for fact in documents(snapshot).values():
        if names := [str(fact.metadata[key]) for key in KEYS if fact.metadata.get(key)]:
            mails.append((names[0], fact))
            for other in names[1:]:
                above[root(other)] = root(names[0])
    threads: dict[str, list[Document]] = {}
    for name, fact in mails:
        threads.setdefault(root(name), []).append(fact)
    found: dict[str, list[Document]] = {}
    for thread in threads.values():
        thread.sort(key=lambda fact: (fact.moment, fact.uri))  # a first mail may have no date
        found |= {fact.id: thread for fact in thread if len(thread) > 1}
    return found
