"""Digests: the sentences that stand for a text, or for several documents, where nothing is asked."""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import hits, summaries, times
from graphrag_mcp.query.question import term_worth
from graphrag_mcp.query.survey import Line
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import quote

SENTENCE = 140  # characters of a sentence where a document has only one
MOST = 8  # sentences of one text
LEAST = 0.3  # of the score of its best sentence
READ = 60  # passages of which several documents are told


def digest(snapshot: Snapshot, text: str, title: str, room: int, forms: Sequence[str] = ()) -> str:
    """What a text says, in at most `room` characters: its beginning. Of a conversation, which begins
    with greetings, and of a text that is told because it contains one of `forms`: the best sentences
    in their order, with `forms` only those that contain one, if there are any.

    Of 869 written summaries of three collections the first 250 characters of a text hold 39, 63 and
    23 % of the rare words (news, notes and papers, web pages), the best sentences 28, 57 and 24 %."""
    if not forms and not quote.is_conversation(text):
        return quote.lead(text, room, title)
    worth = quote.weights_of([text], lambda terms: term_worth(snapshot, terms)[0])
    found = quote.quotes(text, worth, MOST, skip=[title])
    found = [
        quotation for quotation in found if any(form in quotation.text for form in forms)
    ] or found
    chosen: list[quote.Quote] = []
    for quotation in found:
        if chosen and (len(quotation.text) > room or quotation.score < LEAST * found[0].score):
            continue
        chosen.append(quotation)
        room -= len(quotation.text) + 2
        if room < SENTENCE // 4:
            break
    chosen.sort(key=lambda quotation: quotation.start)
    texts = [quote.with_speaker(text, quotation).text for quotation in chosen]
    longest = max(quote.LONGEST, SENTENCE + room)
    return " … ".join(one_line(text, longest) for text in texts)


def of_documents(snapshot: Snapshot, ids: Sequence[str], most: int, corpus: str = "") -> list[Line]:
    """The best sentences of several documents (content ids), at most `most`, spread over their time or
    else their order, none of a passage twice; in the place of a sentence what was written of its text."""
    facts = times.documents(snapshot)
    names = ["id", "document_id", "position"]
    rows = snapshot.by_key("passages", list(ids), "document_id", names).to_pylist()

    def place(row: dict[str, str]) -> tuple[str, str, str]:
        fact = facts[row["document_id"]]
        return fact["moment"] or "9999", fact["uri"], row["position"]

    order = sorted(rows, key=place)
    step = max(len(order) / READ, 1.0)
    sample = [order[int(at * step)] for at in range(int(len(order) / step))]
    found = hits.read(snapshot, [(row["id"], 1.0) for row in sample], corpus)
    bodies = [hit.body for hit in found]
    worth = quote.weights_of(bodies, lambda terms: term_worth(snapshot, terms)[0])
    best = [
        (hit, quotation)
        for hit in found
        if (quotation := quote.best(hit.body, worth, skip=[hit.citation.title])) is not None
    ]
    written = summaries.read(snapshot, sorted({hit.document for hit, _ in best}))
    shown: set[tuple[str, int]] = set()
    chosen: list[Line] = []
    size = len(best) / most if most else 0
    for number in range(most):
        run = best[int(number * size) : int((number + 1) * size)]
        if run:
            hit, quotation = max(run, key=lambda pair: pair[1].score)
            about = summaries.covering(written.get(hit.document, []), hit.citation.char_start)
            if about is None:
                sentence = one_line(quote.with_speaker(hit.body, quotation).text, SENTENCE + 40)
                chosen.append(Line(hit, sentence, quotation.score))
            elif (hit.document, about.place) not in shown:
                shown.add((hit.document, about.place))
                chosen.append(Line(hit, about.text, quotation.score, about.text))
    return chosen
