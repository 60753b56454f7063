"""The public conformance suite and the Inspector, run as anybody would: about a minute, half of it npm's.

`CONFORMANCE_NODE` may name a folder to keep the packages in; without it they go into a temporary one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conformance import run
from tests.support.command import ROOT


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = run.installed(Path(os.environ.get("CONFORMANCE_NODE") or tmp_path_factory.mktemp("node")))
    if folder is None:
        pytest.skip("npm is missing or cannot be reached, and the conformance suite comes from there")
    return folder


@pytest.mark.slow
def test_with_fixtures_every_required_scenario_passes(packages: Path, tmp_path: Path) -> None:
    with run.serving(tmp_path / "home", "--fixtures") as url:
        found = [run.conformance(packages, url, revision) for revision in run.REVISIONS]
    assert [one.text[-3000:] for one in found if not one.good] == []
    assert [one.wanted - one.passed() for one in found] == [set(), set()]


@pytest.mark.slow
def test_the_product_fails_what_needs_fixtures_and_nothing_else(packages: Path, tmp_path: Path) -> None:
    found, wrong = run.product(packages, tmp_path / "home")
    assert [one.text[-3000:] for one in found if not one.good] == [] and wrong == []
    told = (ROOT / "docs" / "dev" / "how-it-works.md").read_text("utf-8")
    for revision, one in zip(run.REVISIONS, found, strict=True):
        assert f"| {revision} | {len(one.wanted)} | {len(one.passed() - one.vacuous)} | {len(one.vacuous)} |" in told


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--chatgpt",)], ids=["usual", "with search and fetch"])
def test_the_inspector_finds_nothing_in_the_tools(packages: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    good, text = run.inspector(packages, tmp_path / "home", options, "--method", "tools/list", "--strict")
    assert good, text[-3000:]
    assert '"local_search"' in text and ('"fetch"' in text) == bool(options)


def test_the_baseline_names_nothing_that_needs_no_fixture() -> None:
    named = run.entries(run.HERE / "baseline.yml")
    ours = {"tools-list", "tools-call-simple-text", "tools-call-error", "resources-list", "resources-subscribe",
            "resources-unsubscribe", "prompts-list", "completion-complete", "caching", "dns-rebinding-protection",
            "sep-2164-resource-not-found", "server-initialize", "ping", "server-sse-multiple-streams"}  # fmt: skip
    assert len(named) == len(set(named)) and not ours & set(named)
    assert [name for name in named if name == "server-stateless"] == []
