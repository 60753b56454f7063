"""The wheel: what is in it, and that it works where the checkout is not."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import graphrag_mcp
from tests.support.command import ROOT, SAMPLE, clean_environment

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by hatchling itself, so that nothing is downloaded."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that sees the installed wheel and its dependencies, but no checkout."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return clean_environment(PYTHONPATH=str(target))


def run(arguments: list[str], env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=env, cwd=cwd, capture_output=True, encoding="utf-8", timeout=120
    )


def test_the_wheel_holds_the_package_its_data_its_prompts_and_its_licence_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    modules = {str(path.relative_to(ROOT)).replace("\\", "/") for path in (ROOT / "graphrag_mcp").rglob("*.py")}
    prompts = {f"graphrag_mcp/_prompts/{path.name}" for path in (ROOT / "prompts").glob("*.md")}
    data = {
        str(path.relative_to(ROOT)).replace("\\", "/")
        for path in (ROOT / "graphrag_mcp").rglob("*")
        if path.suffix in (".toml", ".txt", ".json", ".html", ".css", ".js", ".scm", ".md")
    }
    sample = {f"graphrag_mcp/_data/sample/{path.relative_to(SAMPLE).as_posix()}" for path in SAMPLE.rglob("*") if path.is_file()}
    inside = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert inside == modules | prompts | data | sample | {"graphrag_mcp/py.typed"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("entry_points.txt") for name in names)


def copied(folder: Path, what: str) -> Path:
    """The files that the bundle, or the container, builds the package from."""
    if what == "bundle":
        runpy.run_path(str(ROOT / "packaging" / "mcpb" / "pack.py"))["stage"](folder)
        return folder
    for line in re.findall(r"^COPY (?!--)(.*)$", (ROOT / "packaging" / "Dockerfile").read_text("utf-8"), re.MULTILINE):
        *sources, target = line.split()
        for source in sources:
            place = folder / target
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, place / source)
    return folder


@pytest.mark.parametrize("what", ["bundle", "container"])
def test_the_bundle_and_the_container_can_build_the_same_wheel(what: str, wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    files = copied(tmp_path / "files", what)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "out"]
    done = subprocess.run(command, cwd=files, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = next((tmp_path / "out").glob("*.whl"))
    assert set(zipfile.ZipFile(made).namelist()) == set(zipfile.ZipFile(wheel).namelist())


def test_the_source_archive_and_the_wheel_pass_the_checks_of_the_package_index(wheel: Path, tmp_path: Path) -> None:
    pytest.importorskip("twine", reason="needs the extra [dev]")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path]
    assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0
    archive = next(tmp_path.glob("*.tar.gz"))
    done = run(["-m", "twine", "check", "--strict", str(wheel), str(archive)], clean_environment(), tmp_path)
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout


def test_the_dockerfile_passes_hadolint(tmp_path: Path) -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if not hadolint:
        pytest.skip("needs hadolint")
    done = subprocess.run([hadolint, ROOT / "packaging" / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_version_is_said_outside_the_checkout(installed: dict[str, str], tmp_path: Path) -> None:
    done = run(["-m", "graphrag_mcp", "--version"], installed, tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, f"graphrag-mcp {graphrag_mcp.__version__}")


def test_the_installed_package_is_used_and_finds_its_prompts(installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "drift_step.md").write_text("a trap in the working directory")
    code = "from graphrag_mcp.llm import prompts; print(prompts.folder()); print(prompts.load('drift_step').template)"
    done = run(["-c", code], installed, tmp_path)
    folder, text = done.stdout.split("\n", 1)
    assert Path(folder).parts[-2:] == ("graphrag_mcp", "_prompts") and str(ROOT) not in folder
    assert "$node_query" in text and "trap" not in text


def test_the_sample_is_tried_outside_the_checkout(installed: dict[str, str], tmp_path: Path) -> None:
    done = run(["-m", "graphrag_mcp", "try", "--home", str(tmp_path / "home")], installed, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "What it is about:" in done.stdout and "_data/sample" in done.stderr and str(ROOT) not in done.stderr


def test_it_indexes_and_answers_outside_the_checkout(installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    for name in ("corrie-accord.md", "zh/back-run-analysis.md"):
        (tmp_path / "notes" / Path(name).name).write_bytes((SAMPLE / name).read_bytes())
    home = ["--home", str(tmp_path / "home"), "--json"]
    done = run(["-m", "graphrag_mcp", "index", "notes", *home], installed, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["added"] == 2
    done = run(["-m", "graphrag_mcp", "search", "Where is the array moved to?", *home], installed, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Sule Channel" in json.loads(done.stdout)["text"]
