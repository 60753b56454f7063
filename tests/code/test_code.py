"""Source code: definitions with exact spans, passages that are definitions, files that are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.code import grammars
from graphrag_mcp.code.parse import parse
from graphrag_mcp.index.chunk import ChunkParams, chunk
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest

SESSIONS = '''"""Sessions keep cookies.

More about it.
"""
from __future__ import annotations

import os.path as p
from .adapters import HTTPAdapter
from . import hooks

LIMIT = 30


class Base:
    def close(self):
        """Close it."""


# A session of a client.
# It is kept open.
@final
class Session(Base):
    def __init__(self):
        self.adapter = HTTPAdapter()

    async def send(
        self, request, *, timeout: int = 3
    ) -> bool:  # may raise
        """Send ä request.

        Long.
        """
        self.close()
        hooks.dispatch(request)
        return self.adapter.deliver(request)


def session():
    return Session()
'''


def test_python_definitions_have_exact_spans_signatures_and_docstrings() -> None:
    file = parse("lab/requests/sessions.py", SESSIONS)
    assert file is not None
    assert [(one.name.removeprefix("lab.requests.sessions"), one.kind) for one in file.symbols] == [
        ("", "module"), (".LIMIT", "constant"), (".Base", "class"), (".Base.close", "method"), (".Session", "class"),
        (".Session.__init__", "method"), (".Session.send", "method"), (".session", "function"),
    ]  # fmt: skip
    by_name = {one.short: one for one in file.symbols}
    send = by_name["send"]
    assert SESSIONS[send.start : send.end].startswith("async def send(") and SESSIONS[send.start : send.end].endswith("deliver(request)")
    assert send.signature == "async def send( self, request, *, timeout: int = 3 ) -> bool"
    assert (send.doc, file.symbols[0].doc) == ("Send ä request.", "Sessions keep cookies.")
    assert SESSIONS[by_name["Session"].start :].startswith("@final\nclass Session")
    assert by_name["send"].parent == "lab.requests.sessions.Session"


def test_uses_say_what_is_called_in_what_and_on_which_type() -> None:
    file = parse("lab/requests/sessions.py", SESSIONS)
    assert file is not None
    told = [(one.kind, one.name, one.receiver, one.type, one.inside.rpartition(".")[2]) for one in file.references]
    assert ("inherits", "Base", "", "", "Session") in told
    assert ("calls", "close", "self", "lab.requests.sessions.Session", "send") in told
    assert ("calls", "deliver", "self.adapter", "lab.requests.sessions.Session.adapter", "send") in told
    assert file.variables["Session.adapter"] == "HTTPAdapter()"
    assert ("calls", "dispatch", "hooks", "", "send") in told and ("calls", "Session", "", "", "session") in told
    assert [SESSIONS[one.start : one.end] for one in file.references if one.inside.endswith(".send") and one.kind == "calls"] == [
        "self.close()", "hooks.dispatch(request)", "self.adapter.deliver(request)",
    ]  # fmt: skip
    assert {(one.local, one.target) for one in file.imports} >= {
        ("p", ":os.path"), ("HTTPAdapter", "lab.requests.adapters.HTTPAdapter"), ("hooks", "lab.requests.hooks"),
    }  # fmt: skip


DEEP = {
    "a chain": "x = (f" + " +\n f" * 20_000 + ")\n", "a line": f"x = 1{' + 1' * 20_000}\n",
    "brackets": f"x = {'(' * 3_000}1{')' * 3_000}\n", "conditions": "x = " + "a if b else " * 990 + "c\n",
    "in a function": "def mid():\n    def inner(): pass\n    return (f" + " +\n f" * 20_000 + ")\n",
}  # fmt: skip


@pytest.mark.parametrize("extra", [True, False])
@pytest.mark.parametrize("deep", DEEP)
def test_an_expression_deeper_than_the_parser_follows_takes_no_definition_away(
    deep: str, extra: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grammars, "_query", grammars._query if extra else lambda language: None)
    file = parse("lab/a.py", f"def before(): pass\n{DEEP[deep]}\ndef after(): before()\n")
    assert file is not None
    assert {"lab.a.before", "lab.a.after"} | ({"lab.a.mid.inner"} if "mid" in DEEP[deep] else set()) <= {one.name for one in file.symbols}
    assert [one.inside for one in file.references if one.name == "before"] == ["lab.a.after"]


def test_what_is_no_source_or_broken_never_raises() -> None:
    assert parse("lab/notes.md", "def f(): pass") is None
    for broken in ("def f(:\n  pass", "x = '\0'", "(" * 5_000, "print 'two'\n"):
        file = parse("lab/broken.py", broken)  # a grammar, where there is one, reads what it can
        assert file is None or file.symbols[0].kind == "module"


def test_line_ends_of_every_kind_and_wide_characters_keep_spans_exact() -> None:
    text = 'a = "😀ä"; b = f("ß")\r\ndef f(x):\r\n    return "\x0c\u2028"\r\ndef g(): return f("é😀") or f(1)\n'
    file = parse("lab/a.py", text)
    assert file is not None
    assert [text[one.start : one.end] for one in file.references] == ['f("ß")', 'f("é😀")', "f(1)"]
    assert text[file.symbols[-1].start :].startswith("def g()")


def test_passages_begin_at_definitions_with_the_comments_above_them() -> None:
    body = "\n".join(f"        value_{at} = weigh(crate, {at})" for at in range(12))
    text = f"import os\n\n\ndef first():\n{body}\n\n\n# Says what second does.\n@cached\ndef second():\n{body}\n\n\nclass Third:\n    def inner(self):\n{body}\n"
    file = parse("lab/a.py", text)
    assert file is not None
    units = chunk(text, ChunkParams(), file.breaks(text))
    starts = [text[part.start :].partition("\n")[0] for unit in units for part in unit.passages]
    assert starts == ["import os", "# Says what second does.", "class Third:"]


def test_a_file_is_found_by_its_module_and_the_definitions_of_a_passage(tmp_path: Path) -> None:
    filler = "\n".join(f"        total_{at} = weigh(crate_{at})" for at in range(40))
    (tmp_path / "docs" / "pkg").mkdir(parents=True)
    for name in ("alpha", "beta", "gamma"):
        text = f"class Handler:\n    def run(self):\n{filler}\n\n    def stop(self):\n{filler}\n"
        (tmp_path / "docs" / "pkg" / f"{name}.py").write_text(text, "utf-8")
    index_documents(tmp_path / "c", IndexRequest(paths=(str(tmp_path / "docs"),)), Settings(home=tmp_path, roots=[str(tmp_path)]))
    result = local_search(open_snapshot(tmp_path / "c"), "Handler.stop in pkg.beta fails", max_tokens=4_000)
    assert result.citations[0].uri.endswith("pkg/beta.py") and result.citations[0].line_start > 40
