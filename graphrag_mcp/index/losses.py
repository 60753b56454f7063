"""What models and agents did not answer, as rows of the table `pending`; and counts of records that were left
out of their replies, or repaired, as a sentence and as rows of the table `losses`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrag_mcp.llm.protocols import TWICE
from graphrag_mcp.text.terms import lists_of

Row = dict[str, Any]
RECORDS = "records"  # the kind of a loss in the list of what is degraded
DUPLICATE = "duplicate"  # said twice is not lost
NAMED = 5  # records of one reason that are named


@dataclass(frozen=True, slots=True)
class Losses:
    """Records of one text that were left out or repaired, by reason."""

    dropped: Mapping[str, int] = field(default_factory=dict)
    repaired: Mapping[str, int] = field(default_factory=dict)

    def row(self, kind: str, unit: str, uri: str) -> Row | None:
        """The row of a text unit of which something was lost."""
        dropped, repaired = counted(self.dropped), counted(self.repaired)
        parts = [f"left out {sum(dropped.values())} ({listed(dropped)})"] if dropped else []
        parts += [f"repaired {sum(repaired.values())} ({listed(repaired)})"] if repaired else []
        if not parts:
            return None
        row: Row = {"id": f"{kind}:{unit}", "kind": kind, "subject": unit, "uri": uri}
        row |= {"dropped": sum(dropped.values()), "repaired": sum(repaired.values())}
        return row | {"reason": f"records of the reply {', '.join(parts)}"}


def pending(kind: str, subject: str, uri: str, reason: str) -> Row:
    row = {"kind": kind, "subject": subject, "uri": uri, "reason": reason[:300]}
    return {"id": f"{kind}:{subject}", **row}


def counted(counts: Mapping[str, int]) -> Counter[str]:
    """Those of records that are lost."""
    return +Counter({why: count for why, count in counts.items() if why != DUPLICATE})


def listed(counts: Mapping[str, int], records: Iterable[tuple[str, str]] = ()) -> str:
    """`2 x no name, 1 x no description`, by count; with the first `records` of each."""
    named = lists_of(records)
    parts = []
    for why, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        more = ["..."] if count > NAMED and why in named else []
        shown = "; ".join([*named.get(why, ())[:NAMED], *more])
        parts.append(f"{count} x {why}" + (f" ({shown})" if shown else ""))
    return ", ".join(parts)


def totals(rows: Iterable[Row]) -> dict[str, int]:
    """Of some rows: records left out, records repaired, text units; {} without any."""
    found: Counter[str] = Counter()
    texts = set()
    for row in rows:
        found.update(dropped=row["dropped"], repaired=row["repaired"])
        texts.add(row["subject"])
    return {**found, "texts": len(texts)} if texts else {}


def refused_kinds(rows: Iterable[Row]) -> dict[str, int]:
    """How many open questions were refused twice, by kind. Rows are those of the table `pending`."""
    return dict(sorted(Counter(row["kind"] for row in rows if TWICE in row["reason"]).items()))


def in_words(found: Mapping[str, int]) -> str:
    """The totals in words; "" where nothing was lost."""
    if not found:
        return ""
    return f"{found['dropped']:,} left out and {found['repaired']:,} repaired, in {found['texts']:,} text units"
