#!/usr/bin/env bash
# Run every test that this machine can run; what is skipped is listed with its reason, and the
# twenty slowest with their times.
set -euo pipefail
cd "$(dirname "$0")/.."
# Tests run as root too: they leave no files that their user could not remove.
export PYTHONDONTWRITEBYTECODE=1
# Tests of one file share what they have made, so a file stays with one worker. Fabrics wait for each
# other's Open vSwitch: more than four at once gain nothing.
processors=$(nproc)
fabrics=$((processors < 4 ? processors : 4))
# run WORKERS MARKERS [PREFIX...]
run() {
    "${@:3}" .venv/bin/python -m pytest -p no:cacheprovider --durations=20 -n "$1" \
        --dist loadfile -m "$2"
}

cargo test --locked --quiet --manifest-path core/Cargo.toml </dev/null
run "$processors" "not integration"
if [ "$(id -u)" = 0 ]; then
    run "$fabrics" integration
elif sudo -n true 2>/dev/null; then
    run "$fabrics" integration sudo -n --preserve-env=PYTHONDONTWRITEBYTECODE,CI
else
    echo "SKIPPED every integration test: they need root, and sudo wants a password here"
fi
