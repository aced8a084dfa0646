#!/usr/bin/env bash
# Record a ring that carries traffic and then freezes, for the page that the documentation embeds:
# `sudo tools/record-replay.sh`. It takes half a minute and needs the port 8080 of 127.0.0.1.
#
# Slow links and short intervals: a frame of the recording has few packets, so the buffers are seen
# to fill.
set -euo pipefail
cd "$(dirname "$0")/.."

file=${1:-docs/replays/ring-deadlock.channels.parquet}
name=record-replay
knotless=(.venv/bin/python -m knotless)
export PYTHONPATH=$PWD

mkdir -p "$(dirname "$file")"
trap '"${knotless[@]}" down --name "$name"' EXIT
"${knotless[@]}" up ring,4 --engine dor --vcs 1 --select low-port --flow-control pause \
    --allow-deadlock --rate 2 --name "$name"
# Each channel carries two of these flows: 0.6 Mbit/s each leave room for all.
"${knotless[@]}" traffic start shift:2 --rate 0.6 --name "$name"
# What stands still at the end is left out of the page.
"${knotless[@]}" record "$file" --duration 25 --every 0.1 --name "$name" &
recording=$!
sleep 5
"${knotless[@]}" traffic stop --name "$name"
"${knotless[@]}" freeze --name "$name"
wait "$recording"
