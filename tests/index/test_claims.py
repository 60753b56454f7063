"""Claims by a model: read forgivingly, kept only with words that the text really has."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from campaigns.model_campaign import EAGER, demo, same, write_documents
from graphrag_mcp.errors import ModelError
from graphrag_mcp.index.claims import (
    MOST_CLAIMS,
    Claim,
    ClaimParams,
    claims_of_unit,
    iso_date,
    params_from,
    read_claims,
)
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.llm.asker import Asker, BadReply
from graphrag_mcp.llm.scripted import Rule, ScriptedChat
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.lookup import get_entity
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.demonstration import demonstration
from tests.support.openai_server import Server, openai_server
from tests.support.workload import ends, linear


def parse_claims(reply: str, text: str, dropped: Counter[str] | None = None) -> list[Claim]:
    """The claims of a reply; `dropped` counts the others by reason."""
    claims, _, lost = read_claims(reply, text)
    if dropped is not None:
        dropped.update(lost)
    return claims


TEXT = (
    "The Harbour Council fined Nordlys Shipping for “false weights” on 10 January 2022.\n"
    "Its owner,  Jon Berg (the former mayor), is suspected of bribery. Nobody was hurt."
)
FINE = 'Nordlys Shipping<|>Harbour Council<|>FRAUD<|>TRUE<|>2022-01-10T00:00:00<|>2022-01-10T00:00:00<|>Nordlys Shipping was fined.<|>fined Nordlys Shipping for "false weights"'
BRIBE = "Jon Berg<|>NONE<|>BRIBERY<|>SUSPECTED<|>NONE<|>NONE<|>Jon Berg is suspected of bribery.<|>is suspected of bribery."
FINED = Claim(
    "Nordlys Shipping", "Harbour Council", "FRAUD", "TRUE", "2022-01-10T00:00:00", "2022-01-10T00:00:00",
    "Nordlys Shipping was fined.", ("fined Nordlys Shipping for “false weights”",), ((20, 62),),
)  # fmt: skip
BRIBED = Claim(
    "Jon Berg", "NONE", "BRIBERY", "SUSPECTED", "", "", "Jon Berg is suspected of bribery.", ("is suspected of bribery.",), ((124, 148),),
)  # fmt: skip
ITEMS = [
    {"subject": "Nordlys Shipping", "object": "Harbour Council", "type": "fraud", "status": "True", "start_date": "2022-01-10T00:00:00",
     "end_date": "2022-01-10T00:00:00", "description": "Nordlys Shipping was fined.", "quotes": ['fined Nordlys Shipping for "false weights"']},
    {"Subject Entity": "Jon Berg", "Object": None, "Claim Type": "BRIBERY", "Claim Status": "SUSPECTED", "Start Date": "NONE",
     "Claim Description": "Jon Berg is suspected of bribery.", "Source Text": "is suspected of bribery."},
]  # fmt: skip

SAME = {
    "as asked for": f"({FINE})\n##\n({BRIBE})\n<|COMPLETE|>", "on one line": f"({FINE})##({BRIBE})<|COMPLETE|>",
    "no brackets": f"{FINE}\n##\n{BRIBE}\n<|COMPLETE|>", "new lines only": f"({FINE})\n({BRIBE})\n<|COMPLETE|>",
    "neither": f"{FINE}\n{BRIBE}\n<|COMPLETE|>", "with a tag": f'("claim"<|>{FINE})##("claim"<|>{BRIBE})<|COMPLETE|>',
    "prose around": f"Here are the claims:\n\n({FINE})\n##\n({BRIBE})\n\nThat is all (I think).\n<|COMPLETE|>",
    "fences": f"```\n({FINE})\n##\n({BRIBE})\n<|COMPLETE|>\n```", "thoughts": f"<think>\n({BRIBE})?</think>({FINE})##({BRIBE})<|COMPLETE|>",
    "other delimiters": f"({FINE})##({BRIBE})".replace("<|>", "<||>") + "<|COMPLETE|>",
    "full width": f"（{FINE}）##（{BRIBE}）".replace("<|>", "＜｜＞") + "<|COMPLETE|>",
    "HTML entities": f"({FINE})##({BRIBE})<|COMPLETE|>".replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;"),
    "twice": f"({FINE})##({BRIBE})##({FINE})##({BRIBE})<|COMPLETE|>",
    "quotes in capitals": f"({FINE})##({BRIBE})<|COMPLETE|>".replace("is suspected of bribery.)", "IS SUSPECTED OF\n  BRIBERY)"),
}  # fmt: skip


@pytest.mark.parametrize("reply", SAME.values(), ids=SAME.keys())
def test_the_same_claims_are_read_from(reply: str) -> None:
    claims, complete, lost = read_claims(reply, TEXT)
    found = {claim.subject: claim for claim in claims}
    assert (found["Nordlys Shipping"], found["Jon Berg"], len(claims), complete) == (FINED, BRIBED, 2, True)
    assert not lost


@pytest.mark.parametrize(
    "reply", ["", " ", "There are no claims in it.", "<html><body>502</body></html>", '{"error": "rate limit"}', f"({FINE[:60]}", "[1, 2]",
              "<think>" + BRIBE, "I would rather not list claims about people that exist, if you do not mind.\n<|COMPLETE|>"],
)  # fmt: skip
def test_a_reply_without_anything_usable_is_refused(reply: str) -> None:
    with pytest.raises(BadReply):
        parse_claims(reply, TEXT)


def test_a_text_may_have_no_claims() -> None:
    assert parse_claims("<|COMPLETE|>", TEXT) == []


def test_quotes_are_the_texts_own_characters_and_invented_ones_are_dropped() -> None:
    reply = BRIBE + "<|>Its owner, Jon Berg (the former mayor)<|>He confessed everything at once.<|>of<|>hurt"
    (claim,) = parse_claims(f"({reply})<|COMPLETE|>", TEXT)
    assert claim.quotes == ("is suspected of bribery.", "Its owner,  Jon Berg (the former mayor)")
    assert [TEXT[start:end] for start, end in claim.spans] == list(claim.quotes)


def test_several_quotes_in_one_field_are_told_apart() -> None:
    reply = BRIBE.rpartition("<|>")[0] + '<|>"is suspected of bribery" "Nobody was hurt"'
    (claim,) = parse_claims(f"({reply})<|COMPLETE|>", TEXT)
    assert claim.quotes == ("is suspected of bribery.", "Nobody was hurt.")


def test_a_shortened_quote_counts_only_when_most_of_it_is_the_texts() -> None:
    true = "The Harbour Council fined ... on 10 January 2022."
    [claim] = parse_claims(f"({FINE.rpartition('<|>')[0]}<|>{true})\n<|COMPLETE|>", TEXT)
    assert claim.quotes == ("The Harbour Council fined", "on 10 January 2022.")
    made_up = "The council of the harbour punished a dishonest carrier of grain ... on 10 January 2022."
    lost: Counter[str] = Counter()
    claims = parse_claims(f"({FINE.rpartition('<|>')[0]}<|>{made_up})\n##\n({BRIBE})\n<|COMPLETE|>", TEXT, lost)
    assert claims == [BRIBED] and lost["invented quote"] == 1


def test_a_claim_that_quotes_nothing_of_the_text_is_dropped_and_counted() -> None:
    dropped: Counter[str] = Counter()
    invented = "Jon Berg<|>NONE<|>MURDER<|>TRUE<|>NONE<|>NONE<|>Jon Berg killed.<|>Jon Berg killed somebody in town."
    bare = "Jon Berg<|>NONE<|>MURDER<|>TRUE<|>NONE<|>NONE<|>Jon Berg killed."
    nameless = " <|>NONE<|>X<|>TRUE<|>NONE<|>NONE<|>d d d<|>Nobody was hurt."
    claims = parse_claims(f"({invented})##({bare})##({nameless})##({FINE})<|COMPLETE|>", TEXT, dropped)
    assert claims == [FINED] and dropped == {"invented quote": 1, "no quote": 1, "no subject": 1}


def test_a_reply_that_repeats_the_format_gives_no_claims() -> None:
    echo = "(SUBJECT<|>OBJECT<|>TYPE<|>STATUS<|>START<|>END<|>DESCRIPTION<|>QUOTE<|>QUOTE...)<|COMPLETE|>"
    assert parse_claims(echo, TEXT) == []


def test_an_unknown_status_is_a_suspicion_and_a_date_that_is_none_is_counted() -> None:
    dropped: Counter[str] = Counter()
    reply = BRIBE.replace("SUSPECTED", "likely").replace("NONE<|>NONE<|>Jon", "last spring<|>2021-13-45<|>Jon")
    (claim,) = parse_claims(f"({reply})<|COMPLETE|>", TEXT, dropped)
    assert (claim.status, claim.start_date, claim.end_date, dropped) == ("SUSPECTED", "", "", {"bad date": 2})


@pytest.mark.parametrize(
    ("said", "meant"),
    [("2022-01-10T00:00:00", "2022-01-10T00:00:00"), ("2022-01-10T08:30:00Z", "2022-01-10T08:30:00"), ("2022-01-10", "2022-01-10"),
     ("2022/1/9", "2022-01-09"), ("2022-01", "2022-01"), ("2022", "2022"), ("January 10, 2022", "2022-01-10"), ("10 January 2022", "2022-01-10"),
     ("March 2022", "2022-03"), ("2022年1月10日", "2022-01-10"), ("2022年", "2022"), ('"2022-01-10"', "2022-01-10"), ("2022-02-30", ""),
     ("0000-01-01", ""), ("NONE", ""), ("", ""), ("unknown", ""), ("soon", ""), ("99999", ""), ("2022-01-10T25:00:00", "")],
)  # fmt: skip
def test_dates_become_iso_8601_as_exact_as_they_were(said: str, meant: str) -> None:
    assert iso_date(said) == meant


def test_an_end_before_the_start_is_left_out() -> None:
    dropped: Counter[str] = Counter()
    (claim,) = parse_claims(f"({BRIBE.replace('NONE<|>NONE<|>Jon', '2022<|>2020<|>Jon')})<|COMPLETE|>", TEXT, dropped)
    assert (claim.start_date, claim.end_date, dropped) == ("2022", "", {"bad date": 1})


def test_chinese_claims_are_checked_against_chinese_text() -> None:
    text = "据报道，王小明于2020年被指控贪污公款，法院尚未判决。"
    reply = "（王小明<|>NONE<|>贪污<|>SUSPECTED<|>2020年<|>NONE<|>王小明被指控贪污公款。<|>王小明于2020年被指控贪污公款<|>他已认罪并道歉）"
    (claim,) = parse_claims(reply, text)
    assert (claim.subject, claim.type, claim.start_date) == ("王小明", "贪污", "2020")
    assert claim.quotes == ("王小明于2020年被指控贪污公款",)


# ---- asking ---------------------------------------------------------------------------------------


def params(gleanings: str = "auto", **changes: object) -> ClaimParams:
    return params_from(dataclasses.replace(Settings(), gleanings=gleanings, **changes), None)  # type: ignore[arg-type]


def asked(first: str, then: str | Exception = "<|COMPLETE|>", gleanings: str = "auto") -> tuple[list[Claim], str, int]:
    chat = ScriptedChat([lambda messages, schema: first if len(messages) == 1 else None, lambda messages, schema: then])
    opened = Asker(None, chat, None)
    claims, reason = opened.wait(claims_of_unit(opened, TEXT, params(gleanings)))
    opened.close()
    return claims, reason, len(chat.calls)


def test_the_prompt_says_what_is_wanted_and_keeps_the_text_in_its_tag() -> None:
    prompt = params(claims_entity_specs=("ships",), claims_description="Anything illegal", output_language="German").prompt("a </text>")
    assert all(words in prompt for words in ("): ships\n", "Anything illegal", "Write in German.", "SUSPECTED", "<\\/text>"))
    assert len({params().fingerprint, params("1").fingerprint, params(claims_description="x").fingerprint, params().fingerprint}) == 3


def test_claims_are_taken_in_one_call_when_the_reply_is_complete() -> None:
    assert asked(f"({FINE})<|COMPLETE|>") == ([FINED], "", 1)


def test_claims_that_a_gleaning_brings_are_kept_and_merged() -> None:
    longer = FINE.replace("was fined.", "was fined for false weights.")
    claims, reason, calls = asked(f"({FINE})", f"({longer})##({BRIBE})<|COMPLETE|>")
    assert (calls, reason) == (2, "") and claims[1] == BRIBED
    assert claims[0] == dataclasses.replace(FINED, description="Nordlys Shipping was fined for false weights.")
    assert asked(f"({FINE})<|COMPLETE|>", f"({BRIBE})<|COMPLETE|>", "1") == ([FINED, BRIBED], "", 2)
    assert asked(f"({FINE})<|COMPLETE|>", f"({BRIBE})<|COMPLETE|>", "2")[2] == 3


@pytest.mark.parametrize("then", ["", "<html>", ModelError("down", "Wait")])
def test_a_gleaning_that_fails_takes_no_claim_away(then: str | Exception) -> None:
    assert asked(f"({FINE})", then)[0] == [FINED]


def test_when_nobody_answers_there_are_no_claims_and_a_reason() -> None:
    assert asked("no idea") == ([], "no claims", 2)
    nobody = Asker(None, None, None)
    assert nobody.wait(claims_of_unit(nobody, TEXT, params())) == ([], "no model")
    nobody.close()


def test_the_shipped_scripted_model_makes_claims_that_hold() -> None:
    rules: list[Rule] = demonstration()
    opened = Asker(None, ScriptedChat(rules), None)
    claims, reason = opened.wait(claims_of_unit(opened, TEXT, params("1")))
    opened.close()
    assert claims and not reason and all(quote in TEXT for claim in claims for quote in claim.quotes)


# ---- bounds -----------------------------------------------------------------------------------------

PUMPS = ["(", "<|>", "\n<|>", "##", "A<|>B<|>X<|>TRUE<|>NONE<|>NONE<|>d<|>q\n", f"({BRIBE})\n##\n", ")\n", '"', '{"subject":"a","description":"b","quotes":["c"]},', "|", "（", "...", "\t"]  # fmt: skip


@pytest.mark.parametrize("pump", PUMPS)
def test_no_repeated_pattern_takes_more_than_linear_time(pump: str) -> None:
    def read(length: int) -> None:
        with contextlib.suppress(BadReply):
            parse_claims(pump * (length // len(pump)), TEXT)

    assert linear(read, 5_000, largest=200_000)


def test_a_loop_of_two_megabytes_gives_a_bounded_list() -> None:
    reply = "".join(f"({BRIBE.replace('Jon Berg', f'Jon Berg {i}')})\n##\n" for i in range(16_000))
    with ends():
        assert len(parse_claims(reply, TEXT)) == MOST_CLAIMS and len(reply) > 2_000_000


PARTS = st.sampled_from([*"()\"'<>|#\n AaB1.中\ud800\x00", "<|>", "<|>", "##", "TRUE<|>", "NONE<|>", "2022<|>", "Nobody was hurt.", "<|COMPLETE|>", '{"subject":'])


@settings(max_examples=200, deadline=None)
@given(st.lists(PARTS, max_size=50).map("".join))
def test_any_reply_gives_claims_that_hold_or_a_refusal(reply: str) -> None:
    try:
        claims = parse_claims(reply, TEXT)
    except BadReply:
        return
    for claim in claims:
        assert claim.subject and claim.object and claim.type and claim.status in ("TRUE", "FALSE", "SUSPECTED")
        assert claim.quotes and [TEXT[start:end] for start, end in claim.spans] == list(claim.quotes)
        (claim.subject + claim.object + claim.type + claim.description).encode()


def test_the_prompt_again_is_no_answer_that_there_are_no_claims() -> None:
    with pytest.raises(BadReply, match="the prompt again"):
        read_claims(params_from(Settings(), None).prompt("Jon Berg was fined."), "Jon Berg was fined.")


# ---- claims in reports and answers ---------------------------------------------------------------


# What these names do in each of three notes; the claim about the first uses its short name.
NOTES = {
    "a.md": "The Northern Harbour Board (NHB) runs Ember Bay with Nordlys Shipping. The NHB was fined by Nordlys Shipping.",
    "b.md": "Northern Harbour Board and Nordlys Shipping rebuilt Ember Bay.",
    "c.md": "Ember Bay is where Nordlys Shipping met the Northern Harbour Board.",
}
CLAIM = "(NHB<|>Nordlys Shipping<|>FINE<|>TRUE<|>NONE<|>NONE<|>The board was fined.<|>The NHB was fined by Nordlys Shipping.)<|COMPLETE|>"


def run(corpus: Path, docs: Path, server: Server, **more: Any) -> None:
    chosen = Settings(**{**EAGER, "embedding_model": "", "chat_model": "m", "base_url": server.url, "max_retries": 0})
    assert index_documents(corpus, IndexRequest(paths=(str(docs),), **more), chosen).status == "done"


def asks_for_claims(messages: list[dict[str, Any]]) -> bool:
    return "QUOTE" in str(messages[0]["content"])


def test_claims_that_come_in_a_later_run_are_in_its_reports(tmp_path: Path) -> None:
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
    shown: list[str] = []

    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        if asks_for_claims(messages):
            return CLAIM if "was fined by" in str(messages) else "<|COMPLETE|>"
        if '"rating_explanation"' in str(messages[0]["content"]):
            shown.append(str(messages))
        return demo(messages)

    with openai_server(answer) as server:
        run(corpus, docs, server)
        snapshot = open_snapshot(corpus)
        (board,) = [row for row in snapshot.rows("entities").to_pylist() if "nhb" in row["names"]]
        assert board["title"] == "Northern Harbour Board"
        assert any("The board was fined." in one for one in shown)
        assert "The board was fined." in get_entity(snapshot, "Northern Harbour Board", max_tokens=2000).text
        assert "The board was fined." in local_search(snapshot, "Northern Harbour Board", max_tokens=4000).text
        shown.clear()
        (docs / "a.md").write_text(NOTES["a.md"].replace("was fined by", "was thanked by"), "utf-8")
        run(corpus, docs, server)
        fresh = tmp_path / "fresh"
        run(fresh, docs, server)
    assert not open_snapshot(corpus).count("claims") and shown
    assert same(corpus) == same(fresh)
