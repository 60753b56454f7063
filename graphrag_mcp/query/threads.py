"""Threads of mail: mails that answer each other, by `Message-ID`, `In-Reply-To` and `References` (RFC 5322,
section 3.6.4), which the reader of mail keeps in the metadata; with what is attached to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.times import documents
from graphrag_mcp.store.tables import Snapshot, once

Fact = Mapping[str, Any]  # of a document, as times.documents has it
SHOWN = 12  # mails of a thread that one line names
TITLE = 60  # characters of a title on that line
KEYS = ("message_id", "in_reply_to", "thread")


def of_document(snapshot: Snapshot, id: str) -> list[Fact]:
    """The documents in the thread of a document (content id) by time, this document included; [] if
    it is in no thread, or alone in its thread."""
    return _threads(snapshot).get(id, [])


def told(snapshot: Snapshot, id: str) -> str:
    """`d13 is 2 of 3 in a thread: d12 2024-03-04 Offer; d13; d14 2024-03-06 Re: Offer.`; "" for none."""
    thread = of_document(snapshot, id)
    at = next((at for at, fact in enumerate(thread) if fact["document"][1] == id), -1)
    if at < 0:
        return ""
    first = max(0, min(at - SHOWN // 2, len(thread) - SHOWN))
    named = []
    for fact in thread[first : first + SHOWN]:
        alias, other, title, *_ = fact["document"]
        named.append(alias if other == id else f"{alias} {fact['date']} {one_line(title, TITLE)}")
    cut = " …" if len(thread) > SHOWN else ""
    return f"{thread[at]['document'][0]} is {at + 1} of {len(thread)} in a thread: {'; '.join(named)}{cut}."


@once
def _threads(snapshot: Snapshot) -> dict[str, list[Fact]]:
    """Of every document (content id) in a thread of two or more the documents of that thread by time."""
    above: dict[str, str] = {}  # message id -> one that stands for the same thread

    def root(name: str) -> str:
        while above.setdefault(name, name) != name:
            above[name] = name = above[above[name]]
        return name

    mails = []
    for fact in documents(snapshot).values():
        if names := [str(fact["metadata"][key]) for key in KEYS if fact["metadata"].get(key)]:
            mails.append((names[0], fact))
            for other in names[1:]:
                above[root(other)] = root(names[0])
    threads: dict[str, list[Fact]] = {}
    for name, fact in mails:
        threads.setdefault(root(name), []).append(fact)
    found: dict[str, list[Fact]] = {}
    for thread in threads.values():
        thread.sort(key=lambda fact: (fact["moment"], fact["uri"]))
        found |= {fact["document"][1]: thread for fact in thread if len(thread) > 1}
    return found
