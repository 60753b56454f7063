"""With CI=true a skipped test fails, unless its reason stands in skips.toml: what nothing runs, nothing checks."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Generator
from pathlib import Path

import pytest

REASONS = Path(__file__).with_suffix(".toml")


def allowed() -> set[str]:
    """The reasons for which a test may be skipped in CI on this system."""
    table: dict[str, list[str]] = tomllib.loads(REASONS.read_text("utf-8"))
    return {*table["anywhere"], *(() if sys.platform == "linux" else table["not_on_linux"])}


def forbidden(report: pytest.TestReport | pytest.CollectReport) -> str:
    """What is wrong with a skip; "" for a report that is none, and for a reason on the list."""
    if not os.environ.get("CI") or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return ""
    where = report.longrepr
    reason = (str(where[2]) if isinstance(where, tuple) else str(where)).removeprefix("Skipped: ")
    if reason in allowed():
        return ""
    return f"skipped in CI, and this reason is not on the list of tests/support/skips.toml: {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if wrong := forbidden(report):
        report.outcome, report.longrepr = "failed", wrong
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if wrong := forbidden(report):
        report.outcome, report.longrepr = "failed", wrong
    return report
