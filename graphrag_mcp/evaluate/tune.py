"""Prompt tuning: prompts that fit a corpus, from one question about a sample.

Tuning starts from the shipped prompts and a deterministic sample, so a second run is answered by
the reply cache. What a model says of unchecked documents becomes part of instructions here, so it is
one short paragraph without variables, tags or delimiters."""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.llm import prompts, replies
from graphrag_mcp.llm.asker import Ask, Asker, BadReply
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing.budget import shorten
from graphrag_mcp.packing.citations import data
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.manifest import write_durably
from graphrag_mcp.store.tables import Snapshot, rows_of, values_of
from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import masked

KIND = "tune"
UNITS, QUESTION_TOKENS = 15, 2_000  # text units of the sample, tokens of the whole question
MOST_TYPES, LONGEST_TYPE, MOST_WORDS = 20, 40, 4
NO_TYPE = ("other", "none", "entity", "unknown")  # what models say instead of a type
# Characters of each text; a persona of four long sentences has some 700.
LONGEST = {"domain": 120, "language": 40, "persona": 900, "role": 500, "rating_criteria": 600}
PROFILE_SCHEMA: dict[str, Any] = {
    "title": "corpus_profile",
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in LONGEST},
        "entity_types": {"type": "array", "items": {"type": "string"}},
    },
    "required": [*LONGEST, "entity_types"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Profile:
    """What was found of a corpus; "" or () where nothing was, and then the default stays."""

    domain: str = ""
    language: str = ""
    persona: str = ""
    role: str = ""
    rating_criteria: str = ""
    entity_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TuneResult(Profile):
    """What was found and written; `usage` is what was asked of models.

    `entity_types` are those that extraction will look for; () = any. `degraded` says where a
    default stayed, and why."""

    sampled: int = 0
    files: tuple[Path, ...] = ()
    usage: Mapping[str, Any] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()


def tune(
    folder: Path, snapshot: Snapshot, settings: Settings, asker: Asker, domain: str = "", language: str = ""
) -> TuneResult:
    """Fit the prompts of the index in `folder` to its texts, and write them to `folder/prompts`.
    `domain` and `language` are found unless given; a given language is also that of descriptions
    and reports.

    Entity types that someone set stay, and are used in place of those that are found. `settings` as loaded from the
    file and the environment, without what an earlier tuning found. Raises BadInput, and NotFound for no text."""
    if not asker.may_answer(KIND):
        advice = "Set GRAPHRAG_MCP_CHAT_MODEL, or give an agent the MCP prompt tune_prompts"
        raise BadInput("tuning needs a chat model and none is configured", advice)
    texts = sample(snapshot)
    if not texts:
        raise NotFound("the index holds no text to tune by", "Index documents first")
    given = {"domain": clean(domain, LONGEST["domain"]), "language": clean(language, LONGEST["language"])}
    given = {name: text for name, text in given.items() if text}
    ask = Ask(KIND, (Message("user", _question(texts, given)),), read_profile, Profile, PROFILE_SCHEMA, if_cut="shown")
    answer = asker.wait(asker.ask(ask))
    profile = replace(answer.value, **given)
    set_here = settings.entity_types != Settings().entity_types
    needed = {name: found for name, found in asdict(profile).items() if not (set_here and name == "entity_types")}
    missing = [name for name, found in needed.items() if not found]
    degraded = [f"{name}: the model gave none that can be used; the default stays" for name in missing]
    if not answer.by:
        degraded = [f"profile: {(answer.reason or 'no answer').rstrip('. ')}; every default stays"]
    files = {f"{name}.md": text for name, text in _tuned(profile).items()}
    if files or (profile.entity_types and not set_here):
        facts = {**asdict(profile), "sampled": len(texts), "model": asker.model}
        facts |= {"output_language": given.get("language", "")}
        if set_here or not profile.entity_types:
            del facts["entity_types"]  # nothing was found that could replace anything
        files["tuned.json"] = json.dumps(facts, ensure_ascii=False, indent=2) + "\n"
    types = settings.entity_types if set_here else profile.entity_types or Settings().entity_types
    return TuneResult(
        **asdict(replace(profile, entity_types=types)),
        sampled=len(texts),
        files=_write(folder / "prompts", files),
        usage=asker.spent().record(),
        degraded=tuple(degraded),
    )


def sample(snapshot: Snapshot) -> list[str]:
    """Texts of at most UNITS text units, each once, in the order of a hash: the same content gives
    the same sample whatever its history."""
    first: dict[str, str] = {}  # hash of the text -> id
    for batch in snapshot.batches("text_units", ["id", "text"]):
        for id, text in rows_of(batch):
            first[hashlib.sha256(f"42\n{text}".encode("utf-8", "replace")).hexdigest()] = id
        first = dict(sorted(first.items())[:UNITS])
    rows = snapshot.by_key("text_units", list(first.values()))
    # no model is shown a key that stands in a text
    return list(map(masked, values_of(rows["text"])))


def _question(texts: Sequence[str], given: Mapping[str, str]) -> str:
    """The question about the sample, of QUESTION_TOKENS, with what is decided. Many short pieces rather than few
    whole ones: what a corpus is about is said by its variety."""
    decided = "; ".join(f"{name} is {text!r}" for name, text in given.items())
    known = f"\nAlready decided, to be repeated as it is: {decided}.\n" if decided else ""
    prompt = prompts.load("tune_profile")
    left = QUESTION_TOKENS - count_tokens(prompt.substitute(known=known, sample=""))
    pieces: list[str] = []
    for at, text in enumerate(texts):
        share = left // (len(texts) - at)  # what one text leaves the next may use
        pieces.append(f"<text>\n{data(shorten(text, share - count_tokens('<text></text>')))}\n</text>")
        left -= count_tokens(pieces[-1])
    return prompt.substitute(known=known, sample="\n".join(pieces))


def read_profile(reply: str) -> Profile:
    """The profile in a reply; BadReply when it holds neither a persona nor types."""
    found = replies.read(reply).values[0]
    if not isinstance(found, dict):
        raise BadReply("no JSON object")
    texts = {name: clean(str(found.get(name) or ""), most) for name, most in LONGEST.items()}
    profile = Profile(**texts, entity_types=clean_types(found.get("entity_types")))
    if not profile.persona and not profile.entity_types:
        raise BadReply("neither a persona nor entity types")
    return profile


def clean(text: str, longest: int) -> str:
    """One paragraph without variables, tags, delimiters, control characters; cut at a sentence."""
    text = re.sub(r"<[^<>]{0,200}>|[$`{}<>|]|#{2,}", " ", text[: 10 * longest])
    no_text = ("Cc", "Cs", "Co", "Zl", "Zp")
    text = "".join(" " if unicodedata.category(ch) in no_text else ch for ch in text)
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    ends = [end for _, end in sentences(text) if end <= longest]
    whole = text[: ends[-1]] if ends else text[:longest].rpartition(" ")[0]
    return whole.rstrip() or text[:longest]


def clean_types(value: Any) -> tuple[str, ...]:
    """Entity types: lower case, 1 to MOST_WORDS words each, no two the same, at most MOST_TYPES."""
    found: dict[str, None] = {}
    for name in value if isinstance(value, list) else ():
        words = clean(name if isinstance(name, str) else "", 200).strip(" .-*\"'").casefold().split()
        kind = " ".join(words)
        short = len(words) <= MOST_WORDS and len(kind) <= LONGEST_TYPE
        if short and kind[:1].isalpha() and kind not in NO_TYPE:
            found.setdefault(kind)
    return tuple(found)[:MOST_TYPES]


def _tuned(profile: Profile) -> dict[str, str]:
    """The prompts in which something is other than in the shipped ones, by name: the persona before that of
    extraction, role and criteria in that of reports. Every other variable, and `$$`, stays as it is."""
    known = {"role": profile.role, "rating_criteria": profile.rating_criteria}

    def fill(match: re.Match[str]) -> str:
        value = known.get(match["named"] or match["braced"] or "", "")
        return value.replace("$", "$$") or match[0]

    shipped = {name: prompts.load(name).template for name in ("extract", "report")}
    persona = f"{profile.persona}\n\n" if profile.persona else ""
    texts = {"extract": f"{persona}{shipped['extract']}"}
    texts["report"] = f"{'' if profile.role else persona}{Template.pattern.sub(fill, shipped['report'])}"
    note = "<!-- Tuned for this index by graphrag-mcp tune; stands in for the shipped prompt of this name. -->\n"
    return {name: f"{note}{text}\n" for name, text in texts.items() if text != shipped[name]}


def _write(target: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write the files; what differs there is kept as `NAME.bak`."""
    try:
        for name, text in sorted(texts.items()):
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file() and path.read_text("utf-8", errors="replace") != text:
                os.replace(path, target / f"{name}.bak")
            write_durably(path, text.encode())
    except OSError as error:
        what = f"{target} cannot be written ({error.strerror})"
        raise BadInput(what, "Give this user the right to write there") from error
    return tuple(target / name for name in texts)
