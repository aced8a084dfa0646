#!/usr/bin/env bash
# Install Knotless from this archive, without network: ./install.sh
#
# Made by `make lab-image`. Debian packages need root or sudo; the rest stays in this folder.
set -euo pipefail
cd "$(dirname "$0")"

say() { echo "install: $*"; }
die() { echo "install: $*" >&2; exit 1; }

system=$(. /etc/os-release && echo "$ID-$VERSION_ID")-$(dpkg --print-architecture)
[ "$system" = "$(cat system)" ] ||
    die "this archive is for $(cat system), here is $system: make it on such a machine"

if [ -d debs ]; then
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    say "Debian packages"
    list=$(mktemp)
    trap 'rm -f "$list"' EXIT
    echo "deb [trusted=yes] file:$PWD/debs ./" >"$list"
    # Only this archive: other sources could not be reached.
    apt_get() {
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
            -o Dir::Etc::sourcelist="$list" -o Dir::Etc::sourceparts=/dev/null \
            -o APT::Get::List-Cleanup=0 -o APT::Sandbox::User=root "$@" </dev/null
    }
    apt_get update
    # shellcheck disable=SC2046
    apt_get install --no-install-recommends --no-remove $(cat packages) >/dev/null
fi

say "Python packages"
/usr/bin/python3 -m venv --system-site-packages knotless/.venv
PIP_DISABLE_PIP_VERSION_CHECK=1 knotless/.venv/bin/pip install --quiet --no-index \
    --find-links wheels knotless-ryu-compat knotless \
    -r knotless/requirements.txt -c knotless/constraints.txt </dev/null

say "ready: export PATH=\"$PWD/knotless/.venv/bin:\$PATH\", then read knotless/labs/README.md"
