#!/usr/bin/env bash
# Run the unit tests of the crates without input and output under Miri, which finds undefined
# behaviour. Miri belongs to Rust's nightly toolchain, which Debian does not have.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "miri: needs rustup, then: rustup toolchain install nightly --component miri,rust-src" >&2
    exit 2
fi
export PROPTEST_CASES=2 MIRIFLAGS=-Zmiri-disable-isolation
cargo +nightly miri test --locked --manifest-path core/Cargo.toml --target-dir core/target/miri \
    --lib -p switch-model -p barrier -p forwarding -p graph "$@"
# The protocol of messages and the arithmetic of credit, without what needs system calls.
cargo +nightly miri test --locked --manifest-path core/Cargo.toml --target-dir core/target/miri \
    --lib -p endpoint "$@" -- --skip spin
