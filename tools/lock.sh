#!/usr/bin/env bash
# Write requirements.lock: all packages of Python that set-up installs, in the versions of
# constraints.txt, with the hashes of all their files. For Python 3.11 and newer, on every platform.
# Then find wheels of all but Ryu, which has none, for the Python that comes next on Linux.
#
#   tools/lock.sh    after requirements*.txt, constraints.txt or pyproject.toml have changed
#
# Needs uv (pip install uv). The parts are what tools/setup.sh installs in one call each: what Ryu is
# built with, what the demo runs with, what everything runs with besides, what checks and tests need
# besides, and what the packages of this repository are built with.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v uv >/dev/null || { echo "lock: uv is missing: pip install uv" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The order of all is that of names, so that equal inputs give equal files.
resolve() {
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
        --no-annotate --no-config --upgrade --build-constraints "$folder/ryu.in" "$@" | sed 's/ *$//'
}

# Entries of the second list that the first one has not: a line with name, version and the platforms
# where it is needed (a later part may need it on more), and indented lines with hashes.
without() {
    awk 'NR == FNR { if (/^[^ #]/) seen[$0]; next }
        /^[^ #]/ { keep = !($0 in seen) } keep' "$1" "$2"
}

setuptools=$(grep '^setuptools<' constraints.txt)
printf '%s\npbr\nwheel\n' "$setuptools" >"$folder/ryu.in"
sed '/make demo does without/,$d' requirements.txt >"$folder/demo.in"
cp requirements.txt "$folder/run.in"
cat requirements.txt requirements-dev.txt >"$folder/tests.in"
# The build backends of pyproject.toml and tools/compat/pyproject.toml.
sed -n 's/^requires = \["\(.*\)"\]$/\1/p' pyproject.toml tools/compat/pyproject.toml >"$folder/own.in"
echo editables >>"$folder/own.in"   # hatchling's, for builds in place

for part in ryu demo run tests; do
    resolve -c constraints.txt "$folder/$part.in" >"$folder/$part"
done
resolve "$folder/own.in" >"$folder/own"
without "$folder/demo" "$folder/run" >"$folder/run.more"
without "$folder/run" "$folder/tests" >"$folder/tests.more"

{
    echo "# Written by tools/lock.sh. tools/setup.sh installs a part in one call; by hand, use"
    echo "# pip install -r requirements.txt -c constraints.txt"
    for part in ryu demo run tests own; do
        echo "# part: $part"
        case $part in
            ryu) cat "$folder/ryu" ;;
            run | tests) cat "$folder/$part.more" ;;
            *) cat "$folder/$part" ;;
        esac
    done
} >requirements.lock
echo "lock: requirements.lock: $(grep -c '^[^ #]' requirements.lock) packages"

next=3.14
grep -hvx ryu requirements.txt requirements-dev.txt >"$folder/next.in"
uv pip compile --quiet --python-version "$next" --python-platform x86_64-manylinux_2_28 --no-config \
    --only-binary :all: --no-header --no-annotate -c constraints.txt "$folder/next.in" >"$folder/next"
echo "lock: $(grep -c '==' "$folder/next") packages have wheels for Python $next"
