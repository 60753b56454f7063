"""Runs of agents and blind judges, from what they are told to the points.

    python trial.py agent NAME FOLDER --url http://127.0.0.1:8811/mcp   what an agent with the tools is told
    python trial.py agent NAME FOLDER --grep                            what an agent with a shell is told
    python trial.py judge JUDGE FOLDER NAME NAME ...                    what a judge of these agents' answers is told
    python trial.py points FOLDER                                       the points that each judge gave each agent

FOLDER is one of those that make.py writes. Give each text to a fresh agent that can run commands; one text an
agent. Answers, logs and points are kept in FOLDER/trial. `--budget` is the number of characters that an agent may
read for each question (12,000; 0: as many as it likes).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from door import total

LETTERS = "JKLMNPQRST"
SHELL = (
    "shell 'grep -rn word . | head'   (one command with grep, sed, awk, cut, head, tail, sort, uniq, ls, cat, wc or find;"
    " pipes, but no chains of commands)"
)
TOOLS = """tools                                (lists the tools; begin with it)
    {door} call TOOL '{{"query": "..."}}'   (one call of a tool)"""
AGENT = """You answer questions on a collection of text files that you have not seen. You look at it through one door:
    {door} {how}
One look is one call of the door. Read no other file, and start no other agents. Answer from what you have seen; write
"not found" where nothing is there. Be sparing with looks and with what you read, but right and complete answers come
first.{budget}
Short answers to questions of fact; one to three paragraphs, with the names of documents behind what you state, to
questions on the whole collection.
Write one JSON object {{"id": "answer"}} with all {many} ids to {answers}.
In the end say in at most 15 lines what misled you and what cost you needless looks or characters.

The questions:
{questions}"""
BUDGET = """
You may read at most {characters:,} characters for all questions together, the list of tools included. Every look says
what is left. Use the budget: answers that are complete, varied and true count most."""
JUDGE = """You judge {many} sets of answers ({letters}) to the same questions on a collection of documents. You do not know who
wrote which; do not try to find out. The sets: {folder}/LETTER.json (id -> answer). The documents: {documents}.
{expected}Read nothing else, and start no other agents. Before you read the answers, look with grep over the documents
for what each question asks.
Give each set 0 to 10 points for each question (halves allowed), for how complete and how varied the answer is, whether
its statements are true (look up at least two of each answer, where a mistake would matter), and how useful it is to a
person who asked. Use the whole range; equal quality gets equal points.
Write {folder}/points.json: {{"id": {{"{first}": 7.5, ...}}, ...}} for all questions. In your last message: a table of
points, the means, each false statement that you found, and for every question one sentence on what made the best
answer better than the worst.

The questions:
{questions}"""


def questions_of(folder: Path) -> list[dict[str, str]]:
    return json.loads((folder / "questions.json").read_text("utf-8"))


def listed(questions: list[dict[str, str]]) -> str:
    return "\n".join(f"{row['id']} {row['question']}" for row in questions)


def agent(name: str, folder: Path, url: str, budget: int) -> str:
    """The text for an agent. Its door is a script, so that it cannot choose its budget or its server."""
    trial, questions = folder / "trial", questions_of(folder)
    (trial / "doors").mkdir(parents=True, exist_ok=True)
    (trial / "answers").mkdir(exist_ok=True)
    characters = budget * len(questions)
    there = {"URL": url} if url else {"FOLDER": str(folder / "documents")}
    script = trial / "doors" / f"{name}.py"
    script.write_text(
        f"import os, sys\nos.environ |= {there | {'BUDGET': str(characters)}!r}\n"
        f"sys.path.insert(0, {str(HERE)!r})\nfrom door import main\n"
        f"sys.exit(main([{str(trial / 'doors' / f'{name}.log')!r}, *sys.argv[1:]]))\n",
        "utf-8",
    )
    door = f"{sys.executable} {script}"
    return AGENT.format(
        door=door,
        how=TOOLS.format(door=door) if url else SHELL,
        budget=BUDGET.format(characters=characters) if budget else "",
        many=len(questions),
        answers=trial / "answers" / f"{name}.json",
        questions=listed(questions),
    )


def judge(name: str, folder: Path, agents: list[str]) -> str:
    """The text for a judge. Letters are drawn by lot; which agent has which is in a file that it is not told of."""
    sets = folder / "trial" / f"judge-{name}"
    sets.mkdir(parents=True, exist_ok=True)
    letters = LETTERS[: len(agents)]
    drawn = dict(zip(letters, random.sample(agents, len(agents)), strict=True))
    (folder / "trial" / f"key-{name}.json").write_text(json.dumps(drawn), "utf-8")
    for letter, one in drawn.items():
        answers = json.loads((folder / "trial" / "answers" / f"{one}.json").read_text("utf-8"))
        (sets / f"{letter}.json").write_text(json.dumps(answers, indent=1, ensure_ascii=False), "utf-8")
    known = json.loads((folder / "answers.json").read_text("utf-8"))
    return JUDGE.format(
        many=len(agents),
        letters=", ".join(letters),
        first=letters[0],
        folder=sets,
        documents=folder / "documents",
        expected=f"Expected answers: {folder / 'answers.json'}.\n" if known else "",
        questions=listed(questions_of(folder)),
    )


def points(folder: Path) -> str:
    """The mean points of each agent by judge, then looks and characters."""
    lines, seen = [], dict[str, dict[str, int]]()
    for key in sorted((folder / "trial").glob("key-*.json")):
        name = key.stem.removeprefix("key-")
        given = folder / "trial" / f"judge-{name}" / "points.json"
        if not given.exists():
            lines.append(f"{name}: no points yet")
            continue
        rows = json.loads(given.read_text("utf-8")).values()
        for letter, one in sorted(json.loads(key.read_text("utf-8")).items(), key=lambda pair: pair[1]):
            seen[one] = total(folder / "trial" / "doors" / f"{one}.log")
            lines.append(f"{name}: {one} {sum(row[letter] for row in rows) / len(rows):.2f}")
    looks = [f"{one}: {sums['looks']} looks, {sums['characters']:,} characters" for one, sums in seen.items()]
    return "\n".join([*lines, *looks])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("agent", "judge", "points"):
        each = commands.add_parser(command)
        if command != "points":
            each.add_argument("name")
        each.add_argument("folder", type=Path)
        if command == "agent":
            door = each.add_mutually_exclusive_group(required=True)
            door.add_argument("--url", default="")
            door.add_argument("--grep", action="store_true")
            each.add_argument("--budget", type=int, default=12_000)
        if command == "judge":
            each.add_argument("agents", nargs="+")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.command == "agent":
        print(agent(options.name, folder, options.url, options.budget))
    elif options.command == "judge":
        print(judge(options.name, folder, options.agents))
    else:
        print(points(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
