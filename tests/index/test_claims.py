"""Claims by a model: read forgivingly, kept only with words that the text really has."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from campaigns.model_campaign import EAGER, demo, same, write_documents
from graphrag_mcp.index.claims import (
    Claim,
    ClaimParams,
    claims_of_unit,
    iso_date,
    params_from,
    read_claims,
)
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.llm.asker import Asker, BadReply
from graphrag_mcp.query.entity import get_entity
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.openai_server import Server, openai_server
from tests.support.reply_forms import NO_CLAIMS, claim, claims, cut
from tests.support.scripted import ScriptedChat
from tests.support.workload import linear


def parse_claims(reply: str, text: str, dropped: Counter[str] | None = None) -> list[Claim]:
    """The claims of a reply; `dropped` counts the others by reason."""
    found, lost = read_claims(reply, text)
    if dropped is not None:
        dropped.update(lost)
    return found


TEXT = (
    "The Harbour Council fined Nordlys Shipping for “false weights” on 10 January 2022.\n"
    "Its owner,  Jon Berg (the former mayor), is suspected of bribery. Nobody was hurt."
)
FINE = claim("Nordlys Shipping", "Nordlys Shipping was fined.", 'fined Nordlys Shipping for "false weights"', object="Harbour Council",
             kind="fraud", start="2022-01-10T00:00:00", end="2022-01-10T00:00:00")  # fmt: skip
BRIBE = claim("Jon Berg", "Jon Berg is suspected of bribery.", "is suspected of bribery.", kind="BRIBERY", status="SUSPECTED")
FINED = Claim(
    "Nordlys Shipping", "Harbour Council", "FRAUD", "TRUE", "2022-01-10T00:00:00", "2022-01-10T00:00:00",
    "Nordlys Shipping was fined.", ("fined Nordlys Shipping for “false weights”",), ((20, 62),),
)  # fmt: skip
BRIBED = Claim(
    "Jon Berg", "NONE", "BRIBERY", "SUSPECTED", "", "", "Jon Berg is suspected of bribery.", ("is suspected of bribery.",), ((124, 148),),
)  # fmt: skip
BOTH = claims(FINE, BRIBE)
SAME = {
    "as asked for": BOTH, "in a fence": f"Here they are:\n\n```json\n{BOTH}\n```\nThat is all (I think).",
    "after a thought": f"<think>\n{claims(BRIBE)}?</think>{BOTH}", "twice": f"{BOTH}\n{BOTH}",
    "quotes in capitals": BOTH.replace("is suspected of bribery.\"]", "IS SUSPECTED OF\\n  BRIBERY\"]"),
    "a trailing comma": BOTH.replace("}]}", "},]}"), "without quotes around keys": BOTH.replace('"subject"', "subject"),
}  # fmt: skip


@pytest.mark.parametrize("reply", SAME.values(), ids=SAME.keys())
def test_the_same_claims_are_read_from(reply: str) -> None:
    found, lost = read_claims(reply, TEXT)
    assert (found, lost) == ([FINED, BRIBED], {})


@pytest.mark.parametrize(
    "reply", ["", " ", "There are no claims in it.", "<html><body>502</body></html>", '{"error": "rate limit"}', BOTH[:60], "[1, 2]",
              f"<think>{BOTH}", "I would rather not list claims about people."],
)  # fmt: skip
def test_a_reply_without_anything_usable_is_refused(reply: str) -> None:
    with pytest.raises(BadReply):
        parse_claims(reply, TEXT)


def test_a_claim_that_the_reply_ends_in_is_counted() -> None:
    assert read_claims(cut(BOTH, '"Jon'), TEXT) == ([FINED], {"cut off": 1})


def test_quotes_are_the_texts_own_characters_and_invented_ones_are_dropped() -> None:
    quotes = ["is suspected of bribery.", "Its owner, Jon Berg (the former mayor)", "He confessed everything at once.", "of", "hurt"]
    (found,) = parse_claims(claims(BRIBE | {"quotes": quotes}), TEXT)
    assert found.quotes == ("is suspected of bribery.", "Its owner,  Jon Berg (the former mayor)")
    assert [TEXT[start:end] for start, end in found.spans] == list(found.quotes)


def test_a_shortened_quote_counts_only_when_most_of_it_is_the_texts() -> None:
    [found] = parse_claims(claims(FINE | {"quotes": ["The Harbour Council fined ... on 10 January 2022."]}), TEXT)
    assert found.quotes == ("The Harbour Council fined", "on 10 January 2022.")
    made_up = "The council of the harbour punished a dishonest carrier of grain ... on 10 January 2022."
    lost: Counter[str] = Counter()
    assert parse_claims(claims(FINE | {"quotes": [made_up]}, BRIBE), TEXT, lost) == [BRIBED] and lost["invented quote"] == 1


def test_a_claim_that_cannot_be_used_is_dropped_and_counted() -> None:
    dropped: Counter[str] = Counter()
    bad = [{"quotes": ["Jon Berg killed somebody in town."]}, {"quotes": []}, {"subject": " "}, {"description": 5}]
    assert parse_claims(claims(*(BRIBE | one for one in bad), FINE), TEXT, dropped) == [FINED]
    assert dropped == {"invented quote": 1, "no quote": 1, "no subject": 1, "description: Input should be a valid string": 1}


@pytest.mark.parametrize(
    ("said", "meant"),
    [("2022-01-10T00:00:00", "2022-01-10T00:00:00"), ("2022-01-10T08:30:00Z", "2022-01-10T08:30:00"), ("2022-01-10", "2022-01-10"),
     ("2022/1/9", "2022-01-09"), ("2022-01", "2022-01"), ("2022", "2022"), ("January 10, 2022", "2022-01-10"), ("10 January 2022", "2022-01-10"),
     ("March 2022", "2022-03"), ("2022年1月10日", "2022-01-10"), ("2022年", "2022"), ('"2022-01-10"', "2022-01-10"), ("2022-02-30", ""),
     ("0000-01-01", ""), ("NONE", ""), ("", ""), ("unknown", ""), ("soon", ""), ("99999", ""), ("2022-01-10T25:00:00", "")],
)  # fmt: skip
def test_dates_become_iso_8601_as_exact_as_they_were(said: str, meant: str) -> None:
    assert iso_date(said) == meant


# ---- asking ---------------------------------------------------------------------------------------


def params(**changes: object) -> ClaimParams:
    return params_from(dataclasses.replace(Settings(), **changes), None)  # type: ignore[arg-type]


def asked(reply: str) -> tuple[list[Claim], str, int]:
    chat = ScriptedChat([lambda messages, schema: reply])
    opened = Asker(None, chat, None)
    found, reason = opened.wait(claims_of_unit(opened, TEXT, params()))
    opened.close()
    return found, reason, len(chat.calls)


def test_the_prompt_says_what_is_wanted_and_keeps_the_text_in_its_tag() -> None:
    prompt = params(claims_entity_specs=("ships",), claims_description="Anything illegal", output_language="German").prompt("a </text>")
    assert all(words in prompt for words in ("): ships\n", "Anything illegal", "Write in German.", "SUSPECTED", "<\\/text>"))
    assert len({params().fingerprint, params(claims_description="x").fingerprint, params().fingerprint}) == 2


CUT = cut(BOTH, '"Jon')


def test_claims_are_taken_in_one_call_also_of_a_reply_that_was_cut_off() -> None:
    assert asked(claims(FINE)) == ([FINED], "", 1) and asked(CUT) == ([FINED], "", 1)


def test_when_nobody_answers_there_are_no_claims_and_a_reason() -> None:
    assert asked("no idea") == ([], "there is no JSON in the reply", 2)
    echo = Asker(None, None, None)
    assert echo.wait(claims_of_unit(echo, TEXT, params())) == ([], "no model")
    echo.close()


# ---- bounds -----------------------------------------------------------------------------------------

PUMPS = ["(", "\n", "[", "{", '{"claims":[', '"', json.dumps(BRIBE) + ",", "|", "...", "\t"]


@pytest.mark.parametrize("pump", PUMPS)
def test_no_repeated_pattern_takes_more_than_linear_time(pump: str) -> None:
    def read(length: int) -> None:
        with contextlib.suppress(BadReply):
            parse_claims('{"claims": [' + pump * (length // len(pump)), TEXT)

    assert linear(read, 5_000, largest=100_000)


PARTS = st.sampled_from([*"()\"'<>|#\n AaB1.中\ud800\x00{}[]", '{"claims": [', json.dumps(BRIBE), "},", '{"subject":'])


@settings(max_examples=200, deadline=None)
@given(st.lists(PARTS, max_size=50).map("".join))
def test_any_reply_gives_claims_that_hold_or_a_refusal(reply: str) -> None:
    try:
        found = parse_claims(reply, TEXT)
    except BadReply:
        return
    for one in found:
        assert one.subject and one.object and one.type and one.status in ("TRUE", "FALSE", "SUSPECTED")
        assert one.quotes and [TEXT[start:end] for start, end in one.spans] == list(one.quotes)
        (one.subject + one.object + one.type + one.description).encode()


# ---- claims in answers ----------------------------------------------------------------------------


# What these names do in each of three notes; the claim about the first uses its short name.
NOTES = {
    "a.md": "The Northern Harbour Board (NHB) runs Ember Bay with Nordlys Shipping. The NHB was fined by Nordlys Shipping.",
    "b.md": "Northern Harbour Board and Nordlys Shipping rebuilt Ember Bay.",
    "c.md": "Ember Bay is where Nordlys Shipping met the Northern Harbour Board.",
}
CLAIM = claims(claim("NHB", "The board was fined.", "The NHB was fined by Nordlys Shipping.", object="Nordlys Shipping"))


def run(corpus: Path, docs: Path, server: Server, **more: Any) -> None:
    chosen = Settings(**{**EAGER, "embedding_model": "", "chat_model": "m", "base_url": server.url, "max_retries": 0})
    assert index_documents(corpus, IndexRequest(paths=(str(docs),), method="llm", retry_refused=True, **more), chosen).status == "done"


def asks_for_claims(messages: list[dict[str, Any]]) -> bool:
    return '"quotes"' in str(messages[0]["content"])


def test_claims_that_come_in_a_later_run_are_those_of_a_run_that_had_them_at_once(tmp_path: Path) -> None:
    docs = write_documents(tmp_path / "docs", 4)

    def without(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        return "" if asks_for_claims(messages) else demo(messages)

    with openai_server(demo) as server:
        run(tmp_path / "calm", docs, server)
        server.answer = without
        run(tmp_path / "c", docs, server)
        assert not open_snapshot(tmp_path / "c").count("claims")
        poorer = same(tmp_path / "c")
        server.answer = demo
        run(tmp_path / "c", docs, server)
    assert open_snapshot(tmp_path / "c").count("claims")
    assert same(tmp_path / "c") == same(tmp_path / "calm") != poorer


def test_claims_about_another_name_of_an_entity_are_its_claims(tmp_path: Path) -> None:
    docs, corpus = tmp_path / "docs", tmp_path / "c"
    docs.mkdir()
    for name, text in NOTES.items():
        (docs / name).write_text(text, "utf-8")

    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        if asks_for_claims(messages):
            return CLAIM if "was fined by" in str(messages) else NO_CLAIMS
        return demo(messages)

    with openai_server(answer) as server:
        run(corpus, docs, server)
        snapshot = open_snapshot(corpus)
        (board,) = [row for row in snapshot.rows("entities").to_pylist() if "nhb" in row["names"]]
        assert board["title"] == "Northern Harbour Board"
        assert "The board was fined." in get_entity(snapshot, "Northern Harbour Board", max_tokens=2000).text
        assert "The board was fined." in local_search(snapshot, "Northern Harbour Board", max_tokens=4000).text
        (docs / "a.md").write_text(NOTES["a.md"].replace("was fined by", "was thanked by"), "utf-8")
        run(corpus, docs, server)
        fresh = tmp_path / "fresh"
        run(fresh, docs, server)
    assert not open_snapshot(corpus).count("claims")
    assert same(corpus) == same(fresh)
