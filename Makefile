# Every target sets up $(VENV) by itself. You need make and Python 3.11 or newer.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
PORT ?= 8000
# UPGRADE=1 lets `make pins` take the newest versions; without it, pins that fit stay.
UPGRADE ?=
# LITE=0 leaves out JupyterLite, in which readers run chapters in their browser.
LITE ?= 1
export LITE

ifeq ($(strip $(VENV)),)
$(error VENV is empty: is the conda environment active?)
endif

PY := $(VENV)/bin/python
UV := $(VENV)/bin/uv
READY := $(VENV)/.hetlit-ready
# The lowest versions that pyproject.toml claims are installed into a place of their own.
LOWEST := .venv-lowest
# Tests of the library itself are what is left without these.
OTHERS := $(addprefix --ignore=tests/,book browser lite project)
# True for the versions in constraints.txt only: another matplotlib draws other bytes.
PINNED := test_overview_svg_is_what_the_code_draws
LIBRARY := $(shell find hetlit -name "*.py")
SHOWN := $(shell find tools tests -name "*.py")
PAGES := $(shell find book -type f ! -path '*/.*' ! -path '*/__pycache__/*')

# Layers are checked as soon as pyproject.toml describes them. The command is called by
# its module, because scripts in an environment know where it was made.
LAYERS := $(if $(shell grep -s '^\[tool\.importlinter\]' pyproject.toml),$(PY) -c \
  'from importlinter.cli import lint_imports_command as main; main()' --no-logo)

define LINT
$(PY) -m ruff check .
$(PY) -m ruff format --check .
$(PY) -m mypy
$(LAYERS)
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help book serve check test test-lite test-lowest lab notebooks bench fuzz mutants \
  pins clean moved switched

help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' Makefile

book: _build/.book $(if $(filter-out 0,$(LITE)),_build/.lite) ## build the site (LITE=0: quicker)
	@echo "The book is at _build/html/index.html"

serve: book ## build the site and serve it at http://127.0.0.1:8000 (PORT=8000)
	$(PY) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

check: $(READY) ## the quick look: lint, types, layers, and the fast tests of the library
	$(LINT)
	$(PY) -m pytest -n $(JOBS) --dist worksteal -m 'not slow' $(OTHERS) tests hetlit

test: $(READY) ## all of it: lint, types, unit tests, doctests, notebooks, book, its pages in a browser
	$(LINT)
	$(PY) -m pytest -n $(JOBS) --dist worksteal --ignore=tests/browser
	$(PY) -m pytest -n $(JOBS) --dist loadscope --nbval --nbval-current-env book
	@$(MAKE) --no-print-directory book
	$(PY) -m pytest -n $(JOBS) --dist worksteal tests/browser

test-lite: book ## run all chapters with Pyodide in Chromium; needs npm, downloads 115 MB once
	$(PY) -m pytest tests/lite

test-lowest: $(LOWEST)/.ready ## the library's tests with the oldest dependencies we claim
	$(LOWEST)/bin/python -m pytest -n $(JOBS) --dist worksteal -k 'not $(PINNED)' $(OTHERS) \
	  --override-ini addopts='--import-mode=importlib --strict-config --strict-markers -p no:nbval' \
	  -W ignore::DeprecationWarning tests

lab: $(READY) ## open the chapters in JupyterLab
	$(PY) -m jupyterlab --ip=127.0.0.1 --notebook-dir=book

notebooks: $(READY) ## run notebooks and README example again, store outputs in one form
	$(PY) -m tools.notebooks
	$(PY) -m tools.readme

bench: $(READY) ## measure accuracy and speed
	$(PY) -m benchmarks

fuzz: $(READY) ## call every public name with hostile input, and write down what happened
	$(PY) -m tools.fuzz --record benchmarks/fuzz.md

mutants: $(READY) ## break the library in many places, one at a time: do the tests notice?
	$(PY) -m tools.mutants

pins: $(UV) ## write constraints.txt; UPGRADE=1 takes the newest versions
	$(PY) -m tools.pins $(if $(UPGRADE),--upgrade)

clean: ## delete the site and all caches; .venv stays
	rm -rf _build build dist $(LOWEST) hetlit.egg-info .import_linter_cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

# The environment is stale when a requirement changes or the folder has moved.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
$(READY): moved
endif

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'Python 3.11 or newer (with venv) is needed: make PYTHON=python3.12 ...'; exit 1; }
	@if [ -e $(VENV)/pyvenv.cfg ] && ! $(PY) -c '' 2>/dev/null; then rm -rf $(VENV); fi
	@[ -x $(PY) ] || $(PYTHON) -m venv $(VENV)
	@echo 'Installing what constraints.txt pins into $(VENV): a few minutes the first time.'
	@$(PY) -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[dev]'
	@$(PY) -c 'import matplotlib.font_manager' # builds the font cache now, not in a cell
	@echo '$(CURDIR)' > $@

# Pins are written, and the lowest versions tried, with uv alone: the rest may not fit yet.
$(UV):
	@[ -x $(PY) ] || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt uv

# Lowest are those that we name; what they need in turn is as new as they allow.
# Examples in docstrings are not run there, because numpy 1 prints its numbers differently;
# and old versions may warn of what came after them.
$(LOWEST)/.ready: pyproject.toml | $(UV)
	@$(UV) venv --quiet --clear --python '$(PYTHON)' $(LOWEST)
	@$(UV) pip install --quiet --python $(LOWEST)/bin/python \
	  --resolution lowest-direct --editable '.[book,test]'
	@touch $@

# Stored results of cells know nothing of the library: forget them when it changes.
# What `make test-lite` downloaded stays.
_build/.library: $(READY) $(LIBRARY)
	@mkdir -p _build
	@find _build -mindepth 1 -maxdepth 1 ! -name pyodide -exec rm -rf {} +
	@touch $@

# Pages link to JupyterLite or they do not: they are stale when LITE changes.
ifneq ($(shell cat _build/.book 2>/dev/null),LITE=$(LITE))
_build/.book: switched
endif

_build/.book: _build/.library _config.yml _toc.yml $(SHOWN) $(PAGES)
	@$(PY) -c 'from jupyter_book.cli.main import main; main()' \
	  build . -W -n --keep-going || \
	  { rm -rf _build/.doctrees; exit 1; } # so that a warning is not forgotten
	@[ '$(LITE)' != 0 ] || rm -rf _build/html/lite _build/.lite
	@echo 'LITE=$(LITE)' > $@

# After the pages, because it goes into their folder; from the same notebooks and library.
_build/.lite: _build/.book tools/offline_note.js
	@$(PY) -m tools.lite
	@touch $@
