#!/usr/bin/env bash
# Build the Rust workspace once, and copy what Python and hosts use of it into the package, stripped.
#
# The wheel, `pip install -e .` and `tools/make setup` all go through this step. With nothing to do
# it takes less than a second.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

die() { echo "native: $*" >&2; exit 1; }
command -v cargo >/dev/null || die "cargo is missing: install a wheel of Knotless, which needs no" \
    "compiler, or run tools/setup.sh"
# The extension uses Python's stable ABI: which interpreter there is does not matter.
export PYO3_NO_PYTHON=1
cargo build --release --locked --quiet --manifest-path core/Cargo.toml -p knotless-python \
    -p emulator -p endpoint -p preload -p programs </dev/null

release=${CARGO_TARGET_DIR:-core/target}/release
# copy FILE TARGET: only if it has changed, and never into a file that a process executes.
copy() {
    local source=$release/$1 target=knotless/$2
    [ "$target" -nt "$source" ] && return
    strip -o "$target.new" "$source"
    chmod 755 "$target.new"
    mv "$target.new" "$target"
}
mkdir -p knotless/_native
copy lib_core.so _core.abi3.so
for name in knotless-emulator knotless-barrier knotless-pingpong libknotless_virtual_time.so \
    libknotless_endpoint.so; do
    copy "$name" "_native/$name"
done
cp -u core/messages/endpoint/include/knotless_endpoint.h knotless/_native/
# A source distribution brings its own.
if [ -e .git ] && commit=$(git rev-parse HEAD 2>/dev/null); then
    [ "$(cat knotless/_native/commit 2>/dev/null)" = "$commit" ] ||
        echo "$commit" >knotless/_native/commit
fi
