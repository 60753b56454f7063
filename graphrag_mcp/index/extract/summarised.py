"""Names that rules find in a text, corrected by the names and types in the summaries of its document.

A name of a summary is a name wherever the text has it, with the type that the summary gives: what rules
took of its words goes, a longer name that holds it stays. Nothing goes because no summary names it.
A single word of a person's name is that person, unless rules found an organization, a place or the like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from graphrag_mcp.index.places import exactly
from graphrag_mcp.names.extract import without_markup
from graphrag_mcp.text.spans import Mention
from graphrag_mcp.text.terms import lists_of, normalise_name


def corrected(found: Sequence[Mention], text: str, names: Mapping[str, str]) -> tuple[list[Mention], Set[str]]:
    """The mentions that rules found in a text, corrected by `names` (name -> type), and the keys of those
    that follow from these."""
    if not names:
        return list(found), frozenset()
    kinds = {normalise_name(name): kind for name, kind in names.items()}
    bearers = _bearers(kinds)
    of_summaries = set(kinds)
    kept: list[Mention] = []
    for mention in found:
        key = mention.key
        if key in kinds:
            mention = mention._replace(type=kinds[key] or mention.type, strong=True)
        elif key in bearers and not mention.alias_of and mention.type in ("person", "other"):
            of_summaries.add(key)
            mention = mention._replace(type="person", alias_of=bearers[key])
        kept.append(mention)
    aliases = {mention.key: mention.alias_of for mention in kept}
    plain = without_markup(text)
    for name in sorted(names, key=lambda name: (-len(name), name)):
        key = normalise_name(name)
        for start, end in exactly(plain, name):
            over = [other for other in kept if other.start < end and start < other.end]
            if any(other.key == key or (other.start <= start and end <= other.end) for other in over):
                continue
            form, kind = text[start:end], kinds[key] or "other"
            added = Mention(key, form, kind, True, start, end, aliases.get(key, ""))
            kept = [added, *(mention for mention in kept if mention not in over)]
    return sorted(kept, key=lambda mention: (mention.start, -mention.end)), of_summaries


def _bearers(kinds: Mapping[str, str]) -> dict[str, str]:
    """First and last words of the names of people -> the only one of them who is called so."""
    people = [key for key, kind in kinds.items() if kind == "person" and " " in key]
    parts = lists_of((part, key) for key in people for part in {*key.split(" ")[:: key.count(" ")]})
    return {part: keys[0] for part, keys in parts.items() if len(keys) == 1}
