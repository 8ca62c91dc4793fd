# CorpID. `make help` lists what there is; every target sets up what it needs.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.SUFFIXES:

ifndef PYTHON
PYTHON := $(shell scripts/choose-python)
endif
export PYTHON
export UV_PYTHON_DOWNLOADS := never

# Tests start hundreds of processes: each would compile every module anew, which takes longer than what it does.
unexport PYTHONDONTWRITEBYTECODE

RUN := .venv/bin/python -m

# What a package brings along, and takes part in every test: the tests that need it run in a pytest of their own.
UNUSED_PLUGINS := -p no:schemathesis

# A file's tests stay in one process: they share what is costly to make. tests/conftest.py says which files come first.
PARALLEL := --dist loadfile --no-loadscope-reorder $(UNUSED_PLUGINS)
# Each process collects all tests and makes its own scenes. Among the long tests are always some that mostly wait for a
# server, a browser or an engine that was away (tests/conftest.py).
WORKERS := -n $(shell getconf _NPROCESSORS_ONLN)
WORKERS_THAT_WAIT := -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 3)

# ARGS is handed on: make demo ARGS=--fresh, make test ARGS="tests/unit -x"
ARGS ?=

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.installed  ## create .venv (the others call this)

demo: setup  ## run a provider and a demo relying party on this machine
	@.venv/bin/corpid demo $(ARGS)

check: setup  ## format, lint, types, layers
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	.venv/bin/lint-imports --no-logo

fix: setup  ## let ruff fix format and lint
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

setup-test: setup  ## fetch what only tests need (browser, Node clients)
	@scripts/set-up-tests

setup-interop: setup-test  ## fetch other languages' toolchains
	@scripts/set-up-interop

test: setup-test  ## the tests, in under six minutes
	$(RUN) pytest -m "not full and not interop" $(WORKERS) $(PARALLEL) $(ARGS)

test-full: setup-test  ## the long tests that `make test` leaves out
	$(RUN) pytest -m "full and not interop" $(WORKERS_THAT_WAIT) $(PARALLEL) $(ARGS)

test-all: setup-interop  ## all but long builds, at once: what the tests of a file share is made once
	$(RUN) pytest -m "not long_build" $(WORKERS_THAT_WAIT) $(PARALLEL) $(ARGS)

setup-libraries: setup-interop  ## fetch what the other libraries' programs need, and an engine of containers
	@scripts/set-up-libraries

interop: setup-libraries  ## relying parties on other libraries and in other languages, and the image in a container
	$(RUN) pytest -m interop $(WORKERS_THAT_WAIT) $(PARALLEL) $(ARGS)

# What a command imports cannot be counted while coverage is imported, too.
report: setup-test  ## size by package, slowest tests, branch coverage of rules and flows (at least 97 %)
	@rm -f build/coverage*
	$(RUN) coverage run -m pytest -q -m "not full and not interop" $(WORKERS) $(PARALLEL) --durations=25 --ignore tests/cli/test_loading.py $(ARGS)
	$(RUN) coverage combine -q build
	$(RUN) scripts.report
	$(RUN) coverage report --skip-covered --sort=cover --fail-under=97

screenshots: setup-test  ## a picture of every page in every state, into build/screenshots
	$(RUN) tests.browser.screenshots

pictures: setup-test  ## the pictures of README and docs, into docs/images
	SCREENSHOTS=docs/images $(RUN) pytest -q -n 0 -m "full or not full" -k "its_pictures or newcomer_logs_in" tests/browser

snapshots: setup-test  ## what a screen reader is given of every page, into tests/browser/snapshots
	$(RUN) tests.browser.heard

screen-reader: setup  ## the main pages as the screen reader Orca reads them, into build/screen-reader.txt
	$(RUN) tests.browser.screen_reader

docs: setup  ## the documentation as a site, into build/site
	$(RUN) scripts.documentation

texts: setup  ## collect texts into src/*/locales, for translators
	$(RUN) scripts.texts

tables: setup  ## generate the tables in docs from declarations
	$(RUN) scripts.tables

examples: setup  ## record the examples of docs/reference from a running provider
	$(RUN) tests.reference.recording

bench: setup  ## compare a flow's cost with its cryptography alone
	$(RUN) benchmarks $(ARGS)

bench-scale: setup  ## compare a sign-in with a million users and with a thousand; 15 minutes
	$(RUN) benchmarks --scale $(ARGS)

lock: setup  ## resolve pyproject.toml into requirements/ (ARGS=--upgrade takes the newest)
	scripts/lock $(ARGS)

clean:  ## remove everything that make and the tools created
	rm -rf .venv .tools build dist out
	rm -rf examples/java/lib examples/node/node_modules examples/libraries/*/lib examples/libraries/*/node_modules tests/browser/axe/node_modules
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

# Only the demo promises to leave the system's packages alone.
demo: export SYSTEM_PACKAGES := never
check test test-full test-all interop report screenshots pictures snapshots setup-test setup-interop setup-libraries: export SYSTEM_PACKAGES := install

.tools/.complete: requirements/tools.txt scripts/set-up-tools
	@scripts/set-up-tools

.venv/.packages: .tools/.complete requirements/dev.txt scripts/set-up-environment
	@scripts/set-up-environment

.venv/.installed: .venv/.packages pyproject.toml src/corpid_dev/pyproject.toml
	@VIRTUAL_ENV=.venv .tools/bin/uv pip install --quiet --no-deps --no-build-isolation --editable . --editable src/corpid_dev
	@$(RUN) corpid.web.pages
	@touch $@

.PHONY: help setup demo check fix setup-test setup-interop setup-libraries test test-full test-all interop report screenshots pictures snapshots screen-reader docs texts tables examples bench bench-scale lock clean
