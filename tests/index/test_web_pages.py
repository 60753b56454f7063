"""Saved pages of two sites, on four subjects: topics follow the subjects, and what stands around an article stays out of
topics, reports and hits."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.index import tree as trees
from graphrag_mcp.query import hits
from graphrag_mcp.query.rank import retrieve
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.quote import best
from tests.index.test_communities import put, tops

ARTICLES = {
    "bridge-a": """The swing bridge of Varde was opened in 1904 after four years of work. Its iron span turns on a pivot of granite, and two keepers turned it by hand until 1931. The engineer Ida Holm had drawn three girders, of which the council paid for two. Rust was found in the northern girder last winter. The span will be closed to lorries until the rivets are replaced.""",
    "bridge-b": """Engineers in Lindental have lifted the old girder bridge from its piers. The span of 61 metres hung from two cranes for nine hours. Each rivet had been counted before, said the engineer Otto Falk, because steel of that age cracks where it is heated. The piers are to be repaired with granite from the same quarry. A new span would have cost four times as much.""",
    "bridge-c": """A footbridge of steel cables crosses the gorge at Quill since Sunday. The deck sways by a hand's width when forty people walk on it. Dampers under the deck were tuned by Marta Olsen, who weighed sacks of sand instead of hikers. The cables are anchored in granite on both sides. No pier stands in the river, so floods can pass below the span.""",
    "wine-a": """The vineyards above Montel lost a third of their grapes to hail in June. Growers had covered the young vines with nets, but the stones tore them. Pierre Vasseur has pruned his rows back to two buds and hopes for a late harvest. The cellar holds barrels of two good vintages, which will be sold slowly. Insurance pays for the vines and not for the wine.""",
    "wine-b": """A cellar in Sorrel ferments its grapes in jars of clay that are buried up to the neck. The skins stay in the wine for five months and colour it amber. Lena Marsh learned the method from growers in the Caucasus. Her harvest is small, about nine barrels in a good vintage. Tasters were divided: some found tannin as in tea, others honey.""",
    "wine-c": """Mildew came early to the vineyards of the Tarn this spring. Growers sprayed copper twice before the vines had flowered. Paul Amiel, who makes wine without sulphur, lost his whole harvest of white grapes. Red grapes with thick skins stood the rain better. The vintage will be light, and many barrels will stay empty in the cellars.""",
    "volcano-a": """The crater of Mount Saro has been glowing since Tuesday. Seismometers counted ninety tremors an hour, and ash fell on the fishing village of Pell. Volcanologists led by Rosa Iyer measured sulphur in the plume from an aircraft. Lava has filled the old vent and may spill over the southern rim. The last eruption, in 1977, lasted for eleven weeks.""",
    "volcano-b": """Ash from the eruption on Kelda reached the mainland during the night. The plume rose to nine kilometres before the wind tore it. A lava flow crossed the road to the harbour and stopped at the chapel. Tremors had warned the island for a month, said the volcanologist Jon Hekla. Three hundred people slept in the school, far from the crater.""",
    "volcano-c": """Under the ice of Drang lies a crater that no map showed. Radar from an aircraft showed a rim of basalt and a vent two kilometres wide. Tremors below the glacier come in swarms, and meltwater smells of sulphur. An eruption there would melt the ice within hours, writes the volcanologist Sif Thorne. Ash of an older eruption lies in the moss of the valley.""",
    "orchestra-a": """The orchestra of Tolna played the sixth symphony without a conductor. The violins followed the oboe, and the horns listened to the timpani. Hanna Weiss, who leads the cellos, had asked for nine rehearsals and got five. The slow movement lost its beat once, in the bars before the fugue. The audience stood up after the finale.""",
    "orchestra-b": """A manuscript of a string quartet was found in the attic of a violin maker in Brenn. It has three movements and the first bars of a fugue. The musicologist Emil Szabo compares the paper with that of a symphony from 1791. Cellos and violins of the local orchestra played it in rehearsal. Whether the finale was ever written remains open.""",
    "orchestra-c": """The youth orchestra of Halm has more trombones than violins this year. Its conductor Ines Pardo rewrote the second movement of a symphony for them. Rehearsals are held in a gym, where the timpani echo for three seconds. Parents built a wall of blankets behind the horns. The concert ends with a fugue for nine cellos.""",
}
TITLES = {
    "bridge-a": "Rust in the northern girder", "bridge-b": "Lifted from its piers", "bridge-c": "Across the gorge on cables",
    "wine-a": "After the hail", "wine-b": "Wine from buried jars", "wine-c": "Mildew in April",
    "volcano-a": "Mount Saro glows", "volcano-b": "Ash over the mainland", "volcano-c": "A crater below the ice",
    "orchestra-a": "Sixth without a conductor", "orchestra-b": "Three movements in an attic", "orchestra-c": "Trombones of Halm",
}  # fmt: skip
# Every other page of a subject is of the second site.
GAZETTE = [name for name in ARTICLES if list(ARTICLES).index(name) % 2 == 0]
SECTIONS = "Home News Politics Sport Weather Travel Obituaries Crosswords Jobs Puzzles".split()


def gazette(name: str) -> str:
    """A page as a reader of the web saves it as Markdown."""
    menu = "\n".join(f"*   [{one}](https://gazette.example/{one.lower()} \"{one}\")" for one in SECTIONS)
    row = " | ".join(f"[{one}](https://gazette.example/{one.lower()})" for one in SECTIONS)
    others = [one for one in GAZETTE if one != name][:3]
    related = "\n".join(f"[{TITLES[one]}](https://gazette.example/{one})" for one in others)
    half = len(ARTICLES[name]) // 2
    first, rest = ARTICLES[name][:half], ARTICLES[name][half:]
    cut = first.rindex(". ") + 2
    return f"""# {TITLES[name]} | The Harbour Gazette

[Skip to content](https://gazette.example/#main)
{menu}

Subscribe to our newsletter and get the best of the Gazette in your inbox every morning.

We and our 184 partners store cookies on your device to show personalised ads. You can withdraw your consent at any time in our privacy policy. Partners may process your personal data on the basis of legitimate interest.

By [Jonas Ritter](https://gazette.example/authors/ritter)
Jonas Ritter is a senior correspondent for the Harbour Gazette. He has been writing about the region for 12 years.

{first[:cut]}

![Image 4: the place](https://gazette.example/img/{name}.jpg)
Photograph by Jonas Ritter for the Harbour Gazette

{first[cut:]}{rest}

## More stories
{related}

{row}
Comments are closed. All comments were moderated by the Gazette's editors and remain the property of their authors.
© 2024 Harbour Gazette Media Group Ltd. All rights reserved. Reproduction in whole or in part without permission is prohibited.
"""


def museum(name: str) -> str:
    """A page of HTML whose parts are told by no element of HTML."""
    menu = "".join(f'<a href="/{one.lower()}">{one}</a> ' for one in SECTIONS)
    return f"""<html><head><title>{TITLES[name]} - Almanac Online</title></head><body>
<div class="top">{menu}</div>
<div class="banner">This website uses cookies to analyse traffic. Accept all cookies or manage your preferences. <a href="/privacy">Privacy policy</a></div>
<h1>{TITLES[name]}</h1><div class="by">Words by the editors of Almanac Online</div>
<div class="text"><p>{ARTICLES[name].replace(". It", ".</p><p>It")}</p></div>
<div class="box">Almanac Online is supported by its readers. Donate now and receive a printed calendar for your kitchen.</div>
<div class="foot">Almanac Online is a trademark of Calendar House Publishing. Terms of use apply to visitors of this website.</div>
</body></html>"""


def saved(folder: Path) -> Path:
    folder.mkdir()
    for name in ARTICLES:
        page, suffix = (gazette(name), "md") if name in GAZETTE else (museum(name), "html")
        (folder / f"{name}.{suffix}").write_text(page, "utf-8")
    return folder


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return put(tmp_path_factory.mktemp("index") / "c", saved(tmp_path_factory.mktemp("pages") / "docs"))


def names_of(snapshot: Snapshot) -> dict[str, str]:
    """The name of the page of each text unit."""
    uris = {row["id"]: Path(row["uri"]).stem for row in snapshot.rows("documents", columns=["id", "uri"]).to_pylist()}
    rows = snapshot.rows("text_units", columns=["id", "document_id"]).to_pylist()
    return {row["id"]: uris[row["document_id"]] for row in rows}


def test_topics_follow_the_subjects_and_not_the_sites(pages: Snapshot) -> None:
    page = names_of(pages)
    found = [{page[unit].partition("-")[0] for unit in units} for units in tops(trees.stored_tree(pages))]
    assert sorted(map(len, found)) == [1, 1, 1, 1] and len(set().union(*found)) == 4


def test_no_section_of_a_menu_is_a_name(pages: Snapshot) -> None:
    titles = set(pages.rows("entities", columns=["title"])["title"].to_pylist())
    assert {"Lena Marsh", "Ida Holm", "Rosa Iyer"} <= titles and not titles & set(SECTIONS)


@pytest.mark.parametrize("question, page, sentence", [
    ("Why is the span in Varde closed to lorries?", "bridge-a", "The span will be closed to lorries until the rivets are replaced."),
    ("How long had tremors warned the island?", "volcano-b", "Tremors had warned the island for a month, said the volcanologist Jon Hekla."),
    ("What did Pierre Vasseur do to his rows of vines?", "wine-a", "Pierre Vasseur has pruned his rows back to two buds and hopes for a late harvest."),
    ("For whom did Ines Pardo rewrite the second movement?", "orchestra-c", "Its conductor Ines Pardo rewrote the second movement of a symphony for them."),
])  # fmt: skip
def test_a_question_finds_the_article_and_shows_its_sentence(pages: Snapshot, question: str, page: str, sentence: str) -> None:
    ranking = retrieve(pages, question)
    hit = hits.read(pages, [(one.id, one.score) for one in ranking.passages[:1]], "c")[0]
    shown = best(hit.body, ranking.terms)
    assert Path(hit.citation.uri).stem == page and shown is not None and shown.text == sentence
