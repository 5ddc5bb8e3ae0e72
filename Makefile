# `make demo` and `make test` do all their own set-up: Python 3.10 or newer with pip is enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
APT    := chromium postgresql

.PHONY: demo test test-all docs setup setup-test system lint clean
demo: setup
	$(BIN)/newfound demo

test: setup-test
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-all: setup-test
	$(BIN)/ruff check .
	$(BIN)/python -m pytest

# Pages in site/, with the reference of all classes; nothing is fetched once the tools are here.
docs: setup
	@$(BIN)/python -c "import material, mkdocstrings_handlers.python" 2>/dev/null || $(BIN)/python -m pip install --quiet --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet --site-dir site

setup: $(VENV)/.ready
setup-test: $(VENV)/.ready-test system
$(VENV)/.ready: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@echo "installing newfound into $(VENV) (a few minutes the first time: PyTorch is large)"
	@$(BIN)/python -m pip install --quiet --editable '.[serve]'
	@touch $@
$(VENV)/.ready-test: $(VENV)/.ready
	@$(BIN)/python -m pip install --quiet --editable '.[test,dev]'
	@touch $@

# What tests need from outside PyPI is installed where that is possible; elsewhere those tests skip and say why.
system:
	@{ command -v chromium && ls /usr/lib/postgresql/*/bin/postgres; } >/dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(APT) >/dev/null; }; } \
	  || echo "chromium or PostgreSQL is not here and cannot be installed: the tests that need it will be skipped"

lint: setup-test
	$(BIN)/ruff check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist site newfound-demo
