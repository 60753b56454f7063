"""A real HTTP server for tests that speaks the OpenAI protocol, with the good and bad manners of servers out there.

    with openai_server(answer=lambda messages, body: "Paris", manners="local") as server:
        settings = Settings(chat_model="m", base_url=server.url)

Manners: "good" (as documented), "strict" (wants the key "right-key", refuses unknown fields, max_tokens and
temperature), "sloppy" (no usage, content as parts, 400 without a reason on response_format, vectors out of order),
"local" (thinks aloud, fences JSON, floats for vectors, ignores encoding_format and stream_options; object mode only).
`provider`: the manners of a provider (tests/support/providers.py) in place of these.
`script`: what the first calls get instead, one entry each: a status, (status, headers, body), "reset", "hang", "html",
"drip" (a blank now and then, without end), "endless" (a stream of pieces, without end), "huge", "empty", "cut" (JSON that ends early), "break" (a stream that ends
early), "slow" (a stream of pieces that come 0.15 seconds apart), or None for a normal answer.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from graphrag_mcp.llm.protocols import Message
from tests.support.demonstration import demonstration
from tests.support.providers import Provider
from tests.support.scripted import ScriptedChat

Answering = Callable[[list[dict[str, Any]], dict[str, Any]], str]
Scripted = int | str | None | tuple[int, Mapping[str, str], str | bytes]
KNOWN = {"model", "messages", "stream", "stream_options", "response_format", "max_completion_tokens", "seed"}
PAGE = "<!doctype html><html><title>Welcome</title><body>Log in first</body></html>"


@dataclass
class Seen:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    connection: int


@dataclass
class Server:
    """What a test may look at and change while the server runs."""

    url: str
    answer: Answering
    manners: str = "good"
    provider: Provider | None = None
    latency: float = 0.0
    dimension: int = 8
    script: list[Scripted] = field(default_factory=list)
    count: Callable[[str, bool], int] = lambda text, sent: 7 if sent else max(1, len(text) // 4)  # tokens of a text
    requests: list[Seen] = field(default_factory=list)
    now: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    hanging: threading.Event = field(default_factory=threading.Event)

    @property
    def stats(self) -> dict[str, int]:
        """Calls, how many of them were in flight at once, and over how many connections they came."""
        connections = {seen.connection for seen in self.requests}
        return {"calls": len(self.requests), "in_flight_max": self.most, "connections": len(connections)}


def text_of(message: Mapping[str, Any]) -> str:
    return str(message.get("content", ""))


def echo(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """The answer of a server that was given none: what was said last, or some JSON where JSON is wanted."""
    return '{"said": "it"}' if "response_format" in body else f"you said: {text_of(messages[-1])}"


def vector(text: str, dimension: int) -> list[float]:
    digest = hashlib.blake2b(text.encode(), digest_size=dimension).digest()
    return [byte / 256 for byte in digest]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Any

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        self._send(200, PAGE, "text/html")

    def do_POST(self) -> None:
        state: Server = self.server.state
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.loads(raw) if raw else {}
        with state.lock:
            headers = {name.lower(): ", ".join(self.headers.get_all(name)) for name in self.headers}
            state.requests.append(Seen(self.path, headers, body, id(self.connection)))
            state.now += 1
            state.most = max(state.most, state.now)
            planned = state.script.pop(0) if state.script else None
        try:
            time.sleep(state.latency)
            if planned is not None:
                self._misbehave(planned, state)
            elif self.path not in ("/v1/chat/completions", "/v1/embeddings"):
                self._send(404, "404 page not found", "text/plain")
            elif refusal := self._objection(state, body):
                self._send(*refusal)
            elif self.path == "/v1/embeddings":
                self._embed(state, body)
            else:
                self._chat(state, body)
        finally:
            with state.lock:
                state.now -= 1

    # ---- replies ------------------------------------------------------------------------------------

    def _send(self, status: int, body: str | bytes, kind: str = "application/json", headers: Any = None) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _objection(self, state: Server, body: dict[str, Any]) -> tuple[int, str] | None:
        """The refusal that the manners call for, if any."""
        if state.provider is not None and self.path.endswith("completions"):
            return state.provider.objection(body)
        wanted = (body.get("response_format") or {}).get("type")
        if state.manners == "strict":
            key = self.headers.get("authorization", "").removeprefix("Bearer ")
            if key != "right-key":
                return 401, error(f"Incorrect API key provided: {key}.", code="invalid_api_key")
            for name in body:
                if self.path.endswith("completions") and name not in KNOWN:
                    said = f"Unsupported parameter: '{name}' is not supported with this model."
                    return 400, error(said, param=name, code="unsupported_parameter")
        if state.manners == "sloppy" and wanted:
            return 400, '{"detail": "Bad Request"}'
        if state.manners == "local" and wanted == "json_schema":
            return 422, json.dumps({"detail": [{"loc": ["body", "response_format", "type"], "msg": "must be json_object"}]})
        return None

    def _chat(self, state: Server, body: dict[str, Any]) -> None:
        provider = state.provider or Provider({})
        if not provider.obeys:
            body = {name: value for name, value in body.items() if name != "response_format"}
        text = state.answer(provider.read(body), body)
        if state.manners == "local":
            fenced = f"```json\n{text}\n```" if "response_format" in body else text
            text = f"<think>Let me see.\nIt is {len(text)} letters.</think>\n\n{fenced}"
        asked = sum(state.count(text_of(one), True) for one in body["messages"])
        used = {"prompt_tokens": asked, "completion_tokens": state.count(text, False)}
        usage = None if state.manners == "sloppy" else used
        if body.get("stream"):
            plain = state.manners in ("local", "sloppy") or not provider.counts
            wanted = usage if (body.get("stream_options") or {}).get("include_usage") and not plain else None
            self._stream(text, wanted, whole=True)
            return
        content: Any = [{"type": "text", "text": half} for half in (text[:3], text[3:])]
        message = {"role": "assistant", "content": content if state.manners == "sloppy" else text}
        if provider.thinks:
            message[provider.thinks] = "I look at the text first."
        reply = {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        self._send(200, json.dumps({**reply, **({"usage": usage} if usage else {})}))

    def _stream(self, text: str, usage: Mapping[str, int] | None, *, whole: bool, pause: float = 0) -> None:
        events: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"content": text[at : at + 3]}, "finish_reason": None}]}
            for at in range(0, len(text), 3)
        ]
        if whole:
            events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        if usage:
            events.append({"choices": [], "usage": usage})
        lines = [": keep-alive", *("data: " + json.dumps(event, ensure_ascii=False) for event in events)]
        lines += ["data: [DONE]"] if whole else []
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for line in lines:
            time.sleep(pause)
            self.wfile.write(f"{line}\n\n".encode())

    def _embed(self, state: Server, body: dict[str, Any]) -> None:
        size = body.get("dimensions") or state.dimension
        vectors = [vector(text, size) for text in body["input"]]
        plain = state.manners == "local" or body.get("encoding_format") != "base64"
        packed = [v if plain else base64.b64encode(struct.pack(f"<{size}f", *v)).decode() for v in vectors]
        data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(packed)]
        if state.manners == "sloppy":
            data.reverse()
        usage = {} if state.manners == "sloppy" else {"usage": {"prompt_tokens": sum(state.count(one, True) for one in body["input"]), "total_tokens": 9}}
        self._send(200, json.dumps({"object": "list", "data": data, **usage}))

    # ---- bad days -----------------------------------------------------------------------------------

    def _misbehave(self, planned: Scripted, state: Server) -> None:
        if isinstance(planned, int):
            self._send(planned, error(f"status {planned}"))
        elif isinstance(planned, tuple):
            status, headers, body = planned
            kind = dict(headers).get("Content-Type", "application/json")
            self._send(status, body, kind, {k: v for k, v in headers.items() if k != "Content-Type"})
        elif planned == "reset":
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        elif planned == "hang":
            state.hanging.wait(20)
            self.close_connection = True
        elif planned == "drip":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            while not state.hanging.wait(0.1):
                self.wfile.write(b" ")
        elif planned == "endless":
            self.close_connection = True
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            event = json.dumps({"choices": [{"index": 0, "delta": {"content": "on "}, "finish_reason": None}]})
            while not state.hanging.wait(0.1):
                self.wfile.write(f"data: {event}\n\n".encode())
        elif planned == "slow":
            self._stream("It takes its time, word by word", None, whole=True, pause=0.15)
        elif planned == "break":
            self._stream("The beginning of an answer that is never", None, whole=False)
        else:
            choices = {"choices": [{"message": {"content": "x" * 2_000_000}, "finish_reason": "stop"}]}
            bodies = {"html": PAGE, "huge": json.dumps(choices), "empty": "", "cut": json.dumps(choices)[:60]}
            self._send(200, bodies[planned], "text/html" if planned == "html" else "application/json")


def error(message: str, **details: Any) -> str:
    """The body of an error as the protocol has it."""
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", **details}})


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    state: Server

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up, or a connection that was reset on purpose."""


@contextmanager
def openai_server(
    answer: Answering = echo, *, manners: str = "good", latency: float = 0.0, dimension: int = 8,
    script: Sequence[Scripted] = (), count: Callable[[str, bool], int] | None = None, provider: Provider | None = None,
) -> Iterator[Server]:  # fmt: skip
    """The server on a free port of 127.0.0.1; `url` ends with /v1."""
    http = _Http(("127.0.0.1", 0), _Handler)
    url = f"http://127.0.0.1:{http.server_port}/v1"
    http.state = Server(url, answer, manners, provider, latency, dimension, list(script))
    http.state.count = count or http.state.count
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield http.state
    finally:
        http.state.hanging.set()
        http.shutdown()
        http.server_close()
        thread.join(5)


def demonstrated() -> Any:
    """The scripted model's answers, as a server gives them."""
    chat = ScriptedChat(demonstration())

    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        told = [Message(one["role"], one["content"]) for one in messages]
        return asyncio.run(chat.complete(told, schema=schema)).text

    return answer
