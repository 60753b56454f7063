"""Settings: read once from the environment and one optional TOML file.

Takes `os.environ`-like mappings; gives a frozen `Settings`. Knows no MCP and opens no index. Only
what a user may turn stands here; each algorithm keeps its parameters beside its code."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote, urlsplit

from annotated_types import Ge
from platformdirs import user_cache_path, user_data_path
from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError

from graphrag_mcp.errors import BadInput
from graphrag_mcp.trust.fencing import spans

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
ENVIRONMENT: dict[str, str] = _TABLES["environment"]

DEFAULT_TYPES = (
    *("person", "organization", "location", "event", "concept", "method", "content", "data"),
    *("artifact", "creature", "natural object"),
)


Count = Annotated[int, Ge(0)]  # 0 = none, or no limit
Positive = Annotated[int, Ge(1)]
Price = Annotated[float, Ge(0)]
Folder = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]
NotesFolder = Annotated[  # a text, which a job's record can hold
    str, AfterValidator(lambda path: str(Path(path).expanduser().absolute()) if path else "")
]
Texts = Annotated[tuple[str, ...], AfterValidator(lambda texts: tuple(text.strip() for text in texts if text.strip()))]
Engine = Literal["auto", "inline", "processes", "ray"]
JsonMode = Literal["auto", "schema", "object", "none"]
Gleanings = Annotated[Literal["auto", "0", "1"], BeforeValidator(str)]


@dataclass(frozen=True, slots=True)
class Settings:
    """All lengths in tokens of `text.count_tokens` unless said otherwise."""

    home: Folder = field(default_factory=lambda: user_data_path("graphrag-mcp"))
    roots: tuple[Folder, ...] = ()  # folders that tools may index; the command line indexes any
    notes: NotesFolder = ""  # where agents write notes, inside one of the roots; "" = nowhere
    chunk_size: Annotated[int, Ge(50)] = 1200
    chunk_overlap: Count = 100
    passage_size: int = 400
    max_file_bytes: int = 20_000_000
    max_upload_bytes: Count = 2_000_000_000  # of all files added by the page; 0 = no limit
    show_secrets: bool = False  # else credentials in documents are masked in what tools return
    # What one call of indexing reads and makes; the rest is left for the next call.
    max_files: Positive = 50_000
    max_bytes: Positive = 1_000_000_000
    max_text_units: Positive = 200_000
    cache_bytes: Count = 20_000_000_000  # of a home on object storage, kept on this machine
    max_memory: Count = 4_000  # megabytes of a process that indexes; 0 = no limit
    hard_links: bool = False  # take files one of whose names lies outside the folder indexed
    engine: Engine = "auto"  # who computes while indexing
    engine_address: str = ""  # of a Ray cluster; "" = one of this machine
    processes: Count = 0  # 0 = one for each core, at most 8
    max_cluster_size: int = 10
    seed: int = 42
    # Which models, where, how fast. A key is no setting: the name of its variable is.
    chat_model: str = ""  # "" = none: nothing ever calls out
    vision_model: str = ""  # describes pictures in files; "" = none
    # "local:<folder or name>" runs in this process (extra [vectors])
    embedding_model: str = ""  # "" = no vectors
    rerank_model: str = ""  # "" = none; "local:<folder or name>" of a cross-encoder
    base_url: str = ""  # "" = the provider's own
    embedding_base_url: str = ""  # "" = base_url
    api_key_variable: str = "OPENAI_API_KEY"
    json_mode: JsonMode = "auto"
    bounded_replies: bool = False  # the JSON schema limits lists and texts
    chat_options: Mapping[str, Any] = field(default_factory=dict)  # sent with every chat call
    embedding_dimensions: Count = 0  # 0 = the model's own
    embedding_batch: Positive = 64  # texts of one embedding call
    concurrency: Positive = 25  # calls in flight
    requests_per_minute: Count = 0  # 0 = no limit, here and below
    tokens_per_minute: Count = 0
    timeout_seconds: Annotated[float, Ge(1)] = 180.0
    max_retries: Count = 6
    # A run stops resumably at these; 0 = no limit. Prices are per million tokens, in any currency.
    max_calls: Annotated[int, Ge(-1)] = 0  # -1 = ask nothing, use the replies that are kept
    max_tokens: Count = 0
    max_cost: Price = 0.0
    price_prompt: Price = 0.0
    price_output: Price = 0.0
    price_embedding: Price = 0.0
    # What a model is asked for while indexing.
    # "small": what PRESETS has, for all that is not set otherwise
    preset: Literal["", "small"] = ""
    entity_types: Texts = DEFAULT_TYPES  # () = untyped
    output_language: str = ""  # "" = that of the text
    gleanings: Gleanings = "auto"
    # Entities below which a community's report is extractive even with a model; and text units: a
    # report on three of them could only repeat them.
    report_min_size: Positive = 5
    report_min_units: Positive = 4
    report_tokens: Annotated[int, Ge(1000)] = 8000  # of context for one report


class Substituted(str):
    """A text in which `${NAME}` was replaced by `values`. It is shown as written, `template`."""

    template: str
    values: tuple[str, ...]

    def __new__(cls, text: str, template: str, values: tuple[str, ...] = ()) -> Substituted:
        substituted = super().__new__(cls, text)
        substituted.template, substituted.values = template, values
        return substituted

    def __repr__(self) -> str:
        return repr(self.template)

    def __getnewargs__(self) -> tuple[str, str, tuple[str, ...]]:  # type: ignore[override]
        return str(self), self.template, self.values


VECTORS = "local:intfloat/multilingual-e5-small"  # of `index --vectors`, where no model is set
SCHEMES = ("s3://", "gs://", "az://")  # of a home on object storage
TENANTS = "tenants"  # the folder or prefix of a home that holds those of its tenants
_STORES = "object-stores"  # the folder that holds the copies of such homes
PRESETS: dict[str, dict[str, Any]] = _TABLES["presets"]
_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}"


def default_roots() -> tuple[Path, ...]:
    """The working directory; none where that is `/`, a drive or a home folder."""
    here = Path.cwd().resolve()
    return () if here in (Path(here.anchor), Path.home().resolve()) else (here,)


def load(environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Settings from defaults, the TOML file, the environment, and `overrides` that are not None.

    BadInput for an unknown name (with the nearest known one), a wrong value, a missing `${VAR}`."""
    env = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    if named := env.get("GRAPHRAG_MCP_SETTINGS"):
        path = Path(named)
        try:
            parsed = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            what = f"the settings file {path} cannot be read ({error.strerror})"
            raise BadInput(what, "Correct GRAPHRAG_MCP_SETTINGS") from error
        except tomllib.TOMLDecodeError as error:
            what = f"the settings file {path} is not TOML ({error})"
            raise BadInput(what, "Correct that line") from error
        values |= _flat(_substituted(parsed, path, env))
    for variable, name in ENVIRONMENT.items():
        if name.isidentifier() and (text := env.get(variable, "").strip()):
            parts = [part for part in text.split(os.pathsep) if part]
            values[name] = parts if name == "roots" else text
    values |= {name: value for name, value in overrides.items() if value is not None}
    values = PRESETS.get(str(values.get("preset")), {}) | values
    if (address := str(values.get("home", ""))).startswith(SCHEMES):
        values["home"] = copy_of(address)
    settings = replace(Settings(), **_checked(values))
    if settings.chunk_overlap >= settings.chunk_size // 2:
        what = f"chunk_overlap {settings.chunk_overlap} cannot be used"
        raise BadInput(what, f"Set it to less than half of chunk_size, {settings.chunk_size}")
    return settings if settings.roots else replace(settings, roots=default_roots())


def copy_of(address: str) -> Path:
    """The folder of this machine that holds the copy of a home on object storage."""
    parts = urlsplit(address)
    if not parts.netloc or parts.username or parts.password or parts.query or parts.fragment:
        raise BadInput(
            "that address of a store cannot be used as home",
            "Write s3://bucket/prefix, gs://bucket/prefix or az://account/container/prefix; "
            "credentials come from the environment",
        )
    return user_cache_path("graphrag-mcp") / _STORES / quote(address.rstrip("/"), safe="")


def address_of(home: Path) -> str:
    """The address of the object storage of which a home is the copy; "" where it is none."""
    address = unquote(home.name) if home.parent.name == _STORES else ""
    return address if address.startswith(SCHEMES) else ""


def of_tenant(settings: Settings, tenant: str, tenants: int = 1) -> Settings:
    """The settings of one of the tenants: `tenants/<name>` of the home, `<name>` of each root, and the
    folder of notes at the same place below it."""
    address = address_of(settings.home)
    home = copy_of(f"{address}/{TENANTS}/{tenant}") if address else settings.home / TENANTS / tenant
    roots = tuple(root / tenant for root in settings.roots)
    inside = [root for root in settings.roots if Path(settings.notes).is_relative_to(root)]
    deepest = max(inside, key=lambda root: len(root.parts), default=None)
    notes = str(deepest / tenant / Path(settings.notes).relative_to(deepest)) if deepest else ""
    folders = {"home": home, "roots": roots, "notes": notes}
    return replace(settings, **folders, cache_bytes=settings.cache_bytes // tenants)


@cache
def _adapter() -> TypeAdapter[Settings]:
    return TypeAdapter(Settings)


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values in the types of their settings. BadInput repeats none: a text may be a key."""
    known = [setting.name for setting in fields(Settings)]
    if unknown := [name for name in values if name not in known]:
        near = difflib.get_close_matches(unknown[0], known, n=1)
        named = repr(near[0]) if near else f"one of {', '.join(known)}"
        advice = f"Remove it if it is of an earlier release, or use {named}"
        raise BadInput(f"unknown setting {unknown[0]!r}", advice)
    try:
        settings = _adapter().validate_python(values)
    except ValidationError as error:
        wrong = error.errors()[0]
        reason = f"{wrong['msg'][:1].lower()}{wrong['msg'][1:]}"
        what = f"setting {str(wrong['loc'][0])!r} cannot be used: {reason}"
        advice = "Correct it in the settings file, the environment or the option"
        raise BadInput(what, advice) from None
    found = {name: getattr(settings, name) for name in values}
    for name, value in values.items():  # pydantic makes plain texts of them
        if isinstance(value, Substituted) and isinstance(found[name], str):
            found[name] = value
    if "api_key_variable" in found:
        found["api_key_variable"] = _variable(found["api_key_variable"])
    return found


def _variable(value: str) -> str:
    """The name of the variable that holds the key, also where its value was substituted or a key
    stands in its place. BadInput repeats neither."""
    alone = re.fullmatch(_VARIABLE, getattr(value, "template", ""))
    if alone and value not in os.environ:
        return alone[1]
    longest = max(value.split("_"), key=len)  # variables have words between underscores
    key = value not in os.environ and len(longest) >= 16 and any(map(str.isdigit, longest))
    if key or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        what = "api_key_variable is not the name of an environment variable"
        raise BadInput(what, "Write the name of the variable that holds the key, without ${}")
    return str(value)


def _substituted(value: Any, path: Path, env: Mapping[str, str]) -> Any:
    """Every `${NAME}` in a text replaced from the environment (not in comments: after parsing)."""

    def variable(match: re.Match[str]) -> str:
        if match[1] not in env:
            what = f"the settings file {path} uses ${{{match[1]}}}, which is not set"
            raise BadInput(what, f"Set {match[1]} or remove it")
        return env[match[1]]

    def changed(text: str) -> str:
        result, names = re.sub(_VARIABLE, variable, text), re.findall(_VARIABLE, text)
        return Substituted(result, text, tuple(env[name] for name in names)) if names else text

    return _mapped(value, changed)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed."""
    if isinstance(value, Mapping):
        return {name: _mapped(part, change) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mapped(part, change) for part in value)
    return change(value) if isinstance(value, str) else value


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """A table's settings under their full names: `tokens` in `[report]` is `report_tokens`."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict) and name != "chat_options":
            flat.update({f"{name}_{inner}": setting for inner, setting in value.items()})
        else:
            flat[name] = value
    return flat


# ---- what may be written down -------------------------------------------------------------------

_SECRET_PLACES = ("extra_headers", "headers", "default_headers", "extra_query", "default_query")
_SECRET_NAME = re.compile(r"key|token|secret|passw|auth|credential|cookie|session|sign", re.I)


def record_of(settings: Settings) -> dict[str, Any]:
    """The settings as a record keeps them: values in which a variable was substituted as they were
    written (`templates`), and of values that hold a key nothing but the name (`withheld`)."""
    record: dict[str, Any] = {}
    templates: dict[str, Any] = {}
    withheld: list[str] = []
    for item in fields(settings):
        value, name = getattr(settings, item.name), item.name
        if name == "home":
            continue
        written = _mapped(value, shown_as)
        if _holds_key(name, value):
            withheld.append(name)
        elif written != value:
            templates[name] = written
        else:
            record[name] = [str(part) for part in value] if name == "roots" else value
    kept = {"templates": templates, "withheld": withheld}
    return {**record, **{name: part for name, part in kept.items() if part}}


def from_record(settings: Settings, record: Mapping[str, Any]) -> Settings:
    """The settings of a record; as here what it does not hold or takes from an unset variable, and a word
    that only another release knows. BadInput where a value is of another type."""
    known = {item.name for item in fields(Settings)} - {"home"}
    values: dict[str, Any] = {}
    for name in known & record.keys():
        value = record[name]
        try:
            values |= _checked({name: value})
        except BadInput:
            if not (isinstance(value, str) and isinstance(getattr(settings, name), str)):
                raise
    for name, written in record.get("templates", {}).items():
        with contextlib.suppress(BadInput):
            values |= _checked({name: _substituted(written, Path("record"), os.environ)})
    return replace(settings, **values)


def secrets_of(settings: Settings) -> list[str]:
    """Texts of options and addresses that may be keys, which no reply or error repeats."""
    found = []
    for path, text in _texts(settings.chat_options):
        placed = _secret_place(path)
        if placed:
            found.append(str(text))
        found += [secret for secret in getattr(text, "values", ()) if placed or len(secret) >= 12]
    for url in (settings.base_url, settings.embedding_base_url):
        found += [secret for secret in getattr(url, "values", ()) if len(secret) >= 12]
        found += [parameter.partition("=")[2] for parameter in url.partition("?")[2].split("&")]
    return [secret for secret in found if secret]


def shown_as(text: str) -> str:
    """A setting's text as it may be shown: as it was written."""
    return text.template if isinstance(text, Substituted) else text


def _texts(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _texts(part, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part, path)
    elif isinstance(value, str):
        yield path, value


def _secret_place(path: tuple[str, ...]) -> bool:
    return any(name in _SECRET_PLACES for name in path) or any(map(_SECRET_NAME.search, path))


def _holds_key(name: str, value: Any) -> bool:
    """Does the value hold what may be a key, beside what was substituted?"""
    for path, text in _texts(value):
        literal = re.sub(_VARIABLE, "", shown_as(text))
        substituted = isinstance(text, Substituted)
        if name.endswith("base_url"):
            login_or_query = r":[^/@]+@|[?&#][^=]*=[^&]" if substituted else r"[@?#]"
            if re.search(login_or_query, literal.partition("://")[2] or literal):
                return True
        if spans(literal) or (name == "chat_options" and _secret_place(path) and not substituted):
            return True
    return False
