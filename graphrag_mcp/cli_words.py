"""What the engine advises, in the words of the command line.

Takes a sentence written for agents (`Call index_documents(paths=["."])`, `Give corpus= one of: ...`); gives the same
advice as commands and options. The one place that translates. Knows the names of tools and commands, no index; what
stands in quotation marks, or is a name with its id behind it, is somebody's data and stays as it is.
"""

from __future__ import annotations

import re
import shlex

PROGRAM = "graphrag-mcp"
# tool -> command, and which arguments come after it in which order; {} stands for what a person fills in.
COMMANDS = {
    "index_documents": ("index", {"paths": "PATH"}), "local_search": ("search", {"query": "QUERY"}),
    "global_search": ("search --mode global", {"query": "QUERY"}),
    "search_text": ("search --mode text", {"query": "QUERY"}),
    "drift_search": ("search --mode drift", {"query": "QUERY"}), "get_entity": ("entity", {"id_or_name": "NAME"}),
    "get_community_report": ("report", {"community_id": "COMMUNITY"}), "get_source": ("source", {"ids": "ID"}),
    "explore_graph": ("explore", {"start": "", "goal": ""}), "graph_status": ("status", {}),
    "remove_documents": ("remove", {"ids": "ID"}), "edit_graph": ("edit", {"op": "OP", "ids": ""}),
    "drift_finish": ("drift", {"session_id": "SESSION"}), "drift_step": ("drift", {"session_id": "SESSION"}),
}  # fmt: skip
ONLY_TOOLS = ("claim_work", "submit_work", "cancel_job")  # what only an agent does
OPTIONS = ("max_tokens", "max_nodes", "hops", "around", "level", "method", "corpus")
_NAMES = "|".join(sorted((*COMMANDS, *ONLY_TOOLS), key=len, reverse=True))
_CALL = re.compile(rf'\b({_NAMES})\(((?:[^()"]|"[^"]*")*)\)')
_ARGUMENT = re.compile(r'(?<!\w)(\w{1,40})=(\[(?:[^\[\]"]|"[^"]*")*\]|"[^"]*"|[^,\s()]+)')
_BARE = re.compile(rf"(?<![\w/.'\"`]|-)({_NAMES})(?![\w'\"`(]| \([tderck]\d)")
_QUALIFIED = re.compile(r"[^\s/]+/[tderck]\d[\d.]*\+?")
_PHRASES = (
    (re.compile(r" or give it texts first"), " first"),
    (re.compile(r'\bop "?(\w+)"? with ids=\[([^\[\]]*)\]'), lambda one: f"{PROGRAM} edit {one[1]} {_all(one[2])}"),
    (re.compile(r'\b[Uu]se op "?(\w+)"?'), rf"Use {PROGRAM} edit \1"),
    (re.compile(r'\bop="(\w+)"'), rf"{PROGRAM} edit \1"),
    (re.compile(r'\bfields=\["([^"]*)"\]'), r"--set \1"),
    (re.compile(r"\b(?:ids|paths)=\[([^\[\]]*)\]"), lambda one: _all(one[1])),
    (re.compile(r"\bdry_run=false\b"), "--yes"), (re.compile(r"\banswer=true\b"), "--answer"),
    (re.compile(r"\bwith query=\.\.\."), "with a QUERY"),
    (re.compile(r"\b(start|goal)= (an? \w+(?: \([ec]\d+\))?)"), lambda one: f"{one[2]} as {one[1].upper()}"),
    (re.compile(r"\b(remove_missing|refresh_answers|recluster)=true\b"), lambda one: f"--{one[1].replace('_', '-')}"),
    (re.compile(r"\bcorpus= ?"), "--corpus "), (re.compile(r"\bcorpus (?=')"), "--corpus "),
    (re.compile(r"(?<![-\w])(max_tokens|max_nodes)\b"), lambda one: f"--{one[1].replace('_', '-')}"),
    (re.compile(rf"\b[Cc]all (?={PROGRAM})"), lambda one: "Run " if one[0][0] == "C" else "run "),
)  # fmt: skip


def as_commands(said: str, corpus: str = "") -> str:
    """A sentence of advice: whole calls, tools that are only named, and arguments."""
    said = calls_as_commands(_BARE.sub(lambda found: _named(found[1]), said), corpus)
    for pattern, words in _PHRASES:
        said = pattern.sub(words, said)  # type: ignore[arg-type]
    return said


def calls_as_commands(said: str, corpus: str = "") -> str:
    """Only whole calls, for text in which words of documents may stand; with the `corpus` that was asked for."""
    return _CALL.sub(lambda found: _command(found[1], found[2], corpus), said)


def _named(tool: str) -> str:
    return f"the tool {tool}" if tool in ONLY_TOOLS else f"{PROGRAM} {COMMANDS[tool][0]}"


def _command(tool: str, arguments: str, corpus: str) -> str:
    """`get_source(ids=["t3", "t4"])` as `graphrag-mcp source t3 t4`, and the corpus where no id says it."""
    if tool in ONLY_TOOLS:
        return _named(tool)
    command, places = COMMANDS[tool]
    given = {found[1]: found[2] for found in _ARGUMENT.finditer(arguments)}
    ids = re.findall(r'"([^"]*)"', " ".join(given.get(name, "") for name in places))
    if corpus.strip() and not (ids and all(_QUALIFIED.fullmatch(one) for one in ids)):
        given.setdefault("corpus", f'"{corpus}"')
    words = [PROGRAM, command]
    for name, unknown in places.items():
        words += [_all(given[name]) if name in given and "..." not in given[name] else unknown]
    for name in filter(given.__contains__, OPTIONS):
        words += [f"--{name.replace('_', '-')} {_all(given[name])}"]
    words += [f"--set {shlex.quote(one)}" for one in re.findall(r'"([^"]*)"', given.get("fields", ""))]
    words += ["--yes"] if given.get("dry_run") == "false" else []
    return " ".join(filter(None, words))


def _all(written: str) -> str:
    """The values of a list, or the one value, as a shell takes them."""
    values = re.findall(r'"([^"]*)"', written) or [one.strip() for one in written.strip("[]").split(",")]
    rest = ["..."] if written.strip("[] ").endswith("...") and '"' in written else []
    return " ".join([*(shlex.quote(one) for one in values if one), *rest])
