# Python 3.11 or newer and make are all that is needed: every target installs what it uses into .venv.
# Another interpreter: make test PYTHON=python3.13

PYTHON ?= python3.11 python3
PY := .venv/bin/python
PIP_INSTALL := $(PY) -m pip install -qq --disable-pip-version-check -c constraints.txt

.PHONY: help audit reproduce demo test test-slow test-all portable lint format bench million fuzz faults clean
.NOTPARALLEL:

help:
	@echo "make audit      audit a synthetic example, with planted problems: results/audit/report.html"
	@echo "make reproduce  the paper's whole evaluation, and a page: results/paper/report.html"
	@echo "make test       tests and doctests that are to pass before each commit"
	@echo "make test-all   all tests: those, the slow ones, and make portable"
	@echo "make portable   the tests of numbers once more, as on machines with other processors"
	@echo "make demo       counterfactuals and their certificates on a small example"
	@echo "make lint       style, types and layers"
	@echo "make format     rewrite the code in the house style"
	@echo "make bench      time the solvers, the measurements, the paper and audits"
	@echo "make million    explain a million people over all families and methods, and predict every answer again"
	@echo "make fuzz       random tables, models, limits and files against oracles, for SECONDS (an hour)"
	@echo "make faults     kills, lost workers, full disks: results are the same bytes, or there are none"
	@echo "make clean      remove caches and build results; .venv and results stay"

# The example fails its gates, exit code 1, because of what is planted in it.
audit: .venv/.installed-run
	@OPENBLAS_NUM_THREADS=1 .venv/bin/evenhand audit --demo || test $$? -eq 1
	@echo "That it fails is right: an unstable spot and an unfair group are planted in this example. See docs/audit.md."

# One BLAS thread per process: more threads than cores only get in each other's way.
reproduce: .venv/.installed-run
	@OPENBLAS_NUM_THREADS=1 .venv/bin/evenhand reproduce

demo: .venv/.installed-run
	@$(PY) -m evenhand.cli.demo

# Two workers with one BLAS thread each: more threads than cores only get in each other's way.
test: .venv/.installed-dev
	OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -q -n 2 -m "not slow"

# Whole audits and studies, faults, pages in a browser, simulations, and what is compiled from nothing.
test-slow: .venv/.installed-dev
	OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -q -n 2 --dist loadgroup -m slow

test-all: test test-slow portable

# Answers must not hang on the last bit of one machine: kernels for any processor, and BLAS of one without AVX-512.
# Kernels for another processor are compiled and cached beside the usual ones.
NUMBERS := $(addprefix tests/test_,same_answer.py schema.py instability.py certificate.py mixed.py mixed_types.py)
portable: .venv/.installed-dev
	OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE=Haswell NUMBA_CPU_NAME=generic $(PY) -m pytest -q -n 2 $(NUMBERS)

lint: .venv/.installed-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports --no-logo

format: .venv/.installed-dev
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: .venv/.installed-dev
	$(PY) bench/first.py
	$(PY) bench/bench.py
	$(PY) bench/robustness.py
	$(PY) bench/mixed.py
	$(PY) bench/search.py
	$(PY) bench/paper.py
	$(PY) bench/audit.py

million: .venv/.installed-dev
	OPENBLAS_NUM_THREADS=1 $(PY) bench/million.py

# What fails is printed as a script that reproduces it.
SECONDS ?= 3600
SEED ?= 0
fuzz: .venv/.installed-dev
	OPENBLAS_NUM_THREADS=1 $(PY) -m fuzz --seconds $(SECONDS) --seed $(SEED) $(if $(CASES),--cases $(CASES))

faults: .venv/.installed-dev
	OPENBLAS_NUM_THREADS=1 $(PY) -m faults

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# The package is installed in editable mode, so that numba's compiled kernels stay cached next to the source.
.venv/.installed-run: pyproject.toml constraints.txt | $(PY)
	@echo "Installing evenhand into .venv ..."
	@$(PIP_INSTALL) -e ".[audit]"
	@.venv/bin/evenhand warmup
	@touch $@

.venv/.installed-dev: pyproject.toml constraints.txt | $(PY)
	@echo "Installing evenhand and its development tools into .venv ..."
	@$(PIP_INSTALL) -e ".[dev,bench]"
	@.venv/bin/evenhand warmup
	@touch .venv/.installed-run $@

$(PY):
	@for candidate in $(PYTHON); do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    rm -f .venv/.installed-run .venv/.installed-dev; \
	    "$$candidate" -m venv .venv && exit 0; \
	    rm -f $@; exit 1; \
	  fi; \
	done; \
	echo "evenhand needs Python 3.11 or newer; tried: $(PYTHON). Install one, or name it: make ... PYTHON=/path/to/python" >&2; \
	exit 1
