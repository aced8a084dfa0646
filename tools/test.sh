#!/usr/bin/env bash
# Run every test that this machine can run; what is skipped is listed with its reason, and the
# twenty slowest with their times.
set -euo pipefail
cd "$(dirname "$0")/.."
# Tests run as root too: they leave no files that their user could not remove.
export PYTHONDONTWRITEBYTECODE=1
# Tests of one file share what they have made, so a file stays with one worker. More fabrics than
# processors would starve what has no real-time priority: their switches and controllers have it.
# A worker that dies (of memory, say) ends the run and names its test: xdist hands a dead worker's
# files to a new one, and then waits for ever.
workers=$(($(nproc) < 4 ? $(nproc) : 4))
# run WORKERS ARGUMENTS [PREFIX...]
run() {
    # shellcheck disable=SC2086 # several arguments
    "${@:3}" .venv/bin/python -m pytest -p no:cacheprovider --durations=20 -n "$1" \
        --dist loadfile --max-worker-restart 0 $2
}
# fabrics [PREFIX...]: the tests with fabrics, and then those that others would disturb
fabrics() {
    run "$workers" "tests/integration tests/browser" "$@"
    run 0 tests/alone "$@"
}

cargo test --locked --quiet --manifest-path core/Cargo.toml </dev/null
run "$workers" "tests --ignore=tests/integration --ignore=tests/browser --ignore=tests/alone"
if [ "$(id -u)" = 0 ]; then
    fabrics
elif sudo -n true 2>/dev/null; then
    fabrics sudo -n --preserve-env=PYTHONDONTWRITEBYTECODE,CI
else
    echo "SKIPPED every test with a fabric or a browser: they need root, and sudo wants a password here"
fi
