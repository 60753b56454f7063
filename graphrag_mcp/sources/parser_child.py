"""The process that parses untrusted files, one by one, within limits of memory and time.

Takes frames on standard input (a line of JSON {"suffix", "size", "seconds", "described"}, then the bytes);
gives lines of JSON on standard output: one per piece of the document and per picture, at the end {"end": true} or
{"error": reason}. A thread in C limits wall time even when Python hangs. While bytes are parsed
Python can open no socket, process or file outside of the installed Python. The environment holds no
key, and the process is given no file's name."""

from __future__ import annotations

import base64
import contextlib
import faulthandler
import json
import math
import os
import sys
import threading
import time
from importlib import import_module
from typing import Any, BinaryIO

MEMORY = 600_000_000  # bytes on top of what the libraries take themselves
ENGINE_KEEPS = 300_000_000  # bytes that the engine for pictures does not give back after one
PICTURES = 60_000_000  # bytes of a file's pictures: 80 MB as base64, of the 120 that it may become
GROWN = 200_000_000  # this process has grown by so much: the next file gets a new one
LIBRARIES = ("pypdfium2", "office_oxide", "olefile", "lxml.etree", "email.charset", "encodings.idna")
_SECRET_FREE = ("/dev/null", "/dev/urandom")
_NEVER = tuple(
    "socket. subprocess. os.exec os.fork os.spawn os.posix_spawn os.system os.startfile pty. "
    "os.remove os.rename os.mkdir os.rmdir os.link os.symlink os.truncate os.chmod os.chown shutil. "
    "tempfile. urllib. http. ftplib. smtplib. winreg. webbrowser.".split()
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_sealed = False


def _guard(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook: while bytes are parsed only Python's own files can be read."""
    if not _sealed:
        return
    if event == "open":
        path, _, flags = args
        if isinstance(path, int):
            return
        name = os.path.abspath(os.fsdecode(path))
        if (isinstance(flags, int) and flags & _WRITING) or not name.startswith(_readable()):
            raise PermissionError("a parser may open no file")
    elif event.startswith(_NEVER):
        raise PermissionError(f"a parser may not use {event}")


def _readable() -> tuple[str, ...]:
    installed = {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.__file__)}
    installed |= {path for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = (os.path.abspath(path).rstrip(os.sep) for path in (*installed, package))
    return (*(f"{folder}{os.sep}" for folder in folders), *_SECRET_FREE)


def _prepare(suffix: str) -> None:
    """Import what reads such a file, without limits; what the libraries take is not the file's."""
    global _libraries, _loaded, _reads_pictures

    from graphrag_mcp.sources import formats, ocr
    from graphrag_mcp.sources.walk import ocr_installed

    before = _address_space()
    _try("RLIMIT_AS", math.inf)
    if suffix == "parquet":
        import pyarrow.parquet  # noqa: F401
    elif suffix in formats.APART and not _loaded:
        for name in LIBRARIES:  # any of them may be inside of a mail or a zip
            import_module(name)
        _loaded = True
    if suffix in ocr.READ and ocr_installed():
        ocr.engine()
        _reads_pictures = True
    _libraries += _address_space() - before


def _try(name: str, value: float) -> None:
    """Limit this process where the system can: Windows has `_watch` alone, macOS no RLIMIT_AS."""
    if name == "RLIMIT_AS" and not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        limit = getattr(resource, name)
        _, hard = resource.getrlimit(limit)
        most = min(value, math.inf if hard < 0 else hard)
        resource.setrlimit(limit, (hard if most == math.inf else int(most), hard))


def _address_space() -> int:
    if not sys.platform.startswith("linux"):
        return 0
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _resident() -> int:
    """The most memory that this process has held, in bytes; 0 where no one says."""
    if sys.platform.startswith("linux"):  # what getrusage says there is the parent's too
        with open("/proc/self/status", encoding="ascii") as file:
            peaks = (line.split()[1] for line in file if line.startswith("VmHWM:"))
            return int(next(peaks, 0)) * 1024
    with contextlib.suppress(ImportError):
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    try:
        import ctypes

        class Counters(ctypes.Structure):
            _fields_ = [("cb", ctypes.c_ulong), ("faults", ctypes.c_ulong)] + [
                (f"size{number}", ctypes.c_size_t) for number in range(8)
            ]

        counters = Counters(cb=ctypes.sizeof(Counters))
        kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
        kernel.GetCurrentProcess.restype = ctypes.c_void_p
        kernel.K32GetProcessMemoryInfo.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong]
        kernel.K32GetProcessMemoryInfo(kernel.GetCurrentProcess(), ctypes.byref(counters), counters.cb)
        return int(counters.size0)  # PeakWorkingSetSize
    except (AttributeError, OSError):
        return 0


def _watch(most: int) -> None:
    """For systems without a limit on memory: ends this process when it holds too much."""
    while True:
        time.sleep(0.05)
        if _resident() > most:
            os._exit(77)


def _parse(out: BinaryIO, data: bytes, suffix: str, seconds: float, described: bool, name: str) -> dict[str, Any]:
    """Writes the pieces, and the pictures where they are `described`; gives the last line."""
    global _sealed

    from graphrag_mcp.sources import formats, ocr
    from graphrag_mcp.sources.decode import ReadError, why_not
    from graphrag_mcp.sources.piece import NotRead, Piece

    try:
        _prepare(suffix)
        # Memory and CPU time on top of what this process has taken until now.
        faulthandler.dump_traceback_later(seconds, exit=True, file=_nowhere)
        _try("RLIMIT_CPU", int(sum(os.times()[:2]) + seconds) + 2)
        _try("RLIMIT_CORE", 0)
        _try("RLIMIT_FSIZE", 0)
        # What the engine keeps of the picture before is not this file's.
        taken = max(_libraries, _address_space()) if _reads_pictures else _libraries
        _try("RLIMIT_AS", taken + MEMORY)
        begun = 0

        def another() -> None:
            """A picture is read: it has the time of a file."""
            nonlocal begun
            begun += 1
            if begun > ocr.MOST:
                many = f"the file holds over {ocr.MOST} pictures, and no more are read"
                raise ocr.TooMany(many)
            faulthandler.cancel_dump_traceback_later()
            faulthandler.dump_traceback_later(seconds, exit=True, file=_nowhere)
            _try("RLIMIT_CPU", int(sum(os.times()[:2]) + seconds) + 2)
            out.write(b'{"more": true}\n')
            out.flush()

        ocr.signals[:] = [another]
        _sealed = True
        room = PICTURES
        for piece in formats.pieces(data, suffix, described=described, name=name):
            if isinstance(piece, Piece):
                if not piece.text.strip():
                    continue
                line: Any = [getattr(piece, name) for name in Piece.__slots__]
            elif isinstance(piece, NotRead):
                line = {"not read": [piece.name, piece.reason]}
            elif len(piece.data) > room:
                left = f"the pictures of the file that are described take {PICTURES / 1e6:g} MB"
                line = {"not read": [piece.key or piece.place, left]}
            else:
                room -= len(piece.data)
                shown = base64.b64encode(piece.data).decode("ascii")
                line = {"picture": [shown, piece.place, piece.key, piece.metadata]}
            out.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        return {"end": True}
    except ReadError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": f"it takes over {MEMORY / 1e6:g} MB of memory to read", "last": True}
    except Exception as error:  # bytes from anywhere, parsers from elsewhere
        return {"error": why_not(error, suffix)}
    finally:
        _sealed = False
        faulthandler.cancel_dump_traceback_later()


def main() -> None:
    """Parse what comes in frames on stdin until it ends; results go out in frames on stdout."""
    global _libraries, _nowhere

    frames, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    _nowhere = open(os.devnull, "wb")  # held as long as this process lives
    os.dup2(_nowhere.fileno(), 1)  # a library that prints must not be heard
    os.dup2(_nowhere.fileno(), 2)
    import mimetypes

    mimetypes.init()
    sys.addaudithook(_guard)
    if not sys.platform.startswith("linux"):
        most = _resident() + MEMORY + 300_000_000
        threading.Thread(target=_watch, args=(most,), daemon=True).start()
    _libraries = _address_space()
    began = _resident()
    while line := frames.readline(10_000):
        head = json.loads(line)
        data = frames.read(head["size"])
        if len(data) < head["size"]:
            return
        described, name = bool(head.get("described")), head.get("name", "")
        message = _parse(out, data, head["suffix"], head["seconds"], described, name)
        del data
        room = ENGINE_KEEPS if _reads_pictures else 0
        grown = _address_space() > _libraries + GROWN + room or _resident() > began + MEMORY + room
        message["last"] = message.get("last", False) or grown
        out.write(json.dumps(message).encode() + b"\n")
        out.flush()
        if message["last"]:
            return


_libraries = 0  # bytes of address space that Python and its libraries take
_loaded = False  # the libraries that read documents
_reads_pictures = False  # the engine that reads pictures is loaded
_nowhere: Any = None

if __name__ == "__main__":
    main()
