"""Packing: whole items within a budget, pages that lose nothing, the wall, cursors, references."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphrag_mcp.packing import budget as packing_budget
from graphrag_mcp.packing import references, sending
from graphrag_mcp.packing.budget import (
    Item,
    Section,
    Size,
    clamp_budget,
    fill,
    read_cursor,
    write_cursor,
)
from graphrag_mcp.packing.page import compose, finish
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import Citation, DriftNode, DriftResult, EntityResult, SearchResult

ENGLISH = "The lamp was lit at dusk. The keeper wrote down the hour, as he had done for twenty-three years. "
CHINESE = "灯塔看守人每天记录潮水。回流总是在大潮时出现，而且北风很强。"
EMOJI = "🌊🗼 The sea turned 🌀 against them! "


def place(number: int, text: str = ENGLISH) -> Citation:
    return Citation(
        id=f"t{number}", title="Log", uri="notes/log.md", document_id="0" * 32, char_start=0, char_end=len(text)
    )


def items(count: int, text: str = ENGLISH) -> list[Item]:
    return [Item(f"t{n}", f"[t{n}] Log (notes/log.md:1-1)\n{text}", place(n, text)) for n in range(count)]


@pytest.mark.parametrize(
    ("asked", "used", "said"),
    [(6000, 6000, False), (50, 200, True), (100_000, 20_000, True), (0, 4000, True), (-7, 4000, True)],
)
def test_a_budget_out_of_range_is_clamped_and_said(asked: int, used: int, said: bool) -> None:
    budget, hint = clamp_budget(asked, 4000)
    assert (budget, bool(hint)) == (used, said)


def test_items_are_taken_whole_and_in_order_until_one_does_not_fit() -> None:
    some = items(50)
    page = fill([Section("Sources", some, 1.0)], 1000)
    taken = page.taken["Sources"]
    assert taken == some[: len(taken)] and 0 < len(taken) < 50
    assert (
        sum(packing_budget.cost(item).tokens for item in taken)
        <= 1000
        < sum(packing_budget.cost(item).tokens for item in some[: len(taken) + 1])
    )
    assert page.more


def test_an_item_larger_than_the_budget_is_cut_at_a_sentence_end_and_its_span_shortened() -> None:
    page = fill([Section("Sources", items(2, ENGLISH * 200), 1.0)], 300)
    (only,) = page.taken["Sources"]
    body = only.text.partition("\n")[2]
    assert page.cut
    assert body.endswith((". …", "years. …")) and packing_budget.cost(only).tokens <= 300
    assert only.citation is not None
    assert (ENGLISH * 200)[: only.citation.char_end] == body.removesuffix(" …")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.text(min_size=1, max_size=400), min_size=1, max_size=12), st.integers(200, 3000),
    st.sampled_from([ENGLISH, CHINESE, EMOJI]),
)  # fmt: skip
@example(
    ["àZ\x0b", "\x8emÝu\x0b£", "0\n\n\n\x7f\x7f", "0\n\n\n\x7f\x7f", "Û\x8alî¨tâ",
     "0\x08\x1f\xa0\x19¯Ùâ\U000c3bc4\U0006af71\U000f657f", "\x1f\x1f\n\x1f\n\n\n\x7f\ud7a4\U00010000",
     "0\x1f\x1f\n\x1f\x1f0\x1f\x1f\n", "0\x1f0\U000100000\x1f0\x1f0\x1f\x1f\x1f\x1f\U000e0000\U000e0000"],
    1385, ENGLISH,
)  # fmt: skip
def test_no_result_passes_its_budget_and_what_it_shows_is_whole_and_in_order(
    texts: list[str], budget: int, filler: str
) -> None:
    all_items = [Item(f"t{n}", f"[t{n}] x\n{text} {filler}", place(n)) for n, text in enumerate(texts)]
    result = compose(SearchResult(), [Section("Sources", all_items, 1.0)], budget)
    assert count_tokens(result.text) <= result.tokens + 1 and result.tokens <= budget
    shown = re.findall(r"^\[(t\d+)\] x", result.text, re.MULTILINE)
    assert shown == [item.id for item in all_items[: len(shown)]] and shown
    assert result.truncated == (len(shown) < len(all_items) or bool(result.next_call))
    assert [citation.id for citation in result.citations] == shown


def test_the_wall_shortens_lists_and_text_of_any_result() -> None:
    result = EntityResult(text=ENGLISH * 300, relationships=[{"id": f"r{n}", "entity": ENGLISH} for n in range(200)])
    done = finish(result, 500)
    assert done.truncated and sending.size(done)[0] <= 500 and done.text.endswith("…")


def test_the_wall_cites_only_what_the_text_still_shows() -> None:
    text = "\n\n".join(item.text for item in items(30))
    done = finish(SearchResult(text=text, citations=[place(n) for n in range(30)]), 700)
    assert done.citations and all(f"[{citation.id}]" in done.text for citation in done.citations)


def test_a_cursor_of_another_generation_or_question_is_refused() -> None:
    cursor = write_cursor(7, "who?", (3, 0))
    assert read_cursor(cursor, 7, "who?", 2) == (3, 0)
    assert read_cursor("", 7, "who?", 2) == (0, 0) and read_cursor(cursor, 7, "who?", 1) == (3,)
    assert read_cursor(write_cursor(7, "who?", (3, 1)), 7, "who?", 1) is None
    wrong = [(cursor, 8, "who?", 2), (cursor, 7, "what?", 2), ("7.123456.1-2-3", 7, "who?", 3), ("junk", 7, "who?", 2)]
    assert [read_cursor(*one) for one in wrong] == [None] * 4


def test_references_become_aliases_and_unknown_ids_go() -> None:
    one, two, gone = "1" * 32, "2" * 32, "f" * 32
    text = f"He saw it. [Data: Entities ({one}, {gone}); Sources ({two})] And [Data: Sources ({gone})]."
    aliases = {"Entities": {one: "e4"}, "Sources": {two: "t9"}}
    assert references.referenced_ids(text) == {"Entities": [one, gone], "Sources": [two, gone]}
    assert references.render_references(text, aliases) == "He saw it. [Data: Entities (e4); Sources (t9)] And."
    beside = f"He saw it. [Data: Sources ({gone})] [Data: Sources ({two})]"
    assert references.render_references(beside, aliases) == "He saw it. [Data: Sources (t9)]"
    assert references.short_references(beside, aliases) == "He saw it. [t9]"


CALL = 'drift_step(session_id="w", node_id="0123456789ab", answer="...", score=0-100, follow_ups=["..."])'


def walked(text: str, answer: str, nodes: int) -> DriftResult:
    frontier = [DriftNode(id=f"{n:012x}", query=ENGLISH) for n in range(nodes)]
    hint = "The score was not recorded: it is no number. " * 3
    return DriftResult(text=text, answer=answer, hint=hint, next_call=CALL, session_id="w", frontier=frontier)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([ENGLISH, CHINESE, EMOJI, 'He said: "No".\n\n', "\u202e\u2066hidden\u200b ", "x"]),
    st.integers(0, 600), st.integers(0, 600), st.integers(0, 8), st.integers(320, 6000),
)  # fmt: skip
def test_the_call_that_leads_on_stays_however_long_text_answer_and_lists_are(
    part: str, long: int, answer: int, nodes: int, budget: int
) -> None:
    done = finish(walked(part * long, part * answer, nodes), budget)
    assert done.next_call == CALL and done.session_id == "w"
    assert sending.sent(done, sending.onward(done)).within(Size(budget, packing_budget.CHARACTERS))
    assert long == 0 or done.text, "a text has room before an answer that repeats it, and before lists"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([ENGLISH, CHINESE, EMOJI, '"Why?" he asked. ', "\u202ehidden\u200b "]), min_size=1, max_size=30),
    st.integers(1, 40), st.integers(400, 4000), st.booleans(),
)  # fmt: skip
def test_what_is_composed_goes_out_with_its_call_and_every_item_but_a_first_one_is_whole(
    texts: list[str], times: int, budget: int, structured: bool
) -> None:
    shown = [Item(f"t{n}", f"[t{n}] x\n{text * times}", place(n)) for n, text in enumerate(texts)]
    empty = DriftResult(session_id="w", next_call=CALL) if structured else SearchResult(next_call=CALL)
    result = compose(empty, [Section("Sources", shown, 1.0)], budget, intro="# Log")
    assert sending.sent(result, sending.onward(result)).within(Size(budget, packing_budget.CHARACTERS))
    ids = re.findall(r"^\[(t\d+)\]", result.text, re.MULTILINE)
    assert ids == [item.id for item in shown[: len(ids)]] and ids
    cut = result.next_call != CALL
    assert result.next_call == ('get_source(ids=["t0"])' if cut else CALL) and (len(ids) == 1 or not cut)
    assert cut or result.text.endswith(shown[len(ids) - 1].text)
