"""The documentation is run, its links lead somewhere, and nothing that a user can turn or call is missing from it.

The ```python blocks of a page run in one namespace, between the commands of its ```console blocks, each of which must be
`$ graphrag-mcp ...` and end with status 0; all in a temporary folder where `sample` is the sample corpus. An ```output
block holds lines that the block before it prints, in this order; a line `…` stands for any others, and a `…` in a line
for any part of it. ```sh and ```text are for reading.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import anyio
import pytest
from mcp import Client

from graphrag_mcp.app import App
from graphrag_mcp.llm import prompts
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings, load
from graphrag_mcp.tools import all_tools
from tests.support.command import ROOT, SAMPLE, clean_environment, run_cli

DOCS = ROOT / "docs"
SITE = "https://github.com/graphrag-mcp/graphrag-mcp/"
NAMED = ("README.md", "AGENTS.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "prompts/README.md")
PAGES = [ROOT / name for name in NAMED]
PAGES += sorted(page for page in DOCS.rglob("*.md") if SAMPLE not in page.parents)
HOW_TO = sorted((DOCS / "how-to").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = [page for page in PAGES[1:] if re.search(r"^```(python|console)$", page.read_text("utf-8"), re.MULTILINE)]
PRELUDE = """
import io, os, re, sys
import graphrag_mcp.cli.main
_said = sys.stdout

def _begin():
    sys.stdout = io.StringIO()

def _compare(page, wanted):
    lines, at = [line.rstrip() for line in sys.stdout.getvalue().splitlines() if line.strip()], 0
    for line in (one.rstrip() for one in wanted.splitlines() if one.strip() not in ("", "…")):
        known = re.compile(".*".join(map(re.escape, line.split("…"))))
        found = [n for n in range(at, len(lines)) if known.fullmatch(lines[n])]
        assert found, f"{page}: {line!r} was not printed, but: {lines[at:]}"
        at = found[0] + 1
    sys.stdout = _said
"""


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(page.read_text("utf-8")) if kind == language]


@pytest.mark.parametrize("page", [page for page in RUN if page not in HOW_TO], ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    run([page], tmp_path)


def checkout(folder: Path) -> Path:
    """The files of this checkout in another folder, with the same packages: `make` takes it as set up."""
    copy = folder / "checkout"
    left_out = (".venv", ".git", ".ruff_cache", ".pytest_cache", ".hypothesis", "__pycache__", "build", "dist")
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*left_out))
    (copy / ".venv" / "bin").mkdir(parents=True)
    for name, module in {"python": "", "pip": "-m pip", "graphrag-mcp": "-m graphrag_mcp"}.items():
        script = copy / ".venv" / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module} "$@"\n', "utf-8")
        script.chmod(0o755)
    for stamp in (".product", ".installed"):  # make compares their times
        (copy / ".venv" / stamp).touch()
    return copy


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("make"), reason="needs make and a shell")
def test_the_commands_of_the_readme_run_in_their_order_and_print_what_it_shows(tmp_path: Path) -> None:
    """Each line is given to a shell, as a reader pastes it; uv, which would fetch
    packages, is left to the reader."""
    copy, user = checkout(tmp_path), tmp_path / "user"
    shutil.copytree(SAMPLE, user / "notes")
    env = clean_environment(
        HOME=str(user), XDG_DATA_HOME=str(user / "data"), XDG_CONFIG_HOME="", PYTHONPATH=str(copy),
        PATH=f"{copy / '.venv' / 'bin'}:{os.environ['PATH']}",
    )  # fmt: skip
    printed, ran = "", []
    for kind, body in BLOCK.findall((ROOT / "README.md").read_text("utf-8")):
        if kind in ("sh", "console"):
            for command in (line.removeprefix("$ ") for line in body.splitlines()):
                if command.startswith("uv "):
                    continue
                done = subprocess.run(
                    ["sh", "-c", command], cwd=copy, env=env, capture_output=True, encoding="utf-8", timeout=180
                )
                assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
                printed = done.stdout
                ran.append(command)
        elif kind == "output":
            assert_printed(printed, body)
    assert len(ran) >= 6
    assert (user / ".claude.json").is_file()


def assert_printed(printed: str, wanted: str) -> None:
    """The lines of `wanted` stand in `printed` in their order; a `…` stands for any part of a line."""
    lines = iter(line.rstrip() for line in printed.splitlines())
    for line in (one.rstrip() for one in wanted.splitlines() if one.strip() not in ("", "…")):
        known = re.compile(".*".join(map(re.escape, line.split("…"))))
        assert any(known.fullmatch(one) for one in lines), (line, printed)


def test_the_code_of_the_how_to_pages_runs_and_prints_what_they_show(tmp_path: Path) -> None:
    """In one process, because what takes time is to import things; each page has a folder and a home of its own."""
    run([page for page in HOW_TO if page in RUN], tmp_path)
    assert len(HOW_TO) > 5


def run(pages: Sequence[Path], folder: Path) -> None:
    program = [PRELUDE]
    for page in pages:
        place = folder / "run" / page.stem
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(SAMPLE, place / "sample")
        home = {"GRAPHRAG_MCP_HOME": str(place / "home"), "HOME": str(place), "USERPROFILE": str(place)}
        program.append(f"os.chdir({str(place)!r}); os.environ.update({home!r})")
        program.append(script(page))
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(program)], cwd=folder, env=clean_environment(PYTHONUTF8="1"),
        capture_output=True, encoding="utf-8", timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])


def script(page: Path) -> str:
    """The page as one program, block after block; a command is run by the function that the command line calls."""
    parts = []
    for kind, body in BLOCK.findall(page.read_text("utf-8")):
        if kind == "python":
            parts += ["_begin()", body]
        elif kind == "console":
            parts.append("_begin()")
            for line in body.splitlines():
                command = shlex.split(line)
                assert command[:2] == ["$", "graphrag-mcp"], f"{page.name}: {line!r} cannot be run; use ```sh"
                parts.append(f"assert graphrag_mcp.cli.main.main({command[2:]!r}) == 0, {line!r}")
        elif kind == "output":
            assert parts, f"{page.name}: an output without what prints it"
            parts.append(f"_compare({page.name!r}, {body!r})")
    return "\n".join(parts)


def test_the_demonstration_calls_every_tool_and_ends_with_what_to_paste() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "demo.py"], env=clean_environment(), capture_output=True, encoding="utf-8", timeout=180
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    tools = re.findall(r"^## (\w+)$", (DOCS / "tools.md").read_text("utf-8"), re.MULTILINE)
    assert [tool for tool in tools if f"\n{tool}(" not in done.stdout] == []
    assert all(host in done.stdout for host in ("Claude Desktop", "Claude Code", "Cursor", "VS Code", "make demo FOLDER="))
    assert json.dumps(sys.executable) in done.stdout
    assert "\x1b" not in done.stdout and len(done.stdout.splitlines()) < 210


def test_json_and_toml_blocks_parse() -> None:
    for page in PAGES:
        for body in blocks(page, "json"):
            json.loads(body)
        for body in blocks(page, "toml"):
            tomllib.loads(body)
    assert json.loads((ROOT / "claude_desktop_config.example.json").read_text("utf-8"))["mcpServers"]["graphrag"][
        "args"
    ]


def test_the_settings_file_of_the_docs_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"

    def loaded(block: str) -> Settings:
        path.write_text(block, "utf-8")
        return load({"GRAPHRAG_MCP_SETTINGS": str(path), "HOME": str(tmp_path)})

    settings = loaded(blocks(DOCS / "settings.md", "toml")[0])
    assert (settings.home, settings.chunk_size) == (tmp_path / "indexes", 800)
    assert (settings.chat_options, settings.report_tokens) == ({"temperature": 0}, 6000)
    for page in (DOCS / "models.md", *HOW_TO):
        for one in map(loaded, blocks(page, "toml")):
            assert not one.base_url or (one.chat_model and one.base_url.endswith("/v1")), page.name


def anchors(file: Path) -> set[str]:
    """The names of a page's headings, as code hosts make them."""
    heads = re.findall(r"^#+ (.*)$", BLOCK.sub("", file.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_internal_links_resolve(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", page.read_text("utf-8"))):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def script_of(name: str) -> ModuleType:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_code_says() -> None:
    stale = [name for name, text in script_of("reference").pages().items() if (DOCS / name).read_text("utf-8") != text]
    assert stale == [], "run: python docs/reference.py"


def test_the_pictures_are_drawn_from_the_sample_and_show_what_an_index_of_it_holds(sample_home: Path) -> None:
    drawn = script_of("pictures")
    stale = [name for name, text in drawn.pages().items() if (DOCS / "pictures" / name).read_text("utf-8") != text]
    assert stale == [], "run: python docs/pictures.py"
    snapshot = App(Settings(home=sample_home)).snapshot()
    titles = {row["title"]: row["id"] for row in snapshot.rows("entities").to_pylist()}
    assert set(drawn.NAMES.values()) - set(titles) == set()
    ends = [{row["source_id"], row["target_id"]} for row in snapshot.rows("relationships").to_pylist()]
    pairs = [{titles[first], titles[second]} for first, second, _ in drawn.PAIRS]
    assert [pair for pair in pairs if pair not in ends] == []


def test_the_site_is_built_without_a_warning_and_links_what_is_outside_to_the_repository(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="needs the extra [site]")
    made = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(made)]
    done = subprocess.run(command, cwd=ROOT, env=clean_environment(), capture_output=True, encoding="utf-8", timeout=180)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    page = (made / "index.html").read_text("utf-8")
    assert f'href="{SITE}blob/main/README.md"' in page and f'href="{SITE}blob/main/prompts/README.md"' in page
    loaded = re.findall(r'<(?:script|link)[^>]* (?:src|href)="(https?:[^"]+)"', page)
    assert loaded == [], "a page of the site loads from another server"
    assert (made / "pictures" / "graph.svg").is_file() and not (made / "sample").exists()


def test_every_tool_has_its_section_and_what_it_names_exists(tmp_path: Path) -> None:
    arguments = {tool.name: tool.parameters["properties"] for tool in all_tools()}  # more than are listed

    async def listed() -> dict[str, set[str]]:
        settings = Settings(home=tmp_path / "home", roots=(tmp_path,), notes=str(tmp_path / "notes"))
        async with Client(build_server(App(settings))) as client:
            tools = (await client.list_tools()).tools
            return {
                tool.name: {*arguments[tool.name], *(tool.output_schema or {"properties": ()})["properties"]}
                for tool in tools
            }

    text = (DOCS / "tools.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    real = anyio.run(listed)
    assert set(sections) == set(real)
    for tool, body in sections.items():
        for other, given in re.findall(r"`(\w+)\(([^`]*)\)`", body):
            assert other in real, (tool, other)
            unknown = set(re.findall(r"(?:^|, ?)(\w+)=", given)) - real[other]
            assert not unknown, (tool, other, unknown)


@pytest.mark.parametrize("folder", ["benchmarks", "campaigns"])
def test_every_benchmark_and_every_campaign_has_its_line(folder: str) -> None:
    text = (DOCS / "benchmarks.md").read_text("utf-8").partition(f"`{folder}/`")[2].partition("\n\n`")[0]
    assert [path.name for path in (ROOT / folder).glob("*.py") if f"`{path.name}`" not in text] == []


def test_every_prompt_has_its_line_and_its_true_variables() -> None:
    text = (ROOT / "prompts" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| \[(\w+)\.md\]\(\w+\.md\) \| .*? \| (.*?) \|$", text, re.MULTILINE)
    written = {name: set(re.findall(r"\$(\w+)", variables)) for name, variables in rows}
    assert written == {name: set(prompts.load(name).get_identifiers()) for name in prompts.names()}


def test_try_indexes_a_folder_and_shows_topics_questions_and_how_to_connect(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "PATH": ""}
    for folder in ([], [str(SAMPLE)]):
        done = run_cli("try", *folder, "--home", tmp_path / "home", env=clean_environment(**home))
        assert done.returncode == 0 and ": 18 files, 26 documents, " in done.stderr, done.stderr
        about, _, rest = done.stdout.partition("Questions that it answers, with their sources:")
        assert len(re.findall(r"^  \d+ % of the documents: .+", about, re.MULTILINE)) == 5
        answers = re.findall(r"^  What is said about (.+)\?\n    (.+)\n    (\S+):(\d+)$", rest, re.MULTILINE)
        assert len(answers) == 3
        for name, said, uri, line in answers:
            text = (SAMPLE / uri.partition("/")[2].partition("#")[0]).read_text("utf-8")
            assert name in said and int(line) <= len(text.splitlines())
            assert said != "Port Kell hall, 17 and 18 June 2021.", "a line of place and date answers nothing"
            assert not said.startswith("Current forecast: Gu Yizhou, East Sea"), "a list of names answers nothing"
        assert f"graphrag-mcp install --client cursor --root {SAMPLE}" in done.stdout
    record = json.loads(run_cli("try", "--home", tmp_path / "home", "--json", env=clean_environment(**home)).stdout)
    assert record["corpus"] == "sample" and len(record["about"]) == 5 and len(record["questions"]) == 3
    (tmp_path / "empty").mkdir()
    assert run_cli("try", tmp_path / "empty", "--home", tmp_path / "home").returncode == 1


def test_every_file_that_a_page_names_is_there() -> None:
    there = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("*/**/*.py") if ".venv" not in path.parts]
    for page in (DOCS / "dev" / "how-it-works.md", ROOT / "AGENTS.md", DOCS / "comparison.md"):
        named = set(re.findall(r"`([\w/]+\.py)`", page.read_text("utf-8")))
        lost = [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in there)]
        assert lost == [], page.name


def test_the_documents_of_the_house_name_no_machine_and_no_workplace() -> None:
    words = [first + second for first, second in (("/wo", "rk/"), ("/tm", "p/"), ("pypi", ".org"), ("npm", "js"))]
    found = [
        f"{page.name}: {word}" for page in [*PAGES, ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / ".ci" / "run"]
        for word in words if word in page.read_text("utf-8")
    ]  # fmt: skip
    assert found == []
