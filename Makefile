# `make run` sets up and writes the atlas: it checks every claim that needs no training and shows what is kept of the
# others; `make run-trained` trains for those too; `make test` sets up and runs lint, types, doctests and tests;
# `make quick` runs the tests that need neither JAX nor a browser, in under a minute.
PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# One BLAS thread per test process: two processes with two threads each only get in each other's way. Bytecode is
# written, whatever the environment says: every test process and every command that a test starts reads it again.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/pytest
SHARED := -n 2 --dist worksteal

.PHONY: run run-trained quick test doctests test-all test-interop fuzz lint types readme picture docs site browser setup lock clean

run: setup
	$(BIN)/vitrify atlas --out build/atlas

run-trained: setup
	$(BIN)/vitrify atlas --out build/atlas --all

# Leaves out files that import JAX, tests of pages in a browser, and tests marked jax, long or slow (see
# tests/conftest.py); a test that is not marked and imports JAX all the same fails.
quick: setup
	$(PYTEST) tests --quick $(SHARED)

test: lint types browser doctests
	$(PYTEST) tests -m "not slow" $(SHARED)

# In a call of their own: they import every file of src, which no process that runs tests needs to.
doctests: setup
	$(PYTEST) src --doctest-modules

test-all: lint types browser doctests
	$(PYTEST) tests $(SHARED) --hypothesis-profile explore
	$(MAKE) test-interop

# Hostile inputs for every reader (docs/contribute/hardening.md); what it finds is in build/fuzz/findings.
SECONDS ?= 600
fuzz: setup
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 VITRIFY_SECONDS=10 VITRIFY_MEMORY=1 $(BIN)/python -m fuzz.campaign $(TARGETS) --seconds $(SECONDS)

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

# On a busy machine a worker may start too late, which mypy takes for an error of its own (2): then one process does it.
types: setup
	$(BIN)/mypy --num-workers 2 || { [ $$? = 2 ] && $(BIN)/mypy; }

# The tables of verdicts in the README and the docs, from the catalogue and the recorded evidence.
readme: setup
	$(BIN)/python tools/readme_table.py

# The pictures of the README and the docs, computed from compiled and trained networks; about two minutes.
picture: setup
	$(BIN)/python tools/picture.py
	$(BIN)/python tools/gallery.py

# The site: every warning is an error. It works from disk, without a network.
docs: setup
	$(BIN)/sphinx-build -W --keep-going -n -q -b html -d build/doctrees docs build/docs
	@echo "open build/docs/index.html"

# Front page, atlas, playground, gallery and docs in one folder, for any static host; SITE=https://… names it for previews.
site: run docs
	$(BIN)/python tools/site.py build/site build/atlas build/docs $(SITE)
	@echo "open build/site/index.html, or: vitrify serve --atlas build/site"

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
