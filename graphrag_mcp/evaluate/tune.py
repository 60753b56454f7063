"""Prompt tuning: prompts that fit a corpus, from one question about a sample and one per worked
example.

Tuning starts from the shipped prompts and a deterministic sample, so a second run is answered by
the reply cache. The profile is one question, so the sample is paid for once. An example is asked
for with the extraction prompt itself, so its form is the one that extraction reads. What a model
says of unchecked documents becomes part of instructions here, so it is one short paragraph without
variables, tags or delimiters."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from string import Template
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.llm import prompts, replies
from graphrag_mcp.llm.asker import Answer, Ask, Asker, BadReply
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import stored
from graphrag_mcp.store.manifest import write_durably
from graphrag_mcp.store.tables import Snapshot, rows_of, values_of
from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.terms import normalise_name, stop_word, terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import masked

KIND = "tune"
FOUND = "tuned.json"
TUNED = ("extract", "describe", "report", "claims")  # prompts that the persona is put into
DEFAULTS = Settings()


@dataclass(frozen=True)
class TuneRequest:
    """`limit`: text units of the sample; `max_tokens`: of the whole question about it. `domain` and
    `language` are found unless given; a given language is also that of descriptions and reports."""

    selection: str = "random"
    limit: int = 15
    min_examples: int = 2
    max_tokens: int = 2000
    domain: str = ""
    language: str = ""
    untyped: bool = False
    seed: int = 42
    output: Path | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """What was found of a corpus; "" or () where nothing was, and then the default stays."""

    domain: str = ""
    language: str = ""
    persona: str = ""
    role: str = ""
    rating_criteria: str = ""
    claim_description: str = ""
    entity_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TuneResult(Profile):
    """What was found and written. `examples` is how many were found, `usage` what was asked of
    models.

    `entity_types` are those that extraction will look for; () = any. `degraded` says where a
    default stayed, and why."""

    examples: int = 0
    sampled: int = 0
    files: tuple[Path, ...] = ()
    usage: Mapping[str, Any] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()


def tune(
    folder: Path, snapshot: Snapshot, settings: Settings, asker: Asker, request: TuneRequest
) -> TuneResult:
    """Fit the prompts of the index in `folder` to its texts, and write them to `folder/prompts` or
    to the folder that the request names.

    Settings that someone changed stay: their entity types, language and description of claims are
    used and not replaced. `settings` as loaded from the file and the environment, without what an
    earlier tuning found. Raises BadInput, and NotFound for no text."""
    domain = clean(request.domain, LONGEST["domain"])
    requested = Profile(domain, clean(request.language, LONGEST["language"]))
    room = _checked(request, requested)
    if not asker.may_answer(KIND):
        advice = "Set GRAPHRAG_MCP_CHAT_MODEL, or give an agent the MCP prompt tune_prompts"
        raise BadInput("tuning needs a chat model and none is configured", advice)
    texts = sample(snapshot, request.selection, request.limit, request.seed)
    if not texts:
        raise NotFound("the index holds no text to tune by", "Index documents first")
    degraded: list[str] = []
    has_types = settings.entity_types != DEFAULTS.entity_types
    names = list(LONGEST) if has_types or request.untyped else [*LONGEST, "entity_types"]
    profile = _profile(asker, _question(texts, room, requested), requested, names, degraded)
    types = settings.entity_types
    if not has_types:
        types = () if request.untyped else profile.entity_types or DEFAULTS.entity_types
    profile = replace(profile, entity_types=types)
    extraction = _filled("extract", {}, profile.persona)
    language = settings.output_language or requested.language
    pool = [_example_ask(text, extraction, types, language) for text in passages(texts)]
    examples = asker.wait(_examples(asker, pool, request.min_examples, degraded))
    prompt_texts = _texts_of(profile, examples, settings, extraction)
    facts = {
        **asdict(profile),
        "output_language": requested.language,
        "selection": request.selection,
    }
    facts |= {"limit": request.limit, "seed": request.seed, "sampled": len(texts)}
    facts |= {"examples": len(examples), "model": asker.model, "files": sorted(prompt_texts)}
    if has_types or types == DEFAULTS.entity_types:
        del facts["entity_types"]  # nothing was found that could replace anything
    if prompt_texts or "entity_types" in facts:
        prompt_texts[FOUND] = json.dumps(facts, ensure_ascii=False, indent=2) + "\n"
    files = _write(request.output or folder / "prompts", prompt_texts) if prompt_texts else ()
    counts = {"examples": len(examples), "sampled": len(texts), "usage": asker.spent().record()}
    return TuneResult(**asdict(profile), **counts, files=files, degraded=tuple(degraded))


def _checked(request: TuneRequest, requested: Profile) -> int:
    """The tokens that the question about the sample leaves for excerpts."""
    if request.limit < 1 or not 0 <= request.min_examples <= MOST_EXAMPLES:
        what = f"limit {request.limit} with min_examples {request.min_examples} cannot be used"
        raise BadInput(what, f"Use a limit of at least 1 and 0 to {MOST_EXAMPLES} examples")
    words = count_tokens(_question((), 0, requested))
    if request.max_tokens < words + LEAST_SAMPLE:
        what = f"max_tokens {request.max_tokens} leaves no room for a sample"
        advice = f"Use at least {words + LEAST_SAMPLE}"
        raise BadInput(f"{what} beside {words} tokens of instructions", advice)
    return request.max_tokens - words


# ---- the sample ------------------------------------------------------------------------------------

SELECTIONS = ("random", "top", "centroid")
POOL = 300  # units among which the centroid is looked for; a mean of 300 hardly moves with more


def sample(snapshot: Snapshot, selection: str, limit: int, seed: int) -> list[str]:
    """Texts of at most `limit` text units, each once.

    `random` orders units by a hash of seed and text, so the same content gives the same sample
    whatever the history; `top` takes the first by address and position; `centroid` the nearest to
    the mean of up to POOL random ones, by weighted words."""
    if selection not in SELECTIONS:
        raise BadInput(f"selection {selection!r} is unknown", f"Use one of {', '.join(SELECTIONS)}")
    if selection == "top":
        return _top(snapshot, limit)
    size = limit if selection == "random" else max(POOL, limit)
    first: dict[str, str] = {}  # hash of seed and text -> id
    for batch in snapshot.batches("text_units", ["id", "text"]):
        for id, text in rows_of(batch):
            first[hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "replace")).hexdigest()] = id
        first = dict(sorted(first.items())[:size])
    pool = _texts(snapshot, list(first.values()))
    if selection == "random":
        return pool
    nearness = _nearness(pool)
    # rounded: sums differ by machine
    best = sorted(range(len(pool)), key=lambda at: (-round(nearness[at], 6), at))
    return [pool[at] for at in best[:limit]]


def _top(snapshot: Snapshot, limit: int) -> list[str]:
    documents = snapshot.rows("documents", columns=["id", "uri"]).to_pylist()
    uri = {row["id"]: row["uri"] for row in documents}
    units = snapshot.rows("text_units", columns=["document_id", "chunk_index", "id"]).to_pylist()
    units.sort(key=lambda row: (uri.get(row["document_id"], ""), row["chunk_index"], row["id"]))
    found: dict[str, None] = {}
    for start in range(0, len(units), limit):  # again only where texts repeat
        if len(found) < limit:
            ids = [unit["id"] for unit in units[start : start + limit]]
            found |= dict.fromkeys(_texts(snapshot, ids))
    return list(found)[:limit]


def _texts(snapshot: Snapshot, ids: Sequence[str]) -> list[str]:
    rows = snapshot.by_key("text_units", ids)
    # no model is shown a key that stands in a text
    return list(map(masked, values_of(rows["text"])))


def _nearness(texts: Sequence[str]) -> list[float]:
    """Cosine of each text with the mean of all, by tf-idf; idf counts these texts alone."""
    counts = [Counter(term for term in terms(text) if not stop_word(term)) for text in texts]
    holding = Counter(term for count in counts for term in count)
    rows: list[dict[str, float]] = []
    middle: Counter[str] = Counter()
    rare = {term: math.log(1 + len(texts) / n) for term, n in holding.items()}
    for count in counts:
        row = {term: (1 + math.log(n)) * rare[term] for term, n in count.items()}
        norm = math.hypot(*row.values()) or 1.0
        rows.append({term: weight / norm for term, weight in row.items()})
        middle.update({term: weight / len(texts) for term, weight in rows[-1].items()})
    return [sum(weight * middle[term] for term, weight in row.items()) for row in rows]


# ---- excerpts --------------------------------------------------------------------------------------

# a passage names some 10 things; two such examples are half of what a text unit costs itself
EXAMPLE_TOKENS = 350
SHORT = 40  # tokens under which an excerpt holds too little to show how names are related


def excerpts(texts: Sequence[str], budget: int) -> list[str]:
    """The beginning of each text, together at most `budget` tokens, shared evenly; what one leaves
    the next may use.

    Many short pieces rather than few whole ones: what a corpus is about is said by its variety."""
    found, left = [], budget
    for at, text in enumerate(texts):
        piece = next(windows(text, left // (len(texts) - at)), "")
        if piece:
            found.append(piece)
            left -= count_tokens(piece)
    return found


def passages(texts: Sequence[str], size: int = EXAMPLE_TOKENS) -> list[str]:
    """Excerpts of at most `size` tokens: the first of every text, then the second of every text,
    and so on; those too short to show anything come last."""
    rounds = zip_longest(*(windows(text, size) for text in texts), fillvalue="")
    found = list(dict.fromkeys(piece for pieces in rounds for piece in pieces if piece))
    return sorted(found, key=lambda piece: count_tokens(piece) < SHORT)


def windows(text: str, size: int) -> Iterator[str]:
    """`text` in pieces of whole sentences of at most `size` tokens; a longer one is cut off."""
    start = end = 0
    for first, last in sentences(text):
        if end > start and count_tokens(text[start:last]) > size:
            yield text[start:end]
            start = end
        start, end = (first if start == end else start), last
        if count_tokens(text[start:end]) > size:
            piece = text[start:end]
            while piece and (tokens := count_tokens(piece)) > size:
                piece = piece[: min(len(piece) - 1, len(piece) * size // tokens)]
            yield from filter(None, [piece.rstrip()])
            start = end
    if end > start:
        yield text[start:end]


# ---- what the corpus is ----------------------------------------------------------------------------

LEAST_SAMPLE = 200  # tokens of excerpts under which nothing can be said about a corpus
LEAST_EXCERPT = 30  # tokens of one of them
MOST_TYPES, LONGEST_TYPE, MOST_WORDS = 20, 40, 4
NO_TYPE = ("other", "none", "entity", "unknown")  # what models say instead of a type
# Characters of each text; a persona of four long sentences has some 700.
LONGEST = {"domain": 120, "language": 40, "persona": 900, "role": 500}
LONGEST |= {"rating_criteria": 600, "claim_description": 400}
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


def _question(texts: Sequence[str], room: int, requested: Profile) -> str:
    """The question about the sample, with at most `room` tokens of it, and what is decided."""
    names = (name for name in ("domain", "language") if getattr(requested, name))
    decided = "; ".join(f"{name} is {getattr(requested, name)!r}" for name in names)
    known = f"\nAlready decided, to be repeated as it is: {decided}.\n" if decided else ""
    tags = count_tokens(_tagged("")) + 1
    texts = texts[: room // (tags + LEAST_EXCERPT)]
    shown = "\n".join(_tagged(piece) for piece in excerpts(texts, room - tags * len(texts)))
    return prompts.load("tune_profile").substitute(known=known, sample=shown)


def _profile(
    asker: Asker, prompt: str, requested: Profile, names: Sequence[str], degraded: list[str]
) -> Profile:
    """What was found, and what was given in its place; whatever of `names` is missing is noted."""
    messages = (Message("user", prompt),)
    ask = Ask(KIND, messages, read_profile, Profile, PROFILE_SCHEMA, if_cut="shown")
    answer: Answer[Profile] = asker.wait(asker.ask(ask))
    found = answer.value
    language = requested.language or found.language
    profile = replace(found, domain=requested.domain or found.domain, language=language)
    if not answer.by:
        degraded.append(f"profile: {_reason(answer)}; every default stays")
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
    return _plain(re.sub(r"<[^<>]{0,200}>|[$`{}]", " ", text[: 10 * longest]), longest)


def _plain(text: str, longest: int) -> str:
    """The same for an example, where a dollar is written twice and `C++ {…}` may be a name."""
    text = re.sub(r"[<>|]|#{2,}", " ", text[: 10 * longest])
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


# ---- worked examples -------------------------------------------------------------------------------

MOST_EXAMPLES = 10
LEAST_ENTITIES, LEAST_RELATIONS = 2, 1
MOST_RECORDS = 25  # of a kind; an example goes with every question, and passages have some 10
LONGEST_NAME, LONGEST_DESCRIPTION = 100, 400
LONGEST_REPLY = 100_000  # characters that are looked at


@dataclass(frozen=True, slots=True)
class Example:
    """A text and what is to be found in it, as records of the reply, strong relationships first."""

    text: str
    entities: tuple[dict[str, Any], ...]
    relations: tuple[dict[str, Any], ...]

    def reply(self) -> str:
        """The reply that is right, one record a line."""
        lists = {"entities": self.entities, "relationships": self.relations}
        parts = []
        for name, records in lists.items():
            lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
            parts.append(f'"{name}": [\n{lines}]')
        return "{" + ",\n".join(parts) + "}"


def _example_ask(
    text: str, template: str, types: Sequence[str], language: str
) -> Ask[Example | None]:
    """The question for an example: the tuned prompt, with types and language (may be empty)."""
    prompt = Template(template).safe_substitute(
        entity_types=", ".join(types) or "whatever fits best, in one or two lower-case words",
        language=f"Write in {language or 'the language of the text'}.",
        examples=prompts.load("extract_examples").safe_substitute(),
        text=_broken(text),
    )

    def parse(reply: str) -> Example | None:
        return read_example(reply, text, types, literal=not language)

    return Ask(KIND, (Message("user", prompt),), parse, lambda: None)


async def _examples(
    asker: Asker, pool: Sequence[Ask[Example | None]], most: int, degraded: list[str]
) -> list[Example]:
    """As many examples as are wanted; [] when there are fewer than the corpus has text for."""
    needed = min(most, len(pool))
    found: list[Example] = []
    reasons: Counter[str] = Counter()
    pool = pool[: 2 * needed + 2]  # that are tried: some texts are tables or lists of contents
    while len(found) < needed and pool:
        batch, pool = pool[: needed - len(found)], pool[needed - len(found) :]
        for answer in await asyncio.gather(*map(asker.ask, batch)):
            if answer.value is not None:
                found.append(answer.value)
            else:
                reasons[_reason(answer)] += 1
    if len(found) < needed:
        why = ", ".join(f"{count} x {reason}" for reason, count in sorted(reasons.items()))
        can = f"{len(found)} of {needed} can be used ({why})"
        degraded.append(f"examples: {can}; the shipped one stays")
        return []
    if needed < most:
        less = f"{needed} instead of {most}, since the index holds no more text"
        degraded.append(f"examples: {less}")
    return found


def _reason(answer: Answer[Any]) -> str:
    return (answer.reason or "no answer").rstrip(". ")


def read_example(reply: str, text: str, types: Sequence[str], literal: bool = True) -> Example:
    """The records of a reply that are well formed: an example that is wrong teaches every later
    reply to be wrong.

    Only relationships between entities of the example stay. BadReply when too little is left, or,
    with `literal`, when most names do not stand in the text (with a language for the results they
    may be translated)."""
    found = replies.read(reply[:LONGEST_REPLY]).values[0]
    found = found if isinstance(found, dict) else {}
    entities: dict[str, dict[str, Any]] = {}
    for record in _objects(found.get("entities"), ("name", "type", "description"))[:MOST_RECORDS]:
        name, kind = _plain(record["name"], LONGEST_NAME), _type(record["type"], types)
        key, description = normalise_name(name), _plain(record["description"], LONGEST_DESCRIPTION)
        if kind and description and key:
            entities.setdefault(key, {"name": name, "type": kind, "description": description})
    relations: dict[frozenset[str], dict[str, Any]] = {}
    for record in _objects(found.get("relationships"), ("source", "target", "description")):
        ends = [normalise_name(_plain(record[end], LONGEST_NAME)) for end in ("source", "target")]
        description = _plain(record["description"], LONGEST_DESCRIPTION)
        keywords = record.get("keywords")
        listed = keywords if isinstance(keywords, list) else []
        words = [_plain(str(keyword), LONGEST_NAME) for keyword in listed if str(keyword).strip()]
        strength = _strength(record.get("strength"))
        known = ends[0] != ends[1] and all(end in entities for end in ends)
        if known and description and words and strength:
            source, target = (entities[end]["name"] for end in ends)
            whole = {"source": source, "target": target, "description": description}
            whole |= {"keywords": words, "strength": strength}
            relations.setdefault(frozenset(ends), whole)
    if len(entities) < LEAST_ENTITIES or len(relations) < LEAST_RELATIONS:
        raise BadReply(f"{len(entities)} usable entities and {len(relations)} usable relationships")
    folded = " ".join(text.split()).casefold()
    literally = sum(record["name"].casefold() in folded for record in entities.values())
    if literal and literally * 2 < len(entities):
        raise BadReply("most names do not stand in the text")
    strongest = sorted(relations.values(), key=lambda relation: -relation["strength"])[
        :MOST_RECORDS
    ]
    return Example(text, tuple(entities.values()), tuple(strongest))


def _type(kind: str, types: Sequence[str]) -> str:
    """One of `types` or `other`; any clean type where there are none; "" for no type at all."""
    cleaned = (clean_types([kind]) or ("",))[0]
    if not types or not cleaned:
        return cleaned or ("other" if kind.strip().lower() == "other" else "")
    return cleaned if cleaned in types else "other"


def _objects(value: Any, texts: Sequence[str]) -> list[dict[str, Any]]:
    """The objects of a list that have a text under each of these names."""
    listed = value if isinstance(value, list) else []
    objects = (record for record in listed if isinstance(record, dict))
    return [
        record for record in objects if all(isinstance(record.get(name), str) for name in texts)
    ]


def _strength(strength: Any) -> float:
    """A strength of over 0 to 10; 0 for anything else."""
    number = isinstance(strength, int | float) and not isinstance(strength, bool)
    return round(float(strength), 3) if number and 0 < strength <= 10 else 0.0


# ---- files -----------------------------------------------------------------------------------------


def _texts_of(
    profile: Profile, examples: Sequence[Example], settings: Settings, extraction: str
) -> dict[str, str]:
    """File name -> text, of the prompts in which something is other than in the shipped ones."""
    known = {"role": profile.role, "rating_criteria": profile.rating_criteria}
    if settings.claims_description == DEFAULTS.claims_description:
        known["claim_description"] = profile.claim_description
    texts = {name: _filled(name, known, profile.persona) for name in TUNED if name != "extract"}
    texts["extract"] = extraction
    texts = {name: text for name, text in texts.items() if text != prompts.load(name).template}
    if examples:
        texts["extract_examples"] = "\n\n".join(_shown(example) for example in examples)
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
    return f"<text>\n{_broken(text)}\n</text>"


def _broken(text: str) -> str:
    return re.sub(r"</(?=\s{0,20}text)", r"<\\/", text, flags=re.IGNORECASE)


def _shown(example: Example) -> str:
    """As in extract_examples.md; a dollar sign is written twice, since the file is a template."""
    return f"{_tagged(example.text)}\n{example.reply()}".replace("$", "$$")


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
        raise BadInput(what, "Name another folder with --output") from error
    return tuple(target / name for name in texts)
