#!/bin/sh
# Run CAMINOS (cargo install caminos --version 0.6.3 --locked) for each fabric, load and seed, and
# print the table that is stored in results.csv.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
value() { grep -A1 "$1:" "$work/result" | tail -n1 | tr -d '\t ,'; }
echo fabric,load,seed,accepted_load,delay_cycles,hops
for fabric in torus dragonfly dragonfly-wide; do
    for load in 0.01 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0; do
        for seed in 1 2 3; do
            sed "s/load: 0.1,/load: $load,/; s/random_seed: 1,/random_seed: $seed,/" \
                "$fabric.cfg" >"$work/run.cfg"
            caminos "$work/run.cfg" >"$work/result"
            echo "$fabric,$load,$seed,$(value accepted_load),$(value average_message_delay),$(value average_packet_hops)"
        done
    done
done
