"""The overview of a folder that holds a sheet: its rows are one document beside others."""

import random
from pathlib import Path

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import topics
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest

SUBJECTS = {
    "harbour": "crane quay pilot tug berth anchor mooring dredger tide breakwater fender lock buoy customs cargo".split(),
    "orchard": "apple graft pruning blossom cider rootstock orchardist pear frost beehive harvest ladder press scab codling".split(),
    "theatre": "curtain rehearsal prompter costume actor stage lighting script overture balcony ticket director usher wings plot".split(),
    "bakery": "dough oven yeast flour crust baker proving loaf rye starter kneading salt tin crumb glaze".split(),
}
STATES = "restart in tunnel,battery low,display dark,card jam,clock wrong,no signal".split(",")


def index(tmp_path: Path, folder: Path) -> Snapshot:
    assert index_documents(tmp_path / "corpus", IndexRequest((str(folder),)), Settings()).status == "done"
    return open_snapshot(tmp_path / "corpus")


def write_notes(folder: Path, each: int) -> None:
    rnd = random.Random(3)
    folder.mkdir()
    for subject, words in SUBJECTS.items():
        for number in range(each):
            text = ". ".join(
                f"The {rnd.choice(words)} near the {rnd.choice(words)} needs a {rnd.choice(words)}" for _ in range(9)
            )
            (folder / f"{subject}-{number}.md").write_text(f"# {subject} {number}\n\n{text}.\n", "utf-8")


def test_rows_of_a_sheet_neither_lead_an_overview_nor_hide_the_topics_of_the_other_files(tmp_path: Path) -> None:
    rows = 600
    write_notes(tmp_path / "notes", 8)
    rnd = random.Random(4)
    lines = ["driver,depot,vehicle,stop,boardings,remark"]
    for _ in range(rows):
        values = (
            "Mr. Edward Hollis",
            rnd.choice(["North", "South", "West"]),
            f"BUS-{rnd.randint(100, 311)}",
            rnd.choice(["Station", "Market", "Hospital"]),
        )
        lines.append(",".join([*values, str(rnd.randint(3, 420)), rnd.choice(STATES)]))
    (tmp_path / "notes" / "log.csv").write_text("\n".join(lines), "utf-8")
    snapshot = index(tmp_path, tmp_path / "notes")
    uri = {row["id"]: row["uri"] for row in snapshot.rows("documents", columns=["id", "uri"]).to_pylist()}
    found = topics.of_level(snapshot, 0)
    subjects = [{Path(uri[id]).name.partition("-")[0] for id in topic.main if "#" not in uri[id]} for topic in found]
    sheets = [sum("#" in uri[id] for id in topic.main) for topic in found]
    assert [len(one) for one in subjects[:4]] == [1] * 4 and set().union(*subjects[:4]) == SUBJECTS.keys()
    assert sum(sheets[:4]) == 0 and sum(sheets) == rows
    text = global_search(snapshot, "", max_tokens=2_000).text
    assert text.startswith(f"{rows + 32:,} documents on ") and "In shares the rows of a sheet count as one." in text
    assert "24 % of the documents\n" in text and "with each row of a sheet)" in text
