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
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.llm import prompts, replies
from graphrag_mcp.llm.asker import Answer, Ask, Asker, BadReply
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing.budget import shorten
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import stored
from graphrag_mcp.store.manifest import write_durably
from graphrag_mcp.store.tables import Snapshot, rows_of, values_of
from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import masked

KIND = "tune"
FOUND = "tuned.json"
UNITS, QUESTION_TOKENS = 15, 2_000  # text units of the sample, tokens of the whole question
TUNED = ("extract", "report")  # prompts that the persona is put into
DEFAULTS = Settings()


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

    Settings that someone changed stay: their entity types and language are
    used and not replaced. `settings` as loaded from the file and the environment, without what an
    earlier tuning found. Raises BadInput, and NotFound for no text."""
    requested = Profile(clean(domain, LONGEST["domain"]), clean(language, LONGEST["language"]))
    if not asker.may_answer(KIND):
        advice = "Set GRAPHRAG_MCP_CHAT_MODEL, or give an agent the MCP prompt tune_prompts"
        raise BadInput("tuning needs a chat model and none is configured", advice)
    texts = sample(snapshot)
    if not texts:
        raise NotFound("the index holds no text to tune by", "Index documents first")
    degraded: list[str] = []
    has_types = settings.entity_types != DEFAULTS.entity_types
    names = list(LONGEST) if has_types else [*LONGEST, "entity_types"]
    profile = _profile(asker, _question(texts, requested), requested, names, degraded)
    types = settings.entity_types if has_types else profile.entity_types or DEFAULTS.entity_types
    profile = replace(profile, entity_types=types)
    prompt_texts = _texts_of(profile, settings)
    facts = {**asdict(profile), "output_language": requested.language, "sampled": len(texts)}
    facts |= {"model": asker.model, "files": sorted(prompt_texts)}
    if has_types or types == DEFAULTS.entity_types:
        del facts["entity_types"]  # nothing was found that could replace anything
    if prompt_texts or "entity_types" in facts:
        prompt_texts[FOUND] = json.dumps(facts, ensure_ascii=False, indent=2) + "\n"
    files = _write(folder / "prompts", prompt_texts) if prompt_texts else ()
    found = {**asdict(profile), "sampled": len(texts), "usage": asker.spent().record()}
    return TuneResult(**found, files=files, degraded=tuple(degraded))


# ---- the sample ------------------------------------------------------------------------------------


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


# ---- excerpts --------------------------------------------------------------------------------------


def excerpts(texts: Sequence[str], budget: int) -> list[str]:
    """The beginning of each text, together at most `budget` tokens, shared evenly; what one leaves
    the next may use.

    Many short pieces rather than few whole ones: what a corpus is about is said by its variety."""
    found, left = [], budget
    for at, text in enumerate(texts):
        found.append(shorten(text, left // (len(texts) - at)))
        left -= count_tokens(found[-1])
    return found


# ---- what the corpus is ----------------------------------------------------------------------------

LEAST_EXCERPT = 30  # tokens of one of them
MOST_TYPES, LONGEST_TYPE, MOST_WORDS = 20, 40, 4
NO_TYPE = ("other", "none", "entity", "unknown")  # what models say instead of a type
# Characters of each text; a persona of four long sentences has some 700.
LONGEST = {"domain": 120, "language": 40, "persona": 900, "role": 500}
LONGEST["rating_criteria"] = 600
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


def _question(texts: Sequence[str], requested: Profile) -> str:
    """The question about the sample, of QUESTION_TOKENS, and what is decided."""
    names = (name for name in ("domain", "language") if getattr(requested, name))
    decided = "; ".join(f"{name} is {getattr(requested, name)!r}" for name in names)
    known = f"\nAlready decided, to be repeated as it is: {decided}.\n" if decided else ""
    prompt, tags = prompts.load("tune_profile"), count_tokens(_tagged("")) + 1
    room = QUESTION_TOKENS - count_tokens(prompt.substitute(known=known, sample=""))
    texts = texts[: room // (tags + LEAST_EXCERPT)]
    shown = "\n".join(_tagged(piece) for piece in excerpts(texts, room - tags * len(texts)))
    return prompt.substitute(known=known, sample=shown)


def _profile(asker: Asker, prompt: str, requested: Profile, names: Sequence[str], degraded: list[str]) -> Profile:
    """What was found, and what was given in its place; whatever of `names` is missing is noted."""
    messages = (Message("user", prompt),)
    ask = Ask(KIND, messages, read_profile, Profile, PROFILE_SCHEMA, if_cut="shown")
    answer: Answer[Profile] = asker.wait(asker.ask(ask))
    found = answer.value
    language = requested.language or found.language
    profile = replace(found, domain=requested.domain or found.domain, language=language)
    if not answer.by:
        reason = (answer.reason or "no answer").rstrip(". ")
        degraded.append(f"profile: {reason}; every default stays")
        return profile
    missing = [name for name in names if not getattr(profile, name)]
    what = "the model gave none that can be used; the default stays"
    degraded += [f"{name}: {what}" for name in missing]
    return profile


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
    if isinstance(value, str):
        value = re.split(r"[,;、，\n]", value)
    found: dict[str, None] = {}
    for name in value if isinstance(value, list) else ():
        text = clean(name if isinstance(name, str) else "", 200).strip(" .-*\"'")
        words = text.casefold().replace("_", " ").split()
        kind = " ".join(words)
        short = len(words) <= MOST_WORDS and len(kind) <= LONGEST_TYPE
        if short and kind[:1].isalpha() and kind not in NO_TYPE:
            found.setdefault(kind)
    return tuple(found)[:MOST_TYPES]


# ---- files -----------------------------------------------------------------------------------------


def _texts_of(profile: Profile, settings: Settings) -> dict[str, str]:
    """File name -> text, of the prompts in which something is other than in the shipped ones."""
    known = {"role": profile.role, "rating_criteria": profile.rating_criteria}
    texts = {name: _filled(name, known, profile.persona) for name in TUNED}
    texts = {name: text for name, text in texts.items() if text != prompts.load(name).template}
    note = "<!-- Tuned for this index by graphrag-mcp tune; stands in for the shipped prompt of this name. -->\n"
    return {f"{name}.md": f"{note}{text}\n" for name, text in texts.items()}


def _filled(name: str, known: Mapping[str, str], persona: str) -> str:
    """The shipped prompt with what is known filled in and every other variable, and `$$`, as it
    was.

    The persona is put first, unless a role says already who it is that writes."""
    shipped = prompts.load(name)
    persona = "" if known.get("role") and "role" in shipped.get_identifiers() else persona

    def fill(match: re.Match[str]) -> str:
        value = known.get(match["named"] or match["braced"] or "", "")
        return value.replace("$", "$$") or match[0]

    text = Template.pattern.sub(fill, shipped.template)
    return f"{persona}\n\n{text}" if persona else text


def _tagged(text: str) -> str:
    """A text of the corpus as data: it cannot close its own tag."""
    closed = re.sub(r"</(?=\s{0,20}text)", r"<\\/", text, flags=re.IGNORECASE)
    return f"<text>\n{closed}\n</text>"


def _write(target: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write the files; what differs there, or is of an earlier tuning, is kept as `NAME.bak`."""
    known, names = {f"{name}.md" for name in prompts.names()}, set(texts)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with suppress(OSError, ValueError, KeyError, TypeError):
            names |= known.intersection(stored.value((target / FOUND).read_bytes())["files"])
        for name in sorted(names):
            path = target / name
            if path.is_file() and path.read_text("utf-8", errors="replace") != texts.get(name):
                os.replace(path, target / f"{name}.bak")
        for name, text in texts.items():
            write_durably(target / name, text.encode())
    except OSError as error:
        what = f"{target} cannot be written ({error.strerror})"
        raise BadInput(what, "Give this user the right to write there") from error
    return tuple(target / name for name in texts)
