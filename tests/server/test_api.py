"""The tools as JSON over HTTP without MCP: over real sockets, with the door, tokens and rights of MCP over HTTP."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.http_server import ALICE, BOB, TOKENS, running, served

QUESTION = "What did the harbour fear?"


@pytest.fixture(scope="module")
def home(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("api") / "home"
    shutil.copytree(sample_home, home)
    return home


@pytest.fixture(scope="module")
def api(home: Path) -> Iterator[httpx2.Client]:
    with running(served(home), home.parent / "open.log") as (_, port), httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
        yield client


@pytest.fixture(scope="module")
def with_tokens(home: Path) -> Iterator[httpx2.Client]:
    command = served(home)
    with running(command, home.parent / "tokens.log", GRAPHRAG_MCP_TOKENS=TOKENS) as (_, port):
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def events_of(response: httpx2.Response) -> list[tuple[str, Any]]:
    """The events of a stream, as (name, data)."""
    found = re.findall(r"event: (\w+)\ndata: (.*)\n\n", response.read().decode())
    return [(name, json.loads(data)) for name, data in found]


def test_a_search_gives_typed_hits_with_their_places_in_the_documents(api: httpx2.Client) -> None:
    response = api.post("/api/local_search", json={"query": "lighthouse harbour", "max_tokens": 2000})
    assert response.status_code == 200, response.text
    found = response.json()
    assert found["state"] == "context" and found["corpus"] == "sample" and found["text"]
    for hit in found["citations"]:
        assert re.fullmatch(r"t\d+(\.\d+)?", hit["id"]) and hit["title"] and hit["uri"] and hit["text"]
        assert 0 <= hit["char_start"] < hit["char_end"]
    source = api.post("/api/get_source", json={"ids": [found["citations"][0]["id"]]}).json()
    assert source["sources"] and source["text"]


@pytest.mark.parametrize(("tool", "arguments"), [("local_search", {"query": "lighthouse harbour"}), ("get_source", {"ids": ["t1"]}), ("drift_search", {"query": QUESTION})])
def test_the_text_of_a_result_has_unbroken_marks(api: httpx2.Client, tool: str, arguments: dict[str, Any]) -> None:
    text = api.post(f"/api/{tool}", json=arguments).json()["text"]
    assert re.search(r"^<documents-(\d{13})(?:: data only)?>\n.*\n</documents-\1>$", text, re.DOTALL | re.MULTILINE)
    assert "<\\" not in text


def test_the_description_is_valid_and_has_every_tool_with_all_its_arguments(api: httpx2.Client) -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    described = api.get("/api/openapi.json").json()
    validator.validate(described)
    names = {path.removeprefix("/api/") for path in described["paths"]}
    assert {"local_search", "index_documents", "remove_documents", "explore_data"} <= names
    asked = described["paths"]["/api/local_search"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert {"query", "filters", "sort", "answer", "queries"} <= set(asked["properties"])


def test_every_result_is_as_its_schema_says(api: httpx2.Client) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    described = api.get("/api/openapi.json").json()
    calls: dict[str, dict[str, Any]] = {
        "local_search": {"query": "lighthouse harbour"}, "global_search": {"query": "what is this about?"}, "search_text": {"query": "lighthouse harbour"},
        "list_documents": {}, "graph_status": {}, "get_entity": {"id_or_name": "e1"}, "get_source": {"ids": ["t1"]},
        "explore_graph": {"start": "e1"}, "explore_data": {"view": "overview"}, "drift_search": {"query": QUESTION}, "edit_graph": {"op": "log"},
        "remove_documents": {"ids": ["d1"]}, "claim_work": {},
    }  # fmt: skip
    for tool, given in calls.items():
        response = api.post(f"/api/{tool}", json=given)
        assert response.status_code == 200, (tool, response.text)
        schema = described["paths"][f"/api/{tool}"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(response.json(), {**schema, "components": described["components"]})


def test_what_is_wrong_has_a_status_and_a_reason(api: httpx2.Client) -> None:
    cases: list[tuple[str, dict[str, Any], int, str]] = [
        ("/api/local_serch", {"json": {}}, 404, "local_search"),
        ("/api/get_entity", {"json": {}}, 400, "id_or_name"),
        ("/api/get_entity", {"json": {"id_or_name": "e1", "corpus": "none"}}, 404, "corpus"),
        ("/api/index_documents", {"json": {"paths": ["/etc/passwd"]}}, 403, "outside"),
        ("/api/local_search", {"json": [1]}, 400, "JSON object"),
        ("/api/local_search", {"content": b"{", "headers": {"content-type": "application/json"}}, 400, "JSON object"),
        ("/api/local_search", {"content": b"{}", "headers": {"content-type": "text/plain"}}, 415, "application/json"),
        ("/api/local_search", {"content": b"{}"}, 415, "application/json"),
        ("/api/remove_documents", {"json": {"ids": ["d1"], "nothing": 1}}, 400, "nothing"),
        ("/api/local_search", {"json": {"query": "x", "filters": ["a" * 30_000]}}, 400, "characters"),
        ("/api/local_search", {"content": b"[" * 100_000, "headers": {"content-type": "application/json"}}, 400, "JSON object"),
        ("/api/index_documents", {"content": b" " * (5 * 2**20), "headers": {"content-type": "application/json"}}, 413, "4 MiB"),
    ]  # fmt: skip
    for path, given, status, reason in cases:
        response = api.post(path, **given)
        assert (response.status_code, reason in response.json()["error"]) == (status, True), (path, response.text)
    assert api.get("/api/local_search").status_code == 405
    assert api.options("/api/local_search", headers={"Origin": "http://localhost:3000"}).status_code in (404, 405)


def test_a_body_without_a_length_is_read_up_to_its_limit_only(api: httpx2.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 2**16

    response = api.post("/api/local_search", content=endless(), headers={"content-type": "application/json"})
    assert response.status_code == 413


def test_the_door_is_that_of_mcp_over_http(with_tokens: httpx2.Client) -> None:
    for method, path in (("POST", "/api/local_search"), ("GET", "/api/openapi.json")):
        ask = {"method": method, "url": path, **({"json": {"query": "x"}} if method == "POST" else {})}
        assert with_tokens.request(**ask).status_code == 401
        assert with_tokens.request(**ask, headers=bearer("x" * 20)).status_code == 401
        assert with_tokens.request(**ask, headers={**bearer(ALICE), "Origin": "https://evil.example"}).status_code == 403
        assert with_tokens.request(**ask, headers={**bearer(ALICE), "Host": "evil.example"}).status_code == 421
        assert with_tokens.request(**ask, headers=bearer(ALICE)).status_code == 200
    assert "token" in with_tokens.post("/api/local_search", json={}).json()["error"]


def test_a_session_of_one_name_is_not_there_for_another(with_tokens: httpx2.Client) -> None:
    begun = with_tokens.post("/api/drift_search", json={"query": QUESTION}, headers=bearer(ALICE)).json()
    given = {"session_id": begun["session_id"]}
    assert with_tokens.post("/api/drift_finish", json=given, headers=bearer(ALICE)).status_code == 200
    assert with_tokens.post("/api/drift_finish", json=given, headers=bearer(BOB)).status_code == 404


def test_a_server_that_only_reads_has_no_tool_that_writes(home: Path) -> None:
    with running(served(home, "--read-only"), home.parent / "read.log") as (_, port), httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
        names = {path.removeprefix("/api/") for path in client.get("/api/openapi.json").json()["paths"]}
        assert "local_search" in names and not {"index_documents", "remove_documents", "edit_graph", "drift_search"} & names
        assert client.post("/api/remove_documents", json={"ids": ["d1"]}).status_code == 404
        assert client.post("/api/local_search", json={"query": "lighthouse harbour"}).status_code == 200


def test_indexing_streams_its_progress_and_ends_with_a_result(api: httpx2.Client) -> None:
    given = {"texts": [{"id": "a", "title": "Lamp", "text": "The lamp of Ostra Point was lit by Ida Noll in 1911."}], "corpus": "streamed"}
    with api.stream("POST", "/api/index_documents", json=given, headers={"Accept": "text/event-stream"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = events_of(response)
    assert {name for name, _ in events[:-1]} <= {"progress"}
    name, result = events[-1]
    assert name == "result" and result["status"] == "done" and result["counts"]["added"] == 1
    found = api.post("/api/local_search", json={"query": "Ida Noll", "corpus": "streamed"}).json()
    assert "Ida Noll" in found["citations"][0]["text"]


def test_an_error_of_a_stream_is_its_last_event(api: httpx2.Client) -> None:
    with api.stream("POST", "/api/get_entity", json={"id_or_name": "e1", "corpus": "none"}, headers={"Accept": "text/event-stream"}) as response:
        assert [name for name, _ in events_of(response)] == ["error"]
