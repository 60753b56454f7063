"""JSON that was stored, read by a schema: records of an index, of jobs and sessions, and files of other
programs.

What is nested too deeply, holds a value of another type or leads out of its folder is no record, like
what is no JSON at all: every reader has one error to catch, and has values of the types that it
expects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache, lru_cache
from pathlib import PurePosixPath, PureWindowsPath
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

T = TypeVar("T")
DEPTH = 100  # of lists and objects in each other: our records have up to 8


def parsed(raw: bytes | str, schema: type[T] | Any) -> T:
    """The value in these bytes, as a value of `schema` (a type, a dataclass, a TypedDict). ValueError
    says what is wrong where."""
    return shaped(value(raw), schema)


def value(raw: bytes | str, nan: bool = False) -> Any:
    """The JSON in these bytes, nested at most DEPTH levels deep. NaN and infinite are numbers only with
    `nan`, for files of other programs. ValueError for anything else."""
    try:
        found = json.loads(raw, parse_constant=None if nan else _no_number)
    except RecursionError:
        raise ValueError(f"it is nested over {DEPTH} levels deep") from None
    level: Iterable[Any] = [found]
    for _ in range(DEPTH):
        level = [inner for value in level for inner in _inside(value) if isinstance(inner, dict | list)]
        if not level:
            return found
    raise ValueError(f"it is nested over {DEPTH} levels deep")


def values_in(raw: bytes, most: int) -> int:
    """How many values the JSON in `raw` has about: each follows a comma or an opening bracket outside of the
    strings. It ends at once where there are more strings than `most` values can be."""
    encoding = json.detect_encoding(raw)
    if not encoding.startswith("utf-8"):  # UTF-16 and UTF-32 have other bytes for the same signs
        raw = raw.decode(encoding, "replace").encode()
    plain = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    if (quotes := plain.count(b'"')) > 4 * most:  # a value is at most a name and a string
        return quotes // 4
    outside = plain.split(b'"')[::2] if quotes else [plain]
    return sum(part.count(sign) for part in outside for sign in (b",", b"[", b"{"))


def shaped(found: Any, schema: type[T] | Any) -> T:
    """A value of JSON as one of `schema`; ValueError says what is wrong where."""
    try:
        return _adapter(schema).validate_python(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part)[:60] for part in first["loc"]) or "it"
        raise ValueError(f"{where}: {first['msg']}") from None


@cache
def _adapter(schema: Any) -> TypeAdapter[Any]:
    return TypeAdapter(schema)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


class Open(TypedDict):
    """A schema whose values may have fields beside those that it names."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]


# ---- types of fields -----------------------------------------------------------------------------


# After 150 writes in a row a commit reads 5,300 names of files in each record of files, and the same ones again and
# again: their checks were 45 % of its time.
NAMES = 20_000


@lru_cache(maxsize=NAMES)
def _below(path: str) -> str:
    """The path, if it stays below the folder that it is relative to, on any system."""
    ways = PurePosixPath(path), PureWindowsPath(path)
    if not path or "\0" in path or any(way.is_absolute() or way.drive for way in ways):
        raise ValueError("it is no path below the folder")
    if any(".." in way.parts for way in ways):
        raise ValueError("it leads out of the folder")
    return path


@lru_cache(maxsize=NAMES)
def _file(name: str) -> str:
    if len(PurePosixPath(_below(name)).parts) != 1 or len(PureWindowsPath(name).parts) != 1:
        raise ValueError("it is no name of a file")
    return name


def _moment(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("it has no time zone")
    return text


Below = Annotated[str, AfterValidator(_below)]  # a path below a folder
FileName = Annotated[str, AfterValidator(_file)]  # one name in a folder
Moment = Annotated[str, AfterValidator(_moment)]  # ISO 8601 with a time zone
Count = Annotated[int, Field(ge=0, lt=2**53)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
