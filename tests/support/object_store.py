"""An S3 server on this machine (moto), and in front of it a door that fails as stores do: 503, refused credentials,
conditional puts that are ignored, answers that are lost or late, a write that is forbidden.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUCKET = "bucket"
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "canary-aws-3f9a0c", "AWS_REGION": "us-east-1"}
CONDITIONS = ("if-match", "if-none-match")


@dataclass
class Trouble:
    """What the door does with the next requests, and how many came, by method."""

    delay: float = 0.0  # seconds before each answer
    refuse: list[int] = field(default_factory=list)  # status of the next requests, one after another
    status: int = 0  # of every request, while it is set
    read_only: bool = False
    unconditional: bool = False
    hang: int = 0  # of the next requests are not answered until `released`
    released: threading.Event = field(default_factory=threading.Event)
    lose_swaps: int = 0  # conditional puts that are done, and answered with 500
    requests: list[str] = field(default_factory=list)


@dataclass
class ObjectStore:
    port: int
    trouble: Trouble

    @property
    def environment(self) -> dict[str, str]:
        return {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A new store with one empty bucket."""
    from moto.server import ThreadedMotoServer

    moto, trouble = ThreadedMotoServer("127.0.0.1", 0, verbose=False), Trouble()
    moto.start()
    behind = moto.get_host_and_port()[1]
    lock = threading.Lock()  # moto itself does not make a conditional put in one step

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def refusal(self) -> int:
            if trouble.refuse:
                return trouble.refuse.pop(0)
            return trouble.status or (403 if trouble.read_only and self.command in ("PUT", "DELETE", "POST") else 0)

        def serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            trouble.requests.append(f"{self.command} {self.path}")
            time.sleep(trouble.delay)
            if trouble.hang:
                trouble.hang -= 1
                trouble.released.wait(60)
            if status := self.refusal():
                return self.answer(status, {}, b"" if self.command == "HEAD" else b"<Error><Code>Refused</Code></Error>")
            headers = {name: value for name, value in self.headers.items() if not (trouble.unconditional and name.lower() in CONDITIONS)}
            conditional = self.command == "PUT" and any(name.lower() in CONDITIONS for name in headers)
            with lock:
                status, given, said = self.forwarded(headers, body)
            if conditional and status == 200 and trouble.lose_swaps:
                trouble.lose_swaps -= 1
                status, given, said = 500, {}, b""
            self.answer(status, given, said)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = serve

        def forwarded(self, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", behind, timeout=60)
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            found = response.status, dict(response.getheaders()), response.read()
            connection.close()
            return found

        def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

    door = Server(("127.0.0.1", 0), Door)
    threading.Thread(target=door.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    connection = http.client.HTTPConnection("127.0.0.1", behind, timeout=60)
    for method, path in (("POST", "/moto-api/reset"), ("PUT", f"/{BUCKET}")):  # it keeps its state in the process
        connection.request(method, path, headers={"Host": "127.0.0.1"})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        response.read()
    try:
        yield ObjectStore(door.server_port, trouble)
    finally:
        trouble.released.set()
        door.shutdown()
        door.server_close()
        moto.stop()
