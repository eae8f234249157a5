# Every target makes .venv and installs what is missing; needs Python 3.11+, make and git only.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
# One more than there are cores: many tests wait for commands, servers and browsers of their own.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 3 ? n + 1 : 4)))
# torch first: another package that asks for plain torch would bring its own, larger build.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test check journeys faults golden messages lint format bench app docs release clean
.DEFAULT_GOAL := help

help:  ## Show the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: expected Python 3.11 or newer, found $$($(PYTHON) --version); name another with make PYTHON=..." >&2; exit 2; }
	@echo "installing into .venv (once, a few minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(INSTALL) $$(grep -E '^torch==' constraints.txt)
	@$(INSTALL) -c constraints.txt -e '.[app]'
	@touch $@

.venv/installed-test: .venv/installed
	@echo "installing the test tools"
	@$(INSTALL) -c constraints.txt -e '.[test]'
	@touch $@

.venv/installed-bench: .venv/installed
	@echo "installing what the benchmarks compare with"
	@$(INSTALL) -c constraints.txt -e '.[bench]'
	@touch $@

demo: .venv/installed  ## Go on pre-training on the sample comments, cross-validate on the memos
	@$(BIN)/python pretrain/run.py --corpus corpora/comments --init checkpoints/malmoi-small \
	  --learning-rate 1e-4 --max-minutes 1
	@$(BIN)/python finetune/kfold.py --labels 꿈,일기,일정,메모,오류 --epochs 3
	@echo
	@echo "The app:  make app, then open http://localhost:8501 in a browser"

app: .venv/installed  ## Start the labelling app on http://localhost:8501
	@$(BIN)/streamlit run app/main.py

test: .venv/installed-test lint  ## Run lint and all tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

check: .venv/installed-test lint  ## Run lint, the tests of what changed since main, and a fifth of the journeys: 90 s
	@$(BIN)/python tests/changed.py -q -n 2 --dist worksteal
	@JOURNEYS=220 $(BIN)/python -m pytest -q -n 2 --dist worksteal tests/journeys

journeys: .venv/installed-test  ## Take N (2000) whole commands through generated files, other ones each time
	@JOURNEYS=$(or $(N),2000) $(BIN)/python -m pytest -q -n 2 --dist worksteal tests/journeys

faults: .venv/installed-test  ## Put known faults in, one at a time, and expect red tests: ten minutes (ONLY=words)
	@$(BIN)/python tests/faults.py $(ONLY)

golden: .venv/installed-test  ## Say what no longer comes out as in tests/golden (ACCEPT=1, KEEP=DIR: its README)
	@$(BIN)/python -m tests.golden $(if $(ACCEPT),--accept) $(if $(KEEP),--keep $(KEEP))

messages: .venv/installed-test  ## Bring the Korean sentences up to date with those of the code
	@$(BIN)/python -m tests.messages

lint: .venv/installed-test  ## Check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/mypy -p lab.benchmarks -p lab.release

format: .venv/installed-test  ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: .venv/installed-bench  ## Run the benchmarks, for hours (DATA=folder of malmoi fetch); rewrites lab/benchmarks/results
	@failed=; export MALMOI_DATA=$(or $(DATA),data); \
	for script in lab/benchmarks/{speed,quality,robustness}/*.py; do \
	  grep -q __main__ $$script || continue; echo "== $$script"; script=$${script%.py}; \
	  $(BIN)/python -m $${script//\//.} || failed+=" $$script"; \
	done; test -z "$$failed" || { echo "error: these failed:$$failed" >&2; exit 1; }

docs: .venv/installed-test  ## Build the site of the documents into runs/site; nothing is loaded from elsewhere
	@mkdir -p runs/site-pages
	@$(BIN)/mkdocs build --quiet
	@echo "The site:  $(BIN)/python -m http.server --directory runs/site, then open http://localhost:8000"

release: .venv/installed  ## Make such models as the released ones, in hours (DATA=folder with what malmoi fetch nsmc_rated makes)
	@$(BIN)/python -m lab.release.make --data $(or $(DATA),data) \
	  --work $(or $(WORK),runs/release) --output $(or $(OUTPUT),$(or $(WORK),runs/release)/checkpoints)

clean:  ## Remove the environment and caches; runs/ and labels are kept
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache *.egg-info
