"""Which names of a document become entities, and which only find its passages."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.names import certain
from graphrag_mcp.names.extract import mentions
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText


def sure(text: str) -> dict[str, str]:
    """Form -> type of the names of a document that are certain."""
    return {form: kind for _, form, kind, strong, *_ in mentions(text) if strong}


def entities(folder: Path, *texts: str) -> dict[str, list[str]]:
    """Title -> aliases of the entities of an index of these texts."""
    given = tuple(InlineText(text, str(at), "") for at, text in enumerate(texts))
    index_documents(folder, IndexRequest(texts=given), Settings(home=folder.parent))
    rows = open_snapshot(folder).rows("entities", columns=["title", "aliases"]).to_pylist()
    return {row["title"]: row["aliases"] for row in rows}


# By the example of each rule: a text, and the name in it that the rule keeps from being certain.
TEXTS = {
    "GitHub Pull\nRequests": ("We went through all of the open and stale GitHub Pull\nRequests of the week.", "GitHub Pull\nRequests"),
    "Ger-many": ("They went back to the south of Ger-many in the spring.", "Ger-many"),
    "Node|.js": ("They have written it in Zephyr.x since the spring of that year.", "Zephyr"),
    "# Open Issues": ("# The Quillon Theorem\n", "Quillon Theorem"),
    "Discussions-To: the list": ("Zorvath-To: the list of all who have read it and said so", "Zorvath-To"),
    "THE END": ("It was said in the hall of KELL BRIG that it rains.", "KELL BRIG"),
    "Moe & Rao, 2003; Quill P., Herz R. 2012": ("It was read by many of those who held the view (Moskel & Radley, 2003).", "Moskel & Radley"),
    "Figure S1": ("The rest of it is shown in Figure QX7 below the line.", "Figure QX7"),
    "the Strategic Initiatives": ("They talked about the Strategic Initiatives for an hour.", "Strategic Initiatives"),
    "Exploring Japan": ("Exploring Zephyria was what they had wanted for years.", "Exploring Zephyria"),
    "Delta Airlines I": ("He said on Zephyr Airlines I was told to wait for an hour.", "Zephyr Airlines I"),
    "Let L1 denote 5 mM EGTA": ("It was kept in mM EGTA for a day and then washed.", "mM EGTA"),
    "an Apartment of two rooms": ("They have seen an Apartment of two rooms near the hall.", "Apartment"),
    "You MUST": ("They say that you MUST be there before the others come.", "MUST"),
}  # fmt: skip


@pytest.mark.parametrize("at", range(len(certain.RULES)))
def test_each_rule_keeps_its_example_from_being_an_entity(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, name = TEXTS[certain.RULES[at][1]]
    assert name not in sure(text)
    monkeypatch.setattr(certain, "RULES", (*certain.RULES[:at], *certain.RULES[at + 1 :]))
    assert name in sure(text)


def test_names_in_the_middle_of_a_sentence_are_certain_and_headings_cells_and_links_are_not() -> (
    None
):
    text = (
        "# Kell Survey\n\nThe boat came from Skerrow with Hannah Quill of the Tidal Power Board.\n\n"
        "| Boat | Harbour |\n| Zephyr Dawn | Ashby Quay |\n\n* [Quarry Walks](https://a.example/q)\n* [Island Tours](https://a.example/t)\n"
    )
    assert set(sure(text)) == {"Skerrow", "Hannah Quill", "Tidal Power Board"}


@pytest.mark.parametrize("text, kept, dropped", [
    ("They asked the tide board on that. Moskel, D. J., and Radley, P. wrote of it in the spring.", set(), {"Moskel"}),
    ("From what I know the mail came on behalf of Pettersen, Anna (Legal) in the spring.", set(), {"Pettersen"}),
    ("They met in Norfolk, Virginia, and then went on to the coast of it.", {"Norfolk"}, set()),
    ("It was read in a paper by Hertel R. and in the one of Moe. See Kell S, Herz R. 2012 for it.", set(), {"Herz R.", "Herz R"}),
    ("The team says that A.B.C., D.E.F. and G.H.I. wrote the paper and read it again.", set(), {"A.B.C.", "D.E.F."}),
    ("It was found near the fort and dated to A.D. 250 by those who dug there.", set(), {"A.D. 250"}),
    ("They called it B-flat for the rest of the day and used R-help for more of it.", {"R-help"}, {"B-flat"}),
    ("The report says that Ada Keene was born in Washington, D.C., in 1950.", {"Washington", "D.C."}, set()),
    ("She moved to Boston, M.A. and stayed there, and then to Skerrow, U.S., and to the coast.", {"Boston", "Skerrow"}, set()),
    ("In London, U.N. and other staff met for a talk of the day.", {"London", "U.N."}, set()),
    ("The shelf of the hall holds J.R.R., N.W.A., and the band R.E.M., and more of it.", {"J.R.R.", "N.W.A.", "R.E.M."}, set()),
    ("It was read that Kloster & Brandt 2019 results were shown in the hall.", {"Kloster & Brandt"}, set()),
    ("It was read in the hall (see Moskel & Radley 2003; and others of it).", set(), {"Moskel & Radley"}),
    ("We know Siemens (Switzerland) Ltd well, and he met Mary (Molly) Brown there.", {"Siemens", "Mary"}, set()),
    ("We used the data of Standard & Poor's. He saw Mommie Dearest, and the Dow Jones Icon of it fell.", {"Standard & Poor", "Mommie Dearest", "Dow Jones Icon"}, set()),
    ("He said that it rains. Poor Zorvath Quillon was there, and so was the dog.", {"Zorvath Quillon"}, {"Poor Zorvath Quillon"}),
    ("He asked the Consulting Engineer and the Legal Counsel and then Senior Counsel Daniel Yi of it.", {"Daniel Yi"}, {"Consulting Engineer", "Legal Counsel"}),
    ("Psychologist Ara Norenzayan and GSA Administrator Daniel Turner Roth have read it.", {"Ara Norenzayan", "Daniel Turner Roth"}, set()),
    ("He went with Captain, or so they say, and then with Captain to the hall.", set(), {"Captain"}),
    ("She saw the Zephyr Logo and the rest of it on the page, AFAIK, and left.", set(), {"Zephyr Logo", "AFAIK"}),
])  # fmt: skip
def test_references_roles_and_signs_are_not_certain(
    text: str, kept: set[str], dropped: set[str]
) -> None:
    assert kept <= set(sure(text)) and not dropped & set(sure(text))


@pytest.mark.parametrize("text, names", [
    ("Introducing Zephyrs was hard. They went on.", {"Introducing Zephyrs"}),
    ("Acknowledging SQS messages on failure or timing out makes it possible to use them again.", {"Acknowledging SQS"}),
])  # fmt: skip
def test_a_gerund_that_opens_a_sentence_is_no_part_of_a_name(text: str, names: set[str]) -> None:
    assert not names & set(sure(text))


@pytest.mark.parametrize("name", [
    "Boxing Club", "Keating Brandt", "Fielding Kess", "Whiting Petroleum", "Reading Gaol", "Bending Spoons",
    "Raising Arizona", "Chasing Amy", "Finding Nemo",
])  # fmt: skip
def test_other_gerunds_that_open_a_sentence_are_part_of_the_name(name: str) -> None:
    text = f"{name} was there at the end. He had read of it in the hall, and reading it he had been raising and chasing it."
    assert name in {mention[1] for mention in mentions(text)}


@pytest.mark.parametrize("text, kept", [
    ("The word of the European Commission on Brexit was clear to all of them.", "European Commission"),
    ("The word of the Security Council on Iraq was clear to all of them.", "Security Council"),
    ("The show of the Seven Network on 18 May was seen by all of them.", "Seven Network"),
    ("The word of the Zephyr Institute on Twitter was clear to all of them.", "Zephyr Institute"),
    ("The show of the Academy Awards on the BBC was seen by all of them.", "Academy Awards"),
    ("The hall of the Da Bank on Thursdays was seen by all of them.", "Da Bank"),
    ("The word of the Ashby Committee on Thursdays was clear to all of them.", "Ashby Committee"),
    ("The word of the Convention on Human Rights was clear to all of them.", "Convention on Human Rights"),
    ("The word of the Council on Foreign Relations was clear to all of them.", "Council on Foreign Relations"),
    ("They asked the Committee on Ethics and the Committee on\nEthics of the day about it.", "Committee on Ethics"),
    ("They asked the Committee on Ethics and the Ashby Council of the day about it.", "Committee on Ethics"),
    ("We ran SWE-bench for all of them to see.", "SWE-bench"),
    ("We ran BIG-bench for all of them to see.", "BIG-bench"),
    ("We have run GPT-turbo for all of them to see.", "GPT-turbo"),
    ("They have moved out of highly GPU-driven places of the coast.", "GPU"),
    ("He had read the story of O Brother in the hall.", "O Brother"),
    ("He had met O Donnell in the hall and then left it.", "O Donnell"),
    ("He had read O Henry in the hall, and the book was by O Henry then.", "O Henry"),
    ("And then she said it: O Zorvath, where are you in all of this?", "Zorvath"),
])  # fmt: skip
def test_a_name_ends_where_the_words_behind_it_are_not_certain_to_be_part_of_it(
    text: str, kept: str
) -> None:
    found = {mention[1] for mention in mentions(text)}
    assert kept in found and not any(kept in one for one in found - {kept})


def test_names_are_whole_across_lines_prepositions_hyphens_and_emphasis() -> None:
    assert "National Institute on Aging" in sure(
        "He was of the National Institute on Aging and then left it for good."
    )
    found = sure(
        "It stood beside the College of\nPhysicians, and he saw both Abt and\nSchubert, who were there."
    )
    assert "Schubert" in found and "Physicians" not in found
    assert "Jim Sheire" in sure(
        "_Jim Sheire is the director of the program and has been there for years._"
    )
    assert {"UVR", "Jack"} <= set(
        sure("They moved out of highly UVR-rich places. He said that O Jack was there.")
    )


def test_an_opening_word_phrases_in_lower_case_and_contractions_are_no_entities(
    tmp_path: Path,
) -> None:
    texts = (
        "Picnics were held by the tide gauge. They'll come to Skerrow.",
        "Picnics were held by the tide gauge of Skerrow.",
    )
    assert set(entities(tmp_path / "c", *texts)) == {"Skerrow"}


def test_a_name_that_is_seldom_certain_is_no_entity(tmp_path: Path) -> None:
    seldom = ["Quarrel came up again and again in the talk of the day."] * 4
    assert "Quarrel" in entities(tmp_path / "a", "They had a talk with Quarrel.", *seldom[:3])
    assert "Quarrel" not in entities(tmp_path / "b", "They had a talk with Quarrel.", *seldom)


def test_a_name_that_is_certain_in_three_texts_may_be_seldom_certain(tmp_path: Path) -> None:
    named, seldom = (
        "They had a talk with {} of the harbour.",
        "{} came up again and again in the talk of the day.",
    )
    texts = [*[named] * 3, *[seldom] * 50]
    assert "Quarrel" in entities(tmp_path / "a", *(one.format("Quarrel") for one in texts))
    assert "Quarrel" not in entities(
        tmp_path / "b", *(one.format("Quarrel") for one in [*texts, *[seldom] * 10])
    )
    assert "Sounds" not in entities(
        tmp_path / "c", *(one.format("Sounds") for one in ["We heard `Sounds` today.", *texts])
    )


@pytest.mark.parametrize("text, names", [
    ("It was the voice of Silver that they heard, and then Silver came in. Silver was a changed man.", {"Silver"}),
    ("We run Docker on this machine, and with Docker come labels. Call it by `docker` then.", {"Docker"}),
    ("It was the voice of Silver that they heard.", set()),
    ("They went to Silver and to the Silver of the hill, then back to Silver again.", set()),
    ("# On Silver\n\n# About Silver\n\n# To Silver\n", set()),
    ("They went to Silver 3 and then to Silver Brook and then to Silver and Gold in the end.", set()),
])  # fmt: skip
def test_an_ordinary_word_is_a_name_where_a_text_twice_uses_it_as_only_names_are(
    text: str, names: set[str]
) -> None:
    assert set(sure(text)) & {"Silver", "Docker"} == names


def test_an_ordinary_word_behind_a_title_is_a_name() -> None:
    assert sure("In the end Miss Smith was not better, by no means better.") == {"Smith": "person"}


def test_people_of_a_list_or_a_heading_are_certain_and_so_are_items_of_words_that_are_none() -> (
    None
):
    text = "### Present\n\n* Thomas Quillon\n- Emanuel Zorvath\n* Early Meeting\n- TLS Zorvath\n\n# Slides, Peter Quillon\n\n# Kell Zorvath Today\n"
    assert set(sure(text)) == {"Thomas Quillon", "Emanuel Zorvath", "Peter Quillon"}


def test_people_who_sign_or_speak_are_people_wherever_they_stand() -> None:
    text = "## Present\n\n* Zorvath Quillon @zquill (member)\n* Bert Olden <bert@a.example>\n\n| Kell Brigg | KB |\n"
    assert sure(text) == {"Zorvath Quillon": "person", "Bert Olden": "person"}


def test_nationalities_and_offices_are_no_part_of_a_name() -> None:
    text = "He lost to Russian Nikolay Davydenko and met Lib Dem MP Lembit Opik there."
    assert set(sure(text)) == {"Nikolay Davydenko", "Lembit Opik"}


def test_examples_in_blocks_of_code_are_no_entities_and_names_of_the_text_around_are() -> None:
    text = "The call `loadTide` comes first in the file of the day.\n\n```js\nvar tideTable = makeTide(kellSound)\n```\n"
    assert set(sure(text)) == {"loadTide"}


def test_a_term_in_backticks_is_certain_as_an_identifier_only() -> None:
    text = "We call `tide_gauge` and `all` and `goto fail` and `x+b` in the loop."
    assert set(sure(text)) == {"tide_gauge"}


def test_what_is_said_in_quotation_marks_is_no_title() -> None:
    text = "“Well, Lizzy,” said he, and they read “The Winds of Skerrow” to the end."
    assert set(sure(text)) == {"Lizzy", "The Winds of Skerrow"}


def test_chinese_names_are_certain_by_their_class_and_what_stands_beside_them() -> None:
    text = "他在上海的推特公司工作，这家互联网公司和基因公司都用软件。《战国无双》是游戏。王丽华和陈思远来自杭州。"
    assert set(sure(text)) == {"上海", "推特公司", "战国无双", "王丽华", "陈思远", "杭州"}


def test_an_untyped_word_of_katakana_or_hangul_is_no_entity_of_a_document() -> None:
    assert "コンピュータ" not in sure("彼はコンピュータを使って、中村レイナに手紙を書いた。")
    assert "中村レイナ" in sure("彼はコンピュータを使って、中村レイナに手紙を書いた。")


def test_a_given_name_is_the_one_person_of_its_text_with_that_name(tmp_path: Path) -> None:
    told = "Hannah Merrick came to Oslo in May. Later Hannah wrote home."
    assert entities(tmp_path / "a", told)["Hannah Merrick"] == ["Hannah"]
    other = "Hannah Quill came to Bergen in May. Later Hannah wrote home."
    apart = entities(tmp_path / "b", told, other)
    assert {"Hannah Merrick", "Hannah Quill", "Hannah"} <= set(apart)


def test_a_given_name_that_mostly_stands_alone_stays_apart(tmp_path: Path) -> None:
    told = "Hannah Merrick came to Oslo in May. Later Hannah wrote home."
    alone = [f"They had a long talk with Hannah about the harbour {at}." for at in range(4)]
    assert {"Hannah Merrick", "Hannah"} <= set(entities(tmp_path / "c", told, *alone))


def test_a_given_name_whose_bearer_many_texts_name_in_full_is_the_person(tmp_path: Path) -> None:
    told = [f"Hannah Merrick came to Oslo in May {at}. Later Hannah wrote home." for at in range(5)]
    alone = [f"They had a long talk with Hannah about the harbour {at}." for at in range(15)]
    assert entities(tmp_path / "c", *told, *alone)["Hannah Merrick"] == ["Hannah"]


def test_acronyms_of_several_things_are_that_of_one(tmp_path: Path) -> None:
    found = entities(
        tmp_path / "c",
        "The API of the harbour was kept by Oslo.",
        "Bergen and Oslo keep the two APIs of it.",
    )
    assert found["API"] == ["APIs"] and "APIs" not in found


def test_a_part_of_an_address_of_mail_is_no_name_and_a_handle_is_one() -> None:
    told = (
        "投稿请发邮件（ada.quill@harbour.org），作者是 @adaquill9，模型是 DALL·E 2，运行在树莓派上。"
        * 2
    )
    strong = {form for _, form, _, strong, *_ in mentions(told) if strong}
    assert strong == {"adaquill9", "DALL·E 2", "树莓派"}


def test_common_words_that_the_word_list_takes_for_places_and_people_are_none() -> None:
    told = "他们在池塘的入口看见了太阳。程序的安全性很重要，北京的英雄也很重要。" * 2
    assert {form for _, form, _, strong, *_ in mentions(told) if strong} == {"北京"}


def test_a_speaker_in_one_word_is_the_person_in_two(tmp_path: Path) -> None:
    talk = (
        "AnnaBerg: Hello there.\nTomReed: It rains.\nAnnaBerg: It does.\nTomReed: Then stay in.\n"
    )
    found = entities(tmp_path / "c", talk, "The boat was lent to Anna Berg by the harbour master.")
    assert "AnnaBerg" in found.get("Anna Berg", []) or "Anna Berg" in found.get("AnnaBerg", [])
    assert not {"AnnaBerg", "Anna Berg"} <= set(found)


def test_letters_of_a_person_that_are_a_word_or_another_name_are_no_alias() -> None:
    aliases = {
        form: alias
        for _, form, *_, alias in mentions(
            "The notes were kept by Jaswanth Sreeram (JS) and Mark Miller (MM)."
        )
    }
    assert aliases.get("MM") == "mark miller" and not aliases.get("JS")


def test_a_quotation_of_blanks_alone_is_left_out() -> None:
    assert sure("They wrote “  ” in the book of Skerrow.") == {"Skerrow": "other"}


@pytest.mark.parametrize("text, names", [
    ("* Notify Zorvath of the new link, which was sent to all of them.", {"Zorvath"}),
    ("She was praised for her part in Mark Quillon' Zorvath by all of them.", {"Mark Quillon"}),
    ("It was from the KCB I’m told that they have four of them.", {"KCB"}),
    ("The rules of the QuillSpec 1:1 are those that they have now.", {"QuillSpec"}),
    ("请求数据的键不存在于布隆过滤器中，这个开销也太大了。", set()),
])  # fmt: skip
def test_a_name_ends_where_the_next_thing_begins(text: str, names: set[str]) -> None:
    assert set(sure(text)) == names


def test_a_name_that_goes_on_in_the_next_line_has_a_title_of_one_line(tmp_path: Path) -> None:
    broken = "The old hall was given to the people of the town by Ada\nBrandt, who kept it in the years before."
    found = entities(
        tmp_path / "n",
        broken,
        f"{broken} So it was.",
        "They had a long talk with Ada Brandt about the harbour.",
    )
    assert found["Ada Brandt"] == []


def test_names_that_differ_in_case_are_one_entity_under_the_commonest_spelling(
    tmp_path: Path,
) -> None:
    texts = (
        "They have called `toString` here and `toString` there.",
        "It was `ToString` in the text before.",
    )
    assert entities(tmp_path / "case", *texts) == {"toString": ["ToString"]}


def test_offices_and_titles_are_no_entities() -> None:
    text = (
        "They asked the Deputy Prime Minister and a Tory MP in Oslo. For years the Crown Prince had known a Clerk of theirs. "
        "Then Sir Knight came to Bergen, and Ingrid Moe was there too."
    )
    assert set(sure(text)) == {"Oslo", "Bergen", "Ingrid Moe"}


def test_an_office_that_is_spelled_out_keeps_its_first_word() -> None:
    assert "Office of the Deputy Prime Minister" in sure(
        "He went to the Office of the Deputy Prime Minister (ODPM) in the spring of that year."
    )


def test_what_stands_on_every_page_of_a_site_is_no_name() -> None:
    text = (
        "Ida Holm wrote to the Board of Varde. Ida Holm was paid.\nReply\nCancel Reply Privacy Policy.\n"
        "See our Privacy Policy or the Cookie Policy. The Board of Varde agreed.\n"
    )
    found = {mention[0] for mention in mentions(text * 3)}
    assert "ida holm" in found and not found & {
        "reply",
        "cancel reply",
        "privacy policy",
        "cookie policy",
    }


def test_indented_blocks_roles_and_variables_are_no_entities() -> None:
    text = "The call `loadTide` comes first in the file of the day::\n\n    tideTable = makeTide(kellSound)\n\nThen it ends.\n"
    assert set(sure(text)) == {"loadTide"}
    roles = "It was sent by :github_user:`quill_zorvath` and is told in :ref:`conf-tide-table` of the same page."
    assert set(sure(roles)) == {"quill_zorvath"}
    assigned = "We set tide_table = 5 in it and then the call of show(tide_level) was made with kell_sound as before."
    assert set(sure(assigned)) == {"kell_sound"}
    link = 'They say it in [the note](https://a.example/b "The Quillon Theorem of Zorvath") and in the hall of Skerrow.'
    assert set(sure(link)) == {"Skerrow"}


def test_initials_of_a_speaker_join_nobody_and_glossed_ones_only_a_person_who_alone_has_them(
    tmp_path: Path,
) -> None:
    chat = "AI: Hello. I am here to help Anna Ivanova.\nHuman: What does AI cost?\nAI: Anna Ivanova pays for AI.\n"
    thing = "AI changes Vienna. The Harbour Trust of Port Gale uses AI for dredging."
    found = entities(tmp_path / "chat", chat, *(f"{thing} Year {at}." for at in range(8)))
    assert "AI" in found and found["Anna Ivanova"] == []
    hannah = "Hannah Merrick (HM) wrote to Oslo. HM was paid."
    assert entities(tmp_path / "one", hannah)["Hannah Merrick"] == ["HM"]
    henri = hannah.replace("Hannah Merrick", "Henri Morel")
    things = [
        f"HM changes Oslo. The Harbour Trust of Port Gale uses HM. Year {at}." for at in range(8)
    ]
    for name, others in (("two", [henri]), ("thing", things)):
        assert entities(tmp_path / name, hannah, *others)["Hannah Merrick"] == []


def test_chinese_words_behind_a_particle_or_a_number_are_no_places() -> None:
    assert sure("他们在水泥中掺入导电的炭黑，做成两层。它有四个广角镜头。") == {}
    assert set(sure("他去过西班牙的巴塞罗那。")) >= {"西班牙", "巴塞罗那"}


def test_an_era_behind_a_number_is_no_name() -> None:
    assert "B.C." not in sure("The wall was built in about 400 B.C. by the people of Skerrow.")
