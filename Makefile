# Everything that is done to this repository. Each target sets up what it needs in .venv by itself.

PYTHON ?= python3
ARGS ?=
KIND ?=

BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

# Tests wait for servers half of their time: four workers keep two cores busy. A file stays with one of them, and so
# do the servers that it starts. The files keep the order that tests/conftest.py gives them.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help sandbox check test format bench chaos docs screenshots lock publish clean

help:  ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

sandbox: .venv/.runtime  ## Run the whole system here, with a live table (ARGS="--nodes 50", "--until-ready", "--help")
	@$(BIN)/eni-tasks sandbox $(ARGS)

check: .venv/.dev  ## Do what CI does: lint, types, layers, all tests
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	@$(BIN)/lint-imports > .venv/layers.log || { cat .venv/layers.log; exit 1; }
	$(BIN)/mypy --no-error-summary > .venv/types.log & types=$$!; $(PYTEST); tests=$$?; \
		wait $$types || { cat .venv/types.log; exit 1; }; exit $$tests

test: .venv/.dev  ## Run tests (KIND=unit, contract, integration or e2e; ARGS="-k words")
	$(PYTEST) $(if $(KIND),tests/$(KIND)) $(ARGS)

format: .venv/.dev  ## Write the code the way `check` wants it
	$(BIN)/ruff check --quiet --fix
	$(BIN)/ruff format --quiet

bench: .venv/.dev  ## Measure fleets of several sizes (ARGS="--nodes 100")
	@$(BIN)/python bench/fill.py $(ARGS)

chaos: .venv/.dev  ## Trouble a fleet, and see it recover (ARGS="--seed 7 --seconds 60 --nodes 30")
	@PYTHONPATH=tests $(BIN)/python -m chaos $(ARGS)

docs: .venv/.dev  ## Write the parts of docs/ that are made from the code
	@$(BIN)/python tools/doc_tables.py
	@$(BIN)/python tools/iam_policy.py
	@$(BIN)/python tools/chart_schema.py

screenshots: .venv/.dev  ## Take the pictures of docs/images with an installed Chromium
	SCREENSHOTS=docs/images $(BIN)/pytest tests/e2e/test_flower_browser.py tests/e2e/test_page_browser.py

# Pins that still fit stay; ARGS=--upgrade takes the newest.
lock: .venv/.python  ## Write both lock files from pyproject.toml (ARGS=--upgrade)
	@echo "Resolving the dependencies of pyproject.toml…"
	@$(PIP) install uv
	@$(COMPILE) --output-file requirements.lock $(ARGS)
	@$(COMPILE) --group dev --output-file requirements-dev.lock $(ARGS)

COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --extra sandbox --python-version 3.11 \
	--no-header --no-annotate --no-emit-index-url

# Needs docker and helm, logged in to the registry. The chart names the image and, if given, the runbook of its version.
publish:  ## Publish image and chart (REGISTRY=registry.example/team RUNBOOK=https://…/runbook.md)
	@[ -n "$(REGISTRY)" ] || { echo "Say where to: make publish REGISTRY=registry.example/team" >&2; exit 1; }
	docker build --tag $(REGISTRY)/eni-tasks:$(VERSION) .
	docker push $(REGISTRY)/eni-tasks:$(VERSION)
	$(PYTHON) tools/package_chart.py --image $(REGISTRY)/eni-tasks --runbook "$(RUNBOOK)" $(PUBLISHED)
	helm package $(PUBLISHED)/eni-tasks --destination $(PUBLISHED)
	helm push $(PUBLISHED)/eni-tasks-$(VERSION).tgz oci://$(REGISTRY)/charts

PUBLISHED := build/published
REGISTRY ?=
RUNBOOK ?=
VERSION = $(shell sed -n 's/^version: //p' helm/eni-tasks/Chart.yaml)

clean:  ## Remove .venv and everything that was generated
	rm -rf .venv build dist *.egg-info .*_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# -- what the targets above stand on ---------------------------------------------------------------

# Two stamps in one environment: a sandbox needs no test tools.
.venv/.runtime: requirements.lock pyproject.toml | .venv/.python
	@echo "Installing what requirements.lock names into .venv…"
	@$(PIP) install --requirement requirements.lock
	@$(PIP) install --no-deps --editable .
	@touch $@

.venv/.dev: requirements-dev.lock pyproject.toml | .venv/.python
	@echo "Installing what requirements-dev.lock names into .venv…"
	@$(PIP) install --requirement requirements-dev.lock
	@$(PIP) install --no-deps --editable .
	@touch $@

.venv/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is missing or older than Python 3.11; say which to take: make PYTHON=python3.11 …" >&2; exit 1; }
	@echo "Creating .venv with $$($(PYTHON) --version)…"
	@$(PYTHON) -m venv .venv || { echo "No venv module; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@touch $@
