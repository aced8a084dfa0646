#!/usr/bin/env bash
# Make one archive with everything that the labs need, for classrooms without network.
#
#   tools/lab-image.sh                 build/knotless-labs-RELEASE-ARCHITECTURE.tar
#   tools/lab-image.sh --without-debs  the same without Debian packages, where they are installed
#   tools/lab-image.sh --out FOLDER    write it there instead of to build
#
# It has the last commit of this repository, Knotless and the packages of Python that it needs as
# wheels, the Debian packages with all they depend on, and tools/lab-install.sh as install.sh. It is for
# machines with the Debian release and the architecture of this one.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "lab-image: $*"; }
die() { echo "lab-image: $*" >&2; exit 1; }

debs=1 out=build
while [ $# -gt 0 ]; do
    case $1 in
        --without-debs) debs='' ;;
        --out) [ -n "${2-}" ] || die "--out needs a folder"; out=$2; shift ;;
        *) die "unknown option $1: give --without-debs, --out FOLDER or none" ;;
    esac
    shift
done
mkdir -p "$out"
out=$(cd "$out" && pwd)

system=$(. /etc/os-release && echo "$ID-$VERSION_ID")-$(dpkg --print-architecture)
name=knotless-labs-$system
image=$out/$name
rm -rf "$image"
mkdir -p "$image/wheels"

add_debs() {
    local packages
    # The wheel has the Rust programs, so nothing is compiled.
    packages=$(tools/setup.sh --packages | grep -vx -e rustc-web -e cargo-web -e gcc -e make)
    echo "$packages" >"$image/packages"
    mkdir -p "$image/debs/partial"
    : >"$image/debs/nothing-installed"
    # With an empty list of installed packages, apt fetches all that these depend on.
    # shellcheck disable=SC2086
    apt-get -qq -y --no-install-recommends --download-only -o Debug::NoLocking=true \
        -o APT::Sandbox::User=root -o Dir::State::status="$image/debs/nothing-installed" \
        -o Dir::Cache::archives="$image/debs" install $packages >/dev/null ||
        die "apt-get could not fetch: ${packages//$'\n'/ } (its reasons are above;" \
            "'apt-get update' helps if its lists are old)"
    rm -rf "$image/debs/partial" "$image/debs/nothing-installed" "$image/debs/lock"
    # The index of a local repository, from which apt installs only what is missing.
    (cd "$image/debs" && for deb in *.deb; do
        dpkg-deb --field "$deb"
        echo "Filename: ./$deb"
        echo "Size: $(stat -c %s "$deb")"
        echo "SHA256: $(sha256sum "$deb" | cut -d ' ' -f 1)"
        echo
    done >Packages)
}

say "the repository"
git archive --prefix=knotless/ HEAD | tar -x -C "$image"
mv "$image/knotless/tools/lab-install.sh" "$image/install.sh"

say "Python packages"
PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=constraints.txt \
    .venv/bin/pip wheel --quiet --use-pep517 --wheel-dir "$image/wheels" \
    ./tools/compat -r requirements.txt -c constraints.txt </dev/null
PIP_DISABLE_PIP_VERSION_CHECK=1 .venv/bin/pip wheel --quiet --use-pep517 --no-deps \
    --wheel-dir "$image/wheels" . </dev/null
echo "$system" >"$image/system"

[ -z "$debs" ] || { say "Debian packages"; add_debs; }

tar -cf "$image.tar" -C "$out" "$name"
rm -rf "$image"
say "$image.tar: $(du -h "$image.tar" | cut -f 1)"
