"""Install: adds this server to the configuration of an MCP client, and removes it.

In JSON values, order, indentation and line ends are kept, in TOML every other line. A file that
cannot be read is refused with its line, and so is JSON with comments. No key is written, only the
name of its variable. Arguments of the entry that a user added by hand stay."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table, Whitespace

from graphrag_mcp.errors import BadInput, Busy
from graphrag_mcp.install.hosts import HOSTS, Host, user_file
from graphrag_mcp.settings import ENVIRONMENT
from graphrag_mcp.store.manifest import write_durably

# what may be read, and where indexes are: as the command says each time
FOLDERS = frozenset(("--root", "--home"))


def arguments(known: Mapping[str, Any], server: Mapping[str, Any]) -> tuple[list[str], tuple[str, ...]]:
    """The new arguments with those of the old ones that the new do not name, and notes on them.

    An option that is named now counts as named now, and folders only so: fewer folders are fewer
    folders. Whatever else is not named stays, since a `--read-only` written by hand must not be
    gone after the next run."""
    new, old = list(server["args"]), _texts(known.get("args"))
    if "serve" not in old or "serve" not in new:
        replaced = f"the entry had other arguments, which are replaced: {_shown(old)}"
        return new, (replaced,) if old else ()
    notes: list[str] = []
    before, after = (options_of(words[words.index("serve") + 1 :]) for words in (old, new))
    named = {option[0] for option in after} | FOLDERS
    others = [option for option in before if option[0] not in named]
    dropped = [option for option in before if option[0] in named and option not in after]
    if others:
        kept = _shown(chain.from_iterable(others))
        notes.append(f"kept what the entry had: {kept}; to be rid of it run --undo first")
    if dropped:
        notes.append(f"no longer in the entry: {_shown(chain.from_iterable(dropped))}")
    return [*new[: new.index("serve") + 1], *chain.from_iterable((*after, *others))], tuple(notes)


def options_of(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Each option with its values; `--a=b` as two words."""
    found: list[tuple[str, ...]] = []
    for word in words:
        if word.startswith("--") or not found:
            name, equals, value = word.partition("=")
            found.append((name, value) if equals and word.startswith("--") else (word,))
        else:
            found[-1] = (*found[-1], word)
    return found


def plain(name: str) -> str:
    """A word of someone's file as a terminal may show it."""
    return "".join(ch if ch.isprintable() else "?" for ch in name)[:200]


def _shown(words: Iterable[str]) -> str:
    return plain(" ".join(words))


class NotEdited(BadInput):
    """The text of a host's file cannot be edited; the entry is to be pasted."""


BACKUP = ".before-graphrag-mcp"
BOM = "\ufeff"
# Of these the value may stand in a file; of any other variable only the name.
HARMLESS = frozenset(ENVIRONMENT) - {"GRAPHRAG_MCP_TOKENS"}
OURS = frozenset(ENVIRONMENT) | {"PYTHONPATH"}
START_SECONDS = 30  # Codex waits 10 by itself


@dataclass(frozen=True)
class Change:
    """What one run does to one file. `after` is None where the file goes."""

    file: Path
    before: bytes | None
    after: bytes | None
    change: str  # added, updated, unchanged, removed, restored, absent
    entry: Mapping[str, Any] | None = None  # ours as it stands there now
    notes: tuple[str, ...] = ()  # what became of words that the entry had before


def entry(host: Host, words: Sequence[str], env: Mapping[str, str], handed: Sequence[str]) -> dict[str, Any]:
    """Our server as this host writes one down; `handed`: names of variables, as references."""
    server: dict[str, Any] = {"type": "stdio"} if host.typed and not host.toml else {}
    server |= {"command": words[0], "args": list(words[1:])}
    values = dict(env)
    if handed and host.reference == "env_vars":
        server["env_vars"] = list(handed)
    else:
        values |= {name: host.reference % name for name in handed}
    if values:
        server["env"] = values
    if host.toml:
        server["startup_timeout_sec"] = START_SECONDS
    return server


def variables(
    host: Host, project: bool, given_names: Sequence[str], environ: Mapping[str, str]
) -> tuple[dict[str, str], list[str], list[str]]:
    """What `--env` asks for: values to write, names passed by reference, and notes."""
    values: dict[str, str] = {}
    handed: list[str] = []
    notes: list[str] = []
    for pair in given_names:
        name, equals, value = pair.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            what = f"--env {pair[:40]!r} names no variable"
            raise BadInput(what, "Give a name such as OPENAI_API_KEY")
        if equals and (name not in HARMLESS or "@" in value or "?" in value):
            what = f"the value of {name} would stand in a file that others read, and may be a secret"
            move = f"Set it where {host.title} is started and give --env {name}, without a value"
            raise BadInput(what, move)
        by_itself = f"{host.title} hands {name} on by itself"
        if equals:
            values[name] = value
        elif host.follows and not project and not host.toml:
            notes.append(f"{by_itself}; set it in the shell in which you start it")
        elif host.reference:
            handed.append(name)
        elif name in HARMLESS and "@" not in environ.get(name, "@"):
            values[name] = environ[name]
        else:
            what = f"{host.title} hands no variable such as {name} on, and its value is not written into a file"
            move = "Use a model that needs no key; for Claude Desktop the .mcpb bundle keeps one in the keychain"
            raise BadInput(what, move)
    return values, handed, notes


def installing(host: Host, file: Path, name: str, server: Mapping[str, Any]) -> Change:
    """What putting the entry in changes. BadInput where the file or a server is in the way."""
    before = _read(file)
    text = _decoded(before, file)
    servers = _servers(host, text, file)
    known = servers.get(name)
    if name in servers and not (isinstance(known, dict) and ours(known)):
        what = f"{file} has another server under the name {name!r}"
        raise BadInput(what, "Give ours another name with --name, or remove that one")
    # What someone has added to the old entry by hand, such as a time-out, stays.
    stored = known or {}
    mine = {"type", "command", "args", "env", "env_vars"}
    merged = {**server, **{key: value for key, value in stored.items() if key not in mine}}
    if isinstance(env := stored.get("env"), dict):
        theirs = ((key, value) for key, value in env.items() if key not in OURS)
        by_hand = {key: value for key, value in theirs if "${" not in str(value)}
        if values := {**server.get("env", {}), **by_hand}:
            merged["env"] = values
    merged["args"], notes = arguments(stored, server)
    after = _edited(file, lambda: _put(host, text, name, merged))
    change = "added" if known is None else "unchanged" if after == text else "updated"
    return Change(file, before, _encoded(after, before), change, merged, notes)


def undoing(host: Host, file: Path, name: str) -> Change:
    """What taking the entry out changes: the file from before, or this one without the entry."""
    before = _read(file)
    text = _decoded(before, file)
    known = _servers(host, text, file).get(name)
    if known is None:
        return Change(file, before, before, "absent")
    if not ours(known):
        what = f"the server {name!r} in {file} is not graphrag-mcp"
        raise BadInput(what, "Give the name of ours with --name")
    saved = _read(backup_of(file))
    # An entry that the earlier file held too was ours, of an earlier day: undo takes both away.
    with contextlib.suppress(Unreadable, BadInput):
        was = _decoded(saved, file)
        with_ours = _encoded(_put(host, was, name, known), saved)
        if name not in _servers(host, was, file) and with_ours == before:
            return Change(file, before, saved, "removed" if saved is None else "restored")
    without = remove_table if host.toml else remove_member
    after = _edited(file, lambda: without(text, host.key, name))
    return Change(file, before, _encoded(after, before), "removed")


def apply(change: Change) -> Path | None:
    """Write a change; the backup's path, where one is kept. Busy when the file has just changed."""
    file, backup = change.file, backup_of(change.file)
    if change.before != change.after:
        if _read(file) != change.before:
            raise Busy(f"{file} has changed meanwhile", "Quit the client and run this again")
        try:
            if change.after is None:
                file.resolve().unlink()  # what a link leads to, as it was made
            else:
                if change.before is not None and (change.change == "added" or not backup.exists()):
                    _write(backup, change.before, like=file)
                _write(file, change.after)
            if change.before is None or change.change in ("restored", "removed"):
                backup.unlink(missing_ok=True)
        except OSError as error:
            what = f"{error.filename or file} cannot be written ({error.strerror})"
            advice = "Name another file with --config, or paste what --print shows"
            raise BadInput(what, advice) from error
    return backup if backup.exists() and change.change != "absent" else None


def block(host: Host, name: str, server: Mapping[str, Any]) -> str:
    """Our entry as it would stand in a file of its own, to be pasted."""
    return _put(host, "", name, server)


def installed(environ: Mapping[str, str], home: Path, project: Path) -> list[dict[str, str]]:
    """Where this server is in the hosts' files, of the user and of this folder. Never raises."""
    found = []
    for host in HOSTS:
        places = [user_file(host, environ, home)]
        places += [project / host.project] if host.project else []
        for file in dict.fromkeys(places):
            place = {"host": host.name, "file": str(file)}
            try:
                servers = _servers(host, _decoded(_read(file), file), file)
            except BadInput as error:
                found.append({**place, "name": "", "problem": error.what})
                continue
            for name, server in servers.items():
                if ours(server):
                    found.append({**place, "name": plain(name), "problem": _problem(server)})
    return found


def ours(server: Any) -> bool:
    """Whether an entry starts this server, however it was written."""
    if not isinstance(server, dict) or not isinstance(server.get("command"), str):
        return False
    program = re.split(r"[/\\]", server["command"])[-1].removesuffix(".exe")
    named = re.compile(r"graphrag[-_]mcp(\[[\w,]*\])?([@=<>~!].*)?").fullmatch
    return program == "graphrag-mcp" or any(map(named, _texts(server.get("args"))))


def _texts(args: Any) -> list[str]:
    return [word for word in args if isinstance(word, str)] if isinstance(args, list) else []


def backup_of(file: Path) -> Path:
    return file.with_name(file.name + BACKUP)


# ---- texts ---------------------------------------------------------------------------------------


def _put(host: Host, text: str, name: str, server: Mapping[str, Any]) -> str:
    return (set_table if host.toml else set_member)(text, host.key, name, dict(server))


def _edited(file: Path, edit: Callable[[], Any]) -> Any:
    try:
        return edit()
    except Unreadable as error:
        raise _refused(file, error) from error


def _servers(host: Host, text: str, file: Path) -> dict[str, Any]:
    parse = parse_toml if host.toml else parse_json
    servers = _edited(file, lambda: parse(text)).get(host.key, {})
    return servers if isinstance(servers, dict) else {}


def _refused(file: Path, error: Unreadable) -> NotEdited:
    advice = "Nothing was written; correct that line and run this again, or edit the file by hand"
    return NotEdited(f"{file}, line {error.line}: {error.what}", advice)


def _problem(server: Mapping[str, Any]) -> str:
    command = Path(str(server["command"]))
    missing = command.is_absolute() and not os.path.exists(command)
    return f"{plain(str(command))} is not there any more" if missing else ""


# ---- files ---------------------------------------------------------------------------------------


def _read(file: Path) -> bytes | None:
    advice = "Name another file with --config"
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):  # a pipe is waited for, a device has no end
            kind = "a folder" if file.is_dir() else "no ordinary file"
            raise BadInput(f"{file} cannot be read: it is {kind}", advice)
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(f"{file} cannot be read ({error.strerror})", advice) from error


def _decoded(raw: bytes | None, file: Path) -> str:
    try:
        return (raw or b"").decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError as error:
        line = (raw or b"")[: error.start].count(b"\n") + 1
        raise _refused(file, Unreadable("it is not UTF-8", line)) from error


def _encoded(text: str, before: bytes | None) -> bytes:
    marked = (before or b"").startswith(BOM.encode())
    try:
        return ((BOM if marked else "") + text).encode("utf-8")
    except UnicodeEncodeError as error:
        what = "a path holds bytes that are no text"
        raise BadInput(what, "Give --home and --root paths of plain text") from error


def _write(file: Path, content: bytes, like: Path | None = None) -> None:
    """All of it or nothing, through a link to where it leads, with the mode that the file has."""
    target, model = file.resolve(), (like or file).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(model.stat().st_mode) if model.exists() else 0o600
    write_durably(target, content)
    target.chmod(mode)


# ---- texts of configuration files ----------------------------------------------------------------


class Unreadable(ValueError):
    """The text cannot be read, or cannot be edited; `line` counts from 1."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what, self.line = what, line


def parse_json(text: str) -> dict[str, Any]:
    """A document of plain JSON; text without any is an empty object."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:  # writing it again would drop one
                lines = _lines_of(text, json.dumps(name, ensure_ascii=False))
                where = f"lines {', '.join(map(str, lines))}"
                what = f"an object has {name[:80]!r} more than once ({where})"
                raise Unreadable(what, lines[-1])
            found[name] = value
        return found

    try:
        document = json.loads(text if text.strip() else "{}", object_pairs_hook=members)
        json.dumps(document, allow_nan=False)
    except Unreadable:
        raise
    except json.JSONDecodeError as error:
        what = f"{error.msg[0].lower()}{error.msg[1:]}, at column {error.colno}"
        raise Unreadable(f"it is not plain JSON, without comments ({what})", error.lineno) from None
    except (ValueError, RecursionError):
        raise Unreadable("a number is too large, or it is nested too deeply", 1) from None
    if not isinstance(document, dict):
        raise Unreadable("the document is not an object", _lines_of(text, text.split()[0])[0])
    return document


def set_member(text: str, table: str, name: str, value: Mapping[str, Any]) -> str:
    """`text` with `value` as member `name` of the object `table`, which is made when it is missing."""
    document = parse_json(text)
    section = document.setdefault(table, {})
    if not isinstance(section, dict):
        raise Unreadable(f'"{table}" is not an object', _lines_of(text, f'"{table}"')[0])
    section[name] = dict(value)
    return _printed(document, text)


def remove_member(text: str, table: str, name: str) -> str:
    document = parse_json(text)
    document[table].pop(name)
    return _printed(document, text)


def _printed(document: dict[str, Any], text: str) -> str:
    """A document with the indentation, the line ends and the escapes that its text has."""
    step = re.search(r"\n([ \t]+)\S", text)
    indent = step[1] if step else None if text.strip() and "\n" not in text.strip() else 2
    escaped = bool(text.strip()) and text.isascii()
    encoded = json.dumps(document, indent=indent, ensure_ascii=escaped)
    end = text[len(text.rstrip()) :] if text.strip() else "\n"
    return encoded.replace("\n", "\r\n" if "\r\n" in text else "\n") + end


def parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"line (\d+)", str(error))
        what = re.sub(r" \(at [^()]*\)$", "", str(error))
        line = int(where[1]) if where else text.count("\n") + 1
        raise Unreadable(what[:1].lower() + what[1:], line) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply", 1) from None


def set_table(text: str, table: str, name: str, value: Mapping[str, Any]) -> str:
    """`text` with `[table.name]` holding `value`: where the table stands already, else at the end."""
    document = parse_toml(text)
    servers = document.get(table, {})
    if not isinstance(servers, dict):
        raise Unreadable(f"{table} is not a table", _lines_of(text, table)[0])
    block = tomlkit.dumps({table: {name: dict(value)}})
    if name in servers:
        after = _replaced(text, table, name, _as_in(text, block))
    else:
        gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        after = text + _as_in(text, gap + block)
    return _checked(after, document | {table: {**servers, name: dict(value)}}, table, text)


def remove_table(text: str, table: str, name: str) -> str:
    document = parse_toml(text)
    left = {key: value for key, value in document[table].items() if key != name}
    return _checked(_replaced(text, table, name, ""), document | {table: left}, table, text)


def _replaced(text: str, table: str, name: str, block: str) -> str:
    """A document with `block` in place of the first of the tables `table.name`, without the others."""
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise Unreadable(str(error), getattr(error, "line", 1)) from None
    for key, part in document.body:  # tables of one name may stand apart
        if key is not None and key.key == table and isinstance(part, Table):
            body = part.value.body
            for at, (inner, node) in enumerate(body):
                if inner is not None and inner.key == name:
                    body[at] = (None, Whitespace(block + _end(node.as_string())))
                    block = ""
    return tomlkit.dumps(document)


def _end(table: str) -> str:
    """Blank lines and comments at the end of a table, which belong to what follows it."""
    lines = table.splitlines(keepends=True)
    last = len(lines)
    while last and lines[last - 1].strip()[:1] in ("", "#"):
        last -= 1
    return "".join(lines[last:])


def _as_in(text: str, entry: str) -> str:
    """Line ends as a text has them throughout."""
    windows = "\r\n" in text and text.count("\r\n") == text.count("\n")
    return re.sub(r"\r?\n", "\r\n", entry) if windows else entry


def _checked(after: str, expected: dict[str, Any], table: str, text: str) -> str:
    """The edited text, when a second parser reads in it what it should say."""
    try:
        same = {table: {}} | parse_toml(after) == expected
    except Unreadable:
        same = False
    if not same:
        what = f"{table} is written in a way that cannot be edited (inline, or with dotted names)"
        raise Unreadable(what, _lines_of(text, table)[0])
    return after


def _lines_of(text: str, word: str) -> list[int]:
    """The lines that have a word; the first line when none has."""
    return [at for at, line in enumerate(text.splitlines(), 1) if word in line] or [1]
