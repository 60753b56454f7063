"""Names that their marks tell: works and phrases in quotation marks, words of source code, and who speaks
in a text of turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.names.kinds import noun_type, word_before
from graphrag_mcp.names.lexicon import ordinary
from graphrag_mcp.text.spans import Candidate
from graphrag_mcp.text.terms import Patterns, stop_word, table

_FORMS = Patterns(table(__file__))


def quoted(text: str, question: bool) -> Iterator[Candidate]:
    """Works in title marks, terms between back quotes, and phrases in quotation marks that read as a name."""
    for match in _FORMS.quoted.finditer(text):
        start, end = match.span(match.lastindex or 0)
        form, mark = text[start:end], match[0][0]
        if mark == "《":
            yield start, end, "content", True
        elif mark == "`":
            if sum(map(str.isalpha, form)) > 1:  # not `100`, nor the variable `b` of an example
                yield start, end, "artifact", question or _FORMS.code.fullmatch(form) is not None
        elif mark in "「『" or lex.is_han(form[0]):
            if len(form) <= 16 and not any(sign in form for sign in "，。！？；,!?"):
                yield start, end, "other", question
        elif _reads_as_name(form):
            is_work = noun_type(word_before(text, start)) == "content"
            end -= form[-1] in ".,;:"
            yield start, end, "content" if is_work else "other", True


def _reads_as_name(phrase: str) -> bool:
    """Does a phrase of two to eight words begin with a capital, and is it no speech: without a mark that
    ends a sentence, a comma within (Now, Watson), and other small words than those of names?"""
    words = phrase.split()
    if (
        not 1 < len(words) <= 8
        or not words[0][0].isupper()
        or any(sign in phrase for sign in "?!;")
        or "," in phrase[:-1]
    ):
        return False
    return not any(word[0].islower() and word not in lex.SMALL_WORDS for word in words)


def identifiers(text: str) -> Iterator[Candidate]:
    """camelCase, snake_case, calls() and file.names of prose on source code."""
    for match in _FORMS.code.finditer(text):
        kind, form = match.lastgroup, match[0]
        parts = form.split(".")
        file = parts[-1].lower() in lex.FILE_ENDINGS and max(map(len, parts)) > 1  # not e.g.
        module = "_" in form or (len(parts) > 2 and form.islower())
        if (kind != "dotted" or file or module) and any(map(str.isalpha, form)):
            yield *match.span(), "artifact", not (kind == "call" and stop_word(form))


def speakers(text: str) -> list[Candidate]:
    """Who speaks in a text of turns: behind a time at the start of three lines (`[15:01] <mara> ...`),
    or before a colon at the start of half of its lines (`Anna Berg: ...`), where two names stand twice
    and one of them is no everyday word."""
    turns = list(_FORMS.turn.finditer(text))
    stamped = [turn for turn in turns if turn["time"] or turn["nick"]]
    if len(stamped) >= 3:
        turns = stamped
    else:
        counts = Counter(turn["name"] for turn in turns)
        turns = [turn for turn in turns if counts[turn["name"]] > 1]
        names = {turn["name"] for turn in turns}
        lines = sum(1 for line in text.split("\n") if line.strip())
        if len(names) < 2 or 2 * len(turns) < lines or all(ordinary(n.lower()) for n in names):
            return []
    return [(*turn.span("name" if turn["name"] else "nick"), "person", True) for turn in turns]
