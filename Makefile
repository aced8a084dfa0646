# `make help` lists the targets. On a machine without make: tools/make TARGET.
SHELL := /bin/bash
# Rust's own installer puts its programs here, which is not on the PATH of every shell.
export PATH := $(PATH):$(HOME)/.cargo/bin
BIN := .venv/bin
CARGO := cargo --locked
MANIFEST := --manifest-path core/Cargo.toml
# Fabrics consist of network namespaces, which only root can create. Root writes no byte code,
# because its user could not remove it.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo) env PYTHONDONTWRITEBYTECODE=1

.DEFAULT_GOAL := help
.PHONY: help evidence setup setup-checks setup-tests setup-deep setup-night dist demo docs test test-changed test-deep test-night test-long lint lint-python lint-rust format bench fuzz fuzz-long fuzz-commands fuzz-border fuzz-readers page miri mutants test-primitives test-barriers prove prove-changes proofs seeds coverage lab-image lock clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

setup:  ## install what running needs: Debian packages, .venv, the Rust programs
	@tools/setup.sh

setup-checks:
	@tools/setup.sh --checks

setup-tests:  ## install this and what checks and tests need
	@tools/setup.sh --tests

setup-deep:
	@tools/setup.sh --deep

setup-night:
	@tools/setup.sh --night

dist: setup-tests  ## write the source distribution, the wheel and their bill of materials to dist/
	rm -rf dist docs/man
	$(BIN)/python -m docs.generator.man docs/man
	CARGO_TARGET_DIR=$(CURDIR)/core/target PYTHONPATH=$(CURDIR)/.venv/build-tools \
	    $(BIN)/python -m build --no-isolation --quiet --outdir dist . </dev/null
	$(BIN)/python tools/sbom.py dist/knotless.cdx.json
	@ls -l dist

demo:  ## run a fabric that deadlocks under PAUSE, and one that cannot: simulated where it must be
	@tools/demo.sh

test: setup-tests  ## run every check, and tests of every kind at small depth: the gate, ten minutes
	$(BIN)/python -m tests.tiers gate

test-changed: setup-tests  ## run the tests that the changes can reach, at full depth
	$(BIN)/python -m tests.tiers changed

test-deep: setup-deep  ## run every check, and every test at full depth except those of test-long
	$(BIN)/python -m tests.tiers deep

test-night: setup-night  ## run everything with new seeds, and keep the seed if all passes (many hours)
	$(BIN)/python -m tests.tiers night

test-long: setup-tests  ## run the tests that take minutes: a real kernel, large fabrics, fresh machines (as root)
	$(BIN)/pytest -m long

docs: setup-tests  ## build the documentation as a site into build/site (open index.html there)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

lint: lint-python lint-rust  ## check format, lint and types, without changing files

lint-python: setup-checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-rust: setup-checks
	cargo fmt $(MANIFEST) --all --check
	$(CARGO) clippy $(MANIFEST) --quiet --profile gate --workspace --all-targets -- -D warnings

format: setup-checks  ## format all source files
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .
	cargo fmt $(MANIFEST) --all

bench: setup  ## list the benchmarks, or run one: make bench NAME=repair OPTIONS="--cuts 5"
	@tools/native.sh
	@! $(BIN)/python -m bench --needs-root $(NAME) || as_root="$(SUDO)"; \
	    $$as_root $(BIN)/python -m bench $(NAME) $(OPTIONS)

fuzz: setup-tests  ## send a million forged messages, of hosts and of switches (test-deep: 20,000)
	PROPTEST_CASES=1000000 $(CARGO) test $(MANIFEST) --release -p endpoint --lib
	KNOTLESS_FORGED=1000000 $(CARGO) test $(MANIFEST) --release -p endpoint --test forged \
	    --test protocol
	KNOTLESS_FORGED=1000000 $(BIN)/pytest -q tests/unit/controller/openflow/test_guard.py

fuzz-long: setup  ## search for input that breaks frames, control lines, configurations, messages
	tools/fuzz.sh $(or $(FUZZ_INPUTS),2500000)

miri: setup  ## run tests of the crates without I/O under Miri (needs rustup and a nightly toolchain)
	tools/miri.sh

fuzz-commands: setup-tests  ## run 100,000 forged command lines and files, half an hour (test-deep: 300)
	$(BIN)/python -m tests.fuzz_commands --cases 100000

fuzz-border: setup-tests  ## forge 2.5 million packet-ins, requests and kept files each (test-deep: 3,000)
	$(BIN)/python -m tests.fuzz_border --cases 2500000

fuzz-readers: setup-tests  ## damage a million files of other fabrics, twenty minutes (test-deep: 300)
	$(BIN)/python -m tests.fuzz_readers --cases 1000000

test-primitives: setup  ## run a million random operations on remote memory (test-deep: 20,000)
	KNOTLESS_OPERATIONS=1000000 $(CARGO) test $(MANIFEST) --release -p endpoint --test primitives

mutants: setup-tests  ## plant COUNT=80 faults one by one in a clone, and list those that no test finds
	nice -n 15 $(BIN)/python -m tests.mutants --seed $${SEED-1} --count $${COUNT-80} $(OPTIONS)

test-barriers: setup-tests  ## run 10,000 barriers of real processes with each fault (test-deep: 300)
	$(SUDO) KNOTLESS_BARRIERS=10000 $(BIN)/pytest -q experiments/tests/integration/test_barrier_faults.py

prove: setup-tests  ## check the rules of every engine on 1,000 generated fabrics (test-deep: 40)
	$(BIN)/python -m tests.prove

seeds: setup-tests  ## run whole controllers in simulated time, with faults: new seeds for HOURS=1
	$(BIN)/python -m tests.seeded.campaign --hours $${HOURS-1} --file $${FILE-results/seeds.jsonl}

prove-changes: setup-tests  ## check changes of routes on 10,000 random fabrics, and 100,000 pairs of plans
	$(BIN)/python -m tests.prove_changes
	$(BIN)/python -m tests.prove_changes --pairs 100000

proofs: setup-tests  ## damage rules and proofs 10,000 times, judge 1,000 plans that can deadlock, and 1,000 safe
	$(BIN)/python -m tests.prove_proofs

evidence: setup  ## write build/knotless-evidence.tar.gz: stored runs, claims, benchmarks, manifest
	@mkdir -p build
	$(BIN)/knotless reproduction --archive build/knotless-evidence.tar.gz

coverage:  ## measure how much Python and Rust code the tests run (twice as long as test-deep)
	@tools/setup.sh --coverage
	tools/coverage.sh

lab-image: setup  ## make one archive with all packages, for classrooms without network
	tools/lab-image.sh

lock:  ## write requirements.lock, with hashes, after requirements or constraints changed (needs uv)
	tools/lock.sh

page:  ## rebuild the bundle of the live page (needs Node.js and npm)
	cd knotless/web/page && npm ci --ignore-scripts --no-audit --no-fund && npm run check && npm run build

clean:  ## remove what setup and tests created here (not results/, not Debian packages)
	rm -rf .venv build dist core/target knotless/_native knotless/_core.abi3.so *.egg-info \
	    .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
