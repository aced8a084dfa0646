#!/usr/bin/env bash
# Run every test that this machine can run; what is skipped is listed with its reason, and the
# twenty slowest with their times.
set -euo pipefail
cd "$(dirname "$0")/.."
# Tests run as root too: they leave no files that their user could not remove.
export PYTHONDONTWRITEBYTECODE=1
# Tests of one file share what they have made, so a file stays with one worker. There is one worker
# more than processors, because fabrics often wait; more than four fabrics at once gain nothing.
workers=$(($(nproc) < 4 ? $(nproc) + 1 : 4))
# run MARKERS [PREFIX...]
run() {
    "${@:2}" .venv/bin/python -m pytest -p no:cacheprovider --durations=20 -n "$workers" \
        --dist loadfile -m "$1"
}

cargo test --locked --quiet --manifest-path core/Cargo.toml </dev/null
if [ "$(id -u)" = 0 ]; then
    run ""
elif sudo -n true 2>/dev/null; then
    run "not integration"
    run integration sudo -n --preserve-env=PYTHONDONTWRITEBYTECODE,CI
else
    run "not integration"
    echo "SKIPPED every integration test: they need root, and sudo wants a password here"
fi
