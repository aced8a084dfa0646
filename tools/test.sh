#!/usr/bin/env bash
# Run every test that this machine can run; what is skipped is listed with its reason, and the
# twenty slowest with their times.
set -euo pipefail
cd "$(dirname "$0")/.."
# Tests run as root too: they leave no files that their user could not remove.
export PYTHONDONTWRITEBYTECODE=1
pytest=(.venv/bin/python -m pytest -p no:cacheprovider --durations=20)

cargo test --locked --quiet --manifest-path core/Cargo.toml </dev/null
if [ "$(id -u)" = 0 ]; then
    "${pytest[@]}"
elif sudo -n true 2>/dev/null; then
    "${pytest[@]}" -m "not integration"
    sudo -n --preserve-env=PYTHONDONTWRITEBYTECODE,CI "${pytest[@]}" -m integration
else
    "${pytest[@]}" -m "not integration"
    echo "SKIPPED every integration test: they need root, and sudo wants a password here"
fi
