"""What a sentence is worth as a quotation."""

from __future__ import annotations

import pytest

from graphrag_mcp.text.prose import eventful, stands_alone, substance


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("I lost my job as a banker yesterday, so I started my own firm.", "Dancing has always been a source of joy and peace."),
        ("Evan: My son hurt his ankle at the match last Saturday.", "Sam: It is hard to see someone you love in pain."),
        ("We just moved to Lisbon with our two dogs.", "You should move to Lisbon with your two dogs."),
        ("我上周去了北京出差，见到了老同学。", "工作和生活的平衡对每个人都非常重要。"),
        ("Ich habe gestern mein altes Auto verkauft.", "Ein Auto kostet im Jahr mehr, als man denkt."),
    ],
)
def test_what_somebody_did_says_more_than_an_opinion_or_an_address(more: str, less: str) -> None:
    assert eventful(more) > 1.5 * eventful(less)


def test_a_statement_of_the_third_person_is_neither_raised_nor_lowered() -> None:
    assert eventful("The commission approved the plan in May 1942.") == 1.0


@pytest.mark.parametrize(
    "leans",
    [
        "As such, the new driver has no policy of its own.",
        "In 1970, he moved the whole workshop to Lisbon.",
        "The above policy is in force until the end of May.",
        "One of the residents of the shelter wrote it.",
        "The plan was agreed (see the minutes of May.",
        "What should an operator watch? Nothing at all.",
        "综上，建议使用主从架构来提高系统的可用性。",
        "曾任三家银行的行长，后来在大学里教书。",
        "更新丢失的风险很大，队列也会很长；2.",
        '"It is a question of time," a banker said on Monday.',
    ],
)
def test_a_sentence_that_needs_another_one_does_not_stand_alone(leans: str) -> None:
    assert stands_alone(leans) < 0.65
    assert stands_alone("The new driver has a policy of its own.") == 1.0
    assert stands_alone("广茂铁路于2004年2月29日由两条铁路合并而成。") == 1.0


def test_a_first_person_without_a_name_is_nobodys() -> None:
    assert stands_alone("I sold the old car to a friend.") < stands_alone("Ana: I sold the old car to a friend.")


@pytest.mark.parametrize(
    "furniture",
    [
        "- [ ] Test plan is in place for the release.",
        "Subject: Bands on the line of a regression.",
        "// the intended audience of the token is the server",
        "The list of Ada Quill <ada at stat.example.edu> writes about it.",
        "Ada Quill -------------- next part of the mail",
        "关注「码头」公众号，回复数字，即可获取本项目的离线文档。",
    ],
)
def test_forms_heads_of_mails_and_calls_to_follow_have_little_substance(furniture: str) -> None:
    assert substance(furniture) <= 0.1
