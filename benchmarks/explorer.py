"""The explorer page: first paint, views, frame time and weight in a browser without a GPU.

    python benchmarks/explorer.py [--entities 10000 100000] [--keep DIR]

Takes Chromium and Playwright of this machine. Per size a corpus as in large.py is indexed and opened
by `graphrag-mcp explore`: milliseconds from the address to the first picture, in a server that has
just started and again; the median of each view; bytes of the page and of the map; the most marks
that any zoom of the map draws, and the time of a frame there; frames a second of a graph of 5,000 entities.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import large

VIEWS = ("overview", "community", "entity", "passage", "search", "path", "timeline", "changes")
DRAWN = "() => window.graphragExplorer?.map.frames > 0 && graphragExplorer.map.drawn.length > 0"
# Fetches what lies inside of everything on the screen, then paints while the map moves; at each zoom.
FRAMES = """async () => {
  const map = graphragExplorer.map, found = [];
  map.whole();
  const whole = { ...map.view };
  for (const times of [1, 1.5, 2, 3, 4, 6, 8, 12, 16]) {
    map.view = { ...whole }; map.zoom(times);
    for (let round = 0; round < 6; round++) { map.paint(); await new Promise((done) => setTimeout(done, 150)); }
    const spent = [];
    for (let at = 0; at < 40; at++) { map.view.x += at % 2 ? 3 : -3; const began = performance.now(); map.paint(); map.context.getImageData(0, 0, 1, 1); spent.push(performance.now() - began); }
    spent.sort((a, b) => a - b);
    found.push([map.drawn.length, spent[20], spent[38]]);
  }
  return found.sort((a, b) => b[0] - a[0])[0];
}"""
# As many circles as the page ever draws at once, with titles, all on the screen.
FULL = """() => {
  const map = graphragExplorer.map, communities = [], spent = [];
  for (let n = 0; n < 1600; n++) communities.push({ n: 1e6 + n, parent: 0, children: 0, title: "Topic " + n + " · Harbour · Ledger", size: 9, x: (n % 40) / 20 - 1, y: Math.floor(n / 40) / 20 - 1, r: 0.024, colour: n });
  map.clear(); map.take({ communities }); map.whole();
  for (let at = 0; at < 60; at++) { map.view.x += at % 2 ? 3 : -3; const began = performance.now(); map.paint(); map.context.getImageData(0, 0, 1, 1); spent.push(performance.now() - began); }
  spent.sort((a, b) => a - b);
  return [map.drawn.length, spent[30], spent[57]];
}"""
# A graph of so many entities: frames a second while its layout moves, and while it is dragged.
GRAPH = """async (size) => {
  const net = graphragExplorer.graph, nodes = [], edges = [], degree = new Map();
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647, any = () => 1 + Math.floor(size * random());
  for (let n = 2; n <= size; n++) edges.push([n, 1 + Math.floor((n - 1) * random() * random()), 1 + Math.floor(8 * random()), ""]);
  for (let at = 0; at < 0.6 * size; at++) edges.push([any(), any(), 2, ""]);
  for (const pair of edges) for (const n of pair.slice(0, 2)) degree.set(n, (degree.get(n) || 0) + 1);
  for (let n = 1; n <= size; n++) nodes.push({ n, title: "Entity " + n, type: ["person", "place", "thing"][n % 3], degree: degree.get(n) || 0 });
  net.whole_({ nodes, edges }, "entity");
  const rate = async (before) => {
    const from = net.frames, began = performance.now();
    while (performance.now() - began < 5000) { before(); net.draw(); await new Promise(requestAnimationFrame); }
    return (1000 * (net.frames - from)) / (performance.now() - began);
  };
  const moving = await rate(() => { net.heat = 0.3; });
  net.heat = 0; net.dragged = true;
  return [moving, await rate(() => { net.view.x += 1; })];
}"""
LOAD = """async ([view, given]) => { const began = performance.now(), t = graphragExplorer.transport; t.kept.clear();
  const found = await t.load(view, given); return [performance.now() - began, JSON.stringify(found).length]; }"""


def painted(page: Any, address: str) -> float:
    began = time.perf_counter()
    page.goto(address)
    page.wait_for_function(DRAWN, timeout=120_000, polling=10)
    return (time.perf_counter() - began) * 1000


def measure(browser: Any, home: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "graphrag_mcp",
        "explore",
        "--no-browser",
        "--home",
        str(home),
        "--corpus",
        "large",
    ]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        first = painted(page, address)
        again = painted(page, address.partition("#")[0])
        print(f"  first picture {first:6.0f} ms, again {again:6.0f} ms")
        size = page.evaluate("performance.getEntriesByType('navigation')[0].decodedBodySize")
        weight = page.evaluate(LOAD, ["map", {}])[1]
        print(f"  page {size / 1000:.0f} kB, map {weight / 1000:.0f} kB")
        marks, middle, high = page.evaluate(FRAMES)
        print(f"  most marks {marks:,}: frame p50 {middle:.1f} ms, p95 {high:.1f} ms")
        marks, middle, high = page.evaluate(FULL)
        print(f"  full map of {marks:,} marks: frame p50 {middle:.1f} ms, p95 {high:.1f} ms")
        moving, dragged = page.evaluate(GRAPH, 5_000)
        print(f"  graph of 5,000: {moving:.0f} frames a second while it moves, {dragged:.0f} dragged")
        for view in VIEWS:
            spent = []
            for n in range(1, 8):
                given = {"query": f"report {n} ledger"} if view == "search" else {"id": str(n), "to": str(n + 9)}
                spent.append(
                    page.evaluate(LOAD, [view, given if view not in ("overview", "timeline", "changes") else {}])[0]
                )
            print(f"  {view:10} p50 {statistics.median(spent):6.0f} ms, slowest {max(spent):6.0f} ms")
    finally:
        server.terminate()
        server.wait(20)


def main() -> int:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as run:
        browser = run.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for entities in options.entities:
            base = (options.keep or Path(temporary)) / str(entities)
            if not (base / "home").exists():
                files = large.write_out(base / "docs", entities)
                print(f"indexing {files:,} documents", flush=True)
                index = [
                    sys.executable,
                    "-m",
                    "graphrag_mcp",
                    "index",
                    str(base / "docs"),
                    "--home",
                    str(base / "home"),
                    "--corpus",
                    "large",
                ]
                subprocess.run(index, cwd=ROOT, check=True, capture_output=True)
            print(f"{entities:,} entities")
            measure(browser, base / "home")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
