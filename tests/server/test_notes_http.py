"""Notes over HTTP: several writers, tenants, and a server that only reads."""

from __future__ import annotations

from pathlib import Path

import anyio

from tests.support.http_server import ALICE, BOB, TOKENS, bad, client, good, running, served

LEDGER = "# Ledger\n\nTobias Fenn paid 300 crowns for the mast in March 1962.\n"
TENANTS = ",".join(f"{one.partition('=')[0]}=team-{at}" for at, one in enumerate(TOKENS.split(",")))


def command(home: Path, root: Path, *options: str) -> list[str]:
    made = served(home, "--notes", str(root / "notes"), *options)
    made[made.index("--root") + 1] = str(root)
    return made


def test_writers_of_one_note_lose_nothing_and_of_two_that_replace_it_one_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "ledger.md").write_text(LEDGER, "utf-8")
    with running(command(tmp_path / "home", root), tmp_path / "log") as (_, port):

        async def work() -> None:
            async with client(port) as one, client(port) as two:
                await good(one, "index_documents", paths=["."], wait_seconds=40)
                first = await good(one, "write_note", title="Mast", text="Paid by Fenn [d1].")
                async with anyio.create_task_group() as group:
                    for number in range(3):
                        for at, who in enumerate((one, two)):
                            said = {"title": "MAST", "text": f"Line {at} {number} [d1].", "op": "append"}
                            group.start_soon(lambda who=who, said=said: good(who, "write_note", **said))
                written = (root / "notes" / "Mast.md").read_text("utf-8")
                assert [f"Line {at} {n} [1]." in written for n in range(3) for at in (0, 1)] == [True] * 6
                assert written.count("]: ../ledger.md") == 1
                assert [file.name for file in (root / "notes").glob("*.md")] == ["Mast.md"]
                stale = {"title": "Mast", "op": "replace", "check": first["check"]}
                assert "has another check value" in await bad(one, "write_note", text="Mine.", **stale)
                now = await good(two, "get_source", ids=[first["id"]])
                check = now["text"].partition("its check value ")[2][:12]
                both: list[bool] = []

                async def replace(who, text: str) -> None:
                    done = {"title": "Mast", "op": "replace", "check": check, "text": text}
                    both.append((await who.call_tool("write_note", done)).is_error)

                async with anyio.create_task_group() as group:
                    group.start_soon(replace, one, "From one.")
                    group.start_soon(replace, two, "From two.")
                assert sorted(both) == [False, True]

        anyio.run(work)


def test_a_tenant_reads_and_writes_its_own_notes_alone(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    for at in (0, 1):
        (root / f"team-{at}").mkdir(parents=True)
        (root / f"team-{at}" / "ledger.md").write_text(LEDGER, "utf-8")
    given = {"GRAPHRAG_MCP_TOKENS": TOKENS, "GRAPHRAG_MCP_TENANTS": TENANTS}
    with running(command(tmp_path / "home", root), tmp_path / "log", **given) as (_, port):

        async def work() -> None:
            async with client(port, ALICE) as one, client(port, BOB) as two:
                for who, said in ((one, "larch"), (two, "oak")):
                    await good(who, "index_documents", paths=["."], wait_seconds=40)
                    text = f"The mast is of {said} [d1]."
                    await good(who, "write_note", title="Mast", text=text)
                for who, own, other in ((one, "larch", "oak"), (two, "oak", "larch")):
                    found = await good(who, "local_search", query="What is the mast made of?")
                    assert own in found["text"] and other not in found["text"]
                    up = await bad(who, "write_note", title="Mast", text="x", folder="../../team-1/notes")
                    assert "is not below the folder of notes" in up

        anyio.run(work)
    names = sorted(str(file.relative_to(root)) for file in root.rglob("Mast.md"))
    assert names == ["team-0/notes/Mast.md", "team-1/notes/Mast.md"]
