"""Tune: prompts that fit a corpus, found by one question about a sample of it and one question per worked example.

Takes a snapshot, settings and an asker; writes into the `prompts` folder of the index (or another) and says what it
found, what it spent and where defaults stayed. Always starts from the shipped prompts: tuning twice is tuning once,
and with the same sample the second time asks nothing, because the answers are in the book. Knows no indexing.

All that a prompt needs is asked at once: what comes later in the JSON of the profile (types, rating criteria) is then
written in view of what came before (domain, persona), and the sample is paid for once instead of seven times. An
example is asked for with the extraction prompt itself, one text each, so its form is the one that extraction reads;
each goes with every later question, so there are as few as asked for and each is at most EXAMPLE_TOKENS long.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from string import Template
from typing import Any

from graphrag_mcp import prompts
from graphrag_mcp.ask import Answer, Ask, Asker
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.seams import Message
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import count_tokens
from graphrag_mcp.upkeep.sampling import excerpts, passages, sample
from graphrag_mcp.upkeep.tune_replies import (
    LONGEST,
    MARK,
    PROFILE_SCHEMA,
    Example,
    Profile,
    clean,
    read_example,
    read_profile,
)

KIND = "tune"
FOUND = "tuned.json"
EXAMPLE_TOKENS = 350  # a passage names some 10 things; two such examples are half of what a text unit costs itself
MOST_EXAMPLES = 10
LEAST_SAMPLE = 200  # tokens of excerpts under which nothing can be said about a corpus
LEAST_EXCERPT = 30  # tokens of one of them
TUNED = ("extract", "describe", "report", "claims")  # prompts that the persona and the rest are put into
DEFAULTS = Settings()


@dataclass(frozen=True)
class TuneResult:
    """What was found and written. `examples` is how many were found, `usage` what was asked of models for it.

    `entity_types` are those that extraction will look for; () = any. `degraded` says where a default stayed, and why.
    """

    domain: str
    language: str
    persona: str
    role: str
    rating_criteria: str
    claim_description: str
    entity_types: tuple[str, ...]
    examples: int
    sampled: int
    files: tuple[Path, ...]
    usage: dict[str, Any]
    degraded: tuple[str, ...]


def tune(
    folder: Path, snapshot: Snapshot, settings: Settings, asker: Asker, *, selection: str = "random", limit: int = 15,
    min_examples: int = 2, max_tokens: int = 2000, domain: str = "", language: str = "", untyped: bool = False,
    seed: int = 42, output: Path | None = None,
) -> TuneResult:  # fmt: skip
    """Fit the prompts of the index in `folder` to its texts, and write them to `folder/prompts` or `output`.

    `limit`: text units of the sample; `max_tokens`: of the whole question about it. `domain` and `language` are found
    unless given; a given language is also that of descriptions and reports. Settings that somebody changed stay:
    their entity types, language and description of claims are used and not replaced. `settings` as loaded from
    the file and the environment, without what an earlier tuning found. Raises BadInput, and NotFound for no text.
    """
    given = Profile(domain=clean(domain, LONGEST["domain"]), language=clean(language, LONGEST["language"]))
    known = _known(given)
    room = _checked(limit, min_examples, max_tokens, known)
    if not asker.may_answer(KIND):
        raise BadInput(
            "tuning needs a chat model and none is configured",
            "Set GRAPHRAG_MCP_CHAT_MODEL, or give an agent the MCP prompt tune_prompts",
        )
    before = asker.spent().record()
    texts, note = sample(snapshot, selection, limit, seed, asker)
    if not texts:
        raise NotFound("the index holds no text to tune by", "Index documents first")
    degraded = [note] if note else []
    own = settings.entity_types != DEFAULTS.entity_types
    wanted = list(LONGEST) if own or untyped else [*LONGEST, "entity_types"]
    profile = _profile(asker, _question(texts, room, known), given, wanted, degraded)
    types = settings.entity_types if own else () if untyped else profile.entity_types or DEFAULTS.entity_types
    extraction = _filled("extract", {}, profile.persona)
    told = Telling(extraction, types, settings.output_language or given.language)
    examples = asker.wait(_examples(asker, told, passages(texts, EXAMPLE_TOKENS), min_examples, degraded))
    profile = replace(profile, entity_types=types)
    made = _texts(profile, examples, settings, extraction)
    facts = {
        **asdict(profile), "output_language": given.language, "selection": selection, "limit": limit, "seed": seed,
        "sampled": len(texts), "examples": len(examples), "model": asker.model, "files": sorted(made),
    }  # fmt: skip
    if own or types == DEFAULTS.entity_types:
        del facts["entity_types"]  # nothing was found that could replace anything
    if made or "entity_types" in facts:
        made[FOUND] = json.dumps(facts, ensure_ascii=False, indent=2) + "\n"
    files = _write(output or folder / "prompts", made) if made else ()
    usage = _spent(before, asker.spent().record())
    return TuneResult(
        **asdict(profile), examples=len(examples), sampled=len(texts), files=files, usage=usage,
        degraded=tuple(degraded),
    )  # fmt: skip


def _checked(limit: int, min_examples: int, max_tokens: int, known: str) -> int:
    """The tokens that the question about the sample leaves for excerpts."""
    if limit < 1 or not 0 <= min_examples <= MOST_EXAMPLES:
        what = f"limit {limit} with min_examples {min_examples} cannot be used"
        raise BadInput(what, f"Use a limit of at least 1 and 0 to {MOST_EXAMPLES} examples")
    words = count_tokens(prompts.load("tune_profile").substitute(known=known, sample=""))
    if max_tokens < words + LEAST_SAMPLE:
        raise BadInput(
            f"max_tokens {max_tokens} leaves no room for a sample beside {words} tokens of instructions",
            f"Use at least {words + LEAST_SAMPLE}",
        )
    return max_tokens - words


# ---- what the corpus is ---------------------------------------------------------------------------


def _known(given: Profile) -> str:
    """What the user has decided, as lines of the prompt."""
    decided = [f"{name} is {getattr(given, name)!r}" for name in ("domain", "language") if getattr(given, name)]
    return f"\nAlready decided, to be repeated as it is: {'; '.join(decided)}.\n" if decided else ""


def _question(texts: Sequence[str], room: int, known: str) -> str:
    """The question about the sample, with at most `room` tokens of it."""
    tags = count_tokens(_tagged("")) + 1
    texts = texts[: room // (tags + LEAST_EXCERPT)]
    shown = "\n".join(_tagged(piece) for piece in excerpts(texts, room - tags * len(texts)))
    return prompts.load("tune_profile").substitute(known=known, sample=shown)


def _profile(asker: Asker, prompt: str, given: Profile, wanted: Sequence[str], degraded: list[str]) -> Profile:
    """What was found, and what was given in its place; whatever of `wanted` is missing is noted."""
    ask = Ask(KIND, (Message("user", prompt),), read_profile, Profile, PROFILE_SCHEMA, if_cut="shown")
    answer: Answer[Profile] = asker.wait(asker.ask(ask))
    profile = replace(
        answer.value, domain=given.domain or answer.value.domain, language=given.language or answer.value.language
    )
    if not answer.by:
        why = (answer.reason or "no answer").rstrip(". ")
        degraded.append(f"profile: {why}; every default stays")
    else:
        missing = [name for name in wanted if not getattr(profile, name)]
        degraded += [f"{name}: the model gave none that can be used; the default stays" for name in missing]
    return profile


def _tagged(text: str) -> str:
    """A text of the corpus as data: it cannot close its own tag."""
    return f"<text>\n{_broken(text)}\n</text>"


def _broken(text: str) -> str:
    return re.sub(r"</(?=\s{0,20}text)", r"<\\/", text, flags=re.IGNORECASE)


# ---- worked examples ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Telling:
    """How a worked example is asked for: the tuned extraction prompt, the types and the language (may be empty)."""

    template: str
    types: tuple[str, ...]
    language: str

    def ask(self, text: str) -> Ask[Example | None]:
        prompt = Template(self.template).safe_substitute(
            entity_types=", ".join(self.types) or "whatever fits best, in one or two lower-case words",
            language=f"Write in {self.language or 'the language of the text'}.",
            examples=prompts.load("extract_examples").safe_substitute(),
            text=_broken(text),
        )

        def parse(reply: str) -> Example | None:
            return read_example(reply, text, self.types, literal=not self.language)

        return Ask(KIND, (Message("user", prompt),), parse, lambda: None)


async def _examples(
    asker: Asker, told: Telling, pool: Sequence[str], wanted: int, degraded: list[str]
) -> list[Example]:  # fmt: skip
    """As many examples as are wanted; [] when there are fewer than the corpus has text for."""
    needed = min(wanted, len(pool))
    found: list[Example] = []
    reasons: Counter[str] = Counter()
    most = min(len(pool), 2 * needed + 2)  # texts that are tried: some are tables or lists of contents
    at = 0
    while len(found) < needed and at < most:
        batch = pool[at : min(most, at + needed - len(found))]
        at += len(batch)
        for answer in await asyncio.gather(*(asker.ask(told.ask(text)) for text in batch)):
            if answer.value is not None:
                found.append(answer.value)
            else:
                reasons[(answer.reason or "no answer").rstrip(". ")] += 1
    if len(found) < needed:
        why = ", ".join(f"{count} x {reason}" for reason, count in sorted(reasons.items()))
        degraded.append(f"examples: {len(found)} of {needed} can be used ({why}); the shipped one stays")
        return []
    if needed < wanted:
        degraded.append(f"examples: {needed} instead of {wanted}, since the index holds no more text")
    return found


# ---- files ----------------------------------------------------------------------------------------


def _texts(profile: Profile, examples: Sequence[Example], settings: Settings, extraction: str) -> dict[str, str]:
    """File name -> text, of the prompts in which something is other than in the shipped ones."""
    known = {"role": profile.role, "rating_criteria": profile.rating_criteria}
    if settings.claims_description == DEFAULTS.claims_description:
        known["claim_description"] = profile.claim_description
    made = {name: _filled(name, known, profile.persona) for name in TUNED if name != "extract"}
    made["extract"] = extraction
    made = {name: text for name, text in made.items() if text != prompts.load(name).template}
    if examples:
        made["extract_examples"] = "\n\n".join(_shown(example) for example in examples)
    note = "<!-- Tuned for this index by graphrag-mcp tune; stands in for the shipped prompt of this name. -->\n"
    return {f"{name}.md": f"{note}{text}\n" for name, text in made.items()}


def _filled(name: str, known: Mapping[str, str], persona: str) -> str:
    """The shipped prompt with what is known filled in and every other variable, and `$$`, as it was.

    The persona is put first, unless a role says already who it is that writes.
    """
    shipped = prompts.load(name)
    persona = "" if known.get("role") and "role" in shipped.get_identifiers() else persona

    def fill(match: re.Match[str]) -> str:
        value = known.get(match["named"] or match["braced"] or "", "")
        return value.replace("$", "$$") or match[0]

    text = Template.pattern.sub(fill, shipped.template)
    return f"{persona}\n\n{text}" if persona else text


def _shown(example: Example) -> str:
    """As in extract_examples.md; a dollar sign of the text is written twice, since the file is a template."""
    records = "\n##\n".join(example.records())
    return f"{_tagged(example.text)}\n{records}\n{MARK}".replace("$", "$$")


def _write(target: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write the files; what stood there and differs, or was left by an earlier tuning, is kept as `NAME.bak`."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in sorted(_written_before(target) | set(texts)):
            path = target / name
            if path.is_file() and path.read_text("utf-8", errors="replace") != texts.get(name):
                os.replace(path, target / f"{name}.bak")
        for name, text in texts.items():
            beside = target / f".{name}.{os.getpid()}.tmp"
            beside.write_text(text, "utf-8", newline="\n")
            os.replace(beside, target / name)
    except OSError as error:
        raise BadInput(f"{target} cannot be written ({error.strerror})", "Name another folder with --output") from error
    return tuple(target / name for name in texts)


def _written_before(target: Path) -> set[str]:
    try:
        listed = json.loads((target / FOUND).read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {name for name in listed if name in {f"{known}.md" for known in prompts.names()}}


def _spent(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What this tuning cost, of an asker that may have done other things before."""
    return {
        name: round(value - before.get(name, 0), 6) for name, value in after.items() if isinstance(value, int | float)
    }
