"""check-model: what at most six calls tell of a server, with the good and bad manners that servers have."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.llm.check import ModelCheck, check_settings
from graphrag_mcp.settings import Settings
from tests.support.command import clean_environment, run_cli
from tests.support.openai_server import PAGE, error, openai_server, text_of
from tests.support.providers import PROVIDERS

CALLS = ["plain reply", "reply as JSON", "reply in pieces", "long prompt", "embedding"]


def capable(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """What a model replies that does as it is told."""
    prompt = text_of(messages[-1])
    if "JSON object" in prompt:
        return '{"names": ["Anna Berg", "Tom Hill"]}'
    if "lighthouse" in prompt:
        return "Marit Fenn" if "Marit" in prompt else "I do not know."
    return "one two three four"


def words(text: str, sent: bool) -> int:
    """What a server counts that counts about as we do."""
    return len(text) // 5


def checked(url: str, *, key: str = "right-key", **settings: Any) -> ModelCheck:
    named = Settings(chat_model="m", embedding_model="v", base_url=url, **settings)
    return asyncio.run(check_settings(named, {"OPENAI_API_KEY": key}))


@pytest.mark.parametrize("manners", ["good", "strict", "local"])
def test_a_server_that_works_needs_no_advice_whatever_its_dialect(manners: str) -> None:
    with openai_server(answer=capable, manners=manners) as server:
        check = checked(server.url)
    assert [call.name for call in check.calls] == CALLS and check.works
    assert check.advice == {} and "2 of 2 names" in check.calls[1].sentence
    assert not any("does not count tokens" in note for note in check.notes)


def test_a_server_that_refuses_json_without_a_reason_gets_the_setting_that_mends_it() -> None:
    with openai_server(answer=capable, manners="sloppy") as server:
        check = checked(server.url)
        assert check.advice == {"json_mode": '"none"'} and not check.works
        assert any("does not count tokens" in note for note in check.notes)
        mended = checked(server.url, json_mode="none")
    assert mended.works and mended.advice == {}


OPTIONS = {"temperature": 0, "seed": 1}
SHORT = {"ollama", "vllm", "llama.cpp"}  # the profiles whose context does not hold the prompt of a report


@pytest.mark.parametrize("name", list(PROVIDERS))
def test_every_provider_works_after_what_it_refuses_was_left_out_once(name: str) -> None:
    provider = PROVIDERS[name]
    with openai_server(answer=capable, provider=provider) as server:
        check = checked(server.url, chat_options=OPTIONS)
        asked = [one.body for one in server.requests if one.path.endswith("completions")]
    works = {call.name: call.works for call in check.calls}
    assert works == dict.fromkeys(CALLS, True) | {"long prompt": name not in SHORT}
    assert check.advice == ({"preset": '"small"'} if name in SHORT else {})
    refused = [body for body in asked if provider.objection(body)]
    assert len(asked) - len(refused) >= 3 and len(refused) <= 3 + (name in SHORT), "what is refused is learned"
    assert provider.objection(asked[-1]) is None or name in SHORT


SAID = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "ready"}, "finish_reason": "stop"}]}
ODD = {  # what a server, or a proxy before it, gives in place of every reply, and the words that must be told
    "an error with status 200": ((200, {}, error("the backend is broken")), ["an error in place of a reply: the backend is broken"]),
    "a refused key with status 200": ((200, {}, error("Incorrect API key", code=401)), ["refuses the key", "OPENAI_API_KEY"]),
    "another protocol": ((200, {}, '{"model": "m", "response": "hi", "done": true}'), ["without choices", "OPENAI_BASE_URL"]),
    "no choices": ((200, {}, '{"choices": []}'), ["the reply was empty"]),
    "compression that is not told": ((200, {}, gzip.compress(json.dumps(SAID).encode())), ["no JSON", "OPENAI_BASE_URL"]),
    "a closed connection": ("reset", ["the connection failed"]),
    "a short pause": ((429, {"Retry-After": "20"}, error("slow down")), ["status 429, with a pause of 20 seconds asked for: slow down", "requests_per_minute"]),
    "a page of a gateway": ((502, {"Content-Type": "text/html"}, PAGE), ["status 502: a web page"]),
    "a redirect to a login": ((302, {"Location": "https://login.example/?next=a&token=abc"}, ""), ["to https://login.example/ (302)"]),
    "a redirect with a key": ((302, {"Location": "http://x/sk-1234567890/chat/completions"}, ""), ["sends calls on (302)", "Correct OPENAI_BASE_URL"]),
    "a page at the right address": ("html", ["web page", "Correct OPENAI_BASE_URL"]),
}  # fmt: skip


@pytest.mark.parametrize("what", list(ODD))
def test_what_comes_in_place_of_a_reply_is_told_in_words_with_what_to_do(what: str) -> None:
    planned, words = ODD[what]
    with openai_server(answer=capable, script=[planned] * 9) as server:
        check = asyncio.run(check_settings(Settings(chat_model="m", base_url=server.url), {"OPENAI_API_KEY": "k"}))
    (call,) = check.calls
    assert not call.works and not [word for word in words if word not in call.sentence], call.sentence


def test_prompts_are_not_sent_on_to_a_server_that_was_not_named() -> None:
    with openai_server(answer=capable) as other:
        away = (307, {"Location": f"{other.url}/chat/completions"}, "")
        with openai_server(answer=capable, script=[away] * 9) as server:
            check = checked(server.url)
    assert not check.works and f"sends calls on to {other.url}" in check.calls[0].sentence
    assert other.requests == []


@pytest.mark.parametrize("planned", ["drip", "endless"])
def test_a_stream_without_end_does_not_hang_the_check(planned: str) -> None:
    with openai_server(answer=capable, script=[None, None, planned]) as server:
        check = checked(server.url, timeout_seconds=4.0)
    assert not check.calls[2].works and int(check.advice["timeout_seconds"]) >= 16


def test_a_model_that_gives_no_json_and_forgets_the_beginning_gets_settings_for_it() -> None:
    with openai_server(answer=lambda messages, body: "I am not sure.") as server:
        check = checked(server.url)
    assert [call.works for call in check.calls] == [True, False, False, True, False, True]
    assert check.advice == {"preset": '"small"'}


def cut(sent: int, spent: int, text: str = "ready") -> tuple[int, dict[str, str], str]:
    """A reply that came to the limit of its length, with the tokens that the server counts."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}
    return 200, {}, json.dumps({"choices": [choice], "usage": {"prompt_tokens": sent, "completion_tokens": spent}})


def test_the_command_prints_a_line_a_call_and_ends_with_status_1_after_a_failure(tmp_path: Path) -> None:
    with openai_server(answer=capable) as server:
        environment = clean_environment(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="k", GRAPHRAG_MCP_CHAT_MODEL="m")
        done = run_cli("check-model", "--home", tmp_path, env=environment)
        assert done.returncode == 0 and done.stdout.count("works  ") == 4 and "4 calls" in done.stdout
    with openai_server(answer=lambda messages, body: "no") as server:
        environment["OPENAI_BASE_URL"] = server.url
        done = run_cli("check-model", "--home", tmp_path, "--json", env=environment)
    record = json.loads(done.stdout)
    assert done.returncode == 1 and record["works"] is False and record["advice"]["preset"] == '"small"'
