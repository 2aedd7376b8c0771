# Everything a developer or operator types. `make help` lists it.
SHELL := /bin/bash
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# The tests of one file share what is made once for them, so that a file stays with one process.
PARALLEL := -n $(shell nproc) --dist loadfile
# Unit tests wait a good part of their time, for processes and for limits to pass.
ONE_MORE := -n $(shell expr $$(nproc) + 1) --dist loadfile
STAGE := @.ci/stage
# Tests start hundreds of processes: without compiled modules each of them compiles swingbot anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup lint quick browser test-db test-boot calibrate test-e2e test-iron test-lab test demo seeds golden wheel conformance dashboards lock base-kernel

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: ## Debian packages and .venv; then .venv/bin/swingbot works
	@.ci/setup

lint: setup ## formatting, types, imports, shell and YAML
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary jobs/swingbot_jobs master/swingbot workers/swingbot_worker db/swingbot_db tests benchmarks dashboards
	@.ci/parsers
	@$(BIN)/lint-imports --no-logo >build-lint.log 2>&1 || { cat build-lint.log; rm -f build-lint.log; exit 1; }; rm -f build-lint.log
	@$(BIN)/shellcheck .ci/setup .ci/parsers .ci/run .ci/stage .ci/browser .ci/wheel docker/prepare tests/lab/compose/postgres/start .ci/lab jobs/programs/*/run jobs/programs/*/serve jobs/programs/*/client
	@$(BIN)/yamllint --strict -c .yamllint.yaml docker-compose.yml tests/lab/compose jobs workers dashboards
	@cd ansible && PATH="$(CURDIR)/$(BIN):$$PATH" ansible-lint --offline --profile production -q --nocolor

quick: setup ## unit tests, goldens, and contract tests on the store in memory
	@$(PYTEST) $(ONE_MORE) tests/unit
	@$(PYTEST) tests/contract/store -m memory

browser: setup ## Chromium, for the tests that look at pages
	@.ci/browser

test-db: browser ## stores, views, dashboards, Buildbot with real processes, crashes at every point
	@$(PYTEST) $(PARALLEL) tests/db tests/buildbot tests/contract

base-kernel: setup ## kernel repository and base build in the cache; the one full build
	@$(BIN)/python -m tests.kernels

test-boot: base-kernel ## kernels that really build and boot in QEMU
	@$(PYTEST) tests/boot

calibrate: setup ## are stated probabilities true?
	@$(PYTEST) $(PARALLEL) tests/calibration

test-e2e: base-kernel ## the demo with another seed, judged by its exit status
	@$(PYTEST) tests/e2e

test-iron: base-kernel ## the short form of test-lab that is part of `make test`
	@$(PYTEST) tests/lab/test_*_short.py

test-lab: base-kernel ## machines as in a lab: iron that is kexeced, rebooted, panicked and unplugged
	@.ci/lab
	@$(PYTEST) tests/lab

test: ## all gates and tests, from a fresh clone, set-up included
	$(STAGE) set-up make --no-print-directory setup
	$(STAGE) lint make --no-print-directory lint
	$(STAGE) quick make --no-print-directory quick
	$(STAGE) base-kernel make --no-print-directory base-kernel
	$(STAGE) database-and-buildbot make --no-print-directory test-db
	$(STAGE) boots make --no-print-directory test-boot
	$(STAGE) iron make --no-print-directory test-iron
	$(STAGE) calibration make --no-print-directory calibrate
	$(STAGE) end-to-end make --no-print-directory test-e2e

demo: setup ## the whole loop on this machine: a planted regression, and the mail that names it; EXPERIMENT=1: one table
	@$(BIN)/python -m tests.demo.$(if $(EXPERIMENT),experiment,demo)

seeds: setup ## make seeds N=20 [PLANT=none]: the demo with seeds 1..N, one line each; goes on where it stopped
	@$(BIN)/python -m tests.demo.seeds $(or $(N),20)

golden: setup ## rewrite the goldens; read the diff as its recipient would
	@$(BIN)/python -m tests.golden.remake
	@env -i $(BIN)/swingbot describe >tests/golden/describe/describe.yaml
	@env -i $(BIN)/swingbot settings --reference >docs/settings.md

conformance: setup ## make conformance LKP_SRC=DIR: job splitting, parsers and the engine lkp against an lkp-tests checkout; needs Ruby
	@LKP_SRC="$(LKP_SRC)" $(BIN)/python -m tests.conformance

dashboards: setup ## Grafana JSON in normal form
	@$(BIN)/python dashboards/normalise.py

wheel: setup ## dist/: one wheel of everything, and constraints.txt from requirements.lock
	@.ci/wheel dist

lock: setup ## requirements.lock anew from pyproject.toml
	@$(BIN)/uv pip compile --extra master --extra worker --extra test --extra lab --generate-hashes --no-emit-index-url --no-emit-find-links --quiet -o requirements.lock pyproject.toml
