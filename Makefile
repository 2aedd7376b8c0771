# Targets for developers and operators; `make help` lists them.
SHELL := /bin/bash
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# Tests of one file share expensive fixtures, so each file runs in a single process.
PARALLEL := -n $(shell nproc) --dist loadfile
# Unit tests, and those of the database and Buildbot, spend much of their time waiting for processes,
# heartbeats and timeouts.
ONE_MORE := -n $(shell expr $$(nproc) + 1) --dist loadfile
STAGE := @.ci/stage
# Tests start hundreds of processes; without cached bytecode each of them would recompile swingbot.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup lint quick shuffle browser test-db test-boot calibrate test-e2e test-iron test-kernels test-lab test demo seeds golden wheel conformance dashboards lock base-kernel

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: ## install Debian packages and create .venv with .venv/bin/swingbot
	@.ci/setup

lint: setup ## check formatting, types, imports, shell scripts and YAML
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary jobs/swingbot_jobs master/swingbot workers/swingbot_worker db/swingbot_db tests benchmarks dashboards
	@.ci/parsers
	@$(BIN)/lint-imports --no-logo >build-lint.log 2>&1 || { cat build-lint.log; rm -f build-lint.log; exit 1; }; rm -f build-lint.log
	@$(BIN)/shellcheck .ci/setup .ci/parsers .ci/run .ci/stage .ci/browser .ci/wheel docker/prepare tests/lab/compose/postgres/start .ci/lab jobs/programs/*/run jobs/programs/*/serve jobs/programs/*/client
	@$(BIN)/yamllint --strict -c .yamllint.yaml docker-compose.yml tests/lab/compose jobs workers dashboards
	@cd ansible && PATH="$(CURDIR)/$(BIN):$$PATH" ansible-lint --offline --profile production -q --nocolor

quick: setup ## unit tests, goldens, and contract tests against the in-memory store
	@$(PYTEST) $(ONE_MORE) tests/unit
	@$(PYTEST) tests/contract/store -m memory

shuffle: setup ## make shuffle [SEED=N] [TESTS=tests/db]: run tests (default: tests/unit) in a random order
	@seed=$(or $(SEED),$$RANDOM); echo "SEED=$$seed"; \
	$(PYTEST) $(PARALLEL) --random-order-bucket=module --random-order-seed=$$seed $(or $(TESTS),tests/unit)

browser: setup ## install Chromium for the browser tests
	@.ci/browser

test-db: browser ## the brain in memory, stores, views, dashboards, Buildbot with real processes, a crash at every checkpoint
	@$(PYTEST) $(ONE_MORE) tests/db tests/brain tests/buildbot tests/contract

base-kernel: setup ## create the kernel repository and the base builds in the cache (one full build)
	@$(BIN)/python -m tests.kernels

test-boot: base-kernel ## build real kernels and boot them in QEMU
	@$(PYTEST) tests/boot

calibrate: setup ## check that stated probabilities are true
	@$(PYTEST) $(PARALLEL) tests/calibration

test-e2e: base-kernel ## run the demo with another seed and check its exit status
	@$(PYTEST) $(PARALLEL) tests/e2e

test-iron: base-kernel ## short form of test-lab, part of `make test`
	@$(PYTEST) tests/lab/test_*_short.py

test-lab: base-kernel ## bare-metal testboxes that are kexeced, rebooted, panicked and unplugged
	@.ci/lab
	@$(PYTEST) tests/lab

# The demo takes longest and leaves a processor idle most of the time, so it starts first.
test-kernels: base-kernel ## test-e2e, test-boot, test-iron and calibrate, side by side
	@$(PYTEST) $(PARALLEL) --no-loadscope-reorder tests/e2e tests/boot tests/lab/test_*_short.py tests/calibration

test: ## all checks and tests from a fresh clone, setup included
	$(STAGE) set-up make --no-print-directory setup
	$(STAGE) lint make --no-print-directory lint
	$(STAGE) quick make --no-print-directory quick
	$(STAGE) base-kernel make --no-print-directory base-kernel
	$(STAGE) database-and-buildbot make --no-print-directory test-db
	$(STAGE) kernels-and-calibration make --no-print-directory test-kernels

demo: setup ## find a planted regression on this machine and write the mail; EXPERIMENT=1: one experiment
	@$(BIN)/python -m tests.demo.$(if $(EXPERIMENT),experiment,demo)

seeds: setup ## make seeds N=20 [PLANT=none]: run the demo with seeds 1..N, one line each; resumes
	@$(BIN)/python -m tests.demo.seeds $(or $(N),20)

golden: setup ## regenerate the goldens; review the diff as the recipient would
	@$(BIN)/python -m tests.golden.remake
	@env -i $(BIN)/swingbot describe >tests/golden/describe/describe.yaml
	@env -i $(BIN)/swingbot settings --reference >docs/settings.md

conformance: setup ## make conformance LKP_SRC=DIR: compare with an lkp-tests checkout; needs Ruby
	@LKP_SRC="$(LKP_SRC)" $(BIN)/python -m tests.conformance

dashboards: setup ## normalise the Grafana JSON
	@$(BIN)/python dashboards/normalise.py

wheel: setup ## build dist/: the wheel, and constraints.txt from requirements.lock
	@.ci/wheel dist

lock: setup ## regenerate requirements.lock from pyproject.toml
	@$(BIN)/uv pip compile --extra master --extra worker --extra test --extra lab --generate-hashes --no-emit-index-url --no-emit-find-links --quiet -o requirements.lock pyproject.toml
