"""index/reports.py: what a community's own evidence says, chosen and cited without a model."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, replace
from pathlib import Path

from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.index.report_content import EdgeRow, EntityRow, Paper, readable
from graphrag_mcp.index.report_extractive import Report, _is_subject, quotes_of, telling
from graphrag_mcp.names.cjk import nouns
from graphrag_mcp.packing.budget import referenced_ids, render_references
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.text.prose import settled, stands_alone, substance
from graphrag_mcp.text.terms import content_id, without_grammar
from graphrag_mcp.text.titles import phrase
from graphrag_mcp.types import IndexRequest
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


def readable_report(text, entities, edges, units):
    return render_references(text, {
        "Entities": {row.id: row.title.replace(" ", "") for row in entities},
        "Relationships": {edge.id: f"r{number}" for number, edge in enumerate(edges, 1)},
        "Sources": {content_id("unit", unit): unit for unit in units},
    })  # fmt: skip


def test_a_small_community_in_english_reads_so():
    entities, edges = rows_of(ENGLISH)
    report = extractive_report(community_of(entities), entities, edges)
    assert report.title == "Lantern Guild · Mara Quill · Port Ember"
    assert readable_report(report.full_content, entities, [], ["u1", "u2", "u3"]) == (
        "# Lantern Guild · Mara Quill · Port Ember\n\n"
        "The Lantern Guild is a union of night watchmen founded by Mara Quill in Port Ember. "
        "[Data: Entities (LanternGuild, MaraQuill, PortEmber); Sources (u1)] "
        "The Harbour Fire was blamed on Tobias Wick, a rope maker. "
        "[Data: Entities (HarbourFire, TobiasWick); Sources (u3)]\n\n"
        "- Mara Quill led the Lantern Guild until the harbour fire. "
        "[Data: Entities (LanternGuild, MaraQuill); Sources (u2)]\n\n"
        "- Port Ember lost forty ships in the Harbour Fire of 1702. "
        "[Data: Entities (PortEmber, HarbourFire); Sources (u2)]"
    )
    assert [one["summary"] for one in json.loads(report.findings)] == [
        "Mara Quill led the Lantern Guild until the harbour fire.",
        "Port Ember lost forty ships in the Harbour Fire of 1702.",
        "The Harbour Fire was blamed on Tobias Wick, a rope maker.",
    ]  # fmt: skip
    assert (report.rank, report.rating_explanation) == (
        2.9, "Rated 2.9 of 10 for 5 entities, 5 relationships of total weight 6, and 3 text units.",
    )  # fmt: skip


def test_a_chinese_report_has_no_english_and_no_spaces_between_sentences():
    entities, edges = rows_of(CHINESE)
    report = extractive_report(community_of(entities), entities, edges)
    assert report.title == "莫高窟 · 敦煌研究院 · 常书鸿"
    text = readable_report(report.summary, [], [], ["u1", "u2", "u3"])
    assert text == (
        "敦煌研究院是负责保护莫高窟的机构，设在甘肃省敦煌市。 [Data: Sources (u1)]"
        "常书鸿在一九四四年创办了敦煌研究院的前身，并长期居住在莫高窟。 [Data: Sources (u2)]"
    )
    assert report.rating_explanation == f"评分 {report.rank}（满分 10）依据：5 个实体、6 条关系（总权重 7）、3 个文本单元。"


def test_a_report_has_the_columns_of_the_table_but_those_that_the_writer_fills():
    entities, edges = rows_of(ENGLISH)
    community = community_of(entities)
    row = asdict(extractive_report(community, entities, edges))
    filled_by_writer = {"n", "fingerprint", "terms", "check"}
    assert set(row) == set(TABLES["reports"].names) - filled_by_writer
    units = sorted(content_id("unit", unit) for unit in ("u1", "u2", "u3"))
    assert row["id"] == community.id and row["level"] == 0 and row["method"] == "extractive"
    assert row["entity_ids"] == list(community.members)
    assert row["relationship_ids"] == sorted(edge.id for edge in edges)
    assert (row["text_unit_ids"], row["n_text_units"]) == (units, 3)


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
        unit, names = texts[sentence]
        groups = referenced_ids(f"[Data: {reference}]")
        assert groups["Sources"] == [content_id("unit", unit)]
        assert set(groups["Entities"]) <= {content_id("entity", name) for name in names}
        assert len(groups["Entities"]) == min(3, len(names)) and len(groups["Relationships"]) <= 3
        assert ("+more" in reference) == (len(names) == 4)  # six pairs
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


def test_a_parent_speaks_through_its_children_and_the_relationships_between_them():
    groups = [rows_of((unit, text.replace("Hub", f"Hub{part}").replace("Name", f"Name{part}x"),
                       [name.replace("Hub", f"Hub{part}").replace("Name", f"Name{part}x") for name in names])
                      for unit, text, names in many(20, 30)) for part in range(3)]  # fmt: skip
    entities, edges = [row for group in groups for row in group[0]], [edge for group in groups for edge in group[1]]
    children = [extractive_report(community_of(rows, 1), rows, links) for rows, links in groups]
    parent = community_of(entities, 0, [child.id for child in children])
    through_children = extractive_report(parent, entities, edges, children)
    read_itself = extractive_report(parent, entities, edges)
    known = "".join(child.summary + child.findings for child in children)
    cited = [part.split(" [Data:")[0].strip() for part in through_children.summary.split("]")[:-1]]
    assert cited and all(sentence in known for sentence in cited)
    assert {word[:4] for sentence in cited for word in sentence.split() if word.startswith("Hub")} == {"Hub0", "Hub1", "Hub2"}
    ids = referenced_ids(through_children.full_content)
    assert set(ids["Entities"]) <= set(parent.members)
    assert set(ids["Relationships"]) <= {edge.id for edge in edges}
    assert through_children.full_content != read_itself.full_content
    assert through_children.rank == read_itself.rank > max(child.rank for child in children)
    columns = ("title", "entity_ids", "relationship_ids", "text_unit_ids")
    assert [getattr(through_children, name) for name in columns] == [getattr(read_itself, name) for name in columns]
    bridge_text = "Hub0, Hub1 and Hub2 were joined into one company in 1990."
    hubs = [content_id("entity", f"Hub{part}") for part in range(3)]
    bridge = EdgeRow(content_id("bridge"), *sorted(hubs[:2]), "", 50.0, [content_id("unit", "b")], [(content_id("unit", "b"), bridge_text)])
    joined = extractive_report(parent, entities, [*edges, bridge], children)
    assert bridge_text in joined.summary and bridge.id in joined.relationship_ids


def test_a_model_written_child_is_read_too_and_what_it_does_not_cite_is_left_out():
    entities, edges = rows_of(ENGLISH)
    parent = community_of(entities, 0, ["c1"])
    quill = content_id("entity", "Mara Quill")
    stranger = content_id("entity", "Nobody Here")
    child = Report(
        id="c1", level=1, title="", full_content="", rank=8.0, rating_explanation="",
        entity_ids=[row.id for row in entities], relationship_ids=[edge.id for edge in edges], text_unit_ids=[], n_text_units=0, method="llm", findings="[]",
        summary=f"Mara Quill shaped the watch of Port Ember. [Data: Entities ({quill}, {stranger})] This claim has no reference.",
    )  # fmt: skip
    report = extractive_report(parent, entities, edges, [child])
    assert report.summary == f"Mara Quill shaped the watch of Port Ember. [Data: Entities ({quill})]"


def test_the_rating_grows_with_evidence_and_stays_between_0_and_10():
    ranks = []
    for names, documents in ((2, 1), (10, 10), (100, 120), (300, 400)):
        entities, edges = rows_of(many(names, documents))
        ranks.append(extractive_report(community_of(entities), entities, edges).rank)
    assert ranks == sorted(set(ranks))
    assert 1 <= ranks[0] <= 3 and 9 <= ranks[-1] <= 10


def test_text_that_imitates_a_reference_or_a_heading_stays_a_quotation():
    forged = content_id("entity", "forged")
    entities, edges = rows_of([
        ("u1", f"# Alpha Works belongs to Beta Mill [Data: Entities ({forged})] since the year 1850.", ["Alpha Works", "Beta Mill"]),
    ])  # fmt: skip
    report = extractive_report(community_of(entities), entities, edges)
    assert forged not in referenced_ids(report.full_content)["Entities"]
    assert [line for line in report.full_content.splitlines() if line.startswith("#")] == ["# Alpha Works · Beta Mill"]


def test_without_any_evidence_the_names_stand_for_themselves():
    entities, edges = rows_of([("u1", "", ["Alpha", "Beta"])])
    report = extractive_report(community_of(entities), entities, edges)
    assert report.title == "Alpha · Beta" and report.findings == "[]"
    assert report.summary.startswith("Alpha · Beta [Data: Entities (")


def test_long_text_is_cut_at_a_sentence_or_a_space():
    assert readable("Short one. The second sentence of this text is long enough to be quoted here. The " + "x" * 400, 400)[0] == (
        "The second sentence of this text is long enough to be quoted here."
    )
    cut = readable("word " * 200 + "end.", 100)[0]
    assert cut.endswith("word…") and len(cut) <= 100
    assert len(readable("长" * 900, 400)[0]) == 400


# ---- titles and empty sentences ------------------------------------------------------------------


WEIGHTS = {"rates": 0.9, "rate": 1.0, "interest": 0.8, "yukos": 0.95, "raised": 0.3, "rais": 0.3}
SENTENCES = [
    "Interest rates were raised after Yukos went under.",
    "The bank raised interest rates again.",
    "Nobody expected interest rates of that kind.",
]


def test_a_title_has_no_lone_verb_no_words_of_a_calendar_and_the_nouns_of_chinese() -> None:
    weights = {"ventured": 1.0, "ventur": 1.0, "oct": 0.9, "loaf": 0.5}
    assert phrase(weights, ["Oct"], ["Ana ventured in for a loaf in Oct.", "Ana ventured out with the loaf."]) == "Loaf"
    assert phrase({"ventured": 1.0}, [], ["Ana ventured in and ventured out."]) == ""
    towers = {"摩天": 1.0, "天大": 0.9, "大楼": 0.8}
    assert phrase(towers, [], [], nouns=nouns(["摩天大楼是一个大型温室。", "一座摩天大楼起火了。"])) == "摩天大楼"
    assert phrase(towers, ["为什么摩天大楼如此困难的问题"], []) == ""  # the title of an article


def test_a_title_says_words_as_they_are_written_and_words_beside_each_other_together() -> None:
    assert phrase(WEIGHTS, ["Yukos"], SENTENCES) == "Yukos and interest rates"
    assert phrase(WEIGHTS, [], SENTENCES[1:]) == "Interest rates"
    assert phrase({}, ["Yukos"], SENTENCES) == ""


def test_a_name_is_said_whole() -> None:
    assert (
        phrase({"dorothea": 1.0}, ["Dorothea Calloway"], ["Dorothea came."]) == "Dorothea Calloway"
    )


def test_words_of_grammar_of_a_language_that_shows_are_no_characteristic_terms() -> None:
    assert without_grammar(["wehrmacht", "der", "und", "die", "des", "ausstellung"]) == ["wehrmacht", "ausstellung"]
    assert without_grammar(["war", "die", "treaty"]) == ["war", "die", "treaty"]


def test_a_chinese_title_is_made_of_names() -> None:
    assert (
        phrase({"铁路": 1.0, "广州": 0.6}, ["大莱龙铁路", "广州"], ["大莱龙铁路通车。"])
        == "广州、大莱龙铁路"
    )


def test_a_sentence_of_characteristic_terms_tells_more_and_a_figure_helps() -> None:
    assert telling("Yukos paid interest.", WEIGHTS) > telling("Yukos paid nothing.", WEIGHTS) > 0
    assert telling("Yukos paid 12.", WEIGHTS) > telling("Yukos paid up.", WEIGHTS)
    assert telling("It was late.", WEIGHTS) == 0


def test_greetings_tables_code_and_notices_have_little_substance() -> None:
    for text in (
        "Hi Anna, see you tomorrow.", "Thanks for the call.", "你好，大家。", "| 2008 | 2007 |",
        "Been ages since we chatted.", "We had a wild few days since we talked!", "How's it going since our last talk?",
        "LENGTH = timedelta(minutes=52)", "Copyright 2011, all rights reserved.", "See https://example.org for more.",
    ):  # fmt: skip
        assert substance(text) <= 0.1, text
    assert substance("The bank raised interest rates in May.") == 1.0
    assert substance("Since we talked I have sold the boat.") == 1.0
    assert substance("Can't wait for our next jam!") == 0.2


def test_lists_menus_and_entries_of_bibliographies_are_worth_less_than_sentences() -> None:
    for text in (
        "D. J. Bernstein, Proving primality in essentially quartic random time, Math.",
        "Smith, J. A. (2004). On the nature of things.",
        "Home About Contact News Weather Sport Travel",
        "Quill, M., Night watches of the northern harbours, vol. 3, 1911.",
    ):
        assert substance(text) <= 0.3, text
    assert substance("Warnings by the president and the secretary.") == 0.5  # no verb
    for text in (
        "The building was listed in 1972.",
        "Der Vertrag wurde am 3. Mai in Wien unterzeichnet.",
        "Le pont relie les deux rives de la rivière.",
        "公司于2003年在深圳成立。",
    ):
        assert substance(text) == stands_alone(text) == 1.0, text
    assert stands_alone("They moved it to May.") < 1.0


def test_a_bare_name_and_a_line_that_is_a_link_are_worth_little() -> None:
    assert substance("Mara Quill (@quill)") < substance("Mara Quill left.")
    assert substance("- [Rollout and Upgrade Planning](#rollout)") < substance("Mara Quill left.")


# ---- which sentences a report quotes ---------------------------------------------------------------


TERMS = {"ferry": 1.0, "ferri": 1.0, "harbour": 0.9, "rope": 0.8, "night": 0.7}


def summary_of(sentences, leads=(), weights=TERMS):
    entities, edges = rows_of(sentences)
    leads = [(content_id("unit", unit), text) for unit, text in leads]
    report = extractive_report(community_of(entities), entities, edges, weights=weights, leads=leads)
    return readable_report(report.summary, entities, edges, []), report


def test_a_report_quotes_how_its_texts_begin_where_names_stand_in_fragments_alone() -> None:
    named = [("u1", "material from Mara Quill on the ferry", ["Mara Quill"])]
    lead = "The night ferry of the harbour was sold to a rope maker."
    said, _ = summary_of(named, [("u1", lead)])
    assert said.startswith(lead) and "material from" not in said


def test_a_sentence_of_a_form_that_stands_in_many_texts_is_not_quoted() -> None:
    form = "Mara Quill keeps the ferry, the harbour and the rope at night."
    said = [(f"u{n}", form, ["Mara Quill"]) for n in range(3)]
    own = [
        ("u0", "The ferry of Port Ember sank in a storm in May.", ["Port Ember"]),
        ("u1", "Tobias Wick sells rope to sailors in the harbour.", ["Tobias Wick"]),
        ("u2", "Night falls early on Port Ember in the winter.", ["Port Ember"]),
    ]
    assert form in summary_of([*said[:1], *own])[0]
    assert form not in summary_of([*said, *own])[0]


def test_a_chat_is_told_by_sentences_whose_speaker_is_known() -> None:
    late = ("ferry", "rope", "night train", "harbour boat")
    chat = [(f"u{n}", f"{('Mara', 'Tobias')[n % 2]}: The {what} was late on Monday.", ["Mara"]) for n, what in enumerate(late)]
    unspoken = "The ferry to the harbour with all the rope leaves tonight."
    assert unspoken not in summary_of([*chat, ("u9", unspoken, ["Mara"])])[0]
    prose = [(unit, text.partition(": ")[2], names) for unit, text, names in chat]
    assert unspoken in summary_of([*prose, ("u9", unspoken, ["Mara"])])[0]


def test_the_first_sentence_names_what_the_title_names() -> None:
    weights = {"ferry": 1.0, "ferri": 1.0, "quill": 0.9, "harbour": 0.8, "rope": 0.8, "night": 0.8}
    sentences = [
        ("u1", "A rope maker of the harbour works at night.", ["Wick"]),
        ("u2", "The ferry of Quill went down with many people from many towns in a winter long ago.", ["Quill"]),
    ]
    said, report = summary_of(sentences, weights=weights)
    assert "Quill" in report.title and said.startswith("The ferry of Quill")


def test_where_two_sentences_name_the_title_no_other_one_is_quoted() -> None:
    weights = {"ferry": 1.0, "ferri": 1.0, "quill": 0.9, "islands": 0.9, "island": 0.9, "harbour": 0.5, "rope": 0.5, "night": 0.5}
    other = "Harbour people sell all kinds of rope at night."
    sentences = [
        ("u1", "The ferry of Quill went down off the islands long ago.", ["Quill"]),
        ("u2", "Quill had built another ferry for the islands by then.", ["Quill"]),
    ]
    assert other not in summary_of([*sentences, ("u3", other, ["Wick"])], weights=weights)[0]
    assert other in summary_of([*sentences[:1], ("u3", other, ["Wick"])], weights=weights)[0]


def test_two_sentences_that_begin_alike_are_not_quoted_together() -> None:
    rounds = [
        ("u1", "Runoff of the ferry: Ada is before Ben in the count.", ["Ada"]),
        ("u2", "Runoff of the ferry: Carl is behind Dora after a rope was drawn at night.", ["Carl"]),
        ("u3", "A harbour with a ferry chose Emma to lead the board.", ["Emma"]),
    ]
    assert summary_of(rounds)[0].count("Runoff of the ferry") == 1


def test_marks_of_emphasis_and_addresses_of_links_are_not_quoted() -> None:
    assert readable("The **ferry** of [Port Ember](https://ember.example) is *old* and slow.", 400)[0] == (
        "The ferry of Port Ember is old and slow."
    )
    assert readable("The ferry takes 3 * 4 cars.", 400)[0] == "The ferry takes 3 * 4 cars."
    assert readable("In _The Old Ferry_ he set chunk_size and _private.", 400)[0] == (
        "In The Old Ferry he set chunk_size and _private."
    )


def test_what_one_says_of_oneself_in_an_interview_does_not_open_a_report() -> None:
    told = "The ferry of Quill went down off the harbour one night long ago."
    answer = "Wick: We drew the ferry of Quill and the rope of the harbour at night for a film."
    said = summary_of([("u1", answer, ["Quill"]), ("u2", told, ["Quill"])])[0]
    assert said.startswith(told)


# ---- the first sentence -----------------------------------------------------------------------------


def opening_of(titles, headings=(), sentences=None, weights=TERMS, **more):
    """The first sentence of the report on documents of these titles, a text unit each."""
    sentences = sentences or [(f"u{n}", "The ferry of the harbour carries rope at night.", ["Quill"]) for n in range(len(titles))]
    entities, edges = rows_of(sentences)
    units = {content_id("unit", f"u{n}"): f"d{n}" for n in range(len(titles))}
    papers = {f"d{n}": Paper(title, more.get("units", 1), more.get("year", ""), more.get("folder", "")) for n, title in enumerate(titles)}
    given = {
        "documents": units, "papers": papers, "told": {id: set(weights) for id in papers},
        "sections": [(unit, line) for unit, lines in zip(units, headings, strict=False) for line in lines],
    }  # fmt: skip
    report = extractive_report(community_of(entities), entities, edges, weights=weights, papers=given)
    return readable_report(report.summary, entities, edges, [f"u{n}" for n in range(len(titles))]), report


def test_a_report_begins_with_what_the_index_knows_of_its_documents() -> None:
    titles = ["The night ferry | Ember Daily", "Rope for the harbour | Ember Daily", "Weather | Ember Daily"]
    said, report = opening_of(titles, year="1904", folder="letters")
    assert said.startswith("3 documents of 1904 in the folder “letters”, on ")
    assert "; among them “The night ferry” and “Rope for the harbour”. [Data: Sources (u" in said
    assert opening_of(titles, units=9)[0].startswith("Parts of 3 documents, on ")
    parent = extractive_report(community_of(rows_of(ENGLISH)[0], 0, [report.id]), *rows_of(ENGLISH), [report])
    assert "documents" not in parent.summary  # it speaks of the child's documents


def test_where_titles_say_nothing_headings_are_named_but_none_of_a_form() -> None:
    titles = [f"Meeting of {day} May 1904" for day in range(1, 7)]
    headings = [["Conclusion of the harbour", "Night ferry for the harbour"], *[["Conclusion of the harbour"]] * 5]
    said, _ = opening_of(titles, headings)
    assert "under headings like “Night ferry for the harbour”." in said and "Conclusion" not in said


def test_chinese_texts_have_a_chinese_first_sentence() -> None:
    sentences = [(f"u{n}", f"第{n}座灯塔的渡轮在港口停靠，Lantern 公司负责维护。", ["灯塔"]) for n in range(3)]
    weights = {"灯塔": 1.0, "渡轮": 0.9, "港口": 0.8}
    said, _ = opening_of(["灯塔与渡轮", "港口的灯塔", "天气"], sentences=sentences, weights=weights, year="1904")
    assert said.startswith("1904年3篇文档，主要涉及") and "其中有《" in said


def test_only_texts_with_han_and_without_kana_or_hangul_have_a_chinese_first_sentence() -> None:
    weights = {"灯台": 1.0, "港": 0.9, "등대": 1.0, "항구": 0.9}
    for name, text in (("灯台", "灯台は港にある古い建物です。"), ("등대", "등대 는 항구 에 있는 오래된 건물이다."), ("등대", "燈臺 등대 는 항구 에 있다.")):
        said, report = opening_of([name, name], sentences=[(f"u{n}", text, [name]) for n in range(2)], weights=weights)
        assert said.startswith("2 documents, on ") and report.rating_explanation.startswith("Rated")


def test_a_topic_of_one_or_two_documents_or_in_another_language_quotes_what_no_rule_calls_central() -> None:
    met = "Ada Brandt met Jonas Ekholm."
    weights = dict.fromkeys(("ada", "brandt", "jonas", "ekholm"), 1.0)
    many_met = [(f"u{n}", met.replace("met", verb), ["Ada Brandt", "Jonas Ekholm"]) for n, verb in enumerate(("met", "saw", "left", "heard"))]
    assert f"] {met} [" in opening_of(["Letter"], sentences=many_met[:1], weights=weights)[0]
    assert met not in opening_of(["Letter"] * 4, sentences=many_met, weights=weights)[0]
    german = [(unit, f"In der Stadt hat {names[0]} auf dem Weg zu {names[1]} {n + 2} Schiffe gesehen.", names) for n, (unit, _, names) in enumerate(many_met)]
    assert "] In der Stadt" in opening_of(["Brief"] * 4, sentences=german, weights=weights)[0]
    turns = [("u0", f"{name}: {said}", [name]) for name in ("Ada", "Jonas") for said in ("I left the ferry.", "We met at the harbour.")]
    assert "I left" not in opening_of(["Talk"], sentences=turns, weights=weights)[0]


def test_a_parent_knows_the_first_sentence_of_a_child_by_its_place() -> None:
    survived = "14 documents survived the fire of Vienna."
    sentences = [("u0", survived, ["Vienna", "Quill"])]
    weights = {"vienna": 1.0, "fire": 0.9, "documents": 0.8, "document": 0.8, "quill": 0.5}
    said, report = opening_of(["Ash"], sentences=sentences, weights=weights)
    assert [one.text for one in quotes_of(report)] == [survived] and said.startswith("1 document, ")
    sentences = [(f"u{n}", f"第{n}座灯塔的渡轮在港口停靠。", ["灯塔"]) for n in range(3)]
    weights = {"灯塔": 1.0, "渡轮": 0.9, "港口": 0.8}
    said, report = opening_of(["灯塔与渡轮", "港口的灯塔", "天气"], sentences=sentences, weights=weights, year="1904", folder="“信”", units=9)
    assert said.startswith("文件夹““信””中的1904年3篇文档的部分内容")
    assert not any("篇文档" in one.text for one in quotes_of(report))


def test_the_title_of_one_document_is_what_it_is_called_and_a_day_is_no_heading() -> None:
    said, _ = opening_of(["The night ferry"])
    assert said.startswith("1 document, on ") and ", called “The night ferry”. [" in said
    day = "Night ferry of the harbour 2021-03-04"
    said, _ = opening_of(["x.md"], [[day, "Night ferry for the harbour"]])
    assert "“Night ferry for the harbour”" in said and day not in said


def test_words_of_names_that_are_no_subject_do_not_come_back_in_a_title() -> None:
    people = ["Ada Brandt", "Jonas Ekholm", "Mary Lund"]
    weights = dict.fromkeys(("ada", "brandt", "jona", "jonas", "ekholm", "mary", "lund"), 1.0)
    listed = [("u0", f"- {name}", [name]) for name in people]
    listed.append(("u0", "Guests: Ada Brandt, Jonas Ekholm, Mary Lund.", people))
    assert opening_of(["Guests"], sentences=listed, weights=weights)[1].title == "Ada Brandt, Jonas Ekholm and Mary Lund"


def test_titles_are_masked_and_visible_and_comments_of_settings_are_no_headings(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "A1b2C3d4" * 10
    text = "The Harbour Trust of Vienna pays Ada Brandt for dredging the harbour. Ada Brandt left the Harbour Trust.\n"
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text(f"# Harbour Trust {key} \u202edredging\u202c the har\u200bbour\n\n{text}", "utf-8")
    remarks = ("What the Harbour Trust pays for dredging", "Dredging costs of the Harbour Trust")
    (folder / "b.toml").write_text(f"# {remarks[0]}\n[pay]\nada = 3\n# {remarks[1]}\n", "utf-8")
    (folder / "c.txt").write_text(text, "utf-8")
    assert index_documents(tmp_path / "c", IndexRequest((str(folder),)), Settings()).status == "done"
    said = " ".join(one["title"] + one["full_content"] for one in open_snapshot(tmp_path / "c").rows("reports").to_pylist())
    assert "dredging the harbour”" in said and "under headings like" not in said
    assert key not in said and not {"\u202e", "\u200b"}.intersection(said)


def test_a_name_of_speakers_or_of_menus_is_no_subject() -> None:
    def row(*texts):
        return EntityRow("e", "Mara Quill", evidence=[("u", text) for text in texts])

    assert _is_subject(row("Mara Quill led the guild until the fire."))
    assert not _is_subject(row("Mara Quill: The ferry was late on Monday."))
    assert not _is_subject(row("* [Mara Quill](https://ember.example)", "Contributed by Mara Quill"))


def test_a_sentence_is_settled_without_a_noun_that_is_known_and_without_a_today() -> None:
    for text in ("The sides met in May.", "Added a ferry to the list.", "Weber, M. The harbour.", "Quill sails next week.", "如果渡轮停运，港口关闭。"):
        assert not settled(text), text
    for text in ("The harbour of Port Ember lost forty ships.", "The Lantern Guild is a union.", "渡轮在港口停靠。"):
        assert settled(text), text
