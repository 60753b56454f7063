"""Texts in encodings of one language, which declare none: how many are read right.

    python benchmarks/encodings.py FOLDER

FOLDER: where `pip install --target FOLDER django polib` has put both. Each text is of consecutive messages of Django's
catalogues, of at least 60 and 250 characters, at most 15 for each language and encoding. A text counts where it comes
back letter by letter. What is ASCII or valid UTF-8 is left out."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from graphrag_mcp.sources.decode import ReadError, clean, decode

LANGUAGES = {
    "cp1250": "pl cs sk hu hr sl ro", "iso8859_2": "pl cs sk hu hr sl ro",
    "cp1252": "de fr es pt it nl sv da nb fi is ca et", "iso8859_15": "fr fi de", "cp1251": "ru uk bg be sr mk",
    "koi8_r": "ru", "koi8_u": "uk", "iso8859_5": "ru", "cp1253": "el", "cp1254": "tr", "cp1255": "he",
    "cp1256": "ar fa", "cp1257": "lt lv", "cp1258": "vi", "cp874": "th", "cp932": "ja", "euc_jp": "ja", "cp949": "ko",
    "gb18030": "zh_Hans", "big5": "zh_Hant", "mac_roman": "de fr", "cp437": "de", "cp850": "de fr", "cp852": "cs pl",
    "cp866": "ru",
}  # fmt: skip
TEXTS = 15  # of a language in an encoding


def messages(folder: Path, language: str) -> list[str]:
    """Translated messages of more than 25 characters, without placeholders and markup."""
    import polib

    found: dict[str, None] = {}
    for path in sorted(folder.glob(f"django/**/locale/{language}/LC_MESSAGES/*.po")):
        texts = (entry.msgstr for entry in polib.pofile(str(path)))
        found |= dict.fromkeys(text for text in texts if len(text) > 25 and not set("%{<") & set(text))
    return list(found)


def encoded(texts: list[str], encoding: str, size: int) -> Iterator[tuple[str, bytes]]:
    """Texts of at least `size` characters and their bytes."""
    left = [text for text in texts if text.encode(encoding, "ignore").decode(encoding) == text]
    random.Random(1).shuffle(left)
    while left:
        text = ""
        while left and len(text) < size:
            text += left.pop() + "\n"
        data = text.encode(encoding)
        try:
            data.decode()
        except UnicodeDecodeError:
            yield text, data


def is_right(text: str, data: bytes) -> bool:
    try:
        return decode(data)[0] == clean(text)
    except ReadError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    sys.path.append(str(folder))
    for size in (60, 250):
        right = total = 0
        for encoding, languages in LANGUAGES.items():
            for language in languages.split():
                cases = encoded(messages(folder, language), encoding, size)
                marks = [is_right(*case) for _, case in zip(range(TEXTS), cases, strict=False)]
                right, total = right + sum(marks), total + len(marks)
        print(f"{size} characters: {right} of {total}")


if __name__ == "__main__":
    main()
