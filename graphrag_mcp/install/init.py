"""Init: a settings file and the shipped prompts, to edit.

Every default stands behind a `#`, so a later release may change it. No key is written: a setting
holds the name of the variable that has it."""

from __future__ import annotations

import json
import os
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.llm import prompts
from graphrag_mcp.settings import Settings

FILE = "graphrag-mcp.toml"
HEAD = """\
# Settings of graphrag-mcp, used when GRAPHRAG_MCP_SETTINGS names this file. Take the "# " from a line to change it.
# In quotes, ${...} with the name of an environment variable inside is replaced by its value; a missing one is an error.
# Environment and command line come after this file. Never write a key here: api_key_variable says where it is.
"""
# The one place where a setting is explained in a line: heading -> setting -> what it does.
GROUPS: dict[str, dict[str, str]] = {
    "Where things are": {
        "home": "Indexes, DRIFT sessions and jobs are kept here.",
        "roots": "Folders that tools may index; empty = the working directory, unless that is / or a home folder.",
    },
    "How texts are cut. A change makes the next index run derive everything again from the stored originals": {
        "chunk_size": "Tokens of a text unit, which is what a model reads at once.",
        "chunk_overlap": "Tokens that two neighbouring text units share; less than half of chunk_size.",
        "chunk_mode": "auto (headings, paragraphs, sentences), tokens, sentences, separator or separator_only.",
        "chunk_separator": "Where separator and separator_only cut.",
        "passage_size": "Tokens of a passage, which is what a search finds inside a text unit.",
    },
    "What one call takes in, and what is shown; the rest of a folder is left for the next call": {
        "max_file_bytes": "Larger files found in a folder are skipped; a file named itself is taken.",
        "show_secrets": "Whether credentials that stand in documents are shown; else they are masked in results.",
        "max_files": "Files that one call of index reads.",
        "max_bytes": "Bytes that it reads.",
        "max_text_units": "Text units that it makes.",
        "cache_bytes": "Of a home on object storage: bytes that its copy on this machine may take.",
        "max_memory": "Megabytes that a process which indexes may hold (Linux); 0 = no limit.",
        "hard_links": "Whether files are taken one of whose names lies outside the folder indexed.",
    },
    "Where an index is computed and kept": {
        "engine": "auto (processes from 300 documents on), inline, processes or ray.",
        "engine_address": "Of a Ray cluster; empty = a Ray of this machine.",
        "processes": "How many; 0 = one for each core, at most 8.",
    },
    "Communities": {
        "max_cluster_size": "A community with more text units is divided again.",
        "seed": "Of the community detection.",
    },
    "Models. Without a name here nothing ever calls out": {
        "chat_model": "Reads texts, writes reports and answers; empty = none.",
        "embedding_model": "Makes vectors for search; empty = none; local:FOLDER runs in this process.",
        "rerank_model": "Looks at the best passages again; empty = none; local:FOLDER of a cross-encoder.",
        "base_url": "Of any server that speaks the OpenAI protocol; empty = the provider's own.",
        "embedding_base_url": "Of another server for vectors; empty = base_url.",
        "api_key_variable": "The environment variable that holds the key; a local server needs none.",
        "json_mode": "How a model is asked for JSON: auto, schema, object or none.",
        "chat_options": "Sent with every chat call as they are, for example { temperature = 0 }.",
        "embedding_dimensions": "Of a vector; 0 = the model's own.",
        "embedding_batch": "Texts of one embedding call.",
        "concurrency": "Calls in flight at once.",
        "requests_per_minute": "Limit of the provider; 0 = none.",
        "tokens_per_minute": "Limit of the provider; 0 = none.",
        "timeout_seconds": "How long one call may take.",
        "max_retries": "How often a call that failed for a passing reason is made again.",
    },
    "Budgets of one run, which stops there and can be gone on with; 0 = none. Prices are per million tokens": {
        "max_calls": "Calls of one run.",
        "max_tokens": "Tokens of one run, prompts and answers together.",
        "max_cost": "Cost of one run, in the currency of the prices.",
        "price_prompt": "Of what is sent.",
        "price_output": "Of what is answered.",
        "price_embedding": "Of what is embedded.",
    },
    "What a model is asked for while indexing": {
        "preset": "small: four types, no second pass, no claims, short texts and reports, for small models.",
        "entity_types": "What to find; an empty list = anything. Tuned types replace the default, not your list.",
        "output_language": "Of descriptions and reports; empty = that of the text.",
        "gleanings": "Further passes over a text unit: auto (where the first found little), 0, 1 or 2.",
        "summary_fragments": "So many descriptions of one name are joined by a model,",
        "summary_tokens": "or so many tokens of them.",
        "report_min_size": "A community with fewer entities gets a report without a model.",
        "report_min_units": "The same for one that fewer text units speak of, unless it has twice `report_min_size` entities.",
        "report_tokens": "Tokens of context for one report.",
    },
    "Claims": {
        "claims_enabled": "Whether statements about someone or something are collected.",
        "claims_entity_specs": "About whom or what: types or names.",
        "claims_description": "What counts as a claim.",
    },
}
README = """\
# Prompts of graphrag-mcp

Copies of the prompts that this release comes with. They are here to be read and edited; nothing reads them here.

To use one for a corpus, copy it into the folder `prompts` of that index, which is `corpora/NAME/prompts` under `home`:
a file there replaces the shipped prompt of the same name for that corpus. Copy only what you changed, since a copy
stays as it is when a later release improves its prompt. `graphrag-mcp tune` writes such files too.

That goes for what models are asked while indexing and answering. What agents are told belongs to the server and not to
a corpus (`server_instructions`, `drift_primer`, `drift_step`, `tune_prompts`), and `tune_profile` comes before any
tuning: these are here to be read.

- `$name` is filled in when the prompt is used. A prompt may leave variables out, but may use no others than the shipped
  one has. A dollar sign is written `$$`.
- The comment at the top says what the prompt is for and what its variables are. It is not sent.
- A changed prompt asks its questions again: answers that were paid for under the old words stay with the old words.
"""


def init(folder: Path, force: bool = False) -> list[Path]:
    """Write the settings file and the prompts into `folder`; the paths written, the settings file
    first.

    Raises BadInput when one of the files is there already (unless `force`) or cannot be written;
    then nothing was."""
    shipped = prompts.folder()
    texts = {folder / FILE: settings_text(), folder / "prompts" / "README.md": README}
    for name in prompts.names():
        texts[folder / "prompts" / f"{name}.md"] = (shipped / f"{name}.md").read_text("utf-8")
    taken = [path for path in texts if path.exists()]
    if taken and not force:
        more = f" and {len(taken) - 1} more" if len(taken) > 1 else ""
        raise BadInput(
            f"{taken[0]}{more} would be overwritten", "Name another folder, or give --force"
        )
    try:
        (folder / "prompts").mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
            beside.write_text(text, "utf-8", newline="\n")
            os.replace(beside, path)
    except OSError as error:
        raise BadInput(
            f"{folder} cannot be written ({error.strerror})", "Name another folder"
        ) from error
    return list(texts)


def settings_text() -> str:
    """The settings file: `## ` before what explains, `# ` before a default."""
    known = {field.name: field for field in fields(Settings)}
    lines = [HEAD]
    for heading, settings in GROUPS.items():
        lines.append(f"\n## ---- {heading} ----\n")
        for name, what in settings.items():
            lines.append(f"## {what}\n# {name} = {_toml(_default(known[name]))}\n")
    return "".join(lines)


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _toml(value: Any) -> str:
    """JSON, which TOML reads alike for texts, numbers, truth values and lists; a table is written
    inline."""
    if isinstance(value, dict):
        if value:
            return "{ " + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + " }"
        return "{}"
    if isinstance(value, Path):
        return json.dumps(str(value), ensure_ascii=False)
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
