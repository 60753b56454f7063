"""What a person sees: hits with marked words and links on a terminal, `status` with what changed on disk, completion
in a real shell, and `index --watch`. A pipe gets none of the colours."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_mcp.cli import read as terminal
from graphrag_mcp.jobs.watch import heeded
from graphrag_mcp.text import terms
from tests.support.command import SAMPLE, clean_environment, run_cli, run_here
from tests.support.files import write

QUESTION = "Who opened the canister with the sounding roll?"
no_pty = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


def on_a_terminal(*words: str, home: Path, cwd: Path, **variables: str) -> str:
    """What the command writes to a terminal of 80 columns."""
    import pty

    ours, end = pty.openpty()
    env = clean_environment(**{"NO_COLOR": "", "CI": "", "TERM": "xterm-256color", **variables})
    command = [sys.executable, "-m", "graphrag_mcp", *words, "--home", str(home)]
    child = subprocess.Popen(command, env=env, cwd=cwd, stdout=end, stderr=subprocess.DEVNULL)
    os.close(end)
    said = b""
    try:
        while part := os.read(ours, 65_536):
            said += part
    except OSError:  # the child has closed its end
        pass
    os.close(ours)
    assert child.wait(timeout=60) == 0, said
    return said.decode()


@no_pty
def test_a_search_on_a_terminal_shows_five_hits_with_marked_words_and_links(sample_home: Path) -> None:
    said = on_a_terminal("search", QUESTION, home=sample_home, cwd=SAMPLE.parent)
    assert len(re.findall(r"\[t\d+(?:\.\d+)?\]", said)) == 5
    link = (SAMPLE / "wreck-dive-report.md").as_uri()
    assert f"{link}\x1b\\" in said
    line = int(re.search(r"sample/wreck-dive-report\.md:(\d+)", said)[1])
    assert "canister was opened on 9 September" in (SAMPLE / "wreck-dive-report.md").read_text("utf-8").splitlines()[line - 1]
    assert "\x1b[1;31mcanister\x1b[0m" in said and "\x1b[1;31mopened\x1b[0m" in said


@no_pty
@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"CI": "true"}, {"TERM": "dumb"}])
def test_no_colour_is_sent_where_it_is_not_wanted(variables: dict[str, str], sample_home: Path) -> None:
    said = on_a_terminal("search", QUESTION, home=sample_home, cwd=SAMPLE.parent, **variables)
    assert "\x1b" not in said and "[t" in said


def test_a_pipe_gets_the_text_that_an_agent_gets(sample_home: Path) -> None:
    done = run_cli("search", QUESTION, "--home", sample_home)
    assert "\x1b" not in done.stdout and "[t23" in done.stdout
    loaded = "import sys, graphrag_mcp.cli.main; print('rich' in sys.modules, 'shtab' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True).stdout == "False False\n"


def test_an_excerpt_begins_with_the_sentence_that_fits_and_says_its_line() -> None:
    text = "# Head\n\nNothing here.\n\nThe bell was found. It is old.\n"
    said, line = terminal.excerpt(text, set(terms.query_terms("Where was the bell found?")))
    assert (said, line) == ("The bell was found. It is old.", 4)
    shown = terminal.marked("Bells ring. 回流只在大潮期间出现。", set(terms.query_terms("bell 回流")))
    assert [shown.plain[one.start : one.end] for one in shown.spans][0] == "Bells"
    assert any("回流".startswith(shown.plain[one.start : one.end]) for one in shown.spans[1:])


def test_status_names_the_files_that_hold_nothing_of_their_own(tmp_path: Path) -> None:
    more = "# Bells\n\nThe chapel bell was cast in 1904 and cracked in the great frost.\n"
    texts = {"a.md": more, "old/a.md": more, "b.md": "# Wells\n\nWater is drawn from three wells.\n"}
    write(tmp_path / "notes", texts)
    home = tmp_path / "home"
    assert run_here("index", tmp_path / "notes", "--home", home).returncode == 0
    told = run_here("status", "--home", home).stdout
    assert "Copies: the whole text of 1 file stands in other files as well: old/a.md." in told and ".graphragignore" in told
    (tmp_path / "notes" / ".graphragignore").write_text("old/a.md\n", "utf-8")
    assert run_here("index", tmp_path / "notes", "--home", home).returncode == 0
    told = run_here("status", "--home", home).stdout
    assert "Copies" not in told and "Rows" not in told
    rows = "\n".join(f"{number},bell" for number in range(8))
    (tmp_path / "notes" / "dump.csv").write_text(f"id,value\n{rows}\n", "utf-8")
    assert run_here("index", tmp_path / "notes", "--home", home).returncode == 0
    assert "Rows: 8 of 10 documents are rows of dump.csv." in run_here("status", "--home", home).stdout


def test_status_names_the_files_that_look_generated(tmp_path: Path) -> None:
    listing = "".join(f"## `method_{number}(a, b)`\n\nReturns the value {number}.\n\n" for number in range(40))
    diary = "".join(f"On day {number} {word} came to the mill.\n\n" for number, word in enumerate("Ida Otto Mara".split() * 20))
    prose = "".join(f"The {a} {b} of the mill was mended.\n\n" for a in "old new left right upper lower".split() for b in "wheel gate roof door wall floor stone beam axle".split())
    stub = "".join(f"def method_{number}(a, b):\n    return {number}\n\n" for number in range(40))
    write(tmp_path / "notes", {"api.md": listing, "mill.md": prose, "short.md": diary[:900], "stub.py": stub})
    home = tmp_path / "home"
    assert run_here("index", tmp_path / "notes", "--home", home).returncode == 0
    told = run_here("status", "--home", home).stdout
    assert "Alike: nearly all lines of 1 file are alike but for numbers: api.md." in told and ".graphragignore" in told
    (tmp_path / "notes" / ".graphragignore").write_text("api.md\n", "utf-8")
    assert run_here("index", tmp_path / "notes", "--home", home).returncode == 0
    assert "Alike" not in run_here("status", "--home", home).stdout


def test_status_says_what_has_changed_on_disk(tmp_path: Path) -> None:
    folder, home = tmp_path / "notes", tmp_path / "home"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(f"The {name} bell was found in Port Kell.", "utf-8")
    run_here("index", folder, "--home", home)
    assert "On disk: nothing has changed since." in run_here("status", "--home", home).stdout
    (folder / "d.md").write_text("new", "utf-8")
    (folder / "a.md").write_text("changed", "utf-8")
    (folder / "b.md").unlink()
    disk = {"new": ["notes/d.md"], "changed": ["notes/a.md"], "deleted": ["notes/b.md"], "unread": [], "scans": [], "pictures": [], "pictures_left_out": []}
    assert json.loads(run_here("status", "--json", "--home", home).stdout)["disk"] == disk
    assert "On disk: 1 file new, 1 file changed, 1 file deleted since: notes/d.md" in run_here("status", "--home", home).stdout
    shutil.rmtree(folder)
    disk = {"new": [], "changed": [], "deleted": ["notes/a.md", "notes/b.md", "notes/c.md"], "unread": [], "scans": [], "pictures": [], "pictures_left_out": []}
    assert json.loads(run_here("status", "--json", "--home", home).stdout)["disk"] == disk


@no_pty
def test_status_on_a_terminal_is_a_table(sample_home: Path) -> None:
    said = on_a_terminal("status", home=sample_home, cwd=SAMPLE.parent)
    plain = re.sub(r"\x1b\[[\d;]*m", "", said)
    assert re.search(r"^ holds +26 documents", plain, re.MULTILINE)
    assert re.search(r"^ on disk +nothing has changed since\.", plain, re.MULTILINE)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_a_completion_script_names_every_command_and_the_options(shell: str) -> None:
    said = run_here("completion", shell).stdout
    assert all(name in said for name in ("search", "--max-tokens", "install", "rollback"))


@pytest.mark.skipif(not shutil.which("bash") or sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize(("typed", "offered"), [("se", {"serve", "search"}), ("search --br", {"--breadth"})])
def test_bash_completes_commands_and_options(typed: str, offered: set[str], tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(run_here("completion", "bash").stdout, "utf-8")
    words = ["graphrag-mcp", *typed.split()]
    asked = f'. "{script}"; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; '
    asked += 'function=$(complete -p graphrag-mcp | sed "s/.*-F //; s/ .*//"); $function; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "--norc", "-c", asked], capture_output=True, text=True, timeout=60)
    assert set(done.stdout.split()) == offered, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="ends the process by a signal")
@pytest.mark.parametrize("kind", ["folder", "file"])
def test_watch_goes_on_with_what_is_made_anew_under_the_name(tmp_path: Path, kind: str) -> None:
    folder, home = tmp_path / "notes", tmp_path / "home"
    folder.mkdir()
    watched = folder if kind == "folder" else folder / "a.md"
    texts = iter(f"The bell of Port Kell rang {number} times." for number in range(9))

    def write(name: str = "a.md") -> None:
        folder.mkdir(exist_ok=True)
        (folder / f".{name}").write_text(next(texts), "utf-8")
        os.replace(folder / f".{name}", folder / name)  # as editors do: another file under the name

    def gone() -> None:
        shutil.rmtree(folder)

    def moved() -> None:
        os.rename(folder, tmp_path / f"old{len(said)}")

    def swapped() -> None:
        moved()
        write()

    write()
    command = [sys.executable, "-m", "graphrag_mcp", "index", str(watched), "--watch", "--home", str(home)]
    child = subprocess.Popen(
        command, env=clean_environment(PYTHONUNBUFFERED="1"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    changes = iter([(write, "changed"), (gone, "is gone"), (write, "changed"), (write, "changed"), (moved, "is gone"),
                    (write, "changed"), (swapped, "changed"), (write, "changed")])  # fmt: skip
    said, wanted = [], "watching for changes"
    try:
        for line in child.stdout or ():
            said.append(line)
            if wanted in line:
                change, wanted = next(changes, (None, "\0"))
                if change is None:
                    child.send_signal(signal.SIGINT)
                else:
                    change()
        assert child.wait(timeout=60) == 130, said
    finally:
        child.kill()
    assert next(changes, None) is None, said


def test_watch_heeds_what_is_below_the_folder_that_was_named(tmp_path: Path) -> None:
    """A folder in `node_modules`, or beside a home whose name begins its own, was watched and never seen to change."""
    place, home = tmp_path / "node_modules" / "ind-notes", tmp_path / "node_modules" / "ind"
    heeds = heeded([str(place)], home)
    for name in ("a.md", "deep/er/a.md", "venv.md", "ind"):
        assert heeds(None, str(place / name)), name
    assert heeds(None, str(place))
    for name in (".git/index", "node_modules/a.md", "deep/.venv/a.md", "a.md~", ".a.md.swp"):
        assert not heeds(None, str(place / name)), name
    heeds = heeded([str(tmp_path / "node_modules")], home)
    assert not heeds(None, str(home)) and not heeds(None, str(home / "corpora" / "a.lance"))
    assert heeds(None, str(tmp_path / "node_modules" / "index.md"))


@pytest.mark.skipif(sys.platform == "win32", reason="ends the process by a signal")
def test_watch_indexes_again_after_a_change_until_it_is_interrupted(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("The bell was found in Port Kell.", "utf-8")
    command = [sys.executable, "-m", "graphrag_mcp", "index", str(folder), "--watch", "--home", str(folder / "home")]
    # A shell starts background processes with SIGINT ignored, and the child would inherit that.
    child = subprocess.Popen(
        command, env=clean_environment(PYTHONUNBUFFERED="1"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    said = []
    try:
        for line in child.stdout or ():
            said.append(line)
            if "watching for changes" in line:
                (folder / "b.md").write_text("Ada Brandt rang it.", "utf-8")
            elif "1 added, 1 unchanged" in line:
                child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 130, said
    finally:
        child.kill()
    assert any("1 added, 1 unchanged" in line for line in said), said
    refused = run_cli("index", folder, "--watch", "--dry-run", "--home", tmp_path / "home")
    assert refused.returncode == 2 and "exclude each other" in refused.stderr
