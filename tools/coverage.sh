#!/usr/bin/env bash
# Print how much of the Python and of the Rust code the tests run, and which files least.
#
#   tools/coverage.sh [PYTEST-ARGUMENT...]   for the Python part: which tests, default all
#   tools/coverage.sh --llvm-tools           say which of LLVM's tools would be used
#
# Python counts in every process that a test starts; Rust what `cargo test` runs, not what
# Python calls. Instrumented programs are slow, so this is no part of a tier.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin
export PYTHONDONTWRITEBYTECODE=1
TARGET=$PWD/core/target/coverage
PYTHON=$PWD/.venv/bin/python

# llvm_tool NAME: the one that belongs to this rustc, else one of the same major version.
llvm_tool() {
    local tool version
    version=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    for tool in "$(rustc --print sysroot)"/lib/rustlib/*/bin/"$1" "/usr/lib/llvm-$version/bin/$1"; do
        [ -x "$tool" ] && echo "$tool" && return
    done
    echo "coverage: no $1 for LLVM $version: run 'make coverage', which installs it" >&2
    return 1
}

python_coverage() {
    local tests=("$@") unprivileged=(tests experiments/tests --ignore={,experiments/}tests/{integration,browser,alone})
    rm -f .coverage .coverage.*
    [ $# != 0 ] || { [ "$(id -u)" = 0 ] || tests=("${unprivileged[@]}"); }
    "$PYTHON" -m coverage run -m pytest -p no:cacheprovider \
        -n "$(nproc)" --dist loadfile "${tests[@]}" || failed=1
    "$PYTHON" -m coverage combine --quiet
    "$PYTHON" -m coverage report --sort=cover --skip-covered
    rm -f .coverage
}

rust_coverage() {
    local profdata cov programs
    profdata=$(llvm_tool llvm-profdata)
    cov=$(llvm_tool llvm-cov)
    rm -rf "$TARGET/profiles"
    export RUSTFLAGS="-C instrument-coverage" CARGO_TARGET_DIR=$TARGET
    export KNOTLESS_TIER=deep
    export LLVM_PROFILE_FILE=$TARGET/profiles/%p-%m.profraw
    local cargo=(cargo test --locked --manifest-path core/Cargo.toml)
    "${cargo[@]}" --quiet </dev/null || failed=1
    # Where the counters lie; llvm-cov takes its first program without an --object before it.
    mapfile -t programs < <("${cargo[@]}" --no-run --message-format=json 2>/dev/null </dev/null |
        "$PYTHON" -c 'import json, sys
for line in sys.stdin:
    program = json.loads(line).get("executable")
    if program:
        print("--object", program, sep="\n")')
    find "$TARGET/profiles" -name '*.profraw' -print0 |
        xargs -0 "$profdata" merge --sparse --output "$TARGET/merged.profdata"
    "$cov" report --summary-only --instr-profile "$TARGET/merged.profdata" \
        --ignore-filename-regex='/(registry|rustc|rustlib|vendor|tests)/' \
        --show-region-summary=false --show-branch-summary=false "${programs[@]:1}"
}

if [ "${1-}" = --llvm-tools ]; then
    llvm_tool llvm-profdata
    llvm_tool llvm-cov
    exit
fi
failed=''
python_coverage "$@"
rust_coverage
[ -z "$failed" ] || { echo "coverage: tests failed (above)" >&2; exit 1; }
