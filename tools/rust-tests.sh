#!/usr/bin/env bash
# Run the tests of core/, unless they have passed on this machine with the same code already.
#
#   tools/rust-tests.sh [TIER] [CRATE]    gate (the default), deep or night; see tests/tiers
#
# With CRATE, only those of this crate. They are built with the profile `gate`. "The same" also means
# compiler, tier, seed (tests/SEED, or the variable SEED) and the environment variables that change
# code or cases.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

tier=${1:-${KNOTLESS_TIER:-gate}}
case $tier in
    gate | deep | night) export KNOTLESS_TIER=$tier ;;
    *) echo "rust-tests: unknown tier $tier: give gate, deep or night" >&2; exit 1 ;;
esac
export PROPTEST_RNG_SEED=${SEED:-$(cat tests/SEED)}
crate=${2-}
stamp=${CARGO_TARGET_DIR:-core/target}/tests-passed-$tier${crate:+-$crate}

# What the tests depend on. Files count by name and content, whether git knows them or not.
inputs() {
    rustc -vV
    env | grep -E '^(CARGO_|KNOTLESS_|PROPTEST_|RUSTFLAGS=|RUSTC)' | LC_ALL=C sort
    cat tools/rust-tests.sh
    find core -path core/target -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
}

# Taken before the tests: what is edited meanwhile is not tested.
current=$(inputs | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" = "$current" ]; then
    echo "rust-tests: core/ has not changed since its tests passed ($tier)"
    exit 0
fi
cargo test --locked --quiet --profile gate --manifest-path core/Cargo.toml \
    ${crate:+-p "$crate"} </dev/null
echo "$current" >"$stamp"
