"""What the servers out there take and refuse, for the scripted server: from their documentation and public issues.

    with openai_server(answer=..., provider=PROVIDERS["mistral"]) as server: ...

The same differences stand as a table in docs/models.md."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LENGTHS = frozenset({"max_tokens", "max_completion_tokens"})
USUAL = frozenset({"model", "messages", "stream", "stream_options", "response_format", "seed", "temperature", "top_p", "n", "stop"}) | LENGTHS


def openai_style(name: str, why: str) -> tuple[int, str]:
    return 400, json.dumps({"error": {"message": why, "type": "invalid_request_error", "param": name, "code": "unsupported_parameter"}})


def gemini_style(name: str, why: str) -> tuple[int, str]:
    """A list, with no field of its own for the parameter."""
    said = f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
    return 400, json.dumps([{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}])


def mistral_style(name: str, why: str) -> tuple[int, str]:
    """The list of a validator, written as a text into the message."""
    detail = {"detail": [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]}
    return 422, json.dumps({"object": "error", "message": json.dumps(detail), "type": "internal_error_proxy", "param": None, "code": "1000"})


def lmstudio_style(name: str, why: str) -> tuple[int, str]:
    return 400, json.dumps({"error": why})


@dataclass(frozen=True)
class Provider:
    """`refuses`: fields with the words of the refusal. `knows`: every other field is refused too; empty: it is ignored.
    `formats`: what response_format may be; another one is refused. `obeys`: the format is kept to, else ignored.
    `thinks`: where the reasoning stands in a reply. `counts`: a stream ends with tokens. `context`: of a prompt in
    characters, 0 for any; `cuts`: a longer one is cut from its beginning instead of refused, with the words of `full`."""

    refuses: dict[str, str]
    style: Callable[[str, str], tuple[int, str]] = openai_style
    knows: frozenset[str] = frozenset()
    formats: tuple[str, ...] = ("json_schema", "json_object", "text")
    obeys: bool = True
    thinks: str = ""
    counts: bool = True
    context: int = 0
    cuts: bool = False
    full: str = ""

    def objection(self, body: dict[str, Any]) -> tuple[int, str] | None:
        """The refusal of this request, if any."""
        for name in body:
            if name == "temperature" and "temperature" in self.refuses and body[name] == 1:
                continue
            if name in self.refuses or (self.knows and name not in self.knows):
                return self.style(name, self.refuses.get(name, f"Unrecognized request argument supplied: {name}"))
        wanted = (body.get("response_format") or {}).get("type", "text")
        if wanted not in self.formats:
            return self.style("response_format", f"'response_format.type' must be {' or '.join(map(repr, self.formats))}")
        if self.context and not self.cuts and self.length(body) > self.context:
            return 400, json.dumps({"error": {"code": 400, "message": self.full, "type": "BadRequestError"}})
        return None

    def length(self, body: dict[str, Any]) -> int:
        return sum(len(one["content"]) for one in body["messages"])

    def read(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The messages as the model sees them."""
        if not (self.cuts and self.context):
            return body["messages"]
        return [{**one, "content": one["content"][-self.context :]} for one in body["messages"]]


REASONING = {
    "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "temperature": "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
}
PROVIDERS: dict[str, Provider] = {
    "openai": Provider({}, knows=USUAL),
    "openai, reasoning": Provider(REASONING, knows=USUAL),
    "azure": Provider(REASONING, knows=USUAL),
    "anthropic": Provider({}, obeys=False),
    "gemini": Provider({}, style=gemini_style, knows=USUAL - {"seed"}),
    "mistral": Provider({}, style=mistral_style, knows=USUAL - {"seed", "max_completion_tokens", "stream_options"}),
    "ollama": Provider({}, thinks="reasoning", context=16_000, cuts=True),
    "lm studio": Provider({}, style=lmstudio_style, formats=("json_schema", "text")),
    "vllm": Provider({}, thinks="reasoning_content", context=16_000, full="This model's maximum context length is 8192 tokens. However, you requested 12210 tokens."),
    "llama.cpp": Provider(
        {}, thinks="reasoning_content", context=16_000,
        full="request (12105 tokens) exceeds the available context size (8192 tokens), try increasing it",
    ),
    "openrouter": Provider({}, obeys=False, thinks="reasoning"),
}  # fmt: skip
