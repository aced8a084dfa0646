#!/usr/bin/env bash
# Install into .venv, only files whose hashes are in requirements.lock.
#
#   tools/install-locked.sh PART...              packages of others: demo, run, tests
#   tools/install-locked.sh --own [-e] FOLDER    a package of this repository, built from FOLDER
#
# Isolated builds would fetch what they build with, unchecked. So that is installed before, by the
# same rule: for Ryu, of which there is only the source, into .venv, for our own packages into a
# folder that nothing else sees, because they need another setuptools.
set -euo pipefail
cd "$(dirname "$0")/.."

pip_install() {
    PIP_DISABLE_PIP_VERSION_CHECK=1 .venv/bin/pip install --quiet --use-pep517 \
        --no-build-isolation "$@" </dev/null
}

lock=$(mktemp)
trap 'rm -f "$lock"' EXIT
# Arguments are options of pip, '--', and parts.
install_parts() {
    local options=()
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    tools/locked.sh "$@" >"$lock"
    pip_install --require-hashes "${options[@]}" -r "$lock"
}

if [ "${1-}" = --own ]; then
    shift
    stamp=.venv/build-tools/stamp
    if [ "$(cat $stamp 2>/dev/null)" != "$(tools/locked.sh own | sha256sum)" ]; then
        rm -rf .venv/build-tools
        install_parts --target .venv/build-tools -- own
        tools/locked.sh own | sha256sum >$stamp
    fi
    # What it depends on is there already.
    PYTHONPATH=$PWD/.venv/build-tools pip_install --no-deps --no-index "$@"
else
    install_parts -- ryu
    install_parts -- "$@"
fi
