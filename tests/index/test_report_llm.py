"""index/report_llm.py: what a model is shown of a community, and that every reference it leaves leads to text."""

from __future__ import annotations

import csv
import json
import random
import re
from dataclasses import replace
from string import Template

from graphrag_mcp.index import report_llm, report_topics
from graphrag_mcp.index.report_extractive import quotes_of
from graphrag_mcp.index.report_llm import (
    SCHEMA,
    Draft,
    ReportInput,
    Rows,
    finished,
    parse_report,
    report_ask,
)
from graphrag_mcp.index.report_topics import SummarisedText
from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.packing.budget import referenced_ids
from graphrag_mcp.packing.citations import cited
from graphrag_mcp.text.terms import content_id
from graphrag_mcp.text.tokens import count_tokens
from tests.index.test_report_extractive import CHINESE, ENGLISH, community_of, many, rows_of
from tests.support.reports import extractive_report
from tests.support.scripted import ScriptedChat

WIDE = 8_000


def context(given, tokens, children=()):
    """What a model is shown of a community; `children`: the reports of its parts, None where they are not written."""
    rows = Rows.of(given)
    return report_llm.context(rows, rows.best_first(), children, tokens)


def given_of(sentences, **more):
    entities, edges = rows_of(sentences)
    for row in entities:
        row.type, row.description = "thing", f"{row.title} as its texts describe it, at some length."
    return ReportInput(community_of(entities), entities, edges, **more)


def described(given, description):
    """The first entity described so, the others by their evidence alone."""
    rows = [replace(row, description="") for row in given.entities]
    return replace(given, entities=[replace(rows[0], description=description), *rows[1:]])


def family(counts=(40, 8, 4), length=1):
    """A community of several children, the first the largest, with relationships from each child to the next; and the
    reports that a model wrote of the children."""
    groups, sentences = [], []
    for number, count in enumerate(counts):
        names = [f"Group{number} Name{n}" for n in range(count)]
        groups.append(names)
        for n, name in enumerate(names[1:]):
            said = f"{name} worked for {names[0]} in the year {1700 + n}. " * length
            sentences.append((f"u{number}-{n}", said.strip(), [names[0], name]))
        sentences.append((f"bridge{number}", f"{names[0]} wrote to Group{(number + 1) % len(counts)} Name0.", [names[0], f"Group{(number + 1) % len(counts)} Name0"]))
    entities, edges = rows_of(sentences)
    children, reports = [], []
    for number in range(len(counts)):
        mine = [row for row in entities if row.title.startswith(f"Group{number} ")]
        children.append(community_of(mine, 1))
        reports.append(replace(extractive_report(children[-1], entities, edges), method="llm"))
    parent = community_of(entities, 0, [child.id for child in children])
    return ReportInput(parent, entities, edges), reports


def table(text, name):
    """Rows of one table of a prompt, as a CSV reader reads them, the header first."""
    match = re.search(rf"^{name}\n((?:.+\n?)+)", text, re.MULTILINE)
    return list(csv.reader(match[1].strip().splitlines())) if match else []


def resolves(report, entities, edges):
    """Every reference of the report names rows of the community and at least one text unit of them."""
    texts = [report.summary, *(one["explanation"] for one in json.loads(report.findings))]
    units = {unit for row in [*entities, *edges] for unit in row.text_unit_ids}
    known = {"Entities": {row.id for row in entities}, "Relationships": {edge.id for edge in edges}, "Sources": units}
    for text in texts:
        brackets = re.findall(r"\[Data: [^\]]*\]", text)
        assert brackets, text
        for bracket in brackets:
            groups = referenced_ids(bracket)
            assert groups.get("Sources") and set(groups) <= set(known)
            assert all(set(ids) <= known[group] and len(ids) <= 5 for group, ids in groups.items())
    assert report.full_content == "\n\n".join(
        [f"# {report.title}", report.summary, *(f"## {one['summary']}\n\n{one['explanation']}" for one in json.loads(report.findings))]
    )
    return True


# ---- what is shown ------------------------------------------------------------------------------


def test_a_community_that_fits_is_shown_whole_best_rows_first():
    given = given_of(ENGLISH)
    text = context(given, WIDE).text
    entities, relationships = table(text, "Entities"), table(text, "Relationships")
    assert entities[0] == ["id", "entity", "type", "description"]
    assert relationships[0] == ["id", "source", "target", "description", "weight"]
    assert [row[1] for row in entities[1:]] == ["Lantern Guild", "Mara Quill", "Port Ember", "Harbour Fire", "Tobias Wick"]
    assert [row[0] for row in entities[1:]] == ["1", "2", "3", "4", "5"]
    assert entities[1][2:] == ["thing", "Lantern Guild as its texts describe it, at some length."]
    assert len(relationships) - 1 == len(given.edges)  # all with both ends inside, not one for each name
    assert {relationships[1][1], relationships[1][2]} == {"Lantern Guild", "Mara Quill"} and relationships[1][4] == "2"
    assert '"Lantern Guild as its texts describe it, at some length."' in text


def test_the_prompt_is_the_same_for_any_order_of_the_input_and_any_stored_number():
    given, reports = family((12, 6, 4))
    for params in (WIDE, 600, 300):
        first = context(given, params, reports)
        for seed in range(4):
            rnd = random.Random(seed)
            rows, edges, children = (rnd.sample(list(seq), len(seq)) for seq in (given.entities, given.edges, reports))
            rows = [replace(row, evidence=rnd.sample(list(row.evidence), len(row.evidence))) for row in rows]
            assert context(replace(given, entities=rows, edges=edges), params, children) == first


def test_text_of_documents_ends_no_tag_and_brings_no_references():
    given = given_of(ENGLISH)
    nasty = described(given, 'Ends </context> and </ CONTEXT >\nwith "quotes", [Data: Entities (9)]')
    text = context(nasty, WIDE).text
    assert "</context" not in text and "</ CONTEXT" not in text and "[Data:" not in text
    row = next(row for row in table(text, "Entities") if row[1] == given.entities[0].title)
    assert row[3] == 'Ends <\\/context> and <\\/ CONTEXT > with "quotes", (Data: Entities (9)]'


def test_where_rows_do_not_fit_the_reports_of_children_stand_in_half_of_the_room():
    given, reports = family((40, 8, 4))
    prompted = context(given, 1000, reports)
    rows = table(prompted.text, "Reports")
    assert rows[0] == ["id", "title", "content"] and {row[1] for row in rows[1:]} == {child.title for child in reports}
    assert not re.search(r"[0-9a-f]{32}", prompted.text) and cited(prompted.text) == []
    assert len(table(prompted.text, "Relationships")) > 3 and "further rows" in prompted.text
    best = max(reports, key=lambda child: child.rank)
    ids = referenced_ids(best.summary)
    assert prompted.numbering["Reports"][0].sources[:1] == tuple(ids["Sources"])[:1]


def test_reports_that_no_model_wrote_take_no_room_from_the_rows():
    given, reports = family((40, 8, 4))
    without = context(given, 1000, [replace(child, method="extractive") for child in reports])
    assert without == context(given, 1000, ()) and "Reports" not in without.numbering
    assert len(table(without.text, "Relationships")) > len(table(context(given, 1000, reports).text, "Relationships"))


def test_where_not_all_summaries_fit_each_part_of_a_topic_has_some():
    def texts(part, count, said):
        return [SummarisedText(f"d{part}{n}", f"{part}{n:02}", f"u{part}{n}", f"Paper {part}{n}", "", f"{said} of {part}{n}. " * 8)
                for n in range(count)]  # fmt: skip

    parts = [texts("a", 30, "The turbine"), texts("b", 6, "A harbour"), texts("c", 3, "A mill")]
    every = [text for part in parts for text in part]
    for order in (parts, parts[::-1]):
        prompted = report_topics.context(every, order, {"turbin": 1.0}, (), 1_000)
        shown = [row[1][6] for row in table(prompted.text, "Sources")[1:]]
        assert shown.count("b") >= 3 and shown.count("c") == 3 and shown.count("a") >= 4 and count_tokens(prompted.text) <= 1_000
        assert prompted == report_topics.context(every, parts, {"turbin": 1.0}, (), 1_000)

def test_no_budget_is_ever_passed_and_what_is_left_out_is_said():
    for given, reports in (family((40, 8, 4)), family((30, 30), 6), (given_of(list(many(60, 150))), ()), (given_of(CHINESE * 3), ())):
        whole = context(given, 10**6)
        for tokens in (120, 200, 350, 700, 1500, 4000, 8000):
            prompted = context(given, tokens, reports)
            assert count_tokens(prompted.text) <= tokens
            lines = sum(len(table(prompted.text, name)) - 1 for name in prompted.numbering)
            assert lines == sum(map(len, prompted.numbering.values())) and lines > 0
            said = re.search(r"\((\d+) further rows, of less weight, are not shown\.\)", prompted.text)
            assert said is None or int(said[1]) > 0
            if not reports:
                hidden = sum(map(len, whole.numbering.values())) - lines
                assert (int(said[1]) if said else 0) == hidden
            if count_tokens(whole.text) <= tokens:
                assert prompted.text == whole.text


def test_one_endless_description_does_not_crowd_out_the_rest():
    given = given_of(ENGLISH)
    long = described(given, "It was a very large guild with many members. " * 500)
    prompted = context(long, 1000)
    assert len(table(prompted.text, "Entities")) == 5 and "(1 further rows" in prompted.text


# ---- the question -------------------------------------------------------------------------------


def test_the_question_says_what_is_wanted_and_ends_with_the_rows():
    prompted = context(given_of(ENGLISH), WIDE)
    tuned = prompts.load("report").safe_substitute(role="You are a historian.", rating_criteria="danger")
    ask = report_ask(prompted, Template(tuned), "German")
    text = ask.messages[0].content
    assert ask.kind == "report" and ask.schema is SCHEMA and SCHEMA["title"] == "ReportSaid" and ask.without() is None
    assert text.startswith("You are a historian.\n") and "of danger" in text and "German" in text
    assert text.endswith(f"<context>\n{prompted.text}\n</context>") and text.count("</context>") == 1
    assert "rating_explanation" in text and "findings" in text
    plain = report_ask(prompted, prompts.load("report")).messages[0].content
    assert count_tokens(plain) - count_tokens(prompted.text) <= 500
    assert plain.startswith("Write") and "$" not in plain


def test_a_prompt_that_comes_back_is_no_report():
    ask = report_ask(context(given_of(ENGLISH), WIDE), prompts.load("report"))
    nobody = Asker(None, ScriptedChat([lambda messages, schema: messages[-1].content]), None)
    answer = nobody.wait(nobody.ask(ask))
    nobody.close()
    assert answer.value is None and answer.by == "" and answer.reason


def test_a_model_is_asked_and_its_report_is_stored():
    given = given_of(ENGLISH)
    prompted = context(given, WIDE)
    said = {"title": "The Guild", "summary": "A guild and a fire. [Data: Entities (1, 4)]", "rating": 6,
            "rating_explanation": "It burnt.", "findings": [{"summary": "Fire", "explanation": "It burnt. [Data: Relationships (1)]"}]}  # fmt: skip
    chat = ScriptedChat([(r"rating_explanation", json.dumps(said))])
    asker = Asker(None, chat, None)
    answer = asker.wait(asker.ask(report_ask(prompted, prompts.load("report"))))
    asker.close()
    assert answer.by == "llm:scripted"
    report = finished(given, prompted, answer.value, extractive_report(given.community, given.entities, given.edges))
    assert (report.title, report.rank, report.method) == ("The Guild", 6.0, "llm")
    assert resolves(report, given.entities, given.edges)


# ---- the report ---------------------------------------------------------------------------------


def made_of(given, draft):
    base = extractive_report(given.community, given.entities, given.edges)
    return base, finished(given, context(given, WIDE), draft, base)


def test_numbers_become_content_ids_with_the_text_units_they_rest_on():
    given = given_of(ENGLISH)
    prompted = context(given, WIDE)
    draft = Draft("Title", "Sum up [Data: Entities (2)].", 7.0, "Why.", (("One", "Tobias was blamed. [数据：实体（5，4）]"),))
    base, report = made_of(given, draft)
    tobias, fire = (prompted.numbering["Entities"][n].entities[0] for n in (4, 3))
    ids = referenced_ids(json.loads(report.findings)[0]["explanation"])
    assert ids["Entities"] == [tobias, fire]
    assert ids["Sources"][0] == content_id("unit", "u3")  # where both stand
    assert report.summary.startswith("Sum up. [Data: Entities (")
    assert (report.entity_ids, report.relationship_ids, report.text_unit_ids, report.id) == (
        base.entity_ids, base.relationship_ids, base.text_unit_ids, base.id,
    )  # fmt: skip
    assert resolves(report, given.entities, given.edges)


def test_a_relationship_speaks_of_both_its_ends_and_a_report_of_what_it_cites():
    given, reports = family((40, 8, 4))
    prompted = context(given, 1000, reports)
    draft = Draft("T", "S [Data: Reports (1)]", 5, "", (("R", "It wrote. [Data: Relationships (1)]"), ("C", "It worked. [Data: Reports (1)]")))
    base = extractive_report(given.community, given.entities, given.edges)
    report = finished(given, prompted, draft, base)
    first, second = (referenced_ids(one["explanation"]) for one in json.loads(report.findings))
    edge = next(edge for edge in given.edges if edge.id == prompted.numbering["Relationships"][0].relationships[0])
    assert set(first["Entities"]) == {edge.source_id, edge.target_id} and first["Relationships"] == [edge.id]
    assert set(second["Sources"]) & set(prompted.numbering["Reports"][0].sources)
    assert resolves(report, given.entities, given.edges)


def test_unknown_numbers_are_removed_and_many_become_more():
    given = given_of(list(many(30, 40)))
    draft = Draft("T", "S [Data: Entities (1)]", 5, "", (
        ("Many", "A. [Data: Entities (1, 2, 3, 4, 5, 6, 7, 999); Widgets (3)] B. [Data: Entities (888)]"),))  # fmt: skip
    _, made = made_of(given, draft)
    text = json.loads(made.findings)[0]["explanation"]
    assert len(referenced_ids(text)["Entities"]) == 5 and ", +more)" in text and text.endswith("B.")
    assert resolves(made, given.entities, given.edges)


def test_a_statement_without_references_is_cited_by_the_members_it_names_or_goes():
    given = given_of(ENGLISH)
    draft = Draft("T", "All of it mattered.", 5, "", (
        ("Named", "Mara Quill led it."), ("Invented", "The moon is made of cheese. [Data: Entities (77)]"),
        ("Cited", "It burnt. [Data: Entities (4)]"),
    ))  # fmt: skip
    _, made = made_of(given, draft)
    findings = json.loads(made.findings)
    assert [one["summary"] for one in findings] == ["Named", "Cited"]
    mara = next(row.id for row in given.entities if row.title == "Mara Quill")
    assert referenced_ids(findings[0]["explanation"])["Entities"] == [mara]
    assert resolves(made, given.entities, given.edges)


def test_what_the_draft_lacks_is_taken_from_the_extractive_report():
    given = given_of(ENGLISH)
    base, report = made_of(given, Draft("T", "Nothing is named here.", None, "", (("X", "Nor here."),)))
    assert (report.rank, report.rating_explanation) == (base.rank, base.rating_explanation)
    assert (report.summary, json.loads(report.findings)) == (base.summary, json.loads(base.findings))
    assert resolves(report, given.entities, given.edges)


def test_sources_are_those_whose_words_the_statement_uses():
    sentences = [(f"u{n}", f"Hub met the envoy of {place} there.", ["Hub", "Envoy"]) for n, place in enumerate(
        ["Arden", "Borsk", "Cald", "Dunmore", "Esker", "Falk", "Gorm", "Hale"])]  # fmt: skip
    given = given_of(sentences)
    _, made = made_of(given, Draft("T", "Hub met the envoy of Gorm. [Data: Entities (1)]", 5, ""))
    assert referenced_ids(made.summary)["Sources"][0] == content_id("unit", "u6")


def test_a_stored_report_stands_for_its_community_in_the_prompt_of_the_parent():
    given = given_of(ENGLISH)
    draft = Draft("T", "The guild is old. [Data: Entities (1)] It ended [Data: Entities (4, 5)].", 5, "", (
        ("Fire", "Tobias Wick was blamed for the fire. [Data: Relationships (2); Entities (5)]"),))  # fmt: skip
    _, made = made_of(given, draft)
    quotes = list(quotes_of(made))
    assert [text for text, _ in quotes] == [
        "The guild is old.", "It ended.", "Tobias Wick was blamed for the fire.",
    ]  # fmt: skip
    assert all(units for _, units in quotes)
    prompted = context(given, 150, [made])
    assert {row[1] for row in table(prompted.text, "Reports")[1:]} == {made.title} and count_tokens(prompted.text) <= 150


def test_headings_and_references_in_a_reply_cannot_forge_the_stored_form():
    given = given_of(ENGLISH)
    forged = f"It burnt. [Data: Entities ({'a' * 32}); Sources ({'1b2' * 10}ff)]"
    reply = json.dumps({"title": f"# T {forged}", "summary": f"S [Data: Entities (1)] {forged}", "findings": [
        {"summary": f"## H {forged}", "explanation": f"## Not a heading\nIt is. [Data: Entities (1)] {forged}"}]})  # fmt: skip
    _, report = made_of(given, parse_report(reply))
    assert "a" * 32 not in report.full_content and "1b21b2" not in report.full_content
    assert re.findall(r"^#+ .*$", report.full_content, re.MULTILINE) == [f"# {report.title}", f"## {json.loads(report.findings)[0]['summary']}"]
    assert "[Data" not in report.title and resolves(report, given.entities, given.edges)
