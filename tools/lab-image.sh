#!/usr/bin/env bash
# Make one archive with everything that the labs need, for classrooms without network.
#
#   tools/lab-image.sh                 build/knotless-labs-RELEASE-ARCHITECTURE.tar
#   tools/lab-image.sh --without-debs  the same without Debian packages, where they are installed
#   tools/lab-image.sh --out FOLDER    write it there instead of to build
#   tools/lab-image.sh --sign KEY      sign it with this key of GnuPG: ARCHIVE.tar.asc
#
# It prints the SHA-256 of the archive, and writes it to ARCHIVE.tar.sha256: who installs from the
# archive compares it before unpacking (labs/README.md).
#
# It has the last commit of this repository, Knotless and the packages of Python that it needs as
# wheels, the Debian packages with all they depend on, and tools/lab-install.sh as install.sh. It is for
# machines with the Debian release and the architecture of this one.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "lab-image: $*"; }
die() { echo "lab-image: $*" >&2; exit 1; }

debs=1 out=build key=''
while [ $# -gt 0 ]; do
    case $1 in
        --without-debs) debs='' ;;
        --out) [ -n "${2-}" ] || die "--out needs a folder"; out=$2; shift ;;
        --sign) [ -n "${2-}" ] || die "--sign needs a key"; key=$2; shift ;;
        *) die "unknown option $1: give --without-debs, --out FOLDER, --sign KEY or none" ;;
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
}

say "the repository"
git archive --prefix=knotless/ HEAD | tar -x -C "$image"
mv "$image/knotless/tools/lab-install.sh" "$image/install.sh"

say "Python packages"
pip_wheel() {
    PIP_DISABLE_PIP_VERSION_CHECK=1 .venv/bin/pip wheel --quiet --use-pep517 --no-build-isolation \
        --wheel-dir "$image/wheels" "$@" </dev/null
}
# With what set-up has installed from requirements.lock.
tools/locked.sh demo run >"$image/lock"
pip_wheel --require-hashes -r "$image/lock"
rm "$image/lock"
PYTHONPATH=$PWD/.venv/build-tools pip_wheel --no-deps --no-index ./tools/compat .
echo "$system" >"$image/system"

[ -z "$debs" ] || { say "Debian packages"; add_debs; }

tar -cf "$image.tar" -C "$out" "$name"
rm -rf "$image"
(cd "$out" && sha256sum "$name.tar" >"$name.tar.sha256")
say "$image.tar: $(du -h "$image.tar" | cut -f 1), SHA-256 $(cut -d ' ' -f 1 "$image.tar.sha256")"
if [ -n "$key" ]; then
    rm -f "$image.tar.asc"
    gpg --batch --local-user "$key" --armor --detach-sign "$image.tar" || die "gpg did not sign it"
    say "$image.tar.asc: the signature of $key"
fi
