#!/usr/bin/env bash
# Search for input that breaks a promise: tools/fuzz.sh INPUTS [TARGET...]
# New input that reaches new code is kept in core/target/fuzz/corpora, crashes in
# core/target/fuzz/crashes. With KNOTLESS_FUZZ_KEEP=1 the corpora of the repository are replaced by
# the smallest set of inputs that reaches the same code.
set -euo pipefail
cd "$(dirname "$0")/.."
inputs=${1:?usage: tools/fuzz.sh INPUTS [TARGET...]}
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(frames control configurations messages)
triple=$(rustc -vV | sed -n 's/^host: //p')
work=core/target/fuzz

# With --target these flags do not apply to build scripts and procedural macros.
sancov=-Cllvm-args=-sanitizer-coverage
export RUSTFLAGS="-Cpasses=sancov-module $sancov-level=4 $sancov-inline-8bit-counters \
$sancov-pc-table $sancov-trace-compares"
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
cargo build --locked --release --quiet --manifest-path core/Cargo.toml -p fuzz --features engine \
    --target "$triple" --target-dir "$work"
program=$PWD/$work/$triple/release/knotless-fuzz
mkdir -p "$work/crashes"
limits=(-max_len=4096 -rss_limit_mb=256 -timeout=10 "-artifact_prefix=$work/crashes/")

for target in "${targets[@]}"; do
    export KNOTLESS_FUZZ_TARGET=$target
    kept=core/fuzz/corpora/$target
    found=$work/corpora/$target
    mkdir -p "$found"
    echo "$target: $inputs inputs"
    "$program" "${limits[@]}" -runs="$inputs" -seed=1 -print_final_stats=1 "$found" "$kept" \
        2>"$work/$target.log" || { tail -40 "$work/$target.log"; exit 1; }
    grep -E '^(#[0-9]+.*DONE|stat::(number_of_executed_units|peak_rss_mb)|Done)' "$work/$target.log"
    if [ "${KNOTLESS_FUZZ_KEEP:-}" ]; then
        rm -rf "$work/merged"
        mkdir "$work/merged"
        "$program" -set_cover_merge=1 -max_len=512 "$work/merged" "$found" "$kept" 2>/dev/null
        rm -rf "$kept"
        mv "$work/merged" "$kept"
    fi
done
