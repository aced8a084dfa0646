#!/usr/bin/env bash
# Install whatever Knotless needs and is missing: Debian packages, the Python environment in
# .venv, and the Rust programs and libraries in the package.
#
#   tools/setup.sh             what running needs
#   tools/setup.sh --demo      what `make demo` needs, which is less
#   tools/setup.sh --checks    what format, lint and type checks need; builds nothing
#   tools/setup.sh --tests     what running and testing need
#   tools/setup.sh --deep      what `make test-deep` needs: the same and Coq
#   tools/setup.sh --night     what `make test-night` needs: the same and a browser
#   tools/setup.sh --coverage  what `make coverage` needs: the same and LLVM's coverage tools
#   tools/setup.sh --packages  print the Debian packages that running needs; changes nothing
#
# Safe to repeat; with nothing to do it takes a second. Runs as root or as a user who may use
# sudo (which is asked for only if packages are missing). For tests, a user who may not does without
# the packages that only fabrics need.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin

RUST_MINIMUM=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' core/Cargo.toml)

say() { echo "setup: $*"; }
die() { echo "setup: $*" >&2; exit 1; }
# With --packages nothing counts as there, so that all is missing.
works() { [ -z "$listing" ] && "$@" >/dev/null 2>&1; }
have() { works command -v "$1"; }

# Set, or empty: whether to install for the demo alone, for checks and tests, to build, to measure
# coverage, to list.
demo='' checking='' building=1 deep='' night='' coverage='' listing=''
case ${1-} in
    '') ;;
    --demo) demo=1 ;;
    --checks) checking=1 building='' ;;
    --tests) checking=1 ;;
    --deep) checking=1 deep=1 ;;
    --night) checking=1 deep=1 night=1 ;;
    --coverage) checking=1 coverage=1 ;;
    --packages) listing=1 ;;
    *) die "unknown option $1: give --demo, --checks, --tests, --deep, --night, --coverage," \
        "--packages or none" ;;
esac

# --- Debian packages -------------------------------------------------------------------------

# What is missing is found by what it provides, so that programs from elsewhere count too.
missing_packages() {
    local command more=(tcpdump:tcpdump mpirun:openmpi-bin)
    [ -z "$demo" ] || more=()
    for command in ovs-vswitchd:openvswitch-switch iperf3:iperf3 ethtool:ethtool socat:socat \
        iptables:iptables ifconfig:net-tools ip:iproute2 ping:iputils-ping git:git make:make \
        cc:gcc "${more[@]}"; do
        have "${command%%:*}" || echo "${command#*:}"
    done
    works has_jemalloc || echo libjemalloc2
    works /usr/bin/python3 -c 'import mininet' || echo mininet
    [ "$demo" ] || works /usr/bin/python3 -c 'import mpi4py' || echo python3-mpi4py
    works /usr/bin/python3 -c 'import ensurepip' || echo python3-venv
    have rustup || rust_is_new_enough || echo rustc-web cargo-web
    [ -z "$checking" ] || missing_check_packages
}

# Not grep -q: it would end ldconfig's pipe early, which pipefail takes for a failure.
has_jemalloc() { ldconfig -p | grep 'libjemalloc\.so\.2'; }

# A Rust from elsewhere brings its own rustfmt and clippy: see add_rust_components.
missing_check_packages() {
    have rustup || have rustfmt || echo rustfmt-web
    have rustup || have cargo-clippy || echo rust-web-clippy
    [ -z "$building" ] || have rsync || echo rsync
    [ -z "$building" ] || have ocamlopt || echo ocaml-nox
    [ -z "$deep" ] || have coqc || echo coq
    [ -z "$night" ] || have chromium || echo chromium
}

add_rust_components() {
    # rustup has a rustfmt on the PATH even where it has not installed one.
    if have rustup && ! { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1; then
        say "adding rustfmt and clippy to the Rust toolchain"
        rustup --quiet component add rustfmt clippy
    fi
}

is_new_enough() {
    [ -n "$1" ] && [ "$(printf '%s\n' "$RUST_MINIMUM" "$1" | sort -V | head -n 1)" = "$RUST_MINIMUM" ]
}

rust_is_new_enough() {
    local version
    have cargo && version=$(rustc --version 2>/dev/null | awk '{ print $2 }') &&
        is_new_enough "$version"
}

# apt's lists may be older than the Rust that Debian has by now.
lists_are_new_enough() {
    case " $* " in
        *" rustc-web "*)
            is_new_enough "$(apt-cache policy rustc-web | awk '/Candidate:/ { print $2 }')" ;;
    esac
}

# What only running fabrics needs.
FOR_FABRICS=" openvswitch-switch iperf3 ethtool socat iptables net-tools iproute2 iputils-ping
 tcpdump openmpi-bin libjemalloc2 mininet python3-mpi4py "
may_install() {
    have apt-get && { [ "$(id -u)" = 0 ] || works sudo -n true || { [ -t 0 ] && have sudo; }; }
}

# Leave out what only fabrics need, and say so.
without_fabrics() {
    local package left=() needed=()
    for package in "${packages[@]}"; do
        if [[ $FOR_FABRICS =~ [[:space:]]$package[[:space:]] ]]; then
            left+=("$package")
        else
            needed+=("$package")
        fi
    done
    packages=("${needed[@]}")
    [ ${#left[@]} = 0 ] ||
        say "may not install ${left[*]}: tests with fabrics will be skipped"
}

install_packages() {
    local as_root=() packages=("$@")
    have apt-get || die "missing: ${packages[*]} (Debian package names), and there is no apt-get"
    if [ "$(id -u)" != 0 ]; then
        have sudo || die "run as root, or install these yourself: ${packages[*]}"
        as_root=(sudo)
    fi
    say "installing ${packages[*]}"
    apt_get() {
        # --no-remove: a package of the user's that is in the way is the user's to remove.
        # Nor are copies of packages kept, or what apt computes from its lists.
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
            -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
            -o APT::Keep-Downloaded-Packages=false -o Dir::Cache::pkgcache= \
            -o Dir::Cache::srcpkgcache= "$@" </dev/null
    }
    # The lists of packages may be absent or old: fetch them only if they are.
    if ! lists_are_new_enough "${packages[@]}" ||
        ! apt_get install --no-install-recommends --no-remove "${packages[@]}" >/dev/null 2>&1; then
        apt_get update
        apt_get install --no-install-recommends --no-remove "${packages[@]}" >/dev/null ||
            die "apt-get could not install: ${packages[*]} (its reasons are above)"
    fi
}

# --- Python ----------------------------------------------------------------------------------

# The parts of requirements.lock that are to be installed: the demo needs less than all of it.
parts() {
    echo demo
    [ "$demo" ] || echo run
    [ -z "$checking" ] || echo tests
}

python_inputs() {
    # The path counts: the scripts of an environment that was moved do not run.
    # shellcheck disable=SC2046
    { pwd; /usr/bin/python3 --version; tools/locked.sh ryu own $(parts)
      cat tools/setup.sh tools/install-locked.sh tools/compat/*.* knotless/controller/ryu_compat.py; } |
        sha256sum
}

# What was installed: for the demo, for running, for testing.
python_stamp() { echo ".venv/setup-stamp${demo:+-demo}${checking:+-tests}"; }

python_works() {
    [ "$(cat "$(python_stamp)" 2>/dev/null)" = "$(python_inputs)" ] &&
        [ -x .venv/bin/ryu-manager ] && { [ -z "$checking" ] || [ -x .venv/bin/pytest ]; } &&
        { [ "$checking" ] || .venv/bin/python -P -c 'import mininet' 2>/dev/null; } &&
        .venv/bin/python -P -c 'import eventlet.wsgi, ryu.base.app_manager
eventlet.wsgi.ALREADY_HANDLED' 2>/dev/null
}

make_python() {
    say "making the Python environment in .venv"
    .venv/bin/python -c '' 2>/dev/null || rm -rf .venv
    # Debian's own interpreter with its packages: Mininet is one of them.
    /usr/bin/python3 -m venv --system-site-packages .venv
    local wanted
    mapfile -t wanted < <(parts)
    tools/install-locked.sh "${wanted[@]}"
    tools/install-locked.sh --own ./tools/compat
    python_inputs >"$(python_stamp)"
    # Tests need all that running needs, and that needs all that the demo needs.
    [ -z "$checking" ] || (checking='' && python_inputs >"$(python_stamp)")
    [ "$demo" ] || (checking='' demo=1 && python_inputs >"$(python_stamp)")
}

# --- this package ----------------------------------------------------------------------------

package_inputs() {
    { pwd; cat pyproject.toml setup.py bin/knotless core/Cargo.toml; } | sha256sum
}

# Installed from here: its modules are those of the checkout.
install_package() {
    local stamp=.venv/package-stamp
    [ "$(cat $stamp 2>/dev/null)" = "$(package_inputs)" ] && [ -x .venv/bin/knotless ] && return
    say "installing Knotless from here"
    tools/install-locked.sh --own -e .
    package_inputs >$stamp
}

# --- what coverage of the Rust code is read with -----------------------------------------------

# The profiles of rustc's LLVM are read by LLVM's tools of the same major version.
add_llvm_tools() {
    local version
    tools/coverage.sh --llvm-tools >/dev/null 2>&1 && return
    version=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    if apt-cache show "llvm-$version" >/dev/null 2>&1; then
        install_packages "llvm-$version"
    elif have rustup; then
        rustup --quiet component add llvm-tools
    fi
    tools/coverage.sh --llvm-tools >/dev/null
}

# --- all of it -------------------------------------------------------------------------------

mapfile -t packages < <(missing_packages | tr ' ' '\n')
[ -z "$listing" ] || { printf '%s\n' "${packages[@]}"; exit 0; }
[ -z "$checking" ] || may_install || without_fabrics
[ ${#packages[@]} = 0 ] || install_packages "${packages[@]}"
# The kernel of tests/kernel: without it they are skipped. Not every distribution has it.
if [ "$checking" ] && [ "$building" ] && ! have linux.uml; then
    if may_install && apt-cache show user-mode-linux >/dev/null 2>&1; then
        install_packages user-mode-linux
    else
        say "user-mode-linux cannot be installed here: tests/kernel will be skipped"
    fi
fi
rust_is_new_enough ||
    die "rustc and cargo $RUST_MINIMUM or newer are needed, not: $(rustc --version 2>&1 || true)" \
        "(rustup update stable)"
[ -z "$checking" ] || add_rust_components
[ -z "$coverage" ] || add_llvm_tools

# Compiling takes longest, and pip mostly waits.
if [ "$building" ]; then
    [ -d core/target ] || fresh_target=1
    tools/native.sh --setup &
    native=$!
    trap 'kill "$native" 2>/dev/null' EXIT
fi
if ! python_works; then
    make_python
    python_works || die "the Python environment does not work: remove .venv and run this again"
fi
[ "$building" ] || exit 0
# For processes of root, which write no byte code: their user could not remove it.
.venv/bin/python -m compileall -q knotless tests bench docs/generator

trap - EXIT
wait "$native" || die "the Rust programs were not built (see above)"
install_package
# The demo is for a look: it leaves none of what only the next build would use.
[ -z "$demo" ] || [ -z "${fresh_target-}" ] || rm -rf core/target
.venv/bin/python -P -c 'import knotless._core' ||
    die "the Rust core does not load in Python: remove core/target and run this again"
say "ready"
