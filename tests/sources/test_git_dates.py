"""Dates of commits: from real repositories, whatever their configuration says, and never a wrong one."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import times
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import git
from graphrag_mcp.sources.walk import find
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, IndexResult

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="Git is not installed")
DAYS = ("2019-03-04", "2020-05-06", "2021-07-08")


class Checkout:
    """A repository with a fixed author and clock; `run` gives what Git prints."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.home = folder, folder.parent / "nobody"
        self.home.mkdir(exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        self.run("init", "-q", "-b", "main", *options)

    def run(self, *words: str, day: str = DAYS[0], clock: str = "23:30:00 -0800") -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        who = {f"GIT_{one}_{what}": "ada@example.org" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        when = {"GIT_AUTHOR_DATE": f"{day} {clock}", "GIT_COMMITTER_DATE": "2024-01-01 00:00:00 +0000"}
        quiet = {"HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false", *words],
            cwd=self.folder, env={**kept, **who, **when, **quiet}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def commit(self, day: str, **names: str) -> None:
        for name, text in names.items():
            self.write(name.replace("__", "/") + ".md", text)
        self.run("add", "-A")
        self.run("commit", "-q", "-m", "more", day=day)


def dated(folder: Path, *paths: Path) -> dict[str, str]:
    """The days of commits by the name of the file, of what a walk finds."""
    found = find([str(one) for one in paths or (folder,)], {}, Settings(home=folder.parent / "home"))
    inside = git.repositories(found.files)
    days = git.commits(pair for pairs in inside.values() for pair in pairs)
    return {os.path.relpath(path, folder).replace(os.sep, "/"): day for path, (_, day) in sorted(days.items())}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "notes")
    made.commit(DAYS[0], crane="The crane stands at the north pier.", docs__lock="The lock has two gates.")
    made.commit(DAYS[1], crane="The crane stands at the south pier.")
    made.commit(DAYS[2], docs__dike="The dike is seven metres high.")
    return made


EVERY = {"crane.md": DAYS[1], "docs/dike.md": DAYS[2], "docs/lock.md": DAYS[0]}


def test_the_day_of_the_last_commit_is_that_of_its_author(checkout: Checkout) -> None:
    assert dated(checkout.folder) == EVERY


def test_a_folder_inside_a_checkout_and_two_checkouts_in_a_folder_are_dated(checkout: Checkout) -> None:
    folder = checkout.folder
    assert dated(folder, folder / "docs") == {"docs/dike.md": DAYS[2], "docs/lock.md": DAYS[0]}
    assert dated(folder, folder / "crane.md") == {"crane.md": DAYS[1]}
    other = Checkout(folder.parent / "more")
    other.commit(DAYS[2], plan="The plan is new.")
    assert dated(folder.parent) == {f"notes/{name}": day for name, day in EVERY.items()} | {"more/plan.md": DAYS[2]}


def test_names_of_any_letters_are_dated(checkout: Checkout) -> None:
    names = ("ünïcode 二.md", 'quo"te.md', "tab\there.md", "docs/ünï/a b.md", ":(top)x.md", "*.md")
    for name in names:
        checkout.write(name, f"The file {name!r} is here.")
    checkout.commit(DAYS[2])
    found = dated(checkout.folder)
    assert all(found[name] == DAYS[2] for name in names)
    assert dated(checkout.folder, checkout.folder / "docs" / "ünï") == {"docs/ünï/a b.md": DAYS[2]}


def test_what_a_commit_does_not_hold_has_no_day(checkout: Checkout) -> None:
    """Of changed, new and ignored text no commit says when it was written."""
    checkout.write("crane.md", "The crane was sold.")
    checkout.write("new.md", "This is new.")
    checkout.write("docs/lock.md", "The lock has two gates.\r\n")
    home, notes = checkout.folder.parent / "home", checkout.folder
    index_documents(home / "c", IndexRequest(paths=(str(notes),)), Settings(home=home, git_dates=True))
    facts = times.documents(open_snapshot(home / "c")).values()
    assert {fact.uri: fact.date for fact in facts} == {
        "notes/crane.md": "", "notes/new.md": "", "notes/docs/lock.md": "", "notes/docs/dike.md": DAYS[2],
    }  # fmt: skip


def test_line_ends_of_the_checkout_are_no_change() -> None:
    text = b"The lock\nhas gates.\n"
    blob = git.hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()
    assert git.is_blob(blob, text) and git.is_blob(blob, text.replace(b"\n", b"\r\n"))
    assert not git.is_blob(blob, text + b"x") and not git.is_blob("", text)


def test_merges_renames_and_text_that_came_back_have_the_day_of_that_commit(checkout: Checkout) -> None:
    lines = [f"The pier number {n} is long." for n in range(9)]
    checkout.commit("2019-04-01", piers="\n".join(lines))
    checkout.run("checkout", "-q", "-b", "side")
    checkout.commit("2019-05-01", piers="\n".join([*lines[:-1], "The last pier is short."]))
    checkout.run("checkout", "-q", "main")
    checkout.commit("2019-06-01", piers="\n".join(["The first pier is wide.", *lines[1:]]))
    checkout.run("merge", "-q", "side", "-m", "both", day="2022-02-02")
    checkout.run("mv", "crane.md", "old.md")
    checkout.commit("2022-03-03", docs__lock="The lock has three gates.")
    checkout.commit("2022-04-04", docs__lock="The lock has two gates.")
    found = dated(checkout.folder)
    assert found["piers.md"] == "2022-02-02"  # its text is in none of the parents
    assert found["old.md"] == "2022-03-03" and found["docs/lock.md"] == "2022-04-04"


FOREIGN = (
    "log.showSignature=true", "core.quotePath=true", "color.ui=always", "diff.renames=copies", "log.date=relative",
    "format.pretty=oneline", "log.follow=true", "diff.noprefix=true", "log.showRoot=false", "core.abbrev=4", "diff.orderFile=nowhere",
    "log.diffMerges=off", "status.relativePaths=true", "i18n.logOutputEncoding=UTF-16",
)  # fmt: skip


def test_no_configuration_and_no_variable_changes_the_days(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in FOREIGN:
        checkout.run("config", *one.split("=", 1))
    other = Checkout(checkout.folder.parent / "other")
    home = checkout.folder.parent / "user"
    home.mkdir()
    (home / ".gitconfig").write_text("[log]\n\tshowSignature = true\n\tdate = unix\n[color]\n\tui = always\n[broken", "utf-8")
    monkeypatch.setenv("HOME", str(home))
    for name, value in {
        "GIT_DIR": str(other.folder / ".git"), "GIT_WORK_TREE": "/", "GIT_INDEX_FILE": "/nowhere", "GIT_PAGER": "false",
        "GIT_EXTERNAL_DIFF": "false", "GIT_TRACE": "1", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "log.date", "GIT_LITERAL_PATHSPECS": "0",
        "GIT_CONFIG_VALUE_0": "raw", "GIT_CEILING_DIRECTORIES": "/", "GIT_NAMESPACE": "x", "GIT_OBJECT_DIRECTORY": "/nowhere", "GIT_DEFAULT_HASH": "sha256",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert dated(checkout.folder) == EVERY


def test_no_command_of_a_repository_runs(checkout: Checkout, tmp_path: Path) -> None:
    trap, ran = tmp_path / "trap", tmp_path / "ran"
    trap.write_text(f"#!/bin/sh\necho $0 >> {ran}\n", "utf-8")
    trap.chmod(0o755)
    (checkout.folder / ".gitattributes").write_text("*.md filter=trap diff=trap\n", "utf-8")
    for name in ("core.fsmonitor", "core.pager", "pager.log", "pager.ls-tree", "core.sshCommand", "core.gitProxy", "diff.external", "diff.trap.command",
                 "diff.trap.textconv", "filter.trap.clean", "filter.trap.smudge", "gpg.program", "core.hooksPath", "credential.helper", "core.editor",
                 "core.alternateRefsCommand", "uploadpack.packObjectsHook", "alias.log", "alias.ls-tree"):  # fmt: skip
        checkout.run("config", name, f"!{trap}" if name.startswith("alias") else str(trap))
    for name in ("post-index-change", "post-checkout", "fsmonitor-watchman", "query-watchman"):
        shutil.copy(trap, checkout.folder / ".git" / "hooks" / name)
    checkout.run("config", "safe.directory", "/nowhere")
    checkout.run("config", "include.path", "/dev/zero")
    assert dated(checkout.folder) == EVERY
    assert not ran.exists()


def test_nothing_is_fetched_for_a_clone_without_its_objects(checkout: Checkout, tmp_path: Path) -> None:
    checkout.run("config", "uploadpack.allowFilter", "true")
    whole = Checkout(tmp_path / "whole")
    whole.run("clone", "-q", "--filter=blob:none", f"file://{checkout.folder}", "blobless")
    assert dated(whole.folder / "blobless") == EVERY  # no blob is asked for
    whole.run("clone", "-q", "--filter=tree:0", f"file://{checkout.folder}", "treeless")
    treeless = whole.folder / "treeless"
    ran = tmp_path / "ran"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\necho > {ran}\nexit 1\n", "utf-8")
    trap.chmod(0o755)
    subprocess.run(["git", "-C", treeless, "config", "remote.origin.uploadpack", str(trap)], check=True)
    found = dated(treeless)
    assert found.items() <= EVERY.items() and not ran.exists()


def test_what_a_shallow_clone_begins_with_has_no_day(checkout: Checkout, tmp_path: Path) -> None:
    other = Checkout(tmp_path / "other")
    other.run("clone", "-q", "--depth", "2", f"file://{checkout.folder}", "shallow")
    assert dated(other.folder / "shallow") == {"docs/dike.md": DAYS[2]}
    other.run("clone", "-q", "--depth", "1", f"file://{checkout.folder}", "one")
    assert dated(other.folder / "one") == {}
    subprocess.run(["git", "-C", other.folder / "one", "fetch", "-q", "--unshallow"], check=True, env={**os.environ, "GIT_ALLOW_PROTOCOL": "file"})
    assert dated(other.folder / "one") == EVERY


def test_work_trees_submodules_and_packed_repositories_are_dated(checkout: Checkout, tmp_path: Path) -> None:
    checkout.run("worktree", "add", "-q", "-b", "second", str(tmp_path / "tree"), "HEAD~1")
    assert dated(tmp_path / "tree") == {"crane.md": DAYS[1], "docs/lock.md": DAYS[0]}
    outer = Checkout(tmp_path / "outer")
    outer.run("submodule", "add", "-q", str(checkout.folder), "inner")
    assert dated(outer.folder / "inner") == EVERY
    checkout.run("gc", "-q")
    checkout.run("pack-refs", "--all")
    assert not (checkout.folder / ".git" / "refs" / "heads" / "main").exists()
    assert dated(checkout.folder) == EVERY


def test_a_repository_of_sha256_objects_is_dated(tmp_path: Path) -> None:
    made = Checkout(tmp_path / "long", "--object-format=sha256")
    made.commit(DAYS[0], crane="The crane stands.")
    assert dated(made.folder) == {"crane.md": DAYS[0]}


def _emptied(checkout: Checkout) -> None:
    shutil.rmtree(checkout.folder / ".git" / "objects")


def _headless(checkout: Checkout) -> None:
    (checkout.folder / ".git" / "HEAD").write_text("ref: refs/heads/../../../../etc/passwd\n", "utf-8")


def _option(checkout: Checkout) -> None:
    (checkout.folder / ".git" / "HEAD").write_text("--output=/tmp/x\n", "utf-8")


def _linked(checkout: Checkout) -> None:
    (checkout.folder / ".git").rename(checkout.folder.parent / "away")
    (checkout.folder / ".git").symlink_to(checkout.folder.parent / "away")


def _nowhere(checkout: Checkout) -> None:
    shutil.rmtree(checkout.folder / ".git")
    (checkout.folder / ".git").write_bytes(b"gitdir: \0\n")


def _waiting(checkout: Checkout) -> None:
    (checkout.folder / ".git" / "HEAD").unlink()
    os.mkfifo(checkout.folder / ".git" / "HEAD")


def _unborn(checkout: Checkout) -> None:
    checkout.run("checkout", "-q", "--orphan", "empty")


def _no_clock(checkout: Checkout) -> None:
    checkout.run("commit", "-q", "--amend", "-m", "x", "--date", "1970-01-01T12:00:00+0000")


@pytest.mark.parametrize("spoil", [_emptied, _headless, _option, _linked, _nowhere, _waiting, _unborn, _no_clock])
def test_a_repository_that_cannot_be_read_dates_nothing_wrongly(checkout: Checkout, spoil) -> None:  # type: ignore[no-untyped-def]
    spoil(checkout)
    assert dated(checkout.folder).items() <= (EVERY.items() if spoil is _no_clock else set())
    assert DAYS[2] not in dated(checkout.folder).values()


def test_without_git_or_with_one_among_the_documents_nothing_is_dated(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert dated(checkout.folder) == {}
    own = checkout.write("git", "#!/bin/sh\ntouch ran\n")
    own.chmod(own.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(checkout.folder))
    assert dated(checkout.folder) == {}
    monkeypatch.chdir(checkout.folder)
    monkeypatch.setenv("PATH", ".")
    assert dated(checkout.folder) == {} and not list(checkout.folder.parent.rglob("ran"))


def test_a_history_that_takes_too_long_is_left(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 600\n", "utf-8")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(git, "SECONDS", 0.2)
    assert dated(checkout.folder) == {}


# ---- in an index -------------------------------------------------------------------------------------


def indexed(checkout: Checkout, name: str = "home", **more: object) -> tuple[dict[str, str], IndexResult]:
    home = checkout.folder.parent / name
    settings = Settings(home=home, **{"git_dates": True, **more})  # type: ignore[arg-type]
    result = index_documents(home / "c", IndexRequest(paths=(str(checkout.folder),)), settings)
    facts = times.documents(open_snapshot(home / "c")).values()
    return {fact.uri.partition("/")[2]: fact.date for fact in facts}, result


def test_an_index_holds_the_days_of_commits_and_says_so(checkout: Checkout) -> None:
    checkout.commit("2023-01-01", meeting="# Meeting\n\nDate: 2022-12-24\n\nYesterday the crane fell.", diary="Yesterday the dike broke at last.")
    assert indexed(checkout)[0] == EVERY | {"meeting.md": "2022-12-24", "diary.md": "2023-01-01"}
    snapshot = open_snapshot(checkout.folder.parent / "home" / "c")
    text = list_documents(snapshot).text
    assert "committed 2020-05-06" in text and "] 2022-12-24" in text
    assert list_documents(snapshot, filters=["committed>=2021"]).total == 3
    assert list_documents(snapshot, filters=["date<=2020"]).total == 2
    assert "dike broke" not in local_search(snapshot, "dike", filters=["as_of=2022"]).text
    # No word counts from the day of a commit: the text may be older.
    shown = local_search(snapshot, "yesterday crane dike", max_tokens=3000).text
    assert "Yesterday = 2022-12-23" in shown and "2022-12-31" not in shown


def test_what_is_committed_later_is_dated_by_the_next_run_and_equals_a_fresh_index(checkout: Checkout) -> None:
    checkout.write("new.md", "The ferry is new.")
    assert indexed(checkout)[0] == EVERY | {"new.md": ""}
    checkout.commit("2022-02-02")
    found, result = indexed(checkout)
    assert found == EVERY | {"new.md": "2022-02-02"}
    assert (result.counts["changed"], result.counts["unchanged"]) == (1, 3)
    again, result = indexed(checkout)
    assert again == found and (result.counts["changed"], result.counts["unchanged"]) == (0, 4)
    assert set(indexed(checkout, git_dates=False)[0].values()) == {""}
    assert indexed(checkout)[0] == found == indexed(checkout, "fresh")[0]
    held = [{id: fact.metadata for id, fact in times.documents(open_snapshot(checkout.folder.parent / name / "c")).items()} for name in ("home", "fresh")]
    assert held[0] == held[1]


def test_without_the_setting_git_is_not_started(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git.subprocess, "Popen", lambda *words, **more: pytest.fail("Git was started"))
    assert set(indexed(checkout, git_dates=False)[0].values()) == {""}


def test_rows_of_a_table_have_no_day_of_a_commit(checkout: Checkout) -> None:
    checkout.write("events.csv", "id,text\n1,The crane fell into the harbour.\n2,The dike broke in the night.\n")
    checkout.commit(DAYS[2])
    rows = {name: day for name, day in indexed(checkout)[0].items() if "events" in name}
    assert len(rows) == 2 and set(rows.values()) == {""}
