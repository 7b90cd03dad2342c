# `make demo` and `make test` do all their own set-up, inside .venv of this checkout.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
OUT ?= demo-out
BENCH := .venv-bench

.PHONY: demo test check bench docs format clean help

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.ready-plot: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[plot]'
	touch $@

$(VENV)/.ready-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@ $(VENV)/.ready-plot

demo: $(VENV)/.ready-plot  ## the tour, then every experiment in its quick form: two pages in demo-out/
	$(BIN)/tightrope demo -o $(OUT)

# The report is tested in a real browser: fetched once where that is possible and permitted; elsewhere those tests are skipped and say why.
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable chrome
APT := DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=20
$(VENV)/.browser: | $(BIN)/python
	@fetch() { $(APT) install -y --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1; }; \
	for name in $(BROWSERS); do command -v $$name >/dev/null && exit; done; \
	echo "no chromium for the tests of the report in a browser: installing it"; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { fetch || { $(APT) update >/dev/null 2>&1; fetch; }; } \
	|| echo "it cannot be installed from here: those tests are skipped"
	@touch $@

test: $(VENV)/.ready-dev $(VENV)/.browser  ## every test, with coverage
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term $(ARGS)

$(BENCH)/.ready: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --upgrade pip
	$(BENCH)/bin/python -m pip install --quiet -e . -r benchmarks/requirements.txt
	touch $@

bench: $(BENCH)/.ready  ## us against our peers, into benchmarks/RESULTS.md; QUICK=1 for the short form
	cd benchmarks && ../$(BENCH)/bin/python -m peers $(if $(QUICK),--quick -o ../bench-out) $(ARGS)

$(VENV)/.ready-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	touch $@

docs: $(VENV)/.ready-docs  ## the documentation site, into site/; needs no server and no network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

check: $(VENV)/.ready-dev  ## style, types and the arrows between the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.ready-dev  ## let ruff tidy up
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove everything that was made
	rm -rf $(VENV) $(BENCH) $(OUT) report-out bench-out site .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
