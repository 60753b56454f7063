"""What a model is shown of a topic (report_prompt.py), and that every reference that it leaves leads to text
(report_reply.py)."""

from __future__ import annotations

import csv
import json
import random
import re
from dataclasses import replace

from graphrag_mcp.index.report_content import Topic
from graphrag_mcp.index.report_extractive import outline, quotes_of
from graphrag_mcp.index.report_prompt import ReportPrompt, lines_of, prompted
from graphrag_mcp.index.report_reply import (
    Draft,
    checked,
    finished,
    parse_report,
    report_ask,
)
from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.packing.references import referenced_ids
from graphrag_mcp.text.terms import content_id
from graphrag_mcp.text.tokens import count_tokens
from tests.index.test_report_extractive import CHINESE, ENGLISH, community_of, many, rows_of
from tests.support.reports import extractive_report
from tests.support.scripted import ScriptedChat

WIDE = 8_000
PROMPT = ReportPrompt(prompts.load("report"), WIDE, "", 5, 4)


def given_of(sentences):
    entities, edges = rows_of(sentences)
    for row in entities:
        row.type, row.description = "thing", f"{row.title} as its texts describe it, at some length."
    return Topic(community_of(entities), entities, edges)


def described(given, description):
    """The first entity described so, the others by their evidence alone."""
    rows = [replace(row, description="") for row in given.entities]
    return replace(given, entities=[replace(rows[0], description=description), *rows[1:]])


def family(counts=(40, 8, 4)):
    """A community of several children, with relationships from each child to the next; and the reports that a model
    wrote of the children."""
    sentences = []
    for number, count in enumerate(counts):
        names = [f"Group{number} Name{n}" for n in range(count)]
        for n, name in enumerate(names[1:]):
            said = f"{name} worked for {names[0]} in the year {1700 + n}."
            sentences.append((f"u{number}-{n}", said, [names[0], name]))
        other = f"Group{(number + 1) % len(counts)} Name0"
        sentences.append((f"bridge{number}", f"{names[0]} wrote to {other}.", [names[0], other]))
    entities, edges = rows_of(sentences)
    children, reports = [], []
    for number in range(len(counts)):
        mine = [row for row in entities if row.title.startswith(f"Group{number} ")]
        children.append(community_of(mine, 1))
        reports.append(replace(extractive_report(children[-1], entities, edges), method="llm"))
    parent = community_of(entities, 0, [child.id for child in children])
    return Topic(parent, entities, edges), reports


def table(text, name):
    """Rows of one table of a prompt, as a CSV reader reads them, the header first."""
    match = re.search(rf"^{name}\n((?:.+\n?)+)", text, re.MULTILINE)
    return list(csv.reader(match[1].strip().splitlines())) if match else []


def resolves(report, topic):
    """Every reference of the report names rows of the topic and at least one text unit of them."""
    units = {unit for row in [*topic.entities, *topic.edges] for unit in row.text_unit_ids}
    known = {"Entities": {row.id for row in topic.entities}, "Relationships": {edge.id for edge in topic.edges}, "Sources": units}
    findings = json.loads(report.findings)
    for text in (report.summary, *(finding["explanation"] for finding in findings)):
        brackets = re.findall(r"\[Data: [^\]]*\]", text)
        assert brackets, text
        for bracket in brackets:
            groups = referenced_ids(bracket)
            assert groups.get("Sources") and set(groups) <= set(known)
            assert all(set(ids) <= known[group] and len(ids) <= 5 for group, ids in groups.items())
    sections = (f"## {finding['summary']}\n\n{finding['explanation']}" for finding in findings)
    assert report.full_content == "\n\n".join([f"# {report.title}", report.summary, *sections])
    return True


# ---- what is shown ------------------------------------------------------------------------------


def test_a_topic_that_fits_is_shown_whole_best_rows_first():
    given = given_of(ENGLISH)
    text = prompted(given, None, WIDE).text
    entities, relationships = table(text, "Entities"), table(text, "Relationships")
    assert entities[0] == ["id", "entity", "type", "description"]
    assert relationships[0] == ["id", "source", "target", "description", "weight"]
    assert {row[1] for row in entities[1:3]} == {"Lantern Guild", "Mara Quill"} and len(entities) == 1 + 5
    assert [row[0] for row in entities[1:]] == ["1", "2", "3", "4", "5"]
    assert len(relationships) - 1 == len(given.edges) and relationships[1][4] == "2"
    assert '"Lantern Guild as its texts describe it, at some length."' in text


def test_the_prompt_is_the_same_for_any_order_of_the_input():
    given, reports = family((12, 6, 4))
    for tokens in (WIDE, 600, 300):
        first = prompted(given, reports, tokens)
        for seed in range(4):
            rnd = random.Random(seed)
            rows, edges, children = (rnd.sample(list(seq), len(seq)) for seq in (given.entities, given.edges, reports))
            rows = [replace(row, evidence=rnd.sample(list(row.evidence), len(row.evidence))) for row in rows]
            assert prompted(replace(given, entities=rows, edges=edges), children, tokens) == first


def test_text_of_documents_ends_no_tag_and_brings_no_references():
    given = given_of(ENGLISH)
    nasty = described(given, 'Ends </context> and </ CONTEXT >\nwith "quotes", [Data: Entities (9)]')
    text = prompted(nasty, None, WIDE).text
    assert "</context" not in text and "</ CONTEXT" not in text and "[Data:" not in text
    row = next(row for row in table(text, "Entities") if row[1] == given.entities[0].title)
    assert row[3] == 'Ends <\\/context> and <\\/ CONTEXT > with "quotes", (Data: Entities (9)]'


def test_no_budget_is_ever_passed_and_what_is_left_out_is_said():
    endless = described(given_of(ENGLISH), "It was a very large guild with many members. " * 500)
    for given, reports in (family(), family((30, 30)), (given_of(list(many(60, 150))), ()), (given_of(CHINESE * 3), ()), (endless, ())):
        whole = len(lines_of(given))
        for tokens in (150, 350, 700, 1500, 4000, 8000):
            shown = prompted(given, reports, tokens)
            assert count_tokens(shown.text) <= tokens
            lines = sum(len(table(shown.text, name)) - 1 for name in shown.numbering)
            assert lines == sum(map(len, shown.numbering.values())) and lines > 0
            hidden = re.search(r"\((\d+) further rows, of less weight, are not shown\.\)", shown.text)
            assert reports or (int(hidden[1]) if hidden else 0) == whole - lines
    assert len(table(prompted(endless, (), 1000).text, "Entities")) == 5  # one crowds out no other


# ---- the question -------------------------------------------------------------------------------


def test_a_model_is_asked_and_its_report_is_stored():
    given = given_of(ENGLISH)
    shown = prompted(given, None, WIDE)
    said = {"title": "The Guild", "summary": "A guild and a fire. [Data: Entities (1, 4)]", "rating": 6,
            "rating_explanation": "It burnt.", "findings": [{"summary": "Fire", "explanation": "It burnt. [Data: Relationships (1)]"}]}  # fmt: skip
    asker = Asker(None, ScriptedChat([(r"rating_explanation", json.dumps(said))]), None)
    answer = asker.wait(asker.ask(report_ask(shown, PROMPT)))
    asker.close()
    report = finished(given, shown, answer.value)
    assert (report.title, report.rank, report.method) == ("The Guild", 6.0, "llm") and resolves(report, given)


# ---- the report ---------------------------------------------------------------------------------


def made_of(given, draft, tokens=WIDE, parts=()):
    return outline(given), finished(given, prompted(given, parts, tokens), draft)


def test_numbers_become_content_ids_with_the_text_units_they_rest_on():
    given = given_of(ENGLISH)
    rows = {row[1]: int(row[0]) for row in table(prompted(given, None, WIDE).text, "Entities")[1:]}
    tobias, fire = rows["Tobias Wick"], rows["Harbour Fire"]
    draft = Draft("Title", "Sum up [Data: Entities (2)].", 7.0, "Why.", (("A", f"Tobias was blamed. [数据：实体（{tobias}，{fire}）]"),))
    base, report = made_of(given, draft)
    ids = referenced_ids(json.loads(report.findings)[0]["explanation"])
    assert ids["Entities"] == [next(row.id for row in given.entities if row.title == name) for name in ("Tobias Wick", "Harbour Fire")]
    assert ids["Sources"][0] == content_id("unit", "u3")  # where both stand
    assert report.summary.startswith("Sum up. [Data: Entities (") and resolves(report, given)
    same = ("entity_ids", "relationship_ids", "text_unit_ids", "id")
    assert [getattr(report, name) for name in same] == [getattr(base, name) for name in same]


def test_a_reference_to_a_report_leads_to_what_that_cites():
    given, reports = family()
    draft = Draft("T", "S [Data: Reports (1)]", 5, "", (("R", "It wrote. [Data: Relationships (1)]"), ("C", "It worked. [Data: Reports (1)]")))
    shown = prompted(given, reports, 1000)
    _, report = made_of(given, draft, 1000, reports)
    first, second = (referenced_ids(finding["explanation"]) for finding in json.loads(report.findings))
    assert first["Relationships"] == list(shown.numbering["Relationships"][0].relationships)
    assert set(second["Sources"]) & set(shown.numbering["Reports"][0].sources) and resolves(report, given)


def test_a_statement_without_a_known_reference_goes_and_borrows_none_of_another():
    given = given_of(list(many(30, 40)))
    draft = Draft("T", "All of it mattered.", 5, "", (
        ("Many", "A. [Data: Entities (1, 2, 3, 4, 5, 6, 7, 999); Widgets (3)] B. [Data: Entities (888)] C. [Data: Entities (777)] [Data: Entities (2)] D."),
        ("Uncited", "Hub led it."), ("Invented", "The moon is made of cheese. [Data: Entities (77777)]")))  # fmt: skip
    base, made = made_of(given, draft)
    (finding,) = json.loads(made.findings)
    text = finding["explanation"]
    assert len(referenced_ids(text)["Entities"]) == 5 and ", +more)" in text
    assert re.sub(r" \[Data: [^]]*\]", "", text) == "A. C."
    assert made.summary == base.summary and resolves(made, given)
    assert checked(draft, prompted(given, (), WIDE)).left_out == 5


def test_a_number_that_no_row_has_is_marked_in_titles_and_headings_too():
    said = "Wick came with 2 100 000 coins. [Data: Entities (1)]"
    given = described(given_of(ENGLISH), "Counted 2,100,000 coins and 12 300 nails.")
    draft = Draft("Wick in 1909", said, 5, "", (("Of 1731 coins", "He had 12,300 nails, 300 of them old. [Data: Entities (1)]"),))
    _, made = made_of(given, draft)
    assert made.title == "Wick in 1909 (not in what it was written from: 1909)"
    assert "## Of 1731 coins (not in what it was written from: 1731)" in made.full_content and made.full_content.count("not in what") == 2
    assert checked(draft, prompted(given, (), WIDE)).unsupported == ("1909", "1731")


def test_a_stored_report_stands_for_its_topic_in_the_prompt_of_the_parent():
    given = given_of(ENGLISH)
    draft = Draft("T", "The guild is old. [Data: Entities (1)] It ended [Data: Entities (4, 5)].", 5, "", (
        ("Fire", "Tobias Wick was blamed for the fire. [Data: Relationships (2); Entities (5)]"),))  # fmt: skip
    _, made = made_of(given, draft)
    quotes = list(quotes_of(made))
    assert [text for text, _ in quotes] == ["The guild is old.", "It ended.", "Tobias Wick was blamed for the fire."]
    assert all(units for _, units in quotes)
    shown = prompted(given, [made], 200)
    assert {row[1] for row in table(shown.text, "Reports")[1:]} == {made.title}


def test_headings_and_references_in_a_reply_cannot_forge_the_stored_form():
    given = given_of(ENGLISH)
    forged = f"It burnt. [Data: Entities ({'a' * 32}); Sources ({'1b2' * 10}ff)]"
    reply = json.dumps({"title": f"# T {forged}", "summary": f"S [Data: Entities (1)] {forged}", "findings": [
        {"summary": f"## H {forged}", "explanation": f"## Not a heading\nIt is. [Data: Entities (1)] {forged}"}]})  # fmt: skip
    _, report = made_of(given, parse_report(reply))
    assert "a" * 32 not in report.full_content and "1b21b2" not in report.full_content
    assert re.findall(r"^#+ .*$", report.full_content, re.MULTILINE) == [f"# {report.title}", f"## {json.loads(report.findings)[0]['summary']}"]
    assert "[Data" not in report.title and resolves(report, given)
