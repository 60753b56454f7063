"""Short forms of the campaigns in campaigns/: many agents, random edits, kills. Each of them can be run for hours."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from campaigns import edit_scripts, kills, many_agents, model_campaign, summary_agents
from tests.support.command import clean_environment


def test_agents_on_several_servers_lose_nothing_when_the_one_that_leads_is_killed(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "notes"
    root.mkdir()
    (home / "corpora").mkdir(parents=True)
    options = argparse.Namespace(servers=3, calls=6, readers=1, kills=1)
    said = many_agents.report(home, root, options)
    assert options.wrong == [], said
    assert "18 calls acknowledged" in said and "1 servers lost" in said


@pytest.mark.parametrize("seed", [1000])
def test_random_edits_moves_and_deletions_end_where_a_fresh_index_does(tmp_path: Path, seed: int) -> None:
    assert edit_scripts.script(tmp_path, seed) == []


def test_small_edits_in_a_row_change_little_more_than_they_touch(tmp_path: Path) -> None:
    assert edit_scripts.row_of_edits(tmp_path, documents=40, edits=5, seed=3) == []


@pytest.mark.skipif(sys.platform == "win32", reason="copies of a process")
def test_kills_at_random_moments_cost_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LANCEDB_LOG", "PYTHONWARNINGS"):
        monkeypatch.setenv(name, clean_environment().get(name, ""))
    kills.quiet()
    kinds = ["index", "sync", "jobs"]  # small commits are killed in test_generations
    kills.CONTEXT.set_forkserver_preload(["campaigns.kills"])
    wrong, done = kills.campaign(tmp_path, 3, kinds, seed=8)
    assert wrong == [] and set(done) == set(kinds)


def test_killed_processes_lose_no_answer_and_end_where_an_undisturbed_one_does(tmp_path: Path) -> None:
    found = model_campaign.killed(tmp_path, kills=2, documents=8, seed=3)
    assert sum(one.kills for one in found) >= 2
    for made in found:
        assert made.good and made.calls, made


def test_half_of_all_calls_going_wrong_is_listed_and_made_good_by_the_next_run(tmp_path: Path) -> None:
    kinds = ["refusal", "half characters", "429 with Retry-After", "reset"]
    for made in model_campaign.misbehaving(tmp_path, kinds, 4):
        assert made.good and made.degraded, made


@pytest.mark.slow
def test_agents_whose_servers_are_killed_summarise_every_document_once(tmp_path: Path) -> None:
    figures, wrong = summary_agents.run(tmp_path, agents=3, documents=24, kills=3, seed=2)
    assert wrong == [] and "| documents whose summary was accepted or handed in unread | 24 |" in figures
