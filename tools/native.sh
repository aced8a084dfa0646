#!/usr/bin/env bash
# Build the Rust workspace once, and copy what Python and hosts use of it into the package, stripped;
# and the verifier of proofs, if there is an OCaml compiler.
#
#   tools/native.sh           with the profile `release`, for wheels and benchmarks
#   tools/native.sh --setup   with the profile `setup`, for a checkout: it is built sooner, and a
#                             little slower. What is there of `release` is left as it is.
#
# The wheel, `pip install -e .` and `tools/make setup` all go through this step. With nothing to do
# it takes no time.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

die() { echo "native: $*" >&2; exit 1; }

case ${1-} in
    '') profile=release ;;
    --setup) profile=setup ;;
    *) die "unknown option $1: give --setup or none" ;;
esac

# In _native/, beside the header for C; the extension lies in the package itself.
programs=(knotless-emulator knotless-barrier knotless-pingpong libknotless_virtual_time.so
    libknotless_endpoint.so)
extension=knotless/_core.abi3.so
header=core/messages/endpoint/include/knotless_endpoint.h
# The profile of what is there.
record=knotless/_native/profile
mkdir -p knotless/_native
# A source distribution brings its own.
if [ -e .git ] && commit=$(git rev-parse HEAD 2>/dev/null); then
    [ "$(cat knotless/_native/commit 2>/dev/null)" = "$commit" ] ||
        echo "$commit" >knotless/_native/commit
fi

# The verifier of proofs is OCaml, and small: it is built where there is a compiler for it.
verifier=knotless/_native/knotless-verify
verifier_is_current() {
    ! command -v ocamlopt >/dev/null || { [ -f "$verifier" ] && [ -z "$(find tools/verifier.sh \
        proofs/checker.ml proofs/verifier -newer "$verifier" -type f -print -quit)" ]; }
}
if ! verifier_is_current; then
    echo "native: building the verifier of proofs"
    tools/verifier.sh "$verifier"
fi

is_current() {
    local file
    for file in "$extension" "${programs[@]/#/knotless/_native/}" "$record"; do
        [ -f "$file" ] || return 1
    done
    case $(cat "$record") in release | "$profile") ;; *) return 1 ;; esac
    # The extension is copied last.
    [ -z "$(find core tools/native.sh -path core/target -prune -o -newer "$extension" -type f -print -quit)" ]
}
! is_current || exit 0

command -v cargo >/dev/null || die "cargo is missing: install a wheel of Knotless, which needs no" \
    "compiler, or run tools/setup.sh"
echo "native: building the Rust programs"
# The extension uses Python's stable ABI: which interpreter there is does not matter.
export PYO3_NO_PYTHON=1
cargo build --profile "$profile" --locked --quiet --manifest-path core/Cargo.toml -p knotless-python \
    -p emulator -p endpoint -p preload -p programs </dev/null

# copy FILE TARGET: never into a file that a process executes.
copy() {
    strip -o "$2.new" "${CARGO_TARGET_DIR:-core/target}/$profile/$1"
    chmod 755 "$2.new"
    mv "$2.new" "$2"
}
rm -f "$record"
for name in "${programs[@]}"; do
    copy "$name" "knotless/_native/$name"
done
cp "$header" knotless/_native/
copy lib_core.so "$extension"
echo "$profile" >"$record"
