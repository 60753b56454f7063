"""check-model: what five calls tell of a server, with the good and bad manners that servers have."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.errors import BadInput
from graphrag_mcp.llm.check import ModelCheck, check_settings
from graphrag_mcp.settings import Settings
from tests.support.command import clean_environment, run_cli
from tests.support.openai_server import openai_server, text_of
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


def test_lm_studio_takes_a_schema_and_the_setting_that_asks_for_less_is_corrected() -> None:
    with openai_server(answer=capable, provider=PROVIDERS["lm studio"]) as server:
        assert checked(server.url, json_mode="object").calls[1].sentence.count("response_format") == 1
        assert checked(server.url, json_mode="object").advice == {"json_mode": '"auto"'}


def prose_without_format(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """A model that writes JSON only where the server makes it."""
    told = capable(messages, body)
    return told if "response_format" in body or not told.startswith("{") else "They are Anna Berg and Tom Hill."


def test_a_proxy_that_drops_response_format_is_told() -> None:
    with openai_server(answer=prose_without_format, provider=PROVIDERS["anthropic"]) as server:
        check = checked(server.url)
    assert not check.works and [call.works for call in check.calls] == [True, False, True, True, True]
    assert check.advice == {"json_mode": '"none"'}
    assert any("response_format" in note for note in check.notes)


def test_a_proxy_that_gives_web_pages_is_told_with_the_address() -> None:
    with openai_server(answer=capable, script=["html"] * 9) as server:
        check = checked(server.url.removesuffix("/v1"))
    assert [call.works for call in check.calls] == [False, False] and "web page" in check.calls[0].sentence
    assert "Set OPENAI_BASE_URL to" in check.calls[0].sentence and "/v1" in check.calls[0].sentence


def test_a_server_that_is_slower_than_the_limit_gets_a_longer_one() -> None:
    with openai_server(answer=capable, latency=0.6) as server:
        check = checked(server.url, timeout_seconds=0.5)
    assert not check.calls[0].works and "no answer within" in check.calls[0].sentence
    assert float(check.advice["timeout_seconds"]) > 0.6


def test_the_first_call_that_fails_is_told_once_with_its_reason() -> None:
    with openai_server(answer=capable, manners="strict") as server:
        check = checked(server.url, key="wrong-key")
    assert [call.name for call in check.calls] == ["plain reply", "embedding"] and not check.works
    assert "key" in check.calls[0].sentence and "wrong-key" not in repr(check)
    with openai_server(answer=capable, script=["html"]) as server:
        check = checked(server.url)
    assert "web page" in check.calls[0].sentence and check.calls[-1].works


def test_a_model_that_gives_no_json_and_forgets_the_beginning_gets_settings_for_it() -> None:
    with openai_server(answer=lambda messages, body: "I am not sure.") as server:
        check = checked(server.url)
    assert [call.works for call in check.calls] == [True, False, True, False, True]
    assert check.advice == {"json_mode": '"none"', "preset": '"small"'}


def test_a_slow_server_gets_more_time_and_prices_give_a_cost() -> None:
    with openai_server(answer=capable, latency=0.7) as server:
        check = checked(server.url, timeout_seconds=1.0, price_prompt=2.0, price_output=7.0)
    assert int(check.advice["timeout_seconds"]) >= 2
    assert check.notes == ["By the prices set, 1 MB of text costs about 2.80 with --method light and 7.47 in full."]


def test_without_a_model_there_is_nothing_to_check() -> None:
    with pytest.raises(BadInput, match="no model is configured"):
        asyncio.run(check_settings(Settings(), {}))


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
