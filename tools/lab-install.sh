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
    # Files of this archive alone, whose SHA-256 was compared: what is missing here, or older.
    debs=()
    for deb in debs/*.deb; do
        { read -r package; read -r version; } < <(dpkg-deb --show --showformat \
            '${Package}\n${Version}\n' "$deb")
        there=$(dpkg-query --show --showformat '${db:Status-Status} ${Version}' "$package" \
            2>/dev/null || true)
        case $there in
            "installed "*) dpkg --compare-versions "${there#* }" ge "$version" && continue ;;
        esac
        debs+=("./$deb")
    done
    [ ${#debs[@]} = 0 ] ||
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
            -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=/dev/null \
            -o APT::Sandbox::User=root install --no-install-recommends --no-remove \
            "${debs[@]}" </dev/null >/dev/null
fi

say "Python packages"
/usr/bin/python3 -m venv --system-site-packages knotless/.venv
PIP_DISABLE_PIP_VERSION_CHECK=1 knotless/.venv/bin/pip install --quiet --no-index \
    --find-links wheels knotless-ryu-compat knotless \
    -r knotless/requirements.txt -c knotless/constraints.txt </dev/null

say "ready: export PATH=\"$PWD/knotless/.venv/bin:\$PATH\", then read knotless/labs/README.md"
