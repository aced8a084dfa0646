#!/usr/bin/env bash
# Print parts of requirements.lock, for pip's --require-hashes: tools/locked.sh PART...
#
# Parts: ryu (what it is built with), demo, run, tests, own (what Knotless is built with).
set -euo pipefail
cd "$(dirname "$0")/.."

for part; do
    grep -qx "# part: $part" requirements.lock || { echo "locked: no part $part" >&2; exit 1; }
    sed -n "/^# part: $part\$/,/^# part: /p" requirements.lock
done
