# `make run` sets up and writes the atlas: it checks every claim that needs no training and shows what is kept of the
# others; `make run-trained` trains for those too; `make test` sets up and runs lint, types and tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: run run-trained test test-all test-interop lint types readme docs browser setup lock clean

run: setup
	$(BIN)/vitrify atlas --out build/atlas

run-trained: setup
	$(BIN)/vitrify atlas --out build/atlas --all

# One BLAS thread per test process: two processes with two threads each only get in each other's way.
test: lint types browser
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -m "not slow" -n 2 --dist loadfile

test-all: lint types browser
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile --hypothesis-profile explore
	$(MAKE) test-interop

# The libraries of other people, in an environment of their own.
test-interop: $(VENV)-interop/.ready
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(VENV)-interop/bin/pytest tests/interop

$(VENV)-interop/.ready: pyproject.toml requirements.lock constraints-interop.txt
	$(PYTHON) -m venv $(VENV)-interop
	$(VENV)-interop/bin/pip install --quiet --disable-pip-version-check --constraint requirements.lock --constraint constraints-interop.txt --editable '.[interop,flow,tables]' pytest pytest-timeout hypothesis
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

# The README's table of claims, from the catalogue and the evidence that is kept.
readme: setup
	$(BIN)/python -m vitrify.report.readme

# The site: every warning is an error. It works from disk, without a network.
docs: setup
	$(BIN)/sphinx-build -W --keep-going -n -q -b html -d build/doctrees docs build/docs
	@echo "open build/docs/index.html"

# Pages are tested in Debian's chromium; where it can't be had, those tests are skipped with a word.
browser: setup
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || echo "no chromium, and it can't be installed here: the tests of pages in a browser are skipped"

setup: $(READY)

$(READY): pyproject.toml requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "vitrify needs Python 3.11 or newer: run 'make PYTHON=/path/to/python $(MAKECMDGOALS)'"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[dev]'
	touch $@

# Re-pin every dependency to what a fresh environment resolves today.
lock:
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	.venv-lock/bin/pip freeze --exclude-editable > requirements.lock
	rm -rf .venv-lock

clean:
	rm -rf $(VENV) $(VENV)-interop .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist
