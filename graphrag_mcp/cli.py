"""The command line: the street door for humans and scripts.

Takes arguments; gives the exit status: 0 done, 1 something failed or was left out (named), 2 wrong use. Commands stand
in cli_read.py, cli_write.py and cli_upkeep.py, their arguments in cli_arguments.py; only files named cli*.py print.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from graphrag_mcp.cli_arguments import parser
from graphrag_mcp.cli_common import as_utf8, failed
from graphrag_mcp.cli_edit import edit, remove
from graphrag_mcp.cli_eval import eval as evaluate
from graphrag_mcp.cli_graph import drift, explore
from graphrag_mcp.cli_install import install
from graphrag_mcp.cli_read import entity, report, search, source, status
from graphrag_mcp.cli_upkeep import delete, digest, doctor, export, import_, rollback
from graphrag_mcp.cli_write import answers, index, init, serve, tune
from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound
from graphrag_mcp.lean import alone

STOPPED = 130  # what shells report for Ctrl-C
COMMANDS = (serve, index, search, entity, report, source, status, doctor, digest, export, rollback, tune, init, answers)
COMMANDS += (remove, delete, edit, explore, drift, evaluate, install, import_)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (argparse itself exits with 2 for arguments it does not know)."""
    if arguments is None:
        alone()
        if not os.environ.get("HOME", "?"):
            del os.environ["HOME"]  # set to nothing it would make "~" the root of the disk
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help", "--version")):
        given.insert(0, "serve")  # `graphrag-mcp --home X` is what a host's configuration says
    options = parser(COMMANDS).parse_args(given)
    if options.run is not serve:
        as_utf8(sys.stdout)
        as_utf8(sys.stderr)
    try:
        return options.run(options)
    except GraphRAGError as error:
        return failed(options, error, 2 if isinstance(error, BadInput | NotFound) else 1)
    except BrokenPipeError:  # `graphrag-mcp ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return failed(options, f"{error.strerror or error}: {error.filename or options.home or 'the index folder'}", 1)
    except KeyboardInterrupt:
        return failed(options, "Stopped. What was committed stays; the same command goes on from there.", STOPPED)
    finally:
        if arguments is None:
            gc.freeze()  # the process ends: its last collection looked through every row in vain, for 0.4 s of CPU
