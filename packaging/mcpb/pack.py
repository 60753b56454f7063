"""Pack the bundle for hosts that install .mcpb files: the package, its prompts, the sample and the manifest.

    python packaging/mcpb/pack.py [FILE.mcpb]          # plain zip, the same bytes every time
    python packaging/mcpb/pack.py --stage FOLDER       # the files only, for the official tool:
    npx @anthropic-ai/mcpb validate FOLDER/manifest.json && npx @anthropic-ai/mcpb pack FOLDER FILE.mcpb

Dependencies are not in it: the host installs them with uv, by pyproject.toml, when the bundle is installed.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BESIDE = ("pyproject.toml", "README.md", "LICENSE")
FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # of zip; a clock would make every bundle another


def contents() -> dict[str, Path]:
    """Name inside the bundle -> file, in order."""
    inside = {"manifest.json": HERE / "manifest.json"} | {name: ROOT / name for name in BESIDE}
    for folder, pattern in (("graphrag_mcp", "*"), ("prompts", "*.md"), ("docs/sample", "*")):
        files = (path for path in (ROOT / folder).rglob(pattern) if path.is_file())
        inside |= {path.relative_to(ROOT).as_posix(): path for path in files if "__pycache__" not in path.parts}
    return dict(sorted(inside.items()))


def pack(target: Path) -> int:
    """Write the bundle; how many files are in it."""
    inside = contents()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, path in inside.items():
            entry = zipfile.ZipInfo(name, FIRST_DAY)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            bundle.writestr(entry, path.read_bytes())
    return len(inside)


def stage(folder: Path) -> int:
    """Copy the files into a folder; how many."""
    inside = contents()
    for name, path in inside.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(path.read_bytes())
    return len(inside)


def main() -> None:
    options = argparse.ArgumentParser(description="Pack the .mcpb bundle.")
    options.add_argument("target", nargs="?", default="graphrag-mcp.mcpb", type=Path)
    options.add_argument("--stage", action="store_true", help="copy into a folder instead of packing")
    given = options.parse_args()
    count = (stage if given.stage else pack)(given.target)
    sys.stdout.write(f"{count} files in {given.target}\n")


if __name__ == "__main__":
    main()
