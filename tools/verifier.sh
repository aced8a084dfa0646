#!/usr/bin/env bash
# Build the program that judges proof files, from proofs/: what Coq has extracted, and its reader.
#
#   tools/verifier.sh PROGRAM
#
# It needs ocamlopt (Debian: ocaml-nox), and nothing else of OCaml. The program is linked statically:
# it runs wherever it is copied to.
set -euo pipefail
cd "$(dirname "$0")/.."

program=$(realpath "$1")
modules=(sha256 json text openflow folder proof_file bridges routes lft cycle explain failure conclusion main)

# ocamlopt writes beside its sources.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp proofs/checker.ml proofs/verifier/*.ml "$work"
cd "$work"
ocamlopt -w -a -inline 100 -c checker.ml
# The linker warns of dlopen, which OCaml's runtime has and this program does not use.
ocamlopt -w +a-4-9-40-41-42-44-45-70 -inline 100 -ccopt '-static -Wl,--no-warnings' \
    -o knotless-verify checker.cmx "${modules[@]/%/.ml}"
strip -o "$program.new" knotless-verify
chmod 755 "$program.new"
mv "$program.new" "$program"
