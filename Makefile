# `make help` lists what there is to make. On a machine without make: tools/make TARGET.
SHELL := /bin/bash
# Rust's own installer puts its programs there, and not on every shell's PATH.
export PATH := $(PATH):$(HOME)/.cargo/bin
BIN := .venv/bin
CARGO := cargo --locked
MANIFEST := --manifest-path core/Cargo.toml
# Fabrics are made of network namespaces, which only root may make. Root leaves no byte code
# behind that its user could not remove.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo) env PYTHONDONTWRITEBYTECODE=1

.DEFAULT_GOAL := help
.PHONY: help setup setup-checks setup-tests demo test test-long lint lint-python lint-rust format bench bench-plan bench-routing bench-sim bench-endpoint fuzz test-primitives test-barriers prove coverage clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

setup:  ## install what running needs: Debian packages, .venv, the Rust programs
	@tools/setup.sh

setup-checks:
	@tools/setup.sh --checks

setup-tests:  ## the same, and what checks and tests need
	@tools/setup.sh --tests

demo: setup  ## watch a fabric freeze under PAUSE, and one that cannot
	$(SUDO) $(BIN)/knotless run deadlock

test: setup-tests lint  ## every check and test that this machine can run
	tools/test.sh

test-long: setup-tests  ## the tests that take minutes: all exports on a real kernel
	$(BIN)/pytest -m long

lint: lint-python lint-rust  ## format, lint and types, without changing anything

lint-python: setup-checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-rust: setup-checks
	cargo fmt $(MANIFEST) --all --check
	$(CARGO) clippy $(MANIFEST) --quiet --workspace --all-targets -- -D warnings

format: setup-checks  ## put everything in the settled format
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .
	cargo fmt $(MANIFEST) --all

bench: setup  ## measure the emulated fabric against plain links
	$(SUDO) $(BIN)/python -m bench

bench-plan: setup  ## time planning, compiling and checking of large fabrics, with peak memory
	$(BIN)/python -m bench.plan

bench-sim: setup  ## time the simulator, in packets put on links a second
	$(BIN)/python -m bench.simulation

bench-routing: setup  ## time our routing engines beside OpenSM's, where it is installed
	$(BIN)/python -m bench.routing

bench-endpoint: setup  ## measure messages beside UDP sockets and Open MPI, over one veth
	$(SUDO) $(BIN)/python -m bench.endpoint

fuzz: setup  ## forge a million requests and frames of messages of each kind (make test: 20,000)
	PROPTEST_CASES=1000000 $(CARGO) test $(MANIFEST) --release -p endpoint --lib
	KNOTLESS_FORGED=1000000 $(CARGO) test $(MANIFEST) --release -p endpoint --test forged \
	    --test protocol

test-primitives: setup  ## a million random operations on remote memory (make test: 20,000)
	KNOTLESS_OPERATIONS=1000000 $(CARGO) test $(MANIFEST) --release -p endpoint --test primitives

test-barriers: setup-tests  ## 10,000 barriers of real processes with each fault (make test: 300)
	$(SUDO) KNOTLESS_BARRIERS=10000 $(BIN)/pytest -q tests/integration/test_barrier_faults.py

prove: setup-tests  ## walk the rules of every engine on 1,000 generated fabrics (make test: 40)
	$(BIN)/python -m tests.prove

coverage:  ## how much of the Python and the Rust code the tests run (twice as long as test)
	@tools/setup.sh --coverage
	tools/coverage.sh

clean:  ## remove what setup and the tests made here (not results/, not Debian packages)
	rm -rf .venv build core/target *.egg-info \
	    .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
