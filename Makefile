# `make demo` and `make test` do all their own set-up, inside .venv of this checkout.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
OUT ?= demo-out
BENCH := .venv-bench
CLUSTER := .venv-cluster

.PHONY: demo test cluster test-cluster check bench docs format clean help

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

# Numba compiles loops into those that call them, but takes a new look only where the file of the caller has changed.
LOOPS := src/tightrope/kernels
COMPILED := $(LOOPS)/__pycache__/.fresh
$(COMPILED): $(wildcard $(LOOPS)/*.py)
	@mkdir -p $(@D) && rm -f $(@D)/*.nbi $(@D)/*.nbc && touch $@

demo: $(VENV)/.ready-plot $(COMPILED)  ## the tour, then every experiment in its quick form: two pages in demo-out/
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

test: $(VENV)/.ready-dev $(VENV)/.browser $(COMPILED)  ## every test, with coverage
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term $(ARGS)

# PETSc and MPI are Debian's, in an environment of its own, so that `make test` stays small and quick. What one trips over:
# - PyPI's own PETSc is a source build of 25 minutes and more; against Debian's 3.18, petsc4py 3.18 takes 3 (10 on a busy machine).
# - petsc4py 3.18 builds with setup.py alone: setuptools < 60 (later ones hide distutils), cython < 3.1 (later ones refuse its
#   sources), both installed before it, with `wheel`, and --no-build-isolation so that they are the ones used.
# - PETSC_DIR must name the build with real numbers, /usr/lib/petsc; PETSC_ARCH must be empty.
# - mpi4py from a wheel may come with another MPI than PETSc's: --no-binary builds it against Debian's.
# - Open MPI refuses root, and more ranks than cores, unless told; ranks that wait spin, unless told, and slow the others down.
# - Debian's PETSc numbers rows with 32 bits: past 2^31 pairs install libpetsc64-real-dev and set PETSC_DIR to it.
PETSC_PACKAGES := libpetsc-real-dev libopenmpi-dev openmpi-bin
PETSC_DIR ?= /usr/lib/petsc
MPI_ENVIRONMENT := OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
	OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
$(CLUSTER)/.engines:
	@[ -d $(PETSC_DIR)/include ] && command -v mpicc >/dev/null || { \
		echo "installing $(PETSC_PACKAGES)"; \
		[ "$$(id -u)" = 0 ] || { echo "this needs root: apt-get install $(PETSC_PACKAGES)"; exit 1; }; \
		$(APT) install -y --no-install-recommends $(PETSC_PACKAGES) >/dev/null || { \
			$(APT) update && $(APT) install -y --no-install-recommends $(PETSC_PACKAGES) >/dev/null; }; }
	$(PYTHON) -m venv $(CLUSTER)
	$(CLUSTER)/bin/python -m pip install --quiet 'setuptools<60' 'cython<3.1' wheel 'numpy>=1.26'
	PETSC_DIR=$(PETSC_DIR) PETSC_ARCH= $(CLUSTER)/bin/python -m pip install --quiet --no-build-isolation 'petsc4py==3.18.*'
	$(CLUSTER)/bin/python -m pip install --quiet --no-binary mpi4py 'mpi4py>=4.0'
	touch $@

$(CLUSTER)/.ready: pyproject.toml $(CLUSTER)/.engines
	$(CLUSTER)/bin/python -m pip install --quiet -e '.[dask]' 'pytest>=8'
	touch $@

cluster: $(CLUSTER)/.ready  ## PETSc, MPI and Dask (Debian), for `mpiexec -n 4 .venv-cluster/bin/tightrope solve MODEL --cluster`
	@$(MPI_ENVIRONMENT) mpiexec -n 2 $(CLUSTER)/bin/tightrope solve tightrope --cluster

test-cluster: $(CLUSTER)/.ready $(COMPILED)  ## the tests of the cluster: mpiexec with 1, 2 and 3 ranks, Dask with worker processes
	$(CLUSTER)/bin/python -m pytest tests/cluster $(ARGS)

$(BENCH)/.ready: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --upgrade pip
	$(BENCH)/bin/python -m pip install --quiet -e . -r benchmarks/requirements.txt
	touch $@

bench: $(BENCH)/.ready $(COMPILED)  ## us against our peers, into benchmarks/RESULTS.md; QUICK=1 for the short form
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
	rm -rf $(VENV) $(BENCH) $(CLUSTER) $(OUT) report-out bench-out site .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
