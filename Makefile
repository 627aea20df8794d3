# Each target sets up what it needs; the second run of any of them installs nothing.
# PYTHON=/path/to/python3.12 chooses the interpreter the environment is made from.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo dev test soak check fix picture clean

BIN := .venv/bin

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: .venv/installed  ## repair the bundled project end to end, with no key and no network
	@$(BIN)/sandbox-agent demo

dev: .venv/installed  ## serve the graphs with Studio (PORT=2024); without an E2B key on a local sandbox server
	@$(BIN)/sandbox-agent serve $(if $(PORT),--port $(PORT))

test: .venv/installed  ## run all tests
	@$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

soak: .venv/installed  ## run the graphs under everything that goes wrong (RUNS=40)
	@$(BIN)/python bench/soak.py --runs $(or $(RUNS),40)

check: .venv/installed  ## lint and types
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

fix: .venv/installed  ## format, and mend what the linter can
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

picture: .venv/installed  ## draw docs/demo.svg, the demo as it runs on a terminal
	@$(BIN)/python scripts/picture.py

clean:  ## remove the environment and caches
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache

.venv/installed: pyproject.toml constraints.txt scripts/install.sh
	@PYTHON="$(PYTHON)" sh scripts/install.sh
