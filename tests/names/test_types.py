"""Types of names: only on evidence of their own words or of the words beside them."""

from __future__ import annotations

import pytest

from graphrag_mcp.names.extract import mentions


def types(text: str) -> dict[str, str]:
    """Form -> type of the names of a document."""
    return {form: kind for _, form, kind, *_ in mentions(text)}


def test_whom_an_office_is_of_is_no_person_and_a_title_stands_before_its_bearer() -> None:
    text = "She met the President of Zephyr University, the Chancellor of Quandria and President Orla Quist in the hall."
    found = types(text)
    assert (found["Zephyr University"], found["Quandria"], found["Orla Quist"]) == ("organization", "other", "person")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Patti Smith Group", "organization"),
        ("Charlotte Marathon Trust", "organization"),
        ("Robbie Quill's Angels", "other"),
        ("Shaun of the Dead", "other"),
        ("Jazz Singer", "other"),
        ("Internet Explorer", "other"),
        ("Golden Lion", "other"),
        ("Silver Melody Award for Best New Artist", "other"),
        ("Zephyr Music", "other"),
        ("Urdu Language", "concept"),
        ("Emperor Entertainment Group", "organization"),
        ("Turin Opera", "organization"),
    ],
)
def test_a_works_a_groups_or_a_prizes_name_is_no_person_because_of_one_of_its_words(name: str, kind: str) -> None:
    assert types(f"In that year they had heard much about the {name} and then went home.").get(name, "other") == kind


def test_an_apposition_ends_where_another_clause_begins_and_a_predicate_at_its_noun() -> None:
    text = (
        "Directed by a veteran like Subho Ghal, the film is set in the Raj of old. Then Zuaron was a surprise choice to direct the film. "
        "Jagdo Malik was an Indian fashion and film photographer of note. Zeitberg is an American independent film distributor. "
        "Mira Nath, a film critic, went home. Moonfall is a film directed by a friend."
    )
    found = types(text)
    assert found["Subho Ghal"] == found["Zuaron"] == found["Zeitberg"] == "other"
    assert (found["Jagdo Malik"], found["Moonfall"]) == ("person", "content")


def test_who_speaks_is_not_the_firm_that_stands_between() -> None:
    found = types("Mattis Herren from Zephyvision told us that it works. Later Ostrik told us more about it.")
    assert (found["Zephyvision"], found["Ostrik"]) == ("other", "person")


def test_what_a_person_is_stands_outside_of_the_name() -> None:
    found = types("There they met Geologist Kate Lorimer, Croatian Ivan Ljubo and Widower Larry Quist at the gate.")
    assert {"Kate Lorimer", "Ivan Ljubo", "Larry Quist"} <= set(found)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('He made the film "Harbour Dawn" with friends in a week.', "content"),
        ('They liked "Harbour Dawn" (1987) more than all the others.', "content"),
        ("They liked Atwood's \"Harbour Dawn\" more than all the others.", "content"),
        ('The spy calls himself "Harbour Dawn" where others hear of it.', "other"),
        ('From: "John S. Walker" <jsw at example.com> for those who ask.', "person"),
        ('They call him "Jackie Quist" where others hear of it.', "other"),
    ],
)
def test_a_quoted_name_is_a_work_only_where_its_sentence_says_so(text: str, kind: str) -> None:
    assert [found for form, found in types(text).items() if form[0] in "HJ" and " " in form] == [kind]


def test_a_quoted_name_ends_before_its_comma_and_who_is_spoken_to_is_named_without_the_other_words() -> None:
    found = types('He sang of his album "A Harbour Without Dawn." Then she said: "Yes, Conrad Quist." They went home.')
    assert found["A Harbour Without Dawn"] == "content" and "Conrad Quist" in found


def test_common_chinese_words_are_no_people_or_places_and_a_title_joins_its_one_bearer() -> None:
    rows = mentions("仲裁庭认为西瓜和山区的庆典很好，他去过吉隆坡。会议由张伟主持。张经理表示，公司将在北京建厂，王老师和王建国都在场。")
    kinds = {form: kind for _, form, kind, strong, *_ in rows if strong}
    assert {kinds["吉隆坡"], kinds["北京"]} == {"location"} and not {"仲裁庭", "西瓜", "山区", "庆典"} & set(kinds)
    assert {row[6] for row in rows if row[1] == "张经理"} == {"张伟"}


@pytest.mark.parametrize("name", ["新城控股集团", "太平人寿保险公司", "云海科技公司", "金字塔出版社"])
def test_a_common_word_begins_the_name_of_a_chinese_firm(name: str) -> None:
    assert types(f"昨天{name}在北京宣布了一个新的计划，{name}的员工很高兴。")[name] == "organization"


def test_a_teacher_is_not_the_foreigner_whose_name_begins_with_the_same_sign() -> None:
    rows = mentions("马克·扎克伯格创立了脸书公司。上海的马老师教数学，马老师住在浦东。")
    assert not [row for row in rows if row[6]]
