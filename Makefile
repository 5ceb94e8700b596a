# Everything goes into .venv, with plain Python and pip. Another Python: make PYTHON=python3.13 ...
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed

.PHONY: install demo test test-slow bench clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "discreet needs Python 3.11 or newer: make PYTHON=python3.12 install" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/discreet demo

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m slow

bench: $(STAMP)
	@for file in bench/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis build dist
