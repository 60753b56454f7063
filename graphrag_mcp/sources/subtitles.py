"""Subtitles and transcripts with times: WebVTT (W3C) and SubRip. One turn of a speaker is one paragraph,
and the time of its first cue is its place."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise

from graphrag_mcp.sources.decode import ReadError, decode
from graphrag_mcp.sources.piece import Piece, Writer

_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}"
_CUE = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}.*")
_VOICE = re.compile(r"<v(?:\.[\w.-]{1,60})?[ \t]+([^>\n]{1,120})>")
_TAG = re.compile(r"</?[A-Za-z0-9][^<>\n]{0,200}>|<\d{2}:[\d:.]{1,12}>|\{\\[^{}\n]{0,80}\}")
_SPEAKER = re.compile(r"(?:>>\s*)?([^\W\d_][\w .'’-]{0,40}):\s+(?=\S)")
_DASH = re.compile(r"[-–](?:\s+(?=\S)|(?=[^\W\d_]))")
_ASIDE = re.compile(r"NOTE(?:\s|\Z)|(?:STYLE|REGION)\s*\Z")  # blocks of WebVTT that are no cues
_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*\Z")


@dataclass
class _Turn:
    time: str
    speaker: str
    words: list[str]


def subtitles(data: bytes, suffix: str) -> Iterator[Piece]:
    """Who says what, with times as places. ReadError where no cue has a time."""
    text, metadata = decode(data)
    writer = Writer()
    for turn in _turns(text):
        speech = " ".join(" ".join(turn.words).split())
        writer.add(f"{turn.speaker}: {speech}" if turn.speaker and speech else speech, turn.time)
    if not writer.size and text.strip():
        if text.startswith("WEBVTT"):
            raise ReadError("no text in it: it has no cue")
        raise ReadError(f"it is damaged, or no {suffix} file: no cue with a time")
    yield writer.piece(metadata=metadata, prose=False)


def _turns(text: str) -> Iterator[_Turn]:
    """Where cues name their voices, one that names none is that of the speaker before only as the rest of a
    sentence."""
    turn = _Turn("", "", [])
    voiced = _VOICE.search(text) is not None
    for time, speaker, words in _cues(text):
        if speaker is not None:
            goes_on = speaker != "" and speaker == turn.speaker
        else:
            goes_on = (turn.speaker != "" and not voiced) or not _END.search("".join(turn.words[-1:]))
        if goes_on and turn.words:
            turn.words.append(words)
            continue
        yield turn
        turn = _Turn(time, speaker or "", [words])
    yield turn


def _cues(text: str) -> Iterator[tuple[str, str | None, str]]:
    """(time, speaker, words) of each part of a cue that one person says. "" is another person without
    a name; with None nothing is told."""
    lines, is_webvtt = text.split("\n"), text.startswith("WEBVTT")
    starts = [number for number, line in enumerate(lines) if _CUE.fullmatch(line)]
    before = ""
    for number, following in pairwise([*starts, len(lines)]):
        found = _CUE.fullmatch(lines[number])
        assert found is not None
        time = f"{int(found[1] or 0):02d}:{int(found[2]):02d}:{found[3]}"
        body = lines[number + 1 : following]
        # In front of a time stand the number of its cue, or its name behind a blank line.
        if following < len(lines) and body and body[-1].strip():
            if body[-1].strip().isdecimal() or (len(body) > 1 and not body[-2].strip()):
                body.pop()
        blocks = [list(block) for _, block in groupby(body, lambda line: bool(line.strip()))]
        if is_webvtt:  # what stands directly below a time is said
            blocks[1:] = [block for block in blocks[1:] if not _ASIDE.match(block[0])]
        body = [line for block in blocks for line in block if line.strip()]
        for speaker, words in _voices(body, before):
            if words:
                yield time, speaker, words
                before = words


def _voices(body: list[str], before: str) -> Iterator[tuple[str | None, str]]:
    """The parts of a cue behind the words `before`. A dash is that of another person where a sentence ends
    before it, or where several lines have one; else it stands in a sentence."""
    plain_lines = [html.unescape(_TAG.sub("", line)).strip() for line in body]
    several = sum(_DASH.match(line) is not None for line in plain_lines) > 1
    speaker: str | None = None
    words: list[str] = []
    for line in body:
        parts = _VOICE.split(line)
        for index, part in enumerate(parts):
            if index % 2:
                yield speaker, " ".join(words)
                speaker, words = " ".join(html.unescape(part).split()), []
                continue
            plain = html.unescape(_TAG.sub("", part)).strip()
            last = words[-1] if words else before
            ended = several or not last or _END.search(last)
            if not index and _DASH.match(plain) and ended:  # another person speaks
                yield speaker, " ".join(words)
                speaker, words, plain = "", [], _DASH.sub("", plain, count=1)
            if named := _SPEAKER.match(plain):
                yield speaker, " ".join(words)
                speaker, words, plain = named[1].strip(), [], plain[named.end() :]
            words += [plain] if plain else []
    yield speaker, " ".join(words)
