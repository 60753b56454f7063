"""Files made to do harm, and what else stands in folders: texts, tables, pages, names, things that are no files.

`write(folder, heavy)` makes them all, `write(folder, heavy=False, only=...)` some; heavy ones are as large as an
attacker would make them. `CASES` are files by name, `THINGS` what needs the file system. Nothing of the product is used.
"""

from __future__ import annotations

import json
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

from tests.support import hostile_archives

Make = Callable[[bool], bytes]
SECRET = "outside-0f8e1c"  # stands in every file that no index may hold


def _text(many: int, few: int, piece: str, before: str = "") -> Make:
    return lambda heavy: (before + piece * (many if heavy else few)).encode("utf-8", "surrogatepass")


def _bytes(data: bytes) -> Make:
    return lambda heavy: data


def _many(between: str, pair: str) -> Make:
    """Names that are all different, and no full stop: 15 to 20 MB of them, below the limit of a file."""
    return lambda heavy: between.join(pair.format(n, n * 7 % 9973) for n in range(600_000 if heavy else 2_000)).encode()


_WORDS = "The light was burning and Ines Calloway rowed to the Narrows. "
_TEXTS: dict[str, Make] = {
    "invalid.txt": _bytes(b"caf\xe9 \xff\xfe \x80\x81 and words " * 50),
    "noise.txt": lambda heavy: random.Random(1).randbytes(50_000).replace(b"\0", b"\1"),
    "utf16le.txt": _bytes(_WORDS.encode("utf-16")),
    "utf16be.txt": _bytes(b"\xfe\xff" + _WORDS.encode("utf-16-be")),
    "utf16-no-mark.txt": _bytes(_WORDS.encode("utf-16-le")),
    "utf16-odd.txt": _bytes(b"\xff\xfe" + _WORDS.encode("utf-16-le") + b"x"),
    "utf32.txt": _bytes(_WORDS.encode("utf-32")),
    "mark-only.txt": _bytes(b"\xef\xbb\xbf"),
    "marks.txt": _text(10**6, 1000, "\ufeff", "kept "),
    "nul-first.txt": _bytes(b"\0" + _WORDS.encode()),
    "nul-late.txt": lambda heavy: _WORDS.encode() * 300 + b"\0" * 1000 + _WORDS.encode(),
    "one-line.txt": _text(160_000, 2_000, _WORDS),
    "one-word.txt": _text(10**6, 6_000, "abcdefghij"),
    "one-word-upper.txt": _text(10**6, 6_000, "ABCDEFGHIJ"),
    "han.txt": _text(500_000, 6_000, "究研院"),
    "bidi.txt": _bytes("safe \u202etxt.exe\u202c \u2066hidden\u2069 words\n".encode() * 50),
    "invisible.txt": _text(10**6, 6_000, "\u200b\u2060\U000e0041", "kept "),
    "combining.txt": _text(10**6, 6_000, "\u0301", "a"),
    "emoji.txt": _text(200_000, 5_000, "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
    "surrogates.txt": _text(10**5, 1000, "\ud800", "kept "),
    "control.txt": _bytes(bytes(range(1, 32)) * 200 + b"\x1b[31mred\x1b[0m" * 20),
    "blank.txt": _text(10**6, 6_000, " \n\t"),
    "line-ends.txt": _bytes(b"a\r\nb\rc\nd\x0be\x0cf\xe2\x80\xa8g" * 100),
    "open.md": _text(10**6, 6_000, "("),
    "quotes.md": _text(10**6, 6_000, '"'),
    "quoted.md": _text(10**5, 5_000, "> "),
    "headings.md": _text(10**5, 2_000, "# A heading\n"),
    "fences.md": _text(10**5, 2_000, "```\n"),
    "links.md": _text(10**5, 5_000, "[a]("),
    "matter.md": _text(10**5, 5_000, "key: value\n", "---\n"),
    "dashes.md": _text(10**6, 6_000, "-"),
    "stops.md": _text(10**6, 6_000, "A. "),
    "capitals.md": _text(10**5, 5_000, "Ines Calloway "),
    "many-names.md": _many(" met ", "Alvin{} Borg{}"),
    "many-names-apart.md": _many(", ", "Alvin{} Borg{}"),
    "many-names-cyrillic.md": _many(" встретил ", "Иван{} Петров{}"),
    "many-names-greek.md": _many(" και ", "Νίκος{} Παππάς{}"),
    "many-names-han.md": _many("会见", "王{}与李{}"),
    "many-names-lines.md": _many("\n", "Alvin{} Borg{}"),
    "comment.md": _text(10**6, 6_000, "<!-- ", "x\n"),
    "gb18030.txt": _bytes("微软研究院在北京。".encode("gb18030") * 50),
    "escape.txt": _bytes(b"+ADw-script+AD4- \x1b$B4A;z\x1b(B" * 50),
    "code.py": _text(10**5, 5_000, "((((((((((\n"),
    "latex.tex": _text(10**5, 5_000, "{\\a"),
}
_JSONS: dict[str, Make] = {
    "deep.json": _text(10**6, 20_000, "["),
    "deep-closed.json": lambda heavy: b"[" * 5_000 + b"]" * 5_000,
    "deep-900.json": lambda heavy: b'[{"text": "kept", "a": ' + b"[" * 900 + b"]" * 900 + b"}]",
    "deep-objects.json": _text(10**6, 20_000, '{"a":'),
    "number.json": _text(10**6, 20_000, "9", '[{"id": 1, "n": '),
    "number-closed.json": lambda heavy: b'[{"text": "kept", "n": ' + b"9" * 4000 + b', "e": 1e999, "m": -1e999, "x": NaN}]',
    "columns.json": lambda heavy: json.dumps([{f"k{n}": n for n in range(100_000 if heavy else 3_000)}]).encode(),
    "rows.json": lambda heavy: b"[" + b'{"a":1},' * (2_400_000 if heavy else 300) + b'{"a":1}]',
    "empty-rows.json": lambda heavy: b"[" + b"{}," * (6_000_000 if heavy else 20_000) + b"{}]",
    "lists.json": lambda heavy: b"[" + b"[]," * (6_000_000 if heavy else 20_000) + b"[]]",
    "same-id.json": lambda heavy: json.dumps([{"id": "same", "text": f"row {n}"} for n in range(200)]).encode(),
    "surrogates.json": _bytes(b'[{"id": "\\ud800", "title": "\\udfff", "text": "kept \\ud800", "\\ud834": "x"}]'),
    "nul.json": _bytes(b'[{"id": "a\\u0000b", "text": "kept\\u0000", "title": "x\\ny"}]'),
    "torn.json": _bytes(b'[{"id": 1, "text": "kept"}, {"id": 2, "te'),
    "wrong-types.json": _bytes(b'[{"id": {}, "text": [1], "title": {"a": 1}}, {"text": null}, {"text": 5}]'),
    "deep.jsonl": lambda heavy: b'{"text": "kept"}\n' + b"[" * 100_000 + b"\n",
    "numbers.jsonl": lambda heavy: b'{"text": "kept", "n": ' + b"9" * 100_000 + b"}\n" + b'{"text": "also kept"}\n',
    "rows.jsonl": lambda heavy: b'{"a":1}\n' * (2_400_000 if heavy else 300),
}  # fmt: skip
_TABLES: dict[str, Make] = {
    "columns.csv": lambda heavy: ",".join(f"c{n}" for n in range(100_000)).encode() + b"\n" + b"1," * 100_000 + b"\n",
    "same-columns.csv": lambda heavy: b"a," * 1999 + b"a\n" + b"1," * 1999 + b"1\n",
    "open-quote.csv": _text(10**6, 10_000, "x,y\n", 'id,text\n1,"'),
    "ragged.csv": lambda heavy: (
        b"id,text\n" + b"".join(b"1," * (n % 400) + b"\n" for n in range(20_000 if heavy else 100))
    ),
    "growing.csv": lambda heavy: b"id,text\n1,kept\n" + b"," * 100_000 + b"x\n",
    "field.csv": _text(3 * 10**6, 20_000, "words ", "id,text\n1,"),
    "nul.csv": _bytes(b"id,text\n" + b"1,kept\n" * 2000 + b"2,a\0b\n"),
    "separators.csv": _text(10**6, 10_000, ",", "\n"),
    "head.csv": _bytes(b"id,text,title\n"),
    "rows.csv": lambda heavy: b"id\n" + b"1\n" * (4_000_000 if heavy else 300),
}
_PAGES: dict[str, Make] = {
    "open.html": _text(3 * 10**6, 100_000, "<b>"),
    "open-tags.html": _text(3 * 10**6, 100_000, "<a"),
    "attributes.html": _text(10**6, 100_000, ' a="', "<a"),
    "lists.html": _text(10**6, 20_000, "<ul><li>", "kept"),
    "tables.html": _text(10**6, 20_000, "<table><tr><td>", "kept"),
    "entities.html": _text(10**6, 20_000, "&#x41;&amp;&#9999999999999999;", "kept"),
    "numeric.html": lambda heavy: b"kept &#" + b"9" * (10**7 if heavy else 100_000) + b";",
    "comment.html": _text(10**6, 20_000, "<!--", "kept"),
    "script.html": _text(10**6, 20_000, "<script>", "kept"),
    "charset.html": _bytes(b'<meta charset="utf-7"><p>kept +ADw- \xff'),
    "charset-codec.html": _bytes(b'<meta charset="zip_codec"><p>kept \xff\xfe'),
    "entity.xhtml": _bytes(b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><p>kept &e;</p>'),
    "laughs.xml": _bytes(b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><x>&b;</x>'),
}
_NAMES = (
    "line\nbreak.md", "tab\tname.md", "escape\x1b[31m.md", "bell\x07.md", "\u202eexe.md", "zero\u200bwidth.md", " .md",
    "space .md", "dot..md", "quote'\"`.md", "$(touch x).md", "; rm -rf x.md", "<b>.md", "&amp;.md", "%2e%2e.md",
    "back\\slash.md", "a#b.md", "a:b.md", "CON.md", "nul.md", "*.md", "[x](y).md", "\u2028.md", "e\u0301.md", "\u00e9.md",
    "\U0001f600.md", "-rf.md", "..md.md", "x" * 240 + ".md", "{{x}}.md", "<tag>\n# not a heading.md",
)  # fmt: skip
CASES: dict[str, Make] = {
    **hostile_archives.CASES,
    **_TEXTS,
    **_JSONS,
    **_TABLES,
    **_PAGES,
    **{name: _bytes(f"A file of a strange name: {number}.\n".encode()) for number, name in enumerate(_NAMES)},
}


# ---- what needs the file system ---------------------------------------------------------------------


def _raw_name(folder: Path, heavy: bool) -> None:
    with open(os.fsencode(folder) + b"/raw-\xff\xfe.md", "wb") as file:
        file.write(b"A name that is no UTF-8.\n")


def _sparse(name: str) -> Callable[[Path, bool], None]:
    def make(folder: Path, heavy: bool) -> None:
        with open(folder / name, "wb") as file:
            file.truncate(2 << 30)

    return make


def _socket(folder: Path, heavy: bool) -> None:
    there = os.getcwd()
    os.chdir(folder)  # a socket's path must be short
    socket.socket(socket.AF_UNIX).bind("socket.txt")
    os.chdir(there)


def _tree(folder: Path, heavy: bool) -> None:
    at = folder
    for number in range(300 if heavy else 60):
        at = at / f"d{number % 10}"
        at.mkdir()
    (at / "deep.md").write_text("Deep down.\n")


def _crowd(folder: Path, heavy: bool) -> None:
    (folder / "crowd").mkdir()
    for number in range(100_000 if heavy else 300):
        (folder / "crowd" / f"{number}.bin").write_bytes(b"x")


def _outside(folder: Path) -> Path:
    place = folder.parent / f"outside-{folder.name}"
    place.mkdir(exist_ok=True)
    (place / "secret.md").write_text(f"{SECRET}\n")
    return place


def _hard(folder: Path, heavy: bool) -> None:
    os.link(_outside(folder) / "secret.md", folder / "hard.md")


def _ignore(folder: Path, heavy: bool) -> None:
    (folder / "ignored").mkdir()
    (folder / "ignored/.gitignore").write_text("*a*a*a*a*a*a*b\n" + "**/a/" * 50 + "b\n[z-a\n\\\n" * 100)
    (folder / "ignored" / ("a" * 200 + ".md")).write_text("Beside hostile patterns.\n")


# name -> (maker, how many entries it is)
THINGS: dict[str, tuple[Callable[[Path, bool], None], int]] = {
    "raw name": (_raw_name, 1),
    "fifo": (lambda folder, heavy: os.mkfifo(folder / "fifo.txt"), 1),
    "socket": (_socket, 1),
    "device": (lambda folder, heavy: os.symlink("/dev/zero", folder / "zero.txt"), 1),
    "link to itself": (lambda folder, heavy: os.symlink("itself.md", folder / "itself.md"), 1),
    "link loop": (lambda folder, heavy: (os.symlink("b.md", folder / "a.md"), os.symlink("a.md", folder / "b.md"))[0], 2),
    "link to the folder": (lambda folder, heavy: os.symlink(folder, folder / "again"), 1),
    "link outside": (lambda folder, heavy: os.symlink(_outside(folder) / "secret.md", folder / "soft.md"), 1),
    "folder link outside": (lambda folder, heavy: os.symlink(_outside(folder), folder / "soft"), 1),
    "link to /proc": (lambda folder, heavy: os.symlink("/proc/self/environ", folder / "environ.txt"), 1),
    "dangling link": (lambda folder, heavy: os.symlink("nowhere", folder / "dangling.md"), 1),
    "hard link outside": (_hard, 1),
    "sparse text": (_sparse("sparse.txt"), 1),
    "sparse docx": (_sparse("sparse.docx"), 1),
    "sparse parquet": (_sparse("sparse.parquet"), 1),
    "folder named docx": (lambda folder, heavy: (folder / "folder.docx").mkdir(), 0),
    "tree": (_tree, 1),
    "crowd": (_crowd, 300),
    "ignore file": (_ignore, 2),
}  # fmt: skip


def write(folder: Path, heavy: bool = False, only: Collection[str] = ()) -> int:
    """Make the cases (all, or those named) in a new folder; how many entries a reader has to account for."""
    folder.mkdir(parents=True)
    count = 0
    for name, make in CASES.items():
        if not only or name in only:
            (folder / name).write_bytes(make(heavy))
            count += 1
    for name, (thing, entries) in THINGS.items():
        if not only or name in only:
            thing(folder, heavy)
            count += 100_000 if name == "crowd" and heavy else entries
    return count


def short() -> list[str]:
    """Every trick once: those of zips in one kind of file each, and none that takes seconds."""
    kinds = list(hostile_archives.MAIN)
    tricks = list(dict.fromkeys(name.rpartition(".")[0] for name in hostile_archives.CASES if name.endswith(".docx")))
    once = {f"{trick}.{kinds[number % len(kinds)]}" for number, trick in enumerate(tricks)}
    zips = {f"{trick}.{kind}" for trick in tricks for kind in kinds}
    slow = {"flate-bomb.pdf", "form-loop.pdf", "rows.parquet", "dictionary.parquet"}
    return [name for name in (*CASES, *THINGS) if (name not in zips or name in once) and name not in slow]


def watch(pid: int) -> Callable[[], int]:
    """Looks how much memory a process and its children hold together, until it ends; gives a function that says the most
    (0 where the system does not tell)."""
    most = [0]

    def look() -> None:
        while True:
            held = resident(pid)
            if not held:
                return
            most[0] = max(most[0], held)
            time.sleep(0.03)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()

    def said() -> int:
        looking.join(60)
        return most[0]

    return said


def resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = [child for task in os.listdir(f"/proc/{pid}/task")
                    for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]  # fmt: skip
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(resident(int(child)) for child in children)
