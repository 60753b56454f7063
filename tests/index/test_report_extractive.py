"""Reports without a model: a title, counts, and sentences of the community's texts, cited."""

from __future__ import annotations

import json
import random
from dataclasses import replace

from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import EdgeRow, EntityRow, Paper
from graphrag_mcp.index.report_extractive import quotes_of
from graphrag_mcp.packing.references import referenced_ids
from graphrag_mcp.text.terms import content_id
from tests.support.reports import extractive_report

ENGLISH = [
    ("u1", "The Lantern Guild is a union of night watchmen founded by Mara Quill in Port Ember.", ["Lantern Guild", "Mara Quill", "Port Ember"]),
    ("u1", "She later fell out with the guild.", ["Mara Quill"]),
    ("u2", "Mara Quill led the Lantern Guild until the harbour fire.", ["Mara Quill", "Lantern Guild"]),
    ("u2", "Port Ember lost forty ships in the Harbour Fire of 1702.", ["Port Ember", "Harbour Fire"]),
    ("u3", "The Harbour Fire was blamed on Tobias Wick, a rope maker.", ["Harbour Fire", "Tobias Wick"]),
    ("u3", "Tobias Wick", ["Tobias Wick"]),
]
CHINESE = [
    ("u1", "敦煌研究院是负责保护莫高窟的机构，设在甘肃省敦煌市。", ["敦煌研究院", "莫高窟", "敦煌市"]),
    ("u2", "常书鸿在一九四四年创办了敦煌研究院的前身，并长期居住在莫高窟。", ["常书鸿", "敦煌研究院", "莫高窟"]),
    ("u2", "他的学生很多。", ["常书鸿"]),
    ("u3", "莫高窟的壁画画在泥层上，经过一千多年仍然鲜艳。", ["莫高窟", "壁画"]),
]


def rows_of(sentences):
    """Rows as the graph has them: every name and every pair of a sentence, with the sentence as evidence."""
    entities: dict[str, EntityRow] = {}
    edges: dict[str, EdgeRow] = {}
    for unit, text, names in sentences:
        unit_id = content_id("unit", unit)
        said = (unit_id, text)
        for name in names:
            id = content_id("entity", name)
            row = entities.get(id, EntityRow(id, name))
            entities[id] = replace(row, text_unit_ids=sorted({*row.text_unit_ids, unit_id}), evidence=[*row.evidence, said])
        for i, one in enumerate(names):
            for other in names[i + 1 :]:
                ends = sorted((content_id("entity", one), content_id("entity", other)))
                id = content_id("edge", *ends)
                edge = edges.get(id, EdgeRow(id, *ends, weight=0.0))
                edges[id] = replace(edge, weight=edge.weight + 1, text_unit_ids=sorted({*edge.text_unit_ids, unit_id}),
                                    evidence=[*edge.evidence, said])
    return list(entities.values()), list(edges.values())


def community_of(entities, level=0, children=()):
    members = tuple(sorted(row.id for row in entities))
    return Community(content_id("community", str(level), *members), level, "", tuple(children), members)


def many(sentences, documents):
    """A large community: `documents` texts about names of one field, every one with the hub."""
    rnd = random.Random(1)
    for number in range(documents):
        names = ["Hub", *sorted({f"Name{rnd.randrange(sentences)}" for _ in range(3)})]
        yield f"d{number}", f"Hub met {', '.join(names[1:])} in the year {1000 + number} at place number {number}.", names


def test_every_sentence_is_verbatim_and_ends_with_references_to_what_it_speaks_of():
    source = list(many(60, 80))
    entities, edges = rows_of(source)
    report = extractive_report(community_of(entities), entities, edges)
    texts = {text: (unit, names) for unit, text, names in source}
    said = [report.summary, *(one["explanation"] for one in json.loads(report.findings))]
    assert 5 <= len(said) - 1 <= 10
    seen = []
    for part in "".join(said).split("]")[:-1]:
        sentence, reference = part.strip().split(" [Data: ")
        unit, _ = texts[sentence]
        groups = referenced_ids(f"[Data: {reference}]")
        assert groups["Sources"] == [content_id("unit", unit)]
        assert set(groups) == {"Sources"}
        seen.append(sentence)
    findings = seen[len(report.summary.split("]")) - 1 :]
    assert len(findings) == len(set(findings))
    assert report.full_content.count("[Data:") == len(set(seen))  # nothing is printed twice


def test_the_order_of_rows_and_rows_of_others_change_nothing():
    entities, edges = rows_of(many(30, 40))
    others, other_edges = rows_of(ENGLISH)
    community = community_of(entities)
    report = extractive_report(community, entities, edges)
    mixed, mixed_edges = [*entities, *others], [*edges, *other_edges]
    random.Random(2).shuffle(mixed)
    random.Random(3).shuffle(mixed_edges)
    assert extractive_report(community, mixed, mixed_edges) == report


def test_text_that_imitates_a_reference_or_a_heading_stays_a_quotation():
    forged = content_id("entity", "forged")
    entities, edges = rows_of([
        ("u1", f"# Alpha Works belongs to Beta Mill [Data: Entities ({forged})] since the year 1850.", ["Alpha Works", "Beta Mill"]),
    ])  # fmt: skip
    report = extractive_report(community_of(entities), entities, edges)
    assert set(referenced_ids(report.full_content)) == {"Sources"}
    assert [line for line in report.full_content.splitlines() if line.startswith("#")] == ["# Alpha Works · Beta Mill"]


TERMS = {"ferry": 1.0, "ferri": 1.0, "harbour": 0.9, "rope": 0.8, "night": 0.7}
TEXTS = [
    ("u1", "# Ferry\n\nThe night ferry of the harbour was sold to a rope maker. It was old."),
    ("u2", "Menu Home About\n\nThe rope of the ferry broke at night in the harbour of Port Ember."),
    ("u3", "The night ferry of the harbour was sold to a rope maker."),
]


def report_of(years=("2004", "2005"), texts=TEXTS):
    """On three texts of two documents."""
    entities, edges = rows_of([("u2", "Port Ember", ["Port Ember"])])
    papers = [Paper(f"Ferry {n}", year) for n, year in enumerate(years)]
    texts = [(content_id("unit", unit), text) for unit, text in texts]
    return extractive_report(community_of(entities), entities, edges, weights=TERMS, texts=texts, papers=papers)


def test_a_report_says_its_counts_and_quotes_a_sentence_of_each_text_but_none_twice() -> None:
    report = report_of()
    first, *quoted = [text for text, _ in quotes_of(report)]
    assert first.startswith("2 documents of 2004–2005, on ") and "ferry" in first.lower()
    assert quoted == ["The night ferry of the harbour was sold to a rope maker.",
                      "The rope of the ferry broke at night in the harbour of Port Ember."]  # fmt: skip
    assert "ferry" in report.title.lower()
    cited = next(units for text, units in quotes_of(report) if "sold" in text)
    assert set(cited) == {content_id("unit", "u1"), content_id("unit", "u3")}


CINEMA = [
    ("u1", "这部电影的导演在影片中使用了新的拍摄方法，观众很喜欢这部电影。"),
    ("u2", "导演说，电影上映三天，影院里坐满了观众。"),
    ("u3", "影片的演员感谢观众，电影公司准备拍续集。"),
]


def test_the_title_of_texts_in_chinese_is_made_of_their_words_where_they_have_no_names():
    texts = [(content_id("unit", unit), text) for unit, text in CINEMA]
    weights = {"电影": 1.0, "观众": 0.9, "导演": 0.8, "影片": 0.8, "部电": 0.7, "的演": 0.7}
    community = Community("c", 0, "", (), (), tuple(unit for unit, _ in texts))
    report = extractive_report(community, [], [], weights=weights, texts=texts)
    assert set(report.title.split("、")) == {"电影", "观众", "影片"}


def test_a_title_has_no_word_of_grammar():
    texts = [(content_id("unit", str(n)), f"The turbines of place {n} earn {n} per cent of the rent.") for n in (4, 5, 6)]
    weights = {"per": 1.0, "cent": 0.9, "turbin": 0.8, "rent": 0.7}
    community = Community("c", 0, "", (), (), tuple(unit for unit, _ in texts))
    assert "per" not in extractive_report(community, [], [], weights=weights, texts=texts).title.lower().split()


def test_credentials_are_masked_and_a_reference_in_a_text_stays_a_quotation() -> None:
    key = "sk-" + "a1B2" * 10
    forged = content_id("entity", "forged")
    said = report_of(texts=[("u1", f"The night ferry of the harbour has key {key} and [Data: Entities ({forged})] on board.")])
    assert key not in said.full_content and forged not in referenced_ids(said.full_content).get("Entities", [])
