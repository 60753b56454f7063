"""Questions on uses of symbols: who calls, what breaks, what implements, which tests, what a module
holds."""

from __future__ import annotations

import builtins
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphrag_mcp.code import definitions
from graphrag_mcp.code.definitions import SAME
from graphrag_mcp.code.languages import language_of
from graphrag_mcp.code.symbols import NAME, Reference, SourceFile, called, loaded, module_name, placed
from graphrag_mcp.packing.budget import Item, Section, one_line
from graphrag_mcp.packing.page import compose, finish
from graphrag_mcp.packing.references import short_references
from graphrag_mcp.query import context, entities
from graphrag_mcp.query.entity import text_of
from graphrag_mcp.query.plugin import Walk
from graphrag_mcp.store.tables import Snapshot, in_lists, once, rows_of, values_of
from graphrag_mcp.text.terms import bracketed, counted, lists_of
from graphrag_mcp.types import Citation, ExploreResult

Row = dict[str, Any]
WEIGHT = {"contains": 3.0, "inherits": 3.0, "imports": 2.0, "calls": 1.0}  # of what is certain
# What `kinds` may be: the statements that are followed.
KINDS = {kind: (kind,) for kind in WEIGHT} | {
    "impact": ("calls", "inherits", "imports"),
    "tests": ("calls", "inherits"),
}
# How a step is told: what is listed uses the other, or is used by it.
USES = {"calls": "calls", "contains": "contains", "imports": "imports", "inherits": "inherits from"}
USED = {"calls": "called by", "contains": "in", "imports": "imported by", "inherits": "base of"}
PASSED = 0.5  # of a call of a method that a class overrides: its object may be of another class
FAR = 4  # steps in which tests are looked for
LINES = 30  # places outside tests that are a line each
QUOTED = 160  # characters of a place
REPORTED = 400  # characters of a line of a report
TEST = re.compile(
    r"(^|/)(tests?|__tests__|specs?)/|^[^/]*/testing/|(^|/)(test_[^/]*|conftest|[^/]*[._](test|spec|tests))\.\w+$|Tests?\.\w+$"
)


@dataclass(frozen=True, slots=True)
class Use:
    """`source` calls, contains, imports or inherits from `target`, at a place of a text unit."""

    kind: str
    source: str
    target: str
    certainty: float
    unit: str
    start: int
    end: int
    id: str  # of the relationship


@dataclass(frozen=True, slots=True)
class Step:
    """A symbol that a walk reached, `hops` from the start, by a use with so many places; `certainty`
    is the product of those on the way."""

    key: str
    hops: int
    use: Use
    places: int
    certainty: float


class Uses:
    """All statements between symbols, by either end."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.of: dict[str, list[Use]] = defaultdict(list)
        self.on: dict[str, list[Use]] = defaultdict(list)
        names = ["keywords", "source_key", "target_key", "weight", "text_unit_id", "start", "end"]
        names.append("relationship_id")
        kinds = ", ".join(f"'{kind}'" for kind in WEIGHT)
        rows = snapshot.rows("evidence", f"keywords IN ({kinds}) AND source_id != ''", names)
        for kind, source, target, weight, *place in rows_of(rows):
            use = Use(kind, source, target, round(weight / WEIGHT[kind], 2), *place)
            self.of[source].append(use)
            self.on[target].append(use)
        for uses in (*self.of.values(), *self.on.values()):
            uses.sort(key=lambda use: (-use.certainty, use.source, use.target, use.start))

    def inside(self, key: str) -> list[str]:
        """A class or module with everything that it contains."""
        found = [key]
        for symbol in found:  # which grows
            targets = (use.target for use in self.of.get(symbol, ()) if use.kind == "contains")
            found += [target for target in targets if target not in found]
        return found

    def passed(self, key: str) -> list[Use]:
        """The uses of a method by way of its class: a call of a method of a base that it overrides
        may reach it, and what overrides it has to be as it is."""
        owner, _, name = key.rpartition(".")
        found: list[Use] = []
        bases = dict.fromkeys([owner], 1.0)
        rim = [owner]
        for symbol in rim:  # which grows
            for use in self.of.get(symbol, ()):
                if use.kind == "inherits" and use.target not in bases:
                    bases[use.target] = bases[symbol] * use.certainty
                    rim.append(use.target)
        for base in rim[1:]:
            less = bases[base] * PASSED
            calls = (use for use in self.on.get(f"{base}.{name}", ()) if use.kind == "calls")
            found += [replace(use, certainty=round(use.certainty * less, 2)) for use in calls]
        subs = [use for use in self.on.get(owner, ()) if use.kind == "inherits"]
        subs = [replace(use, source=f"{use.source}.{name}", target=key) for use in subs]
        return found + [use for use in subs if use.source in self.on]


uses = once(Uses)


# ---- walks -----------------------------------------------------------------------------------------


def walk(
    known: Uses, start: str, kinds: Collection[str], back: bool, hops: int, whole: bool, passed: bool = False
) -> list[Step]:
    """What uses a symbol (`back`) or what it uses, nearest and most certain first. `whole`: of a
    class or module also what uses anything inside. `passed`: of a method also uses by way of what it
    overrides and what overrides it."""
    begin = known.inside(start) if whole else [start]
    certain = dict.fromkeys(begin, 1.0)
    found: list[Step] = []
    rim = list(begin)
    for hop in range(1, hops + 1):
        best: dict[str, Step] = {}
        for here in rim:
            by_end: dict[tuple[str, str], list[Use]] = defaultdict(list)
            direct = (known.on if back else known.of).get(here, ())
            for use in (*direct, *(known.passed(here) if passed else ())):
                if use.kind in kinds:
                    by_end[use.source if back else use.target, use.kind].append(use)
            for (end, _), steps_of in by_end.items():
                certainty = certain[here] * steps_of[0].certainty
                step = Step(end, hop, steps_of[0], len(steps_of), round(certainty, 2))
                before = best.get(end)
                if end not in certain and (before is None or certainty > before.certainty):
                    best[end] = step
        steps = sorted(best.values(), key=lambda step: (-step.certainty, step.key))
        certain |= {step.key: step.certainty for step in steps}
        found += steps
        rim = [step.key for step in steps]
    return found


def asked_for(snapshot: Snapshot, start: str) -> list[tuple[str, list[Row]]]:
    """Each name of a comma-separated list with the symbols that have it: one, or up to SAME of one
    short name. Empty when a single name is no symbol."""
    found: list[tuple[str, list[Row]]] = []
    for name in dict.fromkeys(filter(None, (name.strip(" `") for name in start.split(",")))):
        row, _ = entities.resolve(snapshot, name)
        rows = definitions.named(snapshot, name)[:SAME] if row is None else [row]
        found.append((name, [row for row in rows if definitions.is_symbol(row)]))
    return found if len(found) > 1 or any(rows for _, rows in found) else []


def explore(snapshot: Snapshot, result: ExploreResult, asked: Walk, budget: int) -> ExploreResult | None:
    """The walk from each symbol (`asked_for`) over the statements that were asked for; None where a
    single name is no symbol."""
    if not (start := asked_for(snapshot, asked.start)):
        return None
    result.start = asked.start if len(start) > 1 else f"e{start[0][1][0]['n']}"
    direction, hops, most = asked.direction, asked.hops, asked.nodes
    words = [*asked.kinds] or ["calls"]
    back = direction != "out" if direction or words != ["contains"] else False
    blocks: list[tuple[str, list[Item]]] = []
    ends: dict[str, Row] = {}
    more, named = False, {"calls", "inherits"} & _followed(words) if back else set()
    for name, symbols in start:
        if not symbols:
            blocks.append((f"{one_line(name, 80)!r} is no symbol; search_text finds words.", []))
        for row in symbols:
            head, block_items, rows, cut = _block(snapshot, row, words, back, hops, most)
            ends, more = ends | rows, more or cut
            blocks.append((head, block_items))
    intro = blocks[0][0] if len(blocks) == 1 else ""
    items: list[Item] = []
    for head, block_items in blocks:
        items += [] if intro else [Item("", head.replace("\n", ": "))]
        items += block_items
    sections = [Section("Relationships", items, 0.7, more=more, into="edges")]
    if named:
        keys = [row["key"] for _, symbols in start for row in symbols]
        affected = keys if "impact" in words else []
        inside = [key_inside for key in affected for key_inside in uses(snapshot).inside(key)]
        sought, members = (list(dict.fromkeys(key.rpartition(".")[2] for key in keys_of)) for keys_of in (keys, inside))
        sections.append(_unresolved(snapshot, sought, named, 0.3, members))
    result = compose(result, sections, budget, intro=intro)
    ids = {edge[end] for edge in result.edges for end in ("source", "target")}
    if begun := next((row for _, symbols in start for row in symbols), None):
        result.hint = f"{result.hint} {text_of('e' + str(begun['n']))}".strip()
    facts = ("title", "type", "degree")
    nodes = [{"id": f"e{row['n']}", **{name: row[name] for name in facts}} for row in ends.values()]
    result.nodes = [node for node in nodes if node["id"] in ids]
    return finish(result, budget)


def _block(
    snapshot: Snapshot, row: Row, words: Sequence[str], back: bool, hops: int, most: int
) -> tuple[str, list[Item], dict[str, Row], bool]:
    """Heading and lines of a symbol, the rows they name, and whether `most` left some out."""
    direct, tests, further = _steps(snapshot, row, words, back, hops)
    alone = set(words) == {"tests"}
    steps = direct[:most] + (tests[:most] if alone else tests)
    rows = _rows(snapshot, [end for step in steps for end in (step.use.source, step.use.target)])
    plain = row["key"] if len(words) == 1 and words[0] in WEIGHT else ""
    far = [step.hops for step in direct + tests]
    beyond = f"{further} more at {hops + 1}" + (f" (give hops={hops + 1})" if hops < FAR else "")
    if not further:
        beyond = f"looked for in {FAR} steps" if alone else "none further resolved"
    head = _head(row, words, back, far, beyond)
    cut = len(steps) < len(direct) + len(tests)
    return head, _items(snapshot, steps, rows, plain, not alone), rows, cut


def _steps(
    snapshot: Snapshot, row: Row, words: Sequence[str], back: bool, hops: int
) -> tuple[list[Step], list[Step], int]:
    """The steps from a symbol, those in tests apart, near ones first; only tests where `words` ask
    for nothing else. And how many more there are one step further."""
    known, plain = uses(snapshot), [word for word in words if word != "tests"]
    kinds = _followed(plain)
    inside = back and row["type"] in ("class", "interface", "type", "module")
    whole = inside and kinds != {"inherits"}
    impact = back and "impact" in plain
    found = walk(known, row["key"], kinds, back, hops + 1, whole, impact) if plain else []
    near = [step for step in found if step.hops <= hops]
    also: list[Step] = []
    if len(plain) < len(words):
        known_keys = {step.key for step in near}
        also = walk(known, row["key"], KINDS["tests"], back, max(hops, FAR), inside, back)
        also = [step for step in also if step.key not in known_keys]
    units = dict.fromkeys(step.use.unit for step in (*near, *also))
    cited = context.unit_citations(snapshot, list(units))
    tests = {id for id, citation in cited.items() if TEST.search(citation.uri)}
    tested = [step for step in (*near, *also) if step.use.unit in tests]
    outside = [step for step in near if step.use.unit not in tests]
    return outside, sorted(tested, key=lambda step: step.hops), len(found) - len(near)


def _followed(words: Sequence[str]) -> set[str]:
    return {kind for word in words for kind in KINDS[word]}


def _head(row: Row, words: Sequence[str], back: bool, hops: Sequence[int], more: str) -> str:
    title, id = one_line(row["title"], 120), f"e{row['n']}"
    way = "what uses it" if back else "what it uses"
    counts = [f"{count} at {counted(hop, 'steps')}" for hop, count in sorted(Counter(hops).items())]
    none = "Nothing of this kind was resolved; search_text finds the words."
    head = f"# {title} {bracketed(id, row['type'])}: {', '.join(words)}, {way}\n"
    return head + (f"{', '.join([*counts, more])}." if counts else none)


def _rows(snapshot: Snapshot, keys: Iterable[str]) -> dict[str, Row]:
    names = ["id", "n", "key", "title", "type", "degree"]
    found: dict[str, Row] = {}
    for where in in_lists("key", list(dict.fromkeys(keys))):
        found |= {row["key"]: row for row in snapshot.rows("entities", where, names).to_pylist()}
    return found


class _Texts:
    """The text units of some places, read once."""

    def __init__(self, snapshot: Snapshot, units: Iterable[str]) -> None:
        ids = list(dict.fromkeys(units))
        self.cited = context.unit_citations(snapshot, ids)
        rows = snapshot.served("text_units", ids, ["id", "text"])
        self.texts = {row["id"]: row["text"] for row in rows if row["id"] in self.cited}

    def place(self, unit: str, start: int, end: int) -> tuple[Citation, str]:
        """The citation of a place with its line, and how the place begins."""
        text, cited = self.texts[unit], self.cited[unit]
        line = cited.line_start + text.count("\n", 0, start)
        place = context.sentence_citation(cited, start, end)
        place = place.model_copy(update={"line_start": line, "line_end": line})
        return place, one_line(text[start:end].partition("\n")[0], QUOTED)


def _of_file(places: Sequence[Citation], names: Sequence[str], before: str = "") -> Item:
    """One line: the lines of a file, each with the name of what it lies in, "" for none."""
    inside = (f"{one_line(name, 80)}:" if name else "line " for name in names)
    lines = [f"{name}{place.line_start}" for name, place in zip(inside, places, strict=True)]
    ids = " ".join(f"[{id}]" for id in dict.fromkeys(place.id for place in places))
    text = f"- {before}{one_line(places[0].uri, 200)}: {', '.join(lines)} {ids}"
    return Item("", text, places[0], also=tuple(places[1:]))


def _items(
    snapshot: Snapshot,
    steps: Sequence[Step],
    rows: Mapping[str, Row],
    plain: str = "",
    by_file: bool = False,
    imports: bool = False,
) -> list[Item]:
    """One line a step: the symbol, how it is connected, and the place that says so. `plain` is the
    key of a symbol of which the heading says how all are connected with it. `by_file`: more than
    SAME steps in tests, and with `imports` such statements, are one line a file, with no edge in the
    result."""
    texts = _Texts(snapshot, [step.use.unit for step in steps])
    ids = snapshot.by_key("relationships", [step.use.id for step in steps], "id", ["id", "n"])
    number = dict(rows_of(ids))
    items: list[Item] = []
    tests: dict[str, list[tuple[str, Citation]]] = defaultdict(list)
    in_tests: list[Item] = []
    for step in steps:
        if step.use.source in rows and step.use.target in rows and step.use.unit in texts.texts:
            place, quote = texts.place(step.use.unit, step.use.start, step.use.end)
            item = _item(step, rows, place, quote, number.get(step.use.id, 0), plain)
            if by_file and (TEST.search(place.uri) or (imports and step.use.kind == "imports")):
                caller = rows[step.key]
                name = "" if caller["type"] == "module" else caller["title"]
                tests[place.uri].append((name, place))
                in_tests.append(item)
            else:
                items.append(item)
    if len(in_tests) <= SAME:
        return items + in_tests
    names = [list(zip(*rows_of, strict=True)) for rows_of in tests.values()]
    return items + [_of_file(places, named, "in ") for named, places in names]


def _item(step: Step, rows: Mapping[str, Row], place: Citation, quote: str, number: int, plain: str = "") -> Item:
    use = step.use
    source, target = rows[use.source], rows[use.target]
    back = step.key == use.source
    here, other = (source, target) if back else (target, source)
    connection = f" {(USES if back else USED)[use.kind]} {one_line(other['title'], 80)}"
    connection = "" if plain and other["key"] == plain else connection
    connection += f" in {step.places} places" if step.places > 1 else ""
    connection += f", certainty {step.certainty:g}" if step.certainty < 1 else ""
    far = f", {step.hops} steps" if step.hops > 1 else ""
    head = f"- [e{here['n']}] {one_line(here['title'], 80)} ({here['type']}{far})"
    data = {"id": f"r{number}", "source": f"e{source['n']}", "target": f"e{target['n']}"}
    data |= {"weight": step.certainty, "kind": use.kind, "hops": step.hops}
    return Item(f"e{here['n']}", f"{head}{connection}: {_quoted(place, quote)}", place, data=data)


def _quoted(place: Citation, quote: str, inside: str = "") -> str:
    quote = f" `{quote}`" if len(quote) > 1 else ""  # a module begins where its file does
    return f"{one_line(place.uri, 200)}:{place.line_start}{inside}{quote} [{place.id}]"


# ---- uses that were not resolved -------------------------------------------------------------------


def _unresolved(
    snapshot: Snapshot, names: Sequence[str], kinds: Collection[str], share: float, members: Sequence[str] = ()
) -> Section:
    """The places that use one of these short names and have no edge, since several definitions or
    none could be meant: with them a listing of callers is complete. The library's own first; many in
    one kind of file are a line a file, and those of `members` are counted in one."""
    items: list[Item] = []
    sites = _sites(snapshot, {*names, *members}, kinds)
    for name in names:
        found = sites.pop(name, [])
        if len(names) > 1 and found:
            items.append(Item("", f"{name}:"))
        for tests in (False, True):
            group = [site for site in found if bool(TEST.search(site[0].uri)) is tests]
            if len(group) <= (SAME if tests else LINES):
                for place, inside, quote in group:
                    where = f" in {one_line(inside, 80)}:" if inside else ":"
                    items.append(Item("", f"- {_quoted(place, quote, where)}", place))
                continue
            for of_file in lists_of((site[0].uri, (site[1], site[0])) for site in group).values():
                insides, places = zip(*of_file, strict=True)
                items.append(_of_file(places, insides))
    if counts := ", ".join(f"{name} {len(sites[name])}" for name in members if name in sites):
        items.append(Item("", f"- Calls of the names of members: {one_line(counts, REPORTED)}"))
    return Section("Not resolved, same name (may mean it or another)", items, share)


def _sites(
    snapshot: Snapshot, names: Collection[str], kinds: Collection[str]
) -> dict[str, list[tuple[Citation, str, str]]]:
    """Places by name with their lines, what each lies in, and how it begins."""
    names = [name for name in sorted(names) if not name.startswith("__")]
    if NAME not in snapshot.manifest.tables or not names:
        return {}
    quoted = [json.dumps(name, ensure_ascii=False).replace("'", "''") for name in names]
    heads = (f'["{kind}",{name},' for kind in sorted(kinds) for name in quoted)
    where = " OR ".join(f"contains(facts, '{head}')" for head in heads)
    places: list[tuple[tuple[str, int, int], str, str]] = []
    for facts in values_of(snapshot.rows(NAME, where, ["facts"])["facts"]):
        file, units = loaded(facts)
        starts = [unit.core for unit in units]
        for reference in file.references:
            if reference.kind in kinds and reference.name in names and not _elsewhere(file, reference):
                inside = reference.inside[len(file.module) + 1 :]
                places.append((placed(units, starts, reference.start, reference.end), reference.name, inside))
    texts = _Texts(snapshot, [place[0] for place, _, _ in places])
    columns = ["text_unit_id", "start", "end", "keywords"]
    edges = rows_of(snapshot.by_key("evidence", list(texts.texts), "text_unit_id", columns))
    known = {tuple(place) for *place, kind in edges if kind in kinds}
    found: dict[str, list[tuple[Citation, str, str]]] = defaultdict(list)
    for place, name, inside in places:
        if place not in known and place[0] in texts.texts:
            cited, quote = texts.place(*place)
            found[name].append((cited, inside, quote))
    for sites in found.values():
        sites.sort(key=lambda site: (site[0].uri, site[0].char_start))
    return found


def _elsewhere(file: SourceFile, reference: Reference) -> bool:
    """Is the use certainly of something outside the corpus: a built-in, or of Python's library?"""
    if file.language != "python":
        return False
    called_on = reference.type.strip("?=<") or reference.receiver or reference.name
    head = called_on.removesuffix("()").partition(".")[0]
    for entry in file.imports:
        if entry.local == head:
            return entry.target.lstrip(":").partition(".")[0] in sys.stdlib_module_names
    return called_on != reference.receiver and head != "super" and hasattr(builtins, head)


# ---- one symbol ------------------------------------------------------------------------------------


def reported(row: Row, groups: Sequence[Row]) -> Row | None:
    """The report on a module among its communities, the coarsest: of its folder or file."""
    return next((group for group in groups if _module(group["title"]) == called(row["key"])), None)


def _module(title: str) -> str:
    """The qualified name of the folder or file with this path, without the label of its source."""
    if language := language_of(title):
        return called(module_name(f"x/{title}", language))
    return title.replace(".", "_").replace(" ", "_").replace("/", ".")


def report(snapshot: Snapshot, id: str) -> Section:
    """What the report on a module says, a line for each of its findings."""
    found = snapshot.by_key("reports", [id], "id", ["n", "summary", "findings"]).to_pylist()[0]
    lines = [found["summary"], *(finding["explanation"] for finding in json.loads(found["findings"]))]
    reported_lines = (one_line(short_references(line, {}), REPORTED) for line in lines)
    items = [Item(f"c{found['n']}", f"- {line}") for line in reported_lines]
    return Section(f"What it does (report c{found['n']})", items, 0.25)


def _in_text(item: Item) -> tuple[str, int]:
    place = item.citation
    return (place.uri, place.char_start) if place else ("", 0)


def sections(snapshot: Snapshot, row: Row, groups: Sequence[Row], most: int) -> list[Section]:
    """What an entity's result holds of a symbol: the report on a module, where it is, what uses it, what
    it contains, what it uses. Many imports, and many uses in tests, are one line a file."""
    known = uses(snapshot)
    whole = row["type"] not in ("function", "method")
    every = ("calls", "imports", "inherits")
    asked = (
        ("In", ("contains",), True, False),
        ("Used by", every, True, whole),
        ("Contains", ("contains",), False, False),
        ("Uses", every, False, False),
    )
    out = []
    for name, kinds, back, inside in asked:
        used = name == "Used by"
        steps = walk(known, row["key"], kinds, back, 1, inside)
        shown = steps[: 4 * most if used else most]  # imports and tests are few lines
        ends = [end for step in shown for end in (step.use.source, step.use.target)]
        plain = row["key"] if name == "Contains" else ""
        items = _items(snapshot, shown, _rows(snapshot, ends), plain, used, used)
        if name == "Contains":
            items.sort(key=_in_text)
        out.append(Section(f"{name} ({len(steps)})", items, 0.25, more=len(shown) < len(steps)))
    if not whole:
        out.append(_unresolved(snapshot, [row["key"].rpartition(".")[2]], {"calls"}, 0.1))
    out = [section for section in out if section.items]
    if row["type"] == "module" and (about := reported(row, groups)):
        out.insert(0, report(snapshot, about["id"]))
    return out
