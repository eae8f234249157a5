# Every target makes .venv and installs what is missing; needs Python 3.11+, make and git only.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
# torch first: another package that asks for plain torch would bring its own, larger build.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test lint format bench app release clean
.DEFAULT_GOAL := help

help:  ## Show the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: expected Python 3.11 or newer, found $$($(PYTHON) --version); name another with make PYTHON=..." >&2; exit 2; }
	@echo "installing into .venv (once, a few minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(INSTALL) $$(grep -E '^torch==' constraints.txt)
	@$(INSTALL) -c constraints.txt -e .
	@touch $@

.venv/installed-test: .venv/installed
	@echo "installing the test tools"
	@$(INSTALL) -c constraints.txt -e '.[test]'
	@touch $@

.venv/installed-bench: .venv/installed-bench  ## Run the benchmarks (hours; DATA=folder of malmoi fetch); rewrites benchmarks/results
	@failed=; for script in benchmarks/{speed,quality,text,robustness}/*.py; do \
	  grep -q __main__ $$script || continue; echo "== $$script"; \
	  script=$${script%.py}; MALMOI_DATA=$(or $(DATA),data) $(BIN)/python -m $${script//\//.} || failed+=" $$script"; \
	done; test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

release: .venv/installed  ## Make such models as the released ones, in hours (DATA=folder with reviews_rated.tsv.gz, see the card)
	@$(BIN)/python -m release.make --data $(or $(DATA),data) \
	  --work $(or $(WORK),runs/release) --output $(or $(OUTPUT),$(or $(WORK),runs/release)/checkpoints)

clean:  ## Remove the environment and caches; runs/ and labels are kept
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache *.egg-info
