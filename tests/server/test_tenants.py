"""Several tenants behind one address: each token reaches the home of its tenant and nothing of another."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from graphrag_mcp.errors import BadInput
from graphrag_mcp.http import tenants_of, tokens_of
from graphrag_mcp.settings import address_of, load, of_tenant
from tests.support.command import clean_environment, run_cli
from tests.support.http_server import running, served
from tests.support.object_store import BUCKET
from tests.support.workload import PATIENCE

OWNERS = {"ada": "team-a", "ben": "team-b", "bea": "team-b"}
TOKENS = ",".join(f"{name}=canary-of-{name}-7c1f0d22" for name in OWNERS)
TENANTS = ",".join(f"{name}={tenant}" for name, tenant in OWNERS.items())


class Tenant:
    """A client with one of the tokens."""

    def __init__(self, port: int, name: str) -> None:
        self.port, self.bearer = port, {"Authorization": f"Bearer canary-of-{name}-7c1f0d22"}

    def call(self, tool: str, **arguments: object) -> tuple[bool, str]:
        async def made() -> tuple[bool, str]:
            async with httpx2.AsyncClient(timeout=PATIENCE, headers=self.bearer) as transport:
                url = f"http://127.0.0.1:{self.port}/mcp"
                async with Client(streamable_http_client(url, http_client=transport)) as client:
                    result = await client.call_tool(tool, arguments)
                    return result.is_error, result.content[0].text

        return anyio.run(made)

    def good(self, tool: str, **arguments: object) -> str:
        wrong, text = self.call(tool, **arguments)
        assert not wrong, text
        return text

    def bad(self, tool: str, **arguments: object) -> str:
        wrong, text = self.call(tool, **arguments)
        assert wrong, text
        return text

    def page(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", path, headers=self.bearer)
        response = connection.getresponse()
        found = response.status, response.read().decode()
        connection.close()
        return found


@pytest.fixture(params=["disk", "store"])
def port(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    roots = tmp_path / "documents"
    for tenant in ("team-a", "team-b"):
        (roots / tenant).mkdir(parents=True)
        (roots / tenant / "plan.md").write_text(f"Quorra of {tenant} met Ida Bellweather in Port {tenant.title()}.", "utf-8")
    environment = {"GRAPHRAG_MCP_TOKENS": TOKENS, "GRAPHRAG_MCP_TENANTS": TENANTS, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    home, count = str(tmp_path / "home"), "2"
    with contextlib.ExitStack() as stack:
        if request.param == "store":
            pytest.importorskip("obstore", reason="the extra [object-storage] is not installed")
            pytest.importorskip("moto", reason="there is no S3 server to test with")
            from tests.support.object_store import object_store

            store = stack.enter_context(object_store())
            environment |= store.environment
            home, count = f"s3://{BUCKET}/many", "1"
        command = served(Path("home"), "--workers", count)
        command[command.index("--home") + 1], command[command.index("--root") + 1] = home, str(roots)
        _, port = stack.enter_context(running(command, tmp_path / "log", **environment))
        yield port
        if request.param == "store":
            assert not any(re.search(r"/many/(corpora|drift)/", one) for one in store.trouble.requests)
        if request.node.originalname == "test_a_tenant_reaches_nothing_of_another":
            other = {**environment, "XDG_CACHE_HOME": str(tmp_path / "elsewhere")}
            found = run_cli("search", "Quorra", "--home", f"{home}/tenants/team-b", env=clean_environment(**other))
            assert found.returncode == 0 and "Port Team-B" in found.stdout and "Team-A" not in found.stdout


def test_a_tenant_reaches_nothing_of_another(port: int) -> None:
    ada, ben, bea = (Tenant(port, name) for name in OWNERS)
    for one in (ada, ben):
        one.good("index_documents", paths=["plan.md"], corpus="plans", wait_seconds=50)
    ada.good("index_documents", texts=[{"id": "n", "text": "The canary word of team-a is Zibeline."}], corpus="secret", wait_seconds=50)
    assert "Port Team-A" in ada.good("search_text", query="Bellweather", corpus="plans")
    assert "Team-A" not in ben.good("search_text", query="Bellweather", corpus="plans")
    assert "Port Team-B" in bea.good("search_text", query="Bellweather", corpus="plans")  # of the same tenant
    for other in (ben, bea):
        assert "Zibeline" not in other.good("graph_status") and "secret" not in other.good("graph_status")
        assert "no corpus 'secret'" in other.bad("search_text", query="Zibeline", corpus="secret")
        assert "Zibeline is" not in other.good("search_text", query="canary word", corpus="*") + other.good("list_documents")
        status, said = other.page("/explore/data/overview?corpus=secret")
        assert status == 404 or "Zibeline" not in said
    session = re.search(r'session_id="([\w-]+)"', ada.good("drift_search", query="Whom did Quorra meet?", corpus="plans"))
    assert session is not None
    for other in (ben, bea):
        assert "no DRIFT session" in other.bad("drift_step", session_id=session[1], answer="x", score=1)
    assert ada.good("drift_finish", session_id=session[1])


def test_a_tenant_reads_its_own_folder_of_the_roots(port: int) -> None:
    ben = Tenant(port, "ben")
    for path in ("../team-a/plan.md", "..", "/etc/hostname"):
        assert "outside the folders" in ben.bad("index_documents", paths=[path], corpus="x", wait_seconds=50)


def test_a_request_without_a_token_gets_health_and_no_more(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    for path, wanted in (("/health", 200), ("/explore/data/overview", 401), ("/mcp", 401)):
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == wanted
        response.read()
    connection.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ada=a,ben=b", "bea"), ("ada=a,ben=b,bea=c,cy=d", "cy"), ("ada=a,ben=b,bea=b,ada=b", "twice"),
        ("ada=../b,ben=b,bea=b", "cannot be a prefix"), ("ada,ben=b,bea=b", "cannot be a prefix"), ("ada=a/b,ben=b,bea=b", "cannot be a prefix"),
    ],
)  # fmt: skip
def test_a_name_without_a_tenant_of_its_own_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        tenants_of(text, set(OWNERS))


def test_tenants_are_prefixes_of_the_home(tmp_path: Path) -> None:
    assert tenants_of("", set()) == {} and tenants_of(TENANTS, set(tokens_of(TOKENS).values())) == OWNERS
    store = of_tenant(load({}, home="s3://bucket/many", cache_bytes=90), "team-a", 3)
    assert address_of(store.home) == "s3://bucket/many/tenants/team-a" and store.cache_bytes == 30
    disk = of_tenant(load({}, home=str(tmp_path), roots=[str(tmp_path / "r")]), "team-a")
    assert disk.home == tmp_path / "tenants" / "team-a" and disk.roots == (tmp_path / "r" / "team-a",)
    assert json.dumps(str(disk.home))
