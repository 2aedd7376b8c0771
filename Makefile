# Targets for developers and operators; `make help` lists them.
SHELL := /bin/bash
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# Tests of one file share expensive fixtures, so each file runs in a single process; the longest file
# first (tests/times.py). Their times are kept for the next run.
PARALLEL = -n $(1) --dist loadfile --no-loadscope-reorder --junitxml=build/times/$@.xml
BUSY := $(shell nproc)
# Tests of the database and Buildbot spend much of their time waiting for processes, heartbeats and
# timeouts.
WAITING := $(shell expr $$(nproc) + 1)
STAGE := @.ci/stage
# Without cached bytecode each process would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup lint quick affected shuffle browser test-db test-boot calibrate test-e2e test-lab test test-all stages demo seeds golden wheel conformance dashboards lock base-kernel

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: ## install Debian packages and create .venv with .venv/bin/swingbot
	@.ci/setup

lint: setup ## check formatting, types, imports, shell scripts and YAML
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@.ci/parsers
	@$(BIN)/lint-imports --no-logo >build-lint.log 2>&1 || { cat build-lint.log; rm -f build-lint.log; exit 1; }; rm -f build-lint.log
	@$(BIN)/shellcheck .ci/setup .ci/parsers .ci/run .ci/stage .ci/browser .ci/wheel docker/exchange docker/prepare tests/lab/compose/postgres/start .ci/lab jobs/programs/*/run jobs/programs/*/serve jobs/programs/*/client
	@$(BIN)/yamllint --strict -c .yamllint.yaml docker-compose.yml docker-compose.elsewhere.yml tests/lab/compose jobs workers dashboards
	@cd ansible && PATH="$(CURDIR)/$(BIN):$$PATH" ansible-lint --offline --profile production -q --nocolor

quick: setup ## unit tests, goldens, and contract tests against the in-memory store
	@$(PYTEST) $(call PARALLEL,$(BUSY)) -m "not postgres" tests/unit tests/contract/store

affected: browser ## tests that the change since origin/main can reach; SINCE=REV, IN=tests/unit
	@$(BIN)/python -m tests.affected $(SINCE) $(addprefix --in ,$(IN))

shuffle: setup ## make shuffle [SEED=N] [TESTS=tests/db]: run tests (default: tests/unit) in a random order
	@seed=$(or $(SEED),$$RANDOM); echo "SEED=$$seed"; \
	$(PYTEST) -n $(BUSY) --dist loadfile --random-order-bucket=module --random-order-seed=$$seed $(or $(TESTS),tests/unit)

browser: setup ## install Chromium for the browser tests
	@.ci/browser

test-db: browser ## the brain in memory, stores, views, dashboards, Buildbot with real processes, a crash at every checkpoint
	@$(PYTEST) $(call PARALLEL,$(WAITING)) tests/brain tests/db tests/buildbot tests/contract

base-kernel: setup ## create the kernel repository and the base builds in the cache (one full build)
	@$(BIN)/python -m tests.kernels

test-boot: base-kernel ## builds behind walls and attacks on them, real kernels that boot in QEMU, and one order on bare metal
	@$(PYTEST) $(call PARALLEL,1) tests/builds tests/boot tests/lab/test_*_short.py

calibrate: setup ## check that stated probabilities are true
	@$(PYTEST) $(call PARALLEL,$(BUSY)) tests/calibration

test-e2e: base-kernel ## run the demo with another seed and check its exit status
	@$(PYTEST) $(call PARALLEL,$(BUSY)) tests/e2e

test-lab: base-kernel ## bare-metal testboxes that are kexeced, rebooted, panicked and unplugged
	@.ci/lab
	@$(PYTEST) tests/lab

test: ## all checks and tests from a fresh clone, setup included
	$(STAGE) set-up $(MAKE) --no-print-directory setup
	@$(MAKE) -j2 --output-sync=target --no-print-directory stages 3>&1

# The stages after the set-up, side by side: the demo leaves a processor idle most of the time, so it
# starts first. `env -u`: a stage is a make of its own.
stages: stage-demo stage-boot stage-quick stage-database stage-calibration
stage-%: ALONE = env -u MAKEFLAGS -u MFLAGS $(MAKE) --no-print-directory
stage-base-kernel:
	$(STAGE) base-kernel $(ALONE) base-kernel
stage-demo: stage-base-kernel
	$(STAGE) demo $(ALONE) test-e2e
stage-lint:
	$(STAGE) lint $(ALONE) lint
stage-quick: stage-lint
	$(STAGE) quick $(ALONE) quick
stage-database: stage-quick
	$(STAGE) database $(ALONE) test-db
stage-boot: stage-demo
	$(STAGE) boot $(ALONE) test-boot
stage-calibration: stage-quick
	$(STAGE) calibration nice $(ALONE) calibrate

test-all: export SWINGBOT_TEST_ALL = 1
test-all: test test-lab ## test and test-lab with the long form of each test: a day or more; LKP_SRC=DIR: also conformance
	@$(if $(LKP_SRC),$(MAKE) --no-print-directory conformance)

demo: setup ## find a planted regression on this machine and write the mail; WORKLOAD=swap: in reclaim; EXPERIMENT=1: one experiment
	@$(BIN)/python -m tests.demo.$(if $(EXPERIMENT),experiment,demo)

seeds: setup ## make seeds N=20 [PLANT=none] [WORKLOAD=swap]: run the demo with seeds 1..N, one line each; resumes
	@$(BIN)/python -m tests.demo.seeds $(or $(N),20)

golden: setup ## regenerate the goldens; review the diff as the recipient would
	@$(BIN)/python -m tests.golden.remake
	@env -i $(BIN)/swingbot settings --reference >docs/settings.md

conformance: setup ## make conformance LKP_SRC=DIR: compare with an lkp-tests checkout; needs Ruby
	@LKP_SRC="$(LKP_SRC)" $(BIN)/python -m tests.conformance

dashboards: setup ## normalise the Grafana JSON
	@$(BIN)/python dashboards/normalise.py

wheel: setup ## build dist/: the wheel, and constraints.txt from requirements.lock
	@.ci/wheel dist

lock: setup ## regenerate requirements.lock from pyproject.toml
	@$(BIN)/uv pip compile --extra master --extra worker --extra test --extra lab --generate-hashes --no-emit-index-url --no-emit-find-links --quiet -o requirements.lock pyproject.toml
