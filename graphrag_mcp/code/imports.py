"""Imports of languages other than Python, read from the text of the statement.

Takes the source of one import statement; gives the names that it binds, each with the dotted module
or name that it means. A target with "/" is a path of which only the end is known in the corpus.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from graphrag_mcp.code.symbols import Import, SourceFile

Bound = Iterator[tuple[str, str]]  # local name, target
_SCRIPT_PATH = re.compile(r"""(?:from|require\s*\(|import)\s*["']([^"']+)["']""")
_SCRIPT_SUFFIX = re.compile(r"\.(?:js|mjs|cjs|jsx|ts|mts|tsx|vue|json)$")


def read(file: SourceFile, said: str, start: int, end: int) -> list[Import]:
    reader = _READERS.get(file.language)
    bound = reader(file, said) if reader else ()
    return [Import(local, target, start, end) for local, target in bound if target]


def _relative(file: SourceFile, path: str) -> str:
    """`./x` and `../x` as the dotted path of a module; others as a path."""
    folders = file.uri.split("/")[:-1]
    if not path.startswith("."):
        return "/" + path.removeprefix("@/").removeprefix("~/")
    for part in path.split("/"):
        if part == "..":
            folders = folders[:-1]
        elif part not in (".", ""):
            folders.append(part)
    if folders and folders[-1] == "index":
        folders.pop()
    return ".".join(part.replace(".", "_").replace(" ", "_") for part in folders)


def _script(file: SourceFile, said: str) -> Bound:
    found = _SCRIPT_PATH.search(said)
    if found is None:
        return
    if not found[1].startswith((".", "@/", "~/")):
        return  # a package
    module = _relative(file, _SCRIPT_SUFFIX.sub("", found[1]))
    yield "", module
    clause = said[: found.start()]
    if re.match(r"export\s*\*\s*$", clause.strip()):
        yield "*", module
    if spaced := re.search(r"\*\s*as\s+([\w$]+)", clause):
        yield spaced[1], module
    if braced := re.search(r"\{([^{}]*)\}", clause):
        for one in braced[1].split(","):
            words = re.findall(r"[\w$]+", one.replace("type ", " "))
            if words:
                yield words[-1], f"{module}.{words[0]}"
    if alone := re.match(
        r"\s*(?:import\s+(?:type\s+)?|(?:const|let|var)\s+)?([\w$]+)\s*(?:,|=|$)", clause
    ):
        if alone[1] not in ("import", "export"):
            local = alone[1]
            yield local, module if "require" in said else f"{module}.{local}"


def _jvm(file: SourceFile, said: str) -> Bound:
    words = said.strip().removesuffix(";").split()
    bare = " ".join(
        words[2 if words[1:2] == ["static"] else 1 :] if words[:1] == ["import"] else words
    )
    head, brace, inner = bare.partition("{")
    if brace:  # scala
        for one in inner.rstrip("} ").split(","):
            words = re.findall(r"\w+", one)
            if words:
                yield (
                    (words[-1] if words[0] != "_" else "*"),
                    head.rstrip(". ") + (f".{words[0]}" if words[0] != "_" else ""),
                )
        return
    name, _, alias = bare.partition(" as ")
    name = name.strip().replace(" ", "")
    if name.endswith((".*", "._")):
        yield "*", name[:-2]
    else:
        yield alias.strip() or name.rpartition(".")[2], name


def _go(file: SourceFile, said: str) -> Bound:
    bare = said.strip().removeprefix("import").strip()
    found = re.match(r'([\w.]*)\s*["`]([^"`]+)["`]', bare)
    if found and "/" in found[2]:
        last = re.sub(r"[-.]go$|^go-", "", found[2].rpartition("/")[2])
        yield ("*" if found[1] == "." else found[1] or last), found[2].replace(".", "_")


def _rust(file: SourceFile, said: str) -> Bound:
    bare = re.sub(
        r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+|;\s*$|\s+(?!as\b)(?<!\bas )", " ", said
    ).strip()
    yield from _use(file, bare.replace("\n", " "), "")


def _use(file: SourceFile, said: str, before: str) -> Bound:
    depth, part, parts = 0, "", []
    for ch in said:
        depth += (ch == "{") - (ch == "}")
        if ch == "," and not depth:
            parts.append(part)
            part = ""
        else:
            part += ch
    for one in [*parts, part]:
        one = one.strip()
        head, brace, inner = one.partition("{")
        if brace:
            yield from _use(file, inner.rpartition("}")[0], before + head.strip())
            continue
        path, _, alias = one.partition(" as ")
        full = _crate(file, (before + path.strip()).removesuffix("::self"))
        last = full.rpartition(".")[2]
        if last == "*":
            yield "*", full[:-2]
        elif full:
            yield alias.strip() or last, full


def _crate(file: SourceFile, path: str) -> str:
    parts = [part for part in path.replace(" ", "").split("::") if part]
    here = file.module.split(".")
    root = here[: here.index("src") + 1] if "src" in here else here[:1]
    if parts[:1] == ["crate"]:
        return ".".join([*root, *parts[1:]])
    if parts[:1] == ["self"]:
        return ".".join([*here, *parts[1:]])
    while parts[:1] == ["super"]:
        here, parts = here[:-1], parts[1:]
        if parts[:1] != ["super"]:
            return ".".join([*here, *parts])
    return ".".join(parts)


def _include(file: SourceFile, said: str) -> Bound:
    found = re.search(r'"([^"]+)"', said)
    if found:
        path = re.sub(r"\.\w+$", "", found[1])
        here = _relative(file, "./" + path)
        yield "*", here
        yield "*", _relative(file, path) if path.startswith(".") else "/" + path


def _ruby(file: SourceFile, said: str) -> Bound:
    found = re.search(r"""["']([^"']+)["']""", said)
    if found and "require_relative" in said:
        yield "*", _relative(file, "./" + found[1].removesuffix(".rb"))
    elif found and "/" in found[1]:
        yield "*", "/" + found[1].removesuffix(".rb")


def _php(file: SourceFile, said: str) -> Bound:
    for one in re.findall(
        r"[\w\\]+(?:\s+as\s+\w+)?", re.sub(r"^\s*use\s+(?:function|const)?\s*", "", said)
    ):
        path, _, alias = re.sub(r"\s+", " ", one).partition(" as ")
        parts = path.strip("\\").split("\\")
        if len(parts) > 1:
            yield alias or parts[-1], f"{'/'.join(parts[:-1])}.{parts[-1]}"


def _using(file: SourceFile, said: str) -> Bound:
    name = re.sub(r"^\s*(?:global\s+)?using\s+(?:static\s+)?|;\s*$", "", said)
    if "=" not in name and "." in name:
        yield "*", name.strip().replace(".", "/")


_READERS: dict[str, Callable[[SourceFile, str], Bound]] = {
    **dict.fromkeys(("javascript", "typescript", "tsx"), _script),
    **dict.fromkeys(("java", "kotlin", "scala"), _jvm),
    **dict.fromkeys(("c", "cpp"), _include),
    "go": _go,
    "rust": _rust,
    "ruby": _ruby,
    "php": _php,
    "c_sharp": _using,
}
