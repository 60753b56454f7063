"""`python -m graphrag_mcp`: the same as the `graphrag-mcp` command."""

from __future__ import annotations

import sys

from graphrag_mcp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
