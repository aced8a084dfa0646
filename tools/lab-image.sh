#!/usr/bin/env bash
# Make one archive with everything that the labs need, for classrooms without network.
#
#   tools/lab-image.sh                 build/knotless-labs-RELEASE-ARCHITECTURE.tar
#   tools/lab-image.sh --without-debs  the same without Debian packages, where they are installed
#
# It has the last commit of this repository, its Python packages as wheels, the Rust programs, the
# Debian packages with all they depend on, and tools/lab-install.sh as install.sh. It is for
# machines with the Debian release and the architecture of this one.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1-} in
    '') debs=1 ;;
    --without-debs) debs='' ;;
    *) echo "lab-image: unknown option $1: give --without-debs or none" >&2; exit 1 ;;
esac

release=$(. /etc/os-release && echo "$ID-$VERSION_ID")
name=knotless-labs-$release-$(dpkg --print-architecture)
image=$PWD/build/$name
rm -rf "$image"
mkdir -p "$image/wheels" "$image/programs"

say() { echo "lab-image: $*"; }

add_debs() {
    local packages
    # The Rust programs are there already.
    packages=$(tools/setup.sh --packages | grep -v -e rustc -e cargo)
    echo "$packages" >"$image/packages"
    mkdir -p "$image/debs/partial"
    : >"$image/debs/nothing-installed"
    # With an empty list of installed packages, apt fetches all that these depend on.
    # shellcheck disable=SC2086
    apt-get -qq -y --no-install-recommends --download-only -o Debug::NoLocking=true \
        -o APT::Sandbox::User=root -o Dir::State::status="$image/debs/nothing-installed" \
        -o Dir::Cache::archives="$image/debs" install $packages
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
# wheel: setuptools needs it to install this repository.
PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=compat/build-constraints.txt \
    .venv/bin/pip wheel --quiet --use-pep517 --wheel-dir "$image/wheels" \
    ./compat -r requirements.txt -c constraints.txt setuptools wheel </dev/null
(cd core/python && ../../.venv/bin/maturin build --quiet --release --locked \
    --interpreter ../../.venv/bin/python --out "$image/wheels" </dev/null)
/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' >"$image/python"

say "Rust programs"
find core/target/release -maxdepth 1 -type f \( -perm -u+x -name 'knotless-*' \
    -o -name 'libknotless_*.so' \) -exec cp -t "$image/programs" {} +

[ -z "$debs" ] || { say "Debian packages"; add_debs; }

tar -cf "build/$name.tar" -C build "$name"
rm -rf "$image"
say "build/$name.tar: $(du -h "build/$name.tar" | cut -f 1)"
