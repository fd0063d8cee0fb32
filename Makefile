# Two commands on a fresh machine with Python >= 3.11, git and make:
#   make demo    the five stages on the built-in corpus
#   make test    the quick test suite
# `make` alone lists the rest.

RECIPE ?= recipes/demo.toml
# The first of these interpreters that is new enough; or choose one: make PYTHON=/path/to/python3.12
PYTHON ?= $(firstword $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null && echo $$python; done) python3)

# Installing compiles nothing (it would take half of its time): Python compiles each module when it is first imported, and
# keeps that, here also where the environment says otherwise.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
TFM := $(VENV)/bin/tfm
INSTALLED := $(VENV)/installed-by-make

NAME := $(basename $(notdir $(RECIPE)))
RUN := runs/$(NAME)
# A recipe may extend others in its folder: when one of them changes, each stage checks again whether it is up to date.
RECIPES := $(wildcard $(dir $(RECIPE))*.toml)
TOKENIZER := $(RUN)/tokenizer/manifest.json
DATASET := $(RUN)/dataset/manifest.json
MODEL := $(RUN)/model/manifest.json
TRANSLATIONS := $(RUN)/translations/manifest.json
SCORES := $(RUN)/scores/manifest.json
VARIANTS := $(filter-out base,$(basename $(notdir $(wildcard recipes/variants/*.toml))))

PYTEST := OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -n auto --maxprocesses 4 --dist worksteal

.PHONY: help demo all test test-slow test-faults test-meaning test-random test-cluster bench variants claims check docs dist clean
# An artifact is complete at every moment: make must not delete one when it is interrupted.
.PRECIOUS: $(TOKENIZER) $(DATASET) $(MODEL) $(TRANSLATIONS) $(SCORES)

help:
	@echo 'make demo                        the five stages on the built-in corpus (runs/demo)'
	@echo 'make all RECIPE=recipes/X.toml   the five stages of any recipe (runs/X)'
	@echo 'make test                        the quick tests'
	@echo 'make test-slow                   the tests that train, build and install'
	@echo 'make test-faults                 kills, full disks, garbage input: a table of guarantees'
	@echo 'make test-meaning                scores, losses, rates and counts recomputed, in ten scripts: a table'
	@echo 'make test-random                 property tests with cases drawn anew, ten times as many'
	@echo 'make test-cluster                clusters of Ray on this machine, whose workers, nodes and drivers are killed'
	@echo 'make bench                       speed on the built-in corpus, compared with a plain loop'
	@echo 'make variants                    every part a recipe can name, trained at equal budget and compared'
	@echo 'make claims                      what the lectures say, measured and drawn: docs/images/claims'
	@echo 'make check                       lint, format, strict types'
	@echo 'make docs                        the documentation as a site: build/site/index.html'
	@echo 'make dist                        sdist and wheel in dist/, checked by twine'
	@echo 'make clean                       remove caches and builds; runs/ and .venv stay'

demo:
	@$(MAKE) --no-print-directory all RECIPE=recipes/demo.toml

all: $(INSTALLED)
	@test -f '$(RECIPE)' || { echo 'There is no recipe $(RECIPE): make all RECIPE=recipes/X.toml' >&2; exit 2; }
	@! sed '/^ *\[/q' '$(RECIPE)' | grep -E '^name *=' | grep -Ev "^name *= *[\"']$(NAME)[\"']" > /dev/null || { \
		echo '$(RECIPE): make needs its name to be that of its file: name = "$(NAME)"' >&2; exit 2; }
	@if $(MAKE) --silent --question $(SCORES) 2> /dev/null; then \
		echo '$(RUN) is complete: nothing to do. Report: $(RUN)/scores/report.html'; \
	else \
		$(MAKE) --no-print-directory $(SCORES); \
	fi

# A recipe with [clean], maybe from one that it extends, has a stage before the first; one with [synthesis] after the last.
$(TOKENIZER): $(RECIPES) | $(INSTALLED)
	@if grep -qs '^ *\[\[*clean' $(RECIPES) && $(TFM) recipe $(RECIPE) | grep -q '^  "clean": {'; then \
		echo '$(TFM) clean --recipe $(RECIPE)'; $(TFM) clean --recipe $(RECIPE); fi
	$(TFM) tokenize --recipe $(RECIPE)

$(DATASET): $(RECIPES) $(TOKENIZER) | $(INSTALLED)
	$(TFM) preprocess --recipe $(RECIPE)

$(MODEL): $(RECIPES) $(DATASET) | $(INSTALLED)
	$(TFM) train --recipe $(RECIPE)

$(TRANSLATIONS): $(RECIPES) $(MODEL) $(DATASET) | $(INSTALLED)
	$(TFM) translate --recipe $(RECIPE)

$(SCORES): $(RECIPES) $(TRANSLATIONS) | $(INSTALLED)
	$(TFM) evaluate --recipe $(RECIPE)
	@if grep -qs '^ *\[synthesis' $(RECIPES) && $(TFM) recipe $(RECIPE) | grep -q '^  "synthesis": {'; then \
		echo '$(TFM) synthesize --recipe $(RECIPE)'; $(TFM) synthesize --recipe $(RECIPE); fi

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'tfm needs Python 3.11 or newer, and $(PYTHON) is not: make PYTHON=/path/to/python3.12' >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	@touch $@

test: $(INSTALLED)
	$(PYTEST)

test-slow: $(INSTALLED)
	$(PYTEST) -m slow

test-faults: $(INSTALLED)
	$(PYTEST) -m promise

test-meaning: $(INSTALLED)
	$(PYTEST) -m meaning

test-random: $(INSTALLED)
	$(PYTEST) -m hypothesis --hypothesis-profile=random

test-cluster: $(INSTALLED)
	$(VENV)/bin/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[cluster]'
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -m 'slow or not slow' tests/system/test_cluster.py tests/system/test_cluster_runs.py

# Peers that are installed elsewhere are added by hand: .venv/bin/python -m bench train --help
bench: $(INSTALLED)
	@$(MAKE) --no-print-directory runs/demo/dataset/manifest.json RECIPE=recipes/demo.toml
	$(VENV)/bin/python -m bench ceilings
	$(VENV)/bin/python -m bench startup
	$(VENV)/bin/python -m bench preprocess --pairs 50000
	$(VENV)/bin/python -m bench train runs/demo/dataset --recipe recipes/demo.toml --against plain

variants: $(INSTALLED)
	$(TFM) run recipes/variants/base.toml $(VARIANTS:%=recipes/variants/%.toml)
	$(TFM) compare runs/base $(VARIANTS:%=runs/%) --sort loss --plot runs/variants.svg

# Resumes: trained models that are up to date are not trained again.
claims: $(INSTALLED)
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m bench claim --all

check: $(INSTALLED)
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/codespell cli pipeline data model tokenizer bench docs recipes *.md

docs: $(INSTALLED)
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(VENV)/bin/python -m mkdocs build --strict --config-file docs/site/mkdocs.yml

dist: $(INSTALLED)
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet -c constraints.txt build twine
	rm -rf dist
	$(VENV)/bin/python -m build --outdir dist .
	$(VENV)/bin/python -m twine check --strict dist/*

clean:
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
