"""Terms that are found, keys of names that meet, and text of which every function is linear."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.terms import normalise_name, query_terms, stop_word, terms
from graphrag_mcp.text.tokens import count_tokens
from tests.support.workload import linear

ALPHABET = st.characters(codec="utf-8") | st.sampled_from(
    list("the of and 你好研究 .,(){}\n\t'\"_-=0123ABCxyzéß🎉\u200d\u0301")
)


PUMPED = {
    "no end": "a" * 10, "dots": "." * 10, "newlines": "\n" * 10, "blanks": " " * 10, "closers": ".)", "initials": "A. ",
    "lines": "a\n", "rules": "---\n", "quotes": '"', "dotted": ".a", "apostrophes": "x's ", "articles": "the ", "commas": "1,000",
    "brackets": "《", "joined": "a-", "underscores": "_", "stops": "。", "cited": "[1]", "capitals": "Aa", "accents": "e\u0301",
}  # fmt: skip


@pytest.mark.parametrize("pump", PUMPED.values(), ids=PUMPED)
def test_every_function_is_linear_on_pumped_text(pump: str) -> None:
    def read(size: int) -> None:
        text = "." + pump * (size // len(pump))
        for function in (sentences, terms, query_terms, count_tokens, normalise_name):
            function(text)

    assert linear(read, 4_000, largest=80_000)


# ---- terms


def test_words_are_folded_and_stand_beside_their_stems() -> None:
    assert terms("The Cafés of ＡＢＣ were naïve") == ["the", "cafes", "cafe", "of", "abc", "were", "naive", "naiv"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("written in C++ today", "c++"), ("C# or F#", "c#"), ("the .NET runtime", ".net"), ("a node.js server", "node.js"),
        ("a node.js server", "node"), ("GPT-4 and others", "gpt-4"), ("GPT-4 and others", "GPT"), ("el café", "cafe"),
        ("el cafe\u0301", "café"), ("getUserName()", "username"), ("getUserName()", "getusername"), ("getUserName()", "user"),
        ("snake_case_name", "snake_case_name"), ("snake_case_name", "case"), ("see a.b.c", "a.b.c"), ("HTTPServer", "server"),
        ("PDFs here", "pdf"), ("Microsoft's plan", "microsoft"), ("in the U.S. now", "US"), ("1,000 men", "1000"),
        ("version 3.14", "3.14"), ("x" * 60, "x" * 60), ("研究院的人", "研究"), ("研究院的人", "究"), ("ＡＢＣ社", "abc"),
        ("東京タワー", "タワー"), ("한국어를 배운다", "한국어"), ("हिन्दी भाषा", "हिन्दी"), ("the Who played", "the who"), ("a 🎉 b", "🎉"),
        ("running networks", "network"), ("O'Brien came", "obrien o brien"), ("MongoDB", "mongodb"), ("ΑΘΉΝΑ", "αθηνα"),
    ],
)  # fmt: skip
def test_a_query_finds_what_the_text_holds(text: str, query: str) -> None:
    wanted = query_terms(query)
    assert wanted and set(wanted) & set(terms(text))
    assert wanted[0] in terms(text) or query.startswith("obrien")


def test_chinese_gives_characters_and_bigrams_and_queries_drop_the_characters() -> None:
    assert terms("研究院") == ["研", "研究", "究", "究院", "院"]
    assert query_terms("研究院") == ["研究", "究院"]
    assert query_terms("究") == ["究"]
    assert "研究" in query_terms("什么是研究？") and "什么" not in query_terms("什么是研究？")
    assert terms("한국어") == ["한", "한국", "국", "국어", "어", "한국어"]


def test_queries_drop_stop_words_unless_nothing_else_is_left() -> None:
    assert query_terms("Who was the founder of the firm?") == ["founder", "firm"]
    assert query_terms("the who") == ["the", "who"]
    assert query_terms("where is the WHO") == ["who"]
    assert query_terms("don't panic") == ["panic"]
    assert stop_word("the") and stop_word("的") and not stop_word("river")
    assert len(query_terms(" ".join(f"word{i}" for i in range(200)))) == 64


@given(st.text(ALPHABET, max_size=300))
@settings(max_examples=300, deadline=None)
def test_no_term_is_empty_or_holds_a_blank_and_queries_ask_only_for_terms(text: str) -> None:
    found = terms(text)
    assert all(term and not any(ch.isspace() for ch in term) for term in found)
    assert set(query_terms(text)) <= set(found)
    assert bool(query_terms(text)) == bool(found)


# ---- names


@pytest.mark.parametrize(
    ("key", "spellings"),
    [
        ("beatles", ["The Beatles", "Beatles", "the  beatles", "“The Beatles”", "Beatles'"]),
        ("microsoft", ["Microsoft's", "Microsoft’s", "MICROSOFT", "(Microsoft)", "Microsoft,"]),
        ("ibm", ["ＩＢＭ", "IBM", "I.B.M."]),
        ("cafe", ["Café", "cafe\u0301", "CAFÉ"]),
        ("c++", ["C++"]), ("c#", ["C#"]), ("c", ["C", "C."]), (".net", [".NET"]), ("node.js", ["node.js", "Node.js"]),
        ("微软", ["微软", "「微软」"]), ("战国无双3", ["《战国无双3》", "战国无双３"]), ("us", ["U.S.", "US", "the U.S."]),
        ("black hole", ["Black Holes", "black hole", "A Black Hole"]), ("paris", ["Paris"]), ("glass", ["glass"]),
        ("james", ["James", "James'"]), ("adams", ["Adams"]), ("jrr tolkien", ["J. R. R. Tolkien", "J.R.R. Tolkien"]),
        ("george w bush", ["George W. Bush", "George W Bush"]), ("who", ["The Who", "WHO"]), ("gpt-4", ["GPT-4"]),
        ("city", ["the city", "City"]), ("tidal city", ["Tidal Cities"]), ("transformer", ["Transformers"]), ("at&t", ["AT&T"]), ("3.14", ["3.14"]),
        ("paris (texas)", ["Paris (Texas)"]), ("the", ["The"]), ("a", ["A"]), ("mathematics", ["Mathematics"]),
    ],
)  # fmt: skip
def test_spellings_of_one_name_share_a_key(key: str, spellings: list[str]) -> None:
    assert {spelling: normalise_name(spelling) for spelling in spellings} == dict.fromkeys(spellings, key)


@given(st.text(ALPHABET, max_size=60))
@example("[ [")
@settings(max_examples=500, deadline=None)
def test_a_key_is_never_empty_for_a_name_and_has_no_outer_blanks(name: str) -> None:
    key = normalise_name(name)
    assert key == key.strip()
    if any(unicodedata.category(ch)[0] in "LN" for ch in name):
        assert key


@pytest.mark.parametrize(
    "name", ["The Black Holes", "J. R. R. Tolkien's", "“(The) U.S.”", "classes", "《三国》", ".NET's"]
)
def test_a_key_is_its_own_key(name: str) -> None:
    assert normalise_name(normalise_name(name)) == normalise_name(name)
