"""Well-formed replies of a model to the prompt for records, in every form that the parser takes.

Gives the records and strategies for how they are written: delimiters, brackets, tags, marks between records, list
marks, fences, prose around, ends of lines, JSON of several shapes. Names and keywords hold the words that are tags.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

NAMES = [
    "Public Relations", "Investor Relations", "Relations", "Entity", "The Entities of Old", "Legal entity", "The Relationship",
    "Foreign Relations Committee", "Entity-Relationship Model", "Entity, Relation & Sons", "International Relationships",
    "Beziehungen", "Öffentliche Beziehungen", "Relaciones Públicas", "Relations publiques", "entité", "Entità", "Отношения",
    "公共关系", "实体", "关系", "関係", "エンティティ", "관계", "O'Brien & Sons", 'Tom "T" Lee', "f(x)", "Mercury (planet)", "C++", "C#", "AT&T",
    "COMPLETE", "3M", "Roe v. Wade", "Ada Lovelace", "node.js", "Section [4]", "Table {2}", "Smith, John",
]  # fmt: skip
SAYINGS = [
    "It kept public relations.", "The entity (a relation) grew", "They met (twice) in Paris (France)", "see [1] and {2}",
    "1) first, 2) second.", 'He said "yes" to it', "It's O'Brien's idea", "a <|> b and c", "one | two", "x ## y", "5 < 6 > 4", "in 1904",
    "they have relations", "of their entity", "（见下）很好。", "王小明任教于北京大学", "https://example.org/a_(b)?c=d", "**bold** words", "C:\\data",
    "relations", "Entity: a thing", "up 8%", "«Öffentliche Beziehungen»", "the end :)", "complete", "- a dash", "a, b and c",
]  # fmt: skip
BROKEN = ["met (twice)\n(in Paris)", "first line\nrelations of others", "a list:\n- entity one\n- relation two"]
KEYWORDS = [
    "public relations", "trade, relations", "investor relations, entity", "complete", "work (paid)", "关系，贸易", "relation", "entity, entities",
]  # fmt: skip
TYPES = ("person", "organization", "location", "event", "concept", "natural object")


@dataclass(frozen=True)
class Entity:
    name: str
    type: str
    description: str


@dataclass(frozen=True)
class Relation:
    source: str
    target: str
    description: str
    keywords: str
    strength: int


@dataclass(frozen=True)
class Form:
    """How tuples are written."""

    delimiter: str
    brackets: tuple[str, str]
    quote: tuple[str, str]
    tags: tuple[str, str]
    between: str
    item: str  # the mark of a list before each record
    blanks: bool  # around delimiters


@dataclass(frozen=True)
class Around:
    """What stands around the records."""

    before: str
    after: str
    fence: tuple[str, str]
    mark: str
    line_end: str

    def put(self, records: str) -> str:
        whole = f"{self.before}{self.fence[0]}{records}{self.mark}{self.fence[1]}{self.after}"
        return whole.replace("\n", self.line_end)


names = st.sampled_from(NAMES)


@st.composite
def descriptions(draw: Any, lines: bool) -> str:
    pool = [one for one in SAYINGS if one.count("(") == one.count(")")] + BROKEN  # else nothing says where the line ends
    said = draw(st.lists(st.sampled_from(pool if lines and draw(st.booleans()) else SAYINGS), min_size=1, max_size=3))
    return f"{draw(names)} is said: {' and '.join(said)}"


@st.composite
def records(draw: Any, lines: bool = True) -> tuple[list[Entity], list[Relation]]:
    """Each name once among the entities, each pair once among the relationships."""
    told = st.tuples(st.sampled_from(TYPES), descriptions(lines))
    chosen = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    entities = [Entity(name, *draw(told)) for name in chosen]
    pairs = [(one, other) for one in NAMES[:12] for other in NAMES[20:32]]
    ends = draw(st.lists(st.sampled_from(pairs), max_size=6, unique=True))
    links = st.tuples(descriptions(lines), st.sampled_from(KEYWORDS), st.integers(2, 10))
    return entities, [Relation(*pair, *draw(links)) for pair in ends]


@st.composite
def forms(draw: Any) -> Form:
    delimiter = draw(st.sampled_from(["<|>", "<||>", "<|#|>", "<##>", "＜｜＞", "<|", "|>", "|", "｜", "\t"]))
    brackets = draw(st.sampled_from([("(", ")"), ("(", ")"), ("（", "）"), ("[", "]"), ("{", "}"), ("", "")]))
    quote = draw(st.sampled_from([('"', '"'), ("", ""), ("'", "'"), ("“", "”"), ("`", "`"), ("**", "**"), ("＂", "＂")]))
    tags = draw(st.sampled_from([("entity", "relationship"), ("Entity", "Relation"), ("ENTITIES", "RELATIONSHIPS"), ("entity", "relations")]))
    between = ["\n##\n", "\n", "\n\n", "\n＃＃\n", "\n## "]
    if brackets[0]:
        between += ["##", " ## ", ",\n", "\n##", ";\n", " "]
    items = ["", "", "- ", "* ", "• ", "> ", "1. ", "2) "]
    if not brackets[0] and delimiter in "|｜" and quote[0] in ("", "**", "`"):
        items = ["", "| "]
    chosen = draw(st.sampled_from(between))
    if "\n" not in chosen:
        items = ["", "- "]
    return Form(delimiter, brackets, quote, tags, chosen, draw(st.sampled_from(items)), draw(st.booleans()))


PROSE = [
    "", "", "Here are the entities and relationships of the text:\n\n", "Sure! (I read it twice.)\n", "Entities: 3, relations: 2\n\n",
    "<think>\nIs (\"entity\"<|>Nobody<|>person<|>d) right?\n</think>\n",
]  # fmt: skip
AFTER = ["", "", "\n\nI hope that this helps (a bit).", "\nThe relations above are complete.", "\n\nNote: entity types follow the list."]


@st.composite
def surroundings(draw: Any, marks: tuple[str, ...] = ("\n<|COMPLETE|>", "<|COMPLETE|>", "\n<COMPLETE>", "\n＜｜COMPLETE｜＞", "")) -> Around:
    return Around(
        draw(st.sampled_from(PROSE)), draw(st.sampled_from(AFTER)), draw(st.sampled_from([("", ""), ("```\n", "\n```"), ("```text\n", "\n```")])),
        draw(st.sampled_from(marks)), draw(st.sampled_from(["\n", "\n", "\r\n"])),
    )  # fmt: skip


def as_tuples(entities: list[Entity], relations: list[Relation], form: Form) -> str:
    def row(tag: str, *fields: object) -> str:
        delimiter = f" {form.delimiter} " if form.blanks else form.delimiter
        inner = delimiter.join([f"{form.quote[0]}{tag}{form.quote[1]}", *map(str, fields)])
        closing = f"{delimiter.rstrip()}" if form.item == "| " else form.brackets[1]
        return f"{form.item}{form.brackets[0]}{inner}{closing}"

    rows = [row(form.tags[0], one.name, one.type, one.description) for one in entities]
    for one in relations:
        said = [one.keywords, one.description] if form.delimiter == "<|#|>" else [one.description, one.keywords]
        rows.append(row(form.tags[1], one.source, one.target, *said, one.strength))
    return form.between.join(rows)


def as_json(entities: list[Entity], relations: list[Relation], shape: str) -> str:
    nodes: list[Any] = [{"name": one.name, "type": one.type, "description": one.description} for one in entities]
    edges: list[Any] = [
        {"source": one.source, "target": one.target, "description": one.description, "keywords": one.keywords, "strength": one.strength}
        for one in relations
    ]  # fmt: skip
    if shape == "detailed":
        nodes = [{**one, "aliases": ["x", "y"], "attributes": {"born": 1815, "source": "a"}, "source": "text 3"} for one in nodes]
        edges = [{**one, "keywords": re.split(", |，", one["keywords"]), "evidence": [{"quote": "q"}]} for one in edges]
    if shape == "titled":
        nodes = [{"title": one["name"], "entity_type": one["type"], "details": one["description"]} for one in nodes]
        edges = [{"from": one["source"], "to": one["target"], "summary": one["description"], "weight": one["strength"],
                  "tags": one["keywords"]} for one in edges]  # fmt: skip
    if shape == "named ends":
        edges = [{**one, "source": {"name": one["source"]}, "target": {"name": one["target"]}} for one in edges]
    if shape in ("arrays", "lines of arrays"):
        nodes = [["entity", *one.values()] for one in nodes]
        edges = [["relationship", *one.values()] for one in edges]
    if shape in ("lines", "lines of arrays"):
        return "\n".join(json.dumps(one, ensure_ascii=False) for one in nodes + edges)
    if shape == "keyed":
        nodes = {one.name: {"type": one.type, "description": one.description} for one in entities}  # type: ignore[assignment]
    whole: Any = {"entities": nodes, "relationships": edges}
    if shape in ("list", "arrays"):
        whole = list(nodes) + edges
    if shape == "wrapped":
        whole = [{"title": "A graph", "summary": "What the text says", "result": whole}]
    if shape == "python":
        return str(whole)
    return json.dumps(whole, ensure_ascii=shape == "detailed", indent=2 if shape in ("titled", "wrapped") else None)


SHAPES = ["plain", "detailed", "titled", "named ends", "arrays", "lines", "lines of arrays", "list", "keyed", "wrapped", "python"]
