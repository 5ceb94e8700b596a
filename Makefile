# Everything goes into .venv, with plain Python and pip. Another Python: make PYTHON=python3.13 ...
PYTHON ?= python3
BIN := .venv/bin
BASE := .venv/installed-base
ALL := .venv/installed
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: test-ledger-20 install demo test browser test-slow bench bench-large bench-peers docs clean

install: $(ALL)

demo: $(BASE)
	@$(BIN)/discreet demo

# The demo needs the package and its few dependencies only; everything else needs the tools as well.
$(BASE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "discreet needs Python 3.11 or newer: make PYTHON=python3.12" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable .
	@touch $@

$(ALL): $(BASE)
	$(PIP) --editable '.[dev]'
	@touch $@

test: $(ALL)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 -m "not slow"

# A browser looks at the pages. As root on Debian it is installed; elsewhere that is left to whoever runs this.
browser:
	@command -v chromium || command -v chromium-browser || command -v google-chrome \
	  || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
	  || { echo "make test-slow needs a browser: install chromium" >&2; exit 1; }

test-slow: $(ALL) browser
	$(BIN)/python -m pytest -n 2 -m slow

# The proofs of the ledger that depend on the moment, twenty times in a row: races, crashes, disks, clocks, other hands.
test-ledger-20: $(ALL)
	@for i in $$(seq 20); do echo "== $$i"; \
	  $(BIN)/python -m pytest -p no:xdist -m "not slow" tests/test_ledger_processes.py tests/test_ledger_tampering.py \
	  tests/test_ledger_files.py tests/test_ledger.py tests/test_ledger_accounts.py tests/test_ledger_postgres.py \
	  -k "processes or kill or lock or fork or power or disk or read_only or edited or cut or forged or guards or clock or commit or connection or standby or frozen" \
	  || exit 1; done

# What is measured goes to bench/measured/, and from there into docs/benchmarks.md and the READMEs.
bench: $(ALL)
	@for name in speed spark accuracy noise ledger; do echo "== $$name"; \
	  $(BIN)/python bench/$$name.py --json bench/measured/$$name.json || exit 1; done
	$(BIN)/python docs/make_benchmarks.py

# 10^8 rows, under a limit of 2 GB for the engine: about ten minutes more, and 2 GB of disk.
bench-large: $(ALL)
	DISCREET_MEMORY_LIMIT=2GB $(BIN)/python bench/speed.py --rows 100000000 --only-curve --json bench/measured/large.json
	$(BIN)/python docs/make_benchmarks.py

# Other libraries, in an environment of their own, for `make bench`.
bench-peers:
	test -x .bench-peers/bin/python || $(PYTHON) -m venv .bench-peers
	.bench-peers/bin/python -m pip install --quiet --disable-pip-version-check -r bench/peers/requirements.txt
	.bench-peers/bin/python -m pip install --quiet --disable-pip-version-check tumult-analytics \
	  || echo "tumult-analytics does not install here: the table says so"

docs: $(ALL)
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_query_pictures.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --builder html docs build/docs
	@echo "the site: build/docs/index.html"

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis build dist
