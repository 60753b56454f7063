"""The documentation is run, its links lead somewhere, and nothing that a user can turn or call is missing from it.

The ```python blocks of a page run in one namespace, between the commands of its ```console blocks, each of which must be
`$ graphrag-mcp ...` and end with status 0; all in a temporary folder where `sample` is the sample corpus. ```sh and
```text are for reading.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from graphrag_mcp import prompts
from graphrag_mcp.app import App
from graphrag_mcp.cli import COMMANDS
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import ENVIRONMENT, Settings, load
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.upkeep.export import SCHEMAS
from tests.conftest import ROOT, SAMPLE, clean_environment

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "AGENTS.md", ROOT / "CHANGELOG.md", ROOT / "prompts" / "README.md"]
PAGES += sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = [page for page in PAGES if re.search(r"^```(python|console)$", page.read_text("utf-8"), re.MULTILINE)]


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(page.read_text("utf-8")) if kind == language]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "sample")
    env = clean_environment(GRAPHRAG_MCP_HOME=str(tmp_path / "home"), HOME=str(tmp_path), USERPROFILE=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", script(page)], cwd=tmp_path, env=env, capture_output=True, encoding="utf-8", timeout=180
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])


def script(page: Path) -> str:
    """The page as one program, block after block; a command is run by the function that the command line calls."""
    parts = ["import graphrag_mcp.cli"]
    for kind, body in BLOCK.findall(page.read_text("utf-8")):
        if kind == "python":
            parts.append(body)
        elif kind == "console":
            for line in body.splitlines():
                command = shlex.split(line)
                assert command[:2] == ["$", "graphrag-mcp"], f"{page.name}: {line!r} cannot be run; use ```sh"
                parts.append(f"assert graphrag_mcp.cli.main({command[2:]!r}) == 0, {line!r}")
    return "\n".join(parts)


def test_the_demonstration_calls_every_tool_and_ends_with_what_to_paste() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "demo.py"], env=clean_environment(), capture_output=True, encoding="utf-8", timeout=180
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    tools = re.findall(r"^## (\w+)$", (DOCS / "tools.md").read_text("utf-8"), re.MULTILINE)
    assert [tool for tool in tools if f"\n{tool}(" not in done.stdout] == []
    assert all(host in done.stdout for host in ("Claude Desktop", "Claude Code", "Cursor", "VS Code", "uvx"))
    assert json.dumps(sys.executable) in done.stdout
    assert "\x1b" not in done.stdout and len(done.stdout.splitlines()) < 200


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
    assert (settings.chat_options, settings.claims_enabled) == ({"temperature": 0}, True)
    assert settings.claims_entity_specs == ("person", "ship")
    servers = [loaded(block) for block in blocks(DOCS / "models.md", "toml")]
    assert len(servers) > 2 and all(one.chat_model and one.base_url.endswith("/v1") for one in servers)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_internal_links_resolve(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", page.read_text("utf-8"))):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and f"# {anchor.replace('-', ' ')}" not in file.read_text("utf-8").lower()):
            broken.append(target)
    assert broken == []


def test_every_tool_and_argument_has_its_line_and_its_true_default(tmp_path: Path) -> None:
    async def listed() -> dict[str, dict[str, Any]]:
        async with Client(build_server(App(Settings(home=tmp_path, roots=(SAMPLE,))))) as client:
            return {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}

    text = (DOCS / "tools.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    written = {
        tool: dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", body, re.MULTILINE)) for tool, body in sections.items()
    }
    real = {
        tool: {name: default(spec, name in schema.get("required", ())) for name, spec in schema["properties"].items()}
        for tool, schema in anyio.run(listed).items()
    }
    assert written == real


def default(spec: dict[str, Any], needed: bool) -> str:
    """As the page writes it."""
    if needed:
        return "needed"
    return "none" if spec.get("default") is None else f"`{json.dumps(spec['default'])}`"


def test_every_setting_has_its_line_and_its_true_default() -> None:
    text = (DOCS / "settings.md").read_text("utf-8")
    table = text.split("## Environment")[0]
    written = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", table, re.MULTILINE))
    fields = {field.name: field for field in dataclasses.fields(Settings)}
    assert list(written) == list(fields)
    defaults = {name: getattr(Settings(), name) for name in fields if name not in ("home", "roots")}
    assert {name: written[name] for name in defaults} == {
        name: f"`{json.dumps(value)}`" for name, value in defaults.items()
    }
    variables = set(re.findall(r"^\| `([A-Z][A-Z_]+)`", text, re.MULTILINE))
    assert variables == {*ENVIRONMENT, Settings().api_key_variable}


def test_every_prompt_has_its_line_and_its_true_variables() -> None:
    text = (ROOT / "prompts" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| \[(\w+)\.md\]\(\w+\.md\) \| .*? \| (.*?) \|$", text, re.MULTILINE)
    written = {name: set(re.findall(r"\$(\w+)", variables)) for name, variables in rows}
    assert written == {name: set(prompts.load(name).get_identifiers()) for name in prompts.names()}


def test_every_question_to_a_model_has_its_line() -> None:
    """How-it-works says which file asks what; a kind that nobody asks any more, or a new one, makes this fail."""
    text = (DOCS / "how-it-works.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| `([\w/]+\.py)` \| .*? \|$", text, re.MULTILINE)
    sources = {path.relative_to(ROOT / "graphrag_mcp").as_posix(): path.read_text("utf-8")
               for path in (ROOT / "graphrag_mcp").rglob("*.py")}  # fmt: skip
    kinds = set()
    for kind, used, file in rows:
        assert f'"{kind}"' in sources[file], (kind, file)
        assert set(re.findall(r"`(\w+)`", used)) <= set(prompts.names()), kind
        kinds.add(kind)
    literal = re.compile(
        r'\b(?:Ask|_asking)\(\s*"(\w+)"|\bkind(?:: str )?\s*=\s*"(\w+)",\s*folder|^KIND = "(\w+)"', re.MULTILINE
    )
    asked = {kind for source in sources.values() for found in literal.findall(source) for kind in found if kind}
    assert kinds == asked and len(kinds) > 10


def test_every_table_and_column_has_its_line() -> None:
    text = (DOCS / "data.md").read_text("utf-8").partition("## Export")[0]
    rows = re.findall(r"^\| `(\w+)` \| [^|]*? \| ([^|]*?) \|$", text, re.MULTILINE)
    written = {table: [column.strip() for column in columns.split(",")] for table, columns in rows}
    assert written == {table: [name for name in schema.names if name != "check"] for table, schema in TABLES.items()}
    exported = (DOCS / "data.md").read_text("utf-8").partition("## Export")[2]
    named = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|$", exported, re.MULTILINE))
    assert {table: set(re.findall(r"\w+", columns)) for table, columns in named.items()} == {
        table: set(schema.names) for table, schema in SCHEMAS.items()
    }


def test_every_command_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text("utf-8").partition("## The command line")[2].partition("\n## ")[0]
    missing = [run.__name__ for run in COMMANDS if not re.search(rf"`{run.__name__}\b|graphrag-mcp {run.__name__}\b", text)]
    assert missing == []


def test_an_unknown_prompt_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(prompts.NotFound, match="drift_step"):
        prompts.load("no_such_prompt")


def test_an_agent_is_told_what_the_prompts_say(sample_home: Path) -> None:
    async def told() -> tuple[str | None, str, str]:
        async with Client(build_server(App(Settings(home=sample_home, roots=(SAMPLE,))))) as client:
            first = await client.call_tool("drift_search", {"query": "Why?", "corpus": "sample"})
            state = first.structured_content or {}
            answer = {"answer": "Nobody knows.", "score": 5, "follow_ups": ["Who knows?"]}
            node = {"session_id": state["session_id"], "node_id": state["open_node"], **answer}
            second = await client.call_tool("drift_step", node)
            opened = (second.structured_content or {})["open_node"]
            return client.instructions, state["text"], f"{opened}|{(second.structured_content or {})['text']}"

    instructions, first, second = anyio.run(told)
    opened, _, second = second.partition("|")
    step = prompts.load("drift_step").substitute(question="Why?", node=opened, node_query="Who knows?")
    assert instructions == prompts.load("server_instructions").template
    assert first.startswith(prompts.load("drift_primer").substitute(question="Why?"))
    assert second.startswith(step)


def test_the_documents_of_the_house_name_no_machine_and_no_workplace() -> None:
    words = [first + second for first, second in (("/wo", "rk/"), ("/tm", "p/"), ("pypi", ".org"), ("npm", "js"))]
    found = [
        f"{page.name}: {word}" for page in [*PAGES, ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / ".ci" / "run"]
        for word in words if word in page.read_text("utf-8")
    ]  # fmt: skip
    assert found == []
