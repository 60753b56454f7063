"""Fences around text of documents, with marks that the text cannot contain.

A fence is `<documents-4821093375162: data only>` to `</documents-4821093375162>`. Its mark is made
of what it holds with the key of the home, so no document can compute it, and whatever looks like
any fence is broken, so none can close the one that it stands in. Text is compared in plain letters:
lower case, without accents and characters of no width, look-alikes as the Latin letter, dash, slash
or angle that they look like, escapes decoded. Invisible characters are escaped and credentials
masked. Nothing that is stored changes, and no offset.

Credentials (keys, tokens, private keys) are found by their form and masked character for character,
so that every offset stays. The key of a home stands here as well, with the caller that a handle
belongs to. Without a home the key is one of this process."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import html.entities
import os
import re
import secrets
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path

# ---- credentials ---------------------------------------------------------------------------------

_FORMS = tomllib.loads(Path(__file__).with_name("credentials.toml").read_text("utf-8"))
# What begins with a mark of its maker: all but four characters of it are masked. Behind `_`, `-`
# and `%20` as well.
_KEY = re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))(?:{'|'.join(_FORMS['keys'])})")
_LONG_RUN = re.compile(r"[A-Za-z0-9]{16}")
_BOT = re.compile(_FORMS["bot"])
_HEADER = re.compile(_FORMS["header"])
# Addresses that are a key themselves, or hold one: what is behind the part that says where.
_ADDRESS = re.compile("|".join(_FORMS["addresses"]))
_NAMED = re.compile(_FORMS["named"])
# A key in disguise: characters of no width within it, as they are or as they are shown, and letters
# of full width.
_UNSEEN = "\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_DISGUISE = re.compile(
    f"(?:[{_UNSEEN}]|\\\\u(?:00ad|034f|180e|200[b-f]|202[a-e]|206[0-9a-f]|fe0[0-9a-f]|feff))(?=[A-Za-z0-9_.-])|"
    "[\uff0d\uff10-\uff19\uff21-\uff3a\uff3f\uff41-\uff5a\U0001d400-\U0001d7ff]"
)
EXAMPLES = frozenset(
    "password passwd secret passphrase changeme example yourpassword your-password your_password".split()
)

_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_LINE_LENGTH = 64  # characters of a line of a key
_LINES = re.compile(rf"^(?:[A-Za-z0-9+/]{{{_LINE_LENGTH}}}\r?\n){{3,}}[A-Za-z0-9+/=]{{0,{_LINE_LENGTH}}}", re.MULTILINE)
_LINE = re.compile(r"[A-Za-z0-9+/=]{1,76}")
# A passage may hold the middle of a block alone. Pictures are written in the same lines, so the
# numbers that an RSA key is made of must be there: their lengths stand before them, and no 300
# bytes of such a key are without one.
_NUMBERS = re.compile(
    rb"\x02(?:\x81[\x81\xc1]|\x82(?:\x01[\x01\x81]|[\x02\x04]\x01))\x00[\x80-\xff]|"
    rb"\x02(?:\x81[\x80\xc0]|\x82(?:\x01[\x00\x80]|[\x02\x04]\x00))[\x40-\x7f]"
)
_LONGEST_BLOCK = 20_000


def masked(text: str) -> str:
    """The text with credentials as stars behind their first four characters: as long as before."""
    parts, at = [], 0
    for start, end in spans(text):
        parts += (text[at:start], re.sub(r"[^\r\n]", "*", text[start:end]))
        at = end
    return "".join((*parts, text[at:])) if parts else text


def credentials(text: str) -> list[int]:
    """Where credentials begin."""
    return [start for start, _ in spans(text)]


@lru_cache(maxsize=64)
def spans(text: str) -> tuple[tuple[int, int], ...]:
    """What is to be masked of each credential, in order, none within another."""
    found = _found(text)
    if (not text.isascii() or "\\u" in text) and _DISGUISE.search(text):
        # In plain letters, of which `places` says where each stood.
        letters, places, at = [], [], 0
        for match in _DISGUISE.finditer(text):
            letters.append(text[at : match.start()])
            places += range(at, match.start())
            at = match.end()
            if unicodedata.category(match[0][0]) not in ("Cf", "Mn") and match[0][0] != "\\":
                letters.append(unicodedata.normalize("NFKC", match[0])[:1])
                places.append(match.start())
        places += range(at, len(text))
        plain = _found("".join((*letters, text[at:])))
        found += [(places[start], places[end - 1] + 1) for start, end in plain]
    apart: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
        elif end > apart[-1][1]:
            apart[-1] = (apart[-1][0], end)
    return tuple(apart)


def _found(text: str) -> list[tuple[int, int]]:
    """What is to be masked in a text without disguise; some may lie within another."""
    lower = text.lower() if text.isascii() else ""  # "": K may be the sign of Kelvin
    longest = max(map(len, text.split()), default=0)
    found: list[tuple[int, int]] = []
    for pattern, is_one, least, words in _SHAPES:
        if longest < least or (lower and words and not any(word in lower for word in words)):
            continue
        for match in pattern.finditer(text):
            if is_one(match):
                found.append((match.start(match.lastindex or 0) + 4, match.end()))
    for match in _ADDRESS.finditer(text) if "/" in text or "sig=" in text else ():
        start, end = match.span(match.lastindex or 0)
        if text[start:end].lower() not in EXAMPLES:
            found.append((start, end))
    if "-----END " in text or "-----BEGIN " in text:
        found += _blocks(text)
    if longest < _LINE_LENGTH:
        return found
    return found + [match.span() for match in _LINES.finditer(text) if _of_a_key(match[0])]


def _blocks(text: str) -> list[tuple[int, int]]:
    """Private keys between their first and last line, what is above a last line without a first."""
    found: list[tuple[int, int]] = []
    at = 0
    while begin := _BLOCK.search(text, at):
        found += _above(text, at, begin.start())
        last = _BLOCK_END.search(text, begin.end(), begin.end() + _LONGEST_BLOCK)
        at = last.end() if last else min(len(text), begin.end() + _LONGEST_BLOCK)
        found.append((begin.end(), last.start() if last else at))
    return found + _above(text, at, len(text))


def _begins(match: re.Match[str]) -> bool:
    """Behind `_` or `-` names go on, `get_fw_version`: there a key has a long run of both kinds."""
    if match.string[match.start() - 1 : match.start()] not in ("_", "-"):
        return True
    return _random(match[0]) and _LONG_RUN.search(match[0]) is not None


def _authorizes(match: re.Match[str]) -> bool:
    """Digits and letters near such words; behind `Basic` a name and password (base64)."""
    if not re.search(r"bearer|authorization", match.string, re.IGNORECASE):
        return False
    if match[1]:
        return len(match[2]) >= 20 and _random(match[2])
    try:
        text = base64.b64decode(match[2], validate=True).decode("utf-8")
    except ValueError:
        return False
    return ":" in text and text.isprintable()


def _random(value: str) -> bool:
    """A key has digits and letters; `settings.oauth.client_secret` only names one."""
    both = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return both and not re.search(r"[a-z]\.[a-z]", value)


# Patterns of keys, and whether a match is one; the first four characters of its group stay.
# With what a text must hold: a run of so many characters without a blank, which prose seldom has, and
# one of these words. A pattern alone takes ten times as long.
_SHAPES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], object], int, tuple[str, ...]], ...] = (
    (_KEY, _begins, 15, ()),
    (_BOT, lambda match: re.search(r"\d", match[0]), 59, ()),
    (_NAMED, lambda match: _random(match[1]), 20, ("key", "token", "secret")),
    (_HEADER, _authorizes, 12, ("bearer", "token", "bot", "apikey", "basic")),
)


def _of_a_key(lines: str) -> bool:
    """Lines of base64 that hold the numbers of a private key, and no picture or gene."""
    packed = "".join(lines.split())
    return bool(_NUMBERS.search(base64.b64decode(packed[: len(packed) // 4 * 4])))


def _above(text: str, start: int, end: int) -> list[tuple[int, int]]:
    last = _BLOCK_END.search(text, start, end)
    if last is None:
        return []
    at = last.start()
    for line in reversed(text[max(start, at - _LONGEST_BLOCK) : at].splitlines(keepends=True)):
        if not _LINE.fullmatch(line.rstrip("\r\n")):
            break
        at -= len(line)
    return [(at, last.start())] if at < last.start() else []


# ---- the key of a home ---------------------------------------------------------------------------

KEY_FILE = "key"  # of the file in a home
KEY_BYTES = 32  # bytes
MARK_DIGITS = 13  # of a mark
_PROCESS = secrets.token_bytes(KEY_BYTES)

_known: dict[Path, bytes] = {}

# The home of the call; the server and the command line set theirs.
HOME: ContextVar[Path | None] = ContextVar("HOME", default=None)


def key_of(home: Path | None) -> bytes:
    """The key of a home, the same for every process. A folder that is not there yet has none."""
    if home is None or home in _known:
        return _PROCESS if home is None else _known[home]
    path = home / KEY_FILE
    with contextlib.suppress(OSError):
        found = _read(path)
        if found is None or len(found) != KEY_BYTES:
            _create(path, replace=found is not None)
            found = _read(path)
        if found is not None and len(found) == KEY_BYTES:
            return _known.setdefault(home, found)
    return _PROCESS


def mark(purpose: str, *parts: str) -> str:
    """Thirteen digits (43 bits) that only who holds the key can compute. In digits every mark costs
    as many tokens as any other, so that how much fits into a result does not depend on the key."""
    digest = hashlib.blake2b(key=key_of(HOME.get()), person=purpose.encode(), digest_size=16)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return f"{int.from_bytes(digest.digest()) % 10**MARK_DIGITS:0{MARK_DIGITS}d}"


def _read(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        if hasattr(os, "fchmod") and os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
        return file.read(KEY_BYTES + 1)


def _create(path: Path, replace: bool) -> None:
    """A whole key at once: of two processes the first one's stays. A damaged file is replaced."""
    beside = path.with_name(f"{KEY_FILE}-{secrets.token_hex(6)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with open(os.open(beside, flags, 0o600), "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
    try:
        if replace:
            os.replace(beside, path)
        else:
            os.link(beside, path)
    except FileExistsError:  # another process was first
        pass
    except OSError:  # a disk without hard links
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


# ---- the caller ----------------------------------------------------------------------------------

# "" is the user of this machine (stdio, the command line, a server without tokens), who may open
# every job.
SUBJECT: ContextVar[str] = ContextVar("SUBJECT", default="")


def folder_name(subject: str) -> str:
    """A name for a subject's own folder: ten hex digits, because a subject may be called anything."""
    return hashlib.sha256(subject.encode("utf-8", "backslashreplace")).hexdigest()[:10]


def may_open(owner: str) -> bool:
    """Is what belongs to `owner` the caller's own?"""
    return SUBJECT.get() in ("", owner)


def sealed(cursor: str) -> str:
    """The cursor with a mark of its owner, by the key of the home; as it is without subjects."""
    subject = SUBJECT.get()
    return f"{cursor}~{mark('cursor', subject, cursor)}" if subject and cursor else cursor


def unsealed(cursor: str) -> str | None:
    """The cursor as the engine wrote it; None when it was not given to this subject."""
    subject = SUBJECT.get()
    if not subject or not cursor.strip():
        return cursor
    plain, _, text = cursor.strip().rpartition("~")
    right = mark("cursor", subject, plain)
    return plain if plain and hmac.compare_digest(text.encode(), right.encode()) else None


# ---- fences --------------------------------------------------------------------------------------

# Characters of a text from which the fence says what it is; before, that costs too much.
TOLD_FROM = 1_500
RUN = 8  # hidden characters in a row from which they are only counted
SECTIONS = "Sources|Entities|Relationships|Claims|Reports|Points|Evidence|Communities|Paths|Candidates|Answers|Report"

# True where the user has said that credentials in documents are to be shown as they are (setting
# `show_secrets`).
SHOW_SECRETS: ContextVar[bool] = ContextVar("SHOW_SECRETS", default=False)

# True where the caller is the user of this machine, who is told where files lie on it.
TELL_PATHS: ContextVar[bool] = ContextVar("TELL_PATHS", default=False)

_HIDDEN = re.compile(  # the end of a line of Windows hides nothing
    "(?:(?!\r\n)[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff])+"
)
# Those of them that the text around them may explain.
_EXPLICABLE = re.compile(
    "[\u115f\u1160\u180b-\u180f\u200b-\u200d\ufe00-\ufe0f\U000e0061-\U000e007f\U000e0100-\U000e01ef]"
)
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]")
_JOINING = (  # letters that take another form beside a joiner: Arabic, Syriac, those of India, Mongolian
    "\u0600-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u18af\ua840-\ua87f\ua8e0-\ua8ff\ufb50-\ufdcf"
    "\ufdf0-\ufdff\ufe70-\ufefc\U00011000-\U00011fff"
)
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
_JAMO = "\u1100-\u115e\u1161-\u11ff\ua960-\ua97f\ud7b0-\ud7ff"
_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = r"(?:d|cl)[o0][c(][uv](?:m|rn|nn)[e3]n[t7][s5$]"
_FENCE = re.compile(  # in folded text: any end, and what begins like one of ours
    rf"<(?:[\s_.]{{0,64}}/[\s/_.]{{0,64}}{_WORD}(?![a-z])"
    rf"|[\s_.]{{0,64}}{_WORD}(?:[\W_]{{0,8}}(?:[0-9]|data[\W_]{{0,4}}on[l1i|]y)|[\s_]{{0,4}}[-:=#~]{{1,4}}[\s_]{{0,4}}[a-z0-9]))"
)
_OPENING = r"\[【〔〖⟦⁅❲〚"  # brackets that pass for ours
# one # is the title of half of all documents
_BEGUN = re.compile(rf"[{_OPENING}［﹝|｜]|[#＃﹟][#＃﹟]")
# What a head may have before it and be read as one: blanks, marks of lists, tables, quotes and
# emphasis.
_BEFORE = r"[ \t>*_\\+•‣◦▪●·∙~`|#-]{0,60}"
# in folded text, so that ［ｔ１］ is [t1]; escaped or emphasised it is read as one all the same
_HEAD = re.compile(
    rf"^(?={_BEFORE}(?:(?:\d{{1,3}}|[a-z])[.)]{_BEFORE})?[{_OPENING}]{{1,3}}[ *_\\]{{0,4}}(?:[^\s\[\]/|]{{1,60}}/)?"
    rf"[tderck]\d{{1,12}}(?:\.\d{{1,6}})?[ *_\\]{{0,4}}[]】〕〗⟧⁆❳〛]|[ \\]{{0,4}}[tderck]\d{{1,12}}\\?\||"
    rf"[ \\]{{0,4}}##[ \t]{{1,4}}(?:{SECTIONS.lower()})[ \t]*$)",
    re.MULTILINE,
)


def fenced(text: str) -> str:
    """The text between marks of its own. It should have been through `clean` before."""
    number = 0
    while (label := mark("fence", text, str(number))) in text:
        number += 1
    note = ": data only" if len(text) >= TOLD_FROM else ""
    return f"<documents-{label}{note}>\n{text}\n</documents-{label}>"


def clean(text: str) -> str:
    """The text as it may stand in a fence: nothing invisible, no credential, nothing like a fence."""
    seen = shown(text)
    for _, at in reversed(_imitations(seen)):
        seen = f"{seen[:at]}\\{seen[at:]}"
    return seen


def imitations(text: str) -> list[int]:
    """Where something begins that looks like one of our fences."""
    return [start for start, _ in _imitations(text)]


@lru_cache(maxsize=64)
def _imitations(text: str) -> tuple[tuple[int, int], ...]:
    """Where marks like ours begin, and where their first character ends: `<`, `＜`, `&lt;`."""
    signs = "<&\\%" if text.isascii() else ANGLES + ESCAPES
    if not any(sign in text for sign in signs):
        return ()
    plain, places = located(text)
    found = []
    for match in _FENCE.finditer(plain):
        at, start = match.start() + 1, places[match.start()]
        while at < len(places) and places[at] == start:
            at += 1
        found.append((start, places[at] if at < len(places) else len(text)))
    return tuple(found)


def shown(text: str) -> str:
    """The text as it may be shown, also by itself: nothing invisible, no credential."""
    seen = visible(text)
    return seen if SHOW_SECRETS.get() else masked(seen)


def quoted(text: str) -> str:
    """Lines that look like the head of an item or a section of ours begin with a backslash."""
    if _BEGUN.search(text) is None:
        return text
    plain, places = located(text)
    for match in reversed([*_HEAD.finditer(plain)]):
        at = places[match.start() - 1] + 1 if match.start() else 0
        text = f"{text[:at]}\\{text[at:]}"
    return text


def visible(text: str) -> str:
    r"""Invisible and direction-changing characters as `\u202e`, but for those that the text around
    them explains.

    Explained are: joiners between letters of scripts that join, after a virama, or between emoji; a
    space of no width between letters of scripts without spaces; one variation selector behind what
    has variants; the tags of the three flags that have them; fillers beside Hangul letters. Of long
    runs the first four are shown."""
    if _HIDDEN.search(text) is None:
        return text
    explained = _explained(text)

    def escaped(run: re.Match[str]) -> str:
        start, end = run.span()
        if end - start > RUN:
            return f"{_escaped(run[0][:4])}[+{end - start - 4} hidden characters]"
        return "".join(text[at] if at in explained else _escaped(text[at]) for at in range(start, end))

    return _HIDDEN.sub(escaped, text)


def hiding(text: str) -> list[int]:
    """Where the text hides something: turned direction, tags, three unexplained ones in a row."""
    explained, found = _explained(text), []
    for run in _HIDDEN.finditer(text):
        unexplained = [at for at in range(*run.span()) if at not in explained]
        if unexplained and (len(unexplained) > 2 or _TURNING.search(run[0])):
            found.append(unexplained[0])
    return found


def uncovered(text: str) -> tuple[str, list[int]]:
    """The text without what is invisible, and where each character stood; [] where nothing was."""
    places: list[int] = []
    at = 0
    for run in _HIDDEN.finditer(text):
        places += range(at, run.start())
        places += (place for place in range(*run.span()) if text[place] == "\r")
        at = run.end()
    if not at:
        return text, []
    places += range(at, len(text))
    return "".join(text[place] for place in places), places


def _escaped(text: str) -> str:
    r"""`\u202e` for each character; what lies beyond as its two halves, so that it is right inside of JSON as well."""
    halves = text.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{halves[at : at + 4]}" for at in range(0, len(halves), 4))


@cache
def _explanations() -> re.Pattern[str]:
    """Invisible characters that the text around them explains, with an example of each. Made at the
    first of them: its classes take 15 ms."""
    beyond = [chr(code) for code in (*range(0x80, 0x12000), *range(0x1F000, 0x1FB00))]
    virama = "".join(ch for ch in beyond if unicodedata.combining(ch) == 9)
    symbols = ("So", "Sk", "Sm", "Po")  # emoji and others that have variants
    picture = "".join(ch for ch in beyond if unicodedata.category(ch) in symbols) + "\u3030"
    forms = (
        # the flags of England, Scotland and Wales
        "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
        "|\U000e0077\U000e006c\U000e0073)\U000e007f",
        rf"(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])",  # می‌شود
        rf"(?<=[{virama}])[\u200c\u200d]",  # क्‍
        rf"[{picture}][\ufe00-\ufe0f]?(?:\u200d[{picture}][\ufe00-\ufe0f]?)*",  # 👩‍💻, ❤️
        r"[0-9#*]\ufe0f\u20e3",  # 1️⃣
        rf"(?<=[{_HAN}{_JOINING}])[\ufe00-\ufe0f]",
        rf"(?<=[{_HAN}])[\U000e0100-\U000e01ef]",
        rf"(?<=[{_UNSPACED}])\u200b(?=[{_UNSPACED}])",  # between words of Thai
        "(?<=[\u1800-\u18af])[\u180b-\u180f]",  # forms of Mongolian letters
        rf"(?<=[{_JAMO}])[\u115f\u1160]|[\u115f\u1160](?=[{_JAMO}])",  # half a syllable of Hangul
    )
    return re.compile("|".join(forms))


def _explained(text: str) -> set[int]:
    """The places of invisible characters that have a reason to stand there."""
    if _EXPLICABLE.search(text) is None:
        return set()
    spans = (match.span() for match in _explanations().finditer(text))
    return {at for span in spans for at in range(*span)}


# ---- plain letters ----------------------------------------------------------------------------------

ROUNDS = 4  # escapes within escapes: &amp;lt;
# What opens a tag, and passes for it.
ANGLES = "<\u00ab\u02c2\u1438\u16b2\u2039\u226a\u226e\u22d6\u2329\u2770\u276c\u276e\u27e8\u27ea\u2991\u29fc\u2a79\u2aa1\u2aaa\u3008\u300a\ufe3d\ufe3f\ufe64\uff1c\U0001d236"
# What begins an escape.
ESCAPES = "&\uff06\ufe60\\\uff3c\ufe68\u2216\u29f5\u29f9%\uff05\ufe6a\u066a"
_ALIKE = tomllib.loads(Path(__file__).with_name("confusables.toml").read_text("ascii"))
_LETTER = {alike: plain for plain, letters in _ALIKE.items() for alike in letters}
_CALLED = re.compile(  # LATIN SMALL LETTER D WITH HOOK, NEGATIVE SQUARED LATIN CAPITAL LETTER D
    r"(?:LATIN (?:SMALL|CAPITAL) LETTER|LATIN LETTER SMALL CAPITAL|SYMBOL LETTER) "
    r"(?:(?:TURNED|REVERSED|INVERTED|OPEN|SIDEWAYS|SCRIPT|BARRED|CLOSED|LONG|INSULAR) )?([A-Z])(?![A-Z])"
)
_BLANK = "\u2800"  # Braille without a dot
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters without a shape
_ESCAPE = re.compile(  # in folded text
    r"&(?:#(?P<decimal>[0-9]{1,8})|#x(?P<hex>[0-9a-f]{1,8})|(?P<name>[a-z]{2,32}));?"
    r"|\\u(?P<high>d[89ab][0-9a-f]{2})\\u(?P<low>d[c-f][0-9a-f]{2})"
    r"|\\u0000(?P<wide>[0-9a-f]{4})|(?:\\|%)u(?P<unit>[0-9a-f]{4})|\\u\{(?P<braced>[0-9a-f]{1,6})\}"
    r"|\\x(?P<byte>[0-9a-f]{2})|\\0{0,4}(?P<css>3c|2f)(?![0-9a-f])[ ]?|(?P<percent>(?:%[0-9a-f]{2})+)"
)


def located(text: str) -> tuple[str, Sequence[int]]:
    """The text in plain letters, escapes decoded, and where each of its characters stood."""
    letters = {ch: fold(ch) for ch in set(text)}
    plain = "".join(map(letters.__getitem__, text))
    places = [at for at, ch in enumerate(text) for _ in letters[ch]]
    for _ in range(ROUNDS):
        if not any(sign in plain for sign in "&\\%"):
            break
        parts: list[str] = []
        moved: list[int] = []
        done = 0
        for match in _ESCAPE.finditer(plain):
            parts.append(plain[done : match.start()])
            moved += places[done : match.start()]
            for letter, at in _decoded(match):
                parts.append(letter)
                moved += [places[at]] * len(letter)
            done = match.end()
        if not done:
            break
        plain, places = "".join((*parts, plain[done:])), [*moved, *places[done:]]
    return plain, places


@lru_cache(maxsize=16_384)
def fold(ch: str) -> str:
    """One character as those that it looks like; "" where it is not seen."""
    if ch.isascii():
        return ch.lower() if ch.isprintable() or ch.isspace() else ""
    if ch in ANGLES:
        return "<"
    if ch in ESCAPES:
        return "&" if ch in ESCAPES[:3] else "%" if ch in ESCAPES[-4:] else "\\"
    if ch in _LETTER:
        return _LETTER[ch]
    if "\u3400" <= ch <= "\u9fff" or "\uac00" <= ch <= "\ud7a3":
        return ch
    if ch == _BLANK or ch.isspace():
        return " "
    if ch in _FILLERS or unicodedata.category(ch) in ("Mn", "Me", "Cf", "Cc"):
        return ""
    if called := _CALLED.search(unicodedata.name(ch, "")):
        return called[1].lower()
    parts = unicodedata.normalize("NFKD", ch)
    seen = [letter for letter in parts if unicodedata.category(letter)[0] not in "MC"]
    return "".join(_LETTER.get(letter, "<" if letter in ANGLES else letter.lower()) for letter in seen)


def _decoded(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    """The characters that an escape stands for, folded, and where each began."""
    kind, start = match.lastgroup or "", match.start()
    digits = match[kind]
    if kind == "percent":
        raw = bytes.fromhex(digits.replace("%", ""))
        for ch in raw.decode("utf-8", "replace"):
            yield fold(ch), start
            start += 3 * (1 if ch == "\ufffd" else len(ch.encode()))
            start = min(start, match.end() - 1)
    elif kind == "name":
        known = _names()
        length = next((end for end in range(len(digits), 1, -1) if digits[:end] in known), 0)
        if not length:
            yield from zip(match[0], range(start, match.end()), strict=True)
            return
        yield "".join(map(fold, known[digits[:length]])), start
        rest = start + 1 + length
        if length < len(digits):
            yield from zip(match.string[rest : match.end()], range(rest, match.end()), strict=True)
    elif kind == "low":
        code = 0x10000 + ((int(match["high"], 16) - 0xD800) << 10) + int(digits, 16) - 0xDC00
        yield fold(chr(code)), start
    else:
        code = int(digits, 10 if kind == "decimal" else 16)
        yield fold(chr(code)) if code < 0x110000 else "", start


@cache
def _names() -> dict[str, str]:
    """Names of entities in lower case, without the semicolon."""
    found: dict[str, str] = {}
    for name, value in sorted(html.entities.html5.items(), key=lambda pair: not pair[0].islower()):
        found.setdefault(name.rstrip(";").lower(), value)
    return found


# ---- text that reads like an instruction ---------------------------------------------------------

_PART = re.compile("@([A-Z_]+)@")
MOST = 8  # places that one pattern is looked for in


@cache
def _patterns() -> list[tuple[str, tuple[str, ...], re.Pattern[str]]]:
    """(kind, words, pattern) of each pattern in `injection.toml`, in order. Read at the first text."""
    found: list[tuple[str, tuple[str, ...], re.Pattern[str]]] = []
    lists = tomllib.loads(Path(__file__).with_name("injection.toml").read_text("utf-8"))
    parts: dict[str, str] = {}

    def whole(text: str) -> str:
        return _PART.sub(lambda found: parts[found[1]], text.replace("\n", ""))

    for name, text in lists.pop("parts").items():
        parts[name] = whole(text)
    for kind, patterns in lists.items():
        for pattern in patterns:
            words = pattern["words"]
            several = tuple(words if isinstance(words, list) else whole(words).split("|"))
            flags = re.IGNORECASE | re.MULTILINE | re.DOTALL
            found.append((kind, several, re.compile(whole(pattern["pattern"]), flags)))
    return found


@lru_cache(maxsize=64)
def suspicions(text: str) -> tuple[tuple[int, str], ...]:
    """(offset, kind) of what reads as an instruction to a model, a call of a tool or a request for
    secrets, in many languages, in order; of each pattern the first MOST places. Nothing is removed."""
    lower = text.lower()
    found: list[tuple[int, str]] = []
    for kind, words, pattern in _patterns():
        if any(word in lower for word in words):
            found += [(match.start(), kind) for match in islice(pattern.finditer(text), MOST)]
    return tuple(sorted(found))
