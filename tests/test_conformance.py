"""The public conformance suite and the Inspector, run as anybody would: about a minute, half of it npm's.

`CONFORMANCE_NODE` may name a folder to keep the packages in; without it they go into a temporary one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conformance import fixtures, run


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = run.installed(Path(os.environ.get("CONFORMANCE_NODE") or tmp_path_factory.mktemp("node")))
    if folder is None:
        pytest.skip("npm is missing or cannot be reached, and the conformance suite comes from there")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--fixtures",), ()], ids=["with fixtures", "product"])
def test_both_requirement_sets_are_met(packages: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    baseline = None if options else run.HERE / "baseline.yml"
    with run.serving(tmp_path / "home", *options) as url:
        found = {revision: run.conformance(packages, url, revision, baseline) for revision in run.REVISIONS}
    assert {revision: text[-3000:] for revision, (good, text) in found.items() if not good} == {}


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--chatgpt",)], ids=["usual", "with search and fetch"])
def test_the_inspector_finds_nothing_in_the_tools(packages: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    good, text = run.inspector(packages, tmp_path / "home", options, "--method", "tools/list", "--strict")
    assert good, text[-3000:]
    assert '"local_search"' in text and ('"fetch"' in text) == bool(options)


def test_the_baseline_names_nothing_that_needs_no_fixture() -> None:
    lines = (run.HERE / "baseline.yml").read_text("utf-8").splitlines()
    named = [line.strip().removeprefix("- ") for line in lines if line.strip().startswith("- ")]
    ours = {"tools-list", "tools-call-simple-text", "tools-call-error", "resources-list", "resources-subscribe",
            "resources-unsubscribe", "prompts-list", "completion-complete", "caching", "dns-rebinding-protection",
            "sep-2164-resource-not-found", "server-initialize", "ping", "server-sse-multiple-streams"}  # fmt: skip
    assert len(named) == len(set(named)) and not ours & set(named)
    assert [name for name in named if name == "server-stateless"] == []


def test_the_fixtures_images_and_sounds_are_real() -> None:
    assert fixtures.png()[:4] == b"\x89PNG" and fixtures.wav()[:4] == b"RIFF" and fixtures.wav()[8:12] == b"WAVE"
    assert len({tool.name for tool in fixtures.tools()}) == len(fixtures.tools()) > 20
