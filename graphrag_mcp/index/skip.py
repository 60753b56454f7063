"""What a folder walk leaves out, and why: one reason in plain words, or "" to take the entry.

Takes names, sizes and the lines of ignore files; gives reasons. Opens only ignore files (through the opener it is
given) and knows neither documents nor how a file is parsed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fnmatch import translate

from pathspec import GitIgnoreSpec

SECRET, HIDDEN, DEPENDENCY, LOCK, MINIFIED, BINARY = (
    "looks like a secret", "hidden", "dependency or build folder", "lock file", "minified file", "binary",
)
UNSUPPORTED, IGNORED, OURS = "unsupported type", "ignored by .gitignore", "index of this server"

_SECRETS = (
    ".env* *.env *.pem *.key *.p12 *.pfx *.jks *.keystore *.keytab *.kdbx *.ppk *.ovpn *.tfstate *.tfstate.* *.tfvars "
    "id_rsa* id_dsa* id_ecdsa* id_ed25519* credentials credentials.* client_secret*.json service?account*.json "
    "secret.json secret.y*ml secret.toml secrets.json secrets.y*ml secrets.toml secrets.ini .netrc _netrc .npmrc "
    ".pypirc .pgpass .htpasswd .git-credentials .dockercfg .vault-token .my.cnf wallet.dat"
).split()
_SECRET_NAME = re.compile("|".join(f"(?:{translate(pattern)})" for pattern in _SECRETS))
_PRIVATE_KEY = re.compile(rb"\s*-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")

# Always machine-made, whatever stands beside them.
_DEPENDENCIES = frozenset(
    "node_modules bower_components jspm_packages __pycache__ __pypackages__ site-packages dist-packages pods "
    "deriveddata elm-stuff cmakefiles".split()
)
# Ordinary words: skipped only where a project file beside them says that a tool writes there. A folder of notes
# may well be called "build" or "vendor".
_JS_PY_C = (
    "package.json", "pyproject.toml", "setup.py", "setup.cfg", "cmakelists.txt", "build.gradle", "build.gradle.kts",
    "meson.build", "makefile", "gulpfile.js", "pubspec.yaml", "angular.json", "deno.json",
)
_BUILT_BY: dict[str, tuple[str, ...]] = {
    "dist": _JS_PY_C, "build": _JS_PY_C, "out": _JS_PY_C, "coverage": _JS_PY_C, "htmlcov": _JS_PY_C,
    "target": ("cargo.toml", "pom.xml", "build.sbt", "project.clj"),
    "vendor": ("go.mod", "composer.json", "gemfile", "cargo.toml", "package.json"),
    "_build": ("mix.exs", "conf.py", "dune-project", "rebar.config", "makefile"), "deps": ("mix.exs", "rebar.config"),
    "obj": ("*.csproj", "*.fsproj", "*.vbproj"), "bin": ("*.csproj", "*.fsproj", "*.vbproj"),
    "venv": ("pyproject.toml", "setup.py", "requirements.txt"),
}
_LOCKS = frozenset(
    "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock deno.lock uv.lock poetry.lock pdm.lock "
    "pipfile.lock pixi.lock conda-lock.yml cargo.lock gemfile.lock composer.lock go.sum go.work.sum flake.lock "
    "mix.lock pubspec.lock podfile.lock package.resolved gradle.lockfile packages.lock.json module.bazel.lock".split()
)
_MINIFIED = re.compile(r".*[.-](?:min\.(?:js|mjs|cjs|css|html|json)|bundle\.js)|.*\.(?:js|mjs|cjs|css|ts)\.map")
_BINARY = frozenset(
    "7z a aac apk avi avif bin bmp br bz2 cab class dat db deb dex dll dmg dylib ear eot exe feather flac gif "
    "glb gz heic icns ico img iso jar jpeg jpg jp2 lib lz4 m4a m4v mdb mkv mo mov mp3 mp4 mpeg mpg msi node "
    "npy npz o obj ogg ogv onnx opus otf pack parq pdb pickle pkl png psd pt pth pyc pyd pyo rar rlib rmeta "
    "rpm safetensors so sqlite sqlite3 swf tar tgz tif tiff ttf wasm wav webm webp whl wmv woff woff2 xz zip "
    "zst".split()
)
_UNSUPPORTED = frozenset("doc dot xls ppt pps rtf odt ods odp pages numbers svg ps eps mobi azw azw3".split())


def suffix_of(name: str) -> str:
    """`md` of `Notes.MD`; "" for a name without one."""
    return name.rpartition(".")[2].casefold() if "." in name.lstrip(".") else ""


def secret(name: str) -> bool:
    return _SECRET_NAME.match(name.casefold()) is not None


def private_key(head: bytes) -> bool:
    return _PRIVATE_KEY.match(head) is not None


def binary(head: bytes) -> bool:
    """NUL bytes in the first 8 KB, unless a byte order mark says UTF-16 or UTF-32."""
    return b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff"))


def kind_of(name: str) -> str:
    """Why a file of this name holds no text to index, whoever names it; "" when it may."""
    suffix = suffix_of(name)
    return BINARY if suffix in _BINARY else UNSUPPORTED if suffix in _UNSUPPORTED else ""


def file_reason(name: str) -> str:
    """Why a walk leaves a file of this name out; "" to take it."""
    folded = name.casefold()
    if secret(name):
        return SECRET
    if name.startswith("."):
        return HIDDEN
    if folded in _LOCKS:
        return LOCK
    return MINIFIED if _MINIFIED.fullmatch(folded) else kind_of(name)


def folder_reason(name: str, beside: Collection[str]) -> str:
    """Why a walk does not enter a folder of this name; `beside`: casefolded names in the folder that holds it."""
    folded = name.casefold()
    if name.startswith("."):
        return HIDDEN
    if folded in _DEPENDENCIES or folded.endswith((".egg-info", ".dist-info")):
        return DEPENDENCY
    makers = _BUILT_BY.get(folded, ())
    if any(maker in beside if maker[0] != "*" else any(n.endswith(maker[1:]) for n in beside) for maker in makers):
        return DEPENDENCY
    return ""


def machine_made(names: Collection[str]) -> bool:
    """A folder whose own entries say so: a Python virtual environment, a cache by the CACHEDIR.TAG convention, or a
    corpus of another home than `ours`."""
    return "pyvenv.cfg" in names or "cachedir.tag" in names or {"manifest.json", "truth", "tables"} <= set(names)


def ours(home: str | os.PathLike[str]) -> tuple[str, ...]:
    """The folders that a home keeps indexes, walks and jobs in. A home may lie among the documents: its own files read
    as such would change with every run, and bring back what was removed and what belongs to another token."""
    return tuple(os.path.join(os.path.realpath(home), name) for name in ("corpora", "drift", "jobs"))


# ---- ignore files -------------------------------------------------------------------------------

IGNORE_FILES = (".gitignore", ".graphragignore")  # in one folder the latter has the last word
_STARS = 3


@dataclass(frozen=True, slots=True)
class Rules:
    """The patterns of one folder; `base` is its absolute path with a slash at its end."""

    base: str
    spec: GitIgnoreSpec


def read_rules(base: str, opener: Callable[[str], bytes | None], name: str) -> Rules | None:
    """The rules in the ignore file `name`; None when there is no such file. OSError when it cannot be read."""
    data = opener(name)
    if data is None:
        return None
    lines = [_tame(line) for line in data.decode("utf-8-sig", "replace").splitlines()]
    return Rules(base, GitIgnoreSpec.from_lines(line for line in lines if _valid(line)))


def ignored(path: str, rules: list[Rules]) -> bool:
    """Is the absolute `path` (a folder with a slash at its end) ignored? The innermost rule that speaks decides."""
    for rule in reversed(rules):
        if path.startswith(rule.base) and (verdict := rule.spec.check_file(path[len(rule.base) :]).include) is not None:
            return verdict
    return False


def _tame(line: str) -> str:
    """A pattern of many stars takes exponential time to match (`*a*a*a*a*b`); past three a part keeps its outer ones,
    which ignores a little more: the safe side for a hostile file."""
    if line.count("*") <= _STARS:
        return line
    parts = []
    for part in re.sub(r"(?:\*\*/)+", "**/", line).split("/"):
        part = re.sub(r"\*+", "*", part) if part != "**" else part
        parts.append(part if part.count("*") <= _STARS else f"{part.partition('*')[0]}*{part.rpartition('*')[2]}")
    if parts.count("**") > 2:
        first, last = parts.index("**"), len(parts) - 1 - parts[::-1].index("**")
        parts[first : last + 1] = ["**"]
    return "/".join(parts)


def _valid(line: str) -> bool:
    """Git passes over a pattern that it cannot read; so do we, instead of failing the folder."""
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
