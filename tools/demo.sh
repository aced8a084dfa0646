#!/usr/bin/env bash
# The main job, wherever anything of Knotless can run: a fabric that deadlocks under PAUSE, and one
# that cannot.
#
# With real frames where fabrics can run; else the same experiment on the simulator, with the first
# of these that works: .venv, the core that is built here, a wheel in dist/, cargo.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin

say() { echo "demo: $*"; }

own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT

# prove KNOTLESS...: what another program, proven in Coq, says of the fabric that cannot deadlock.
prove() {
    local rules=$own/rules proof=$own/proof fabric="ring,4 with the routes that cannot deadlock"
    if ! "$@" flows ring,4 --engine prefix --select spread --out "$rules" >"$own/said" 2>&1 ||
        ! "$@" check "$rules" --proof "$proof" >"$own/said" 2>&1; then
        say "there is no proof of $fabric: $(tail -n 1 "$own/said")"
        return 1
    fi
    if "$@" verify "$rules" "$proof" >"$own/said" 2>&1; then
        say "a checker that is proven in Coq has accepted the rules of $fabric"
    elif grep -q "is not built" "$own/said"; then
        say "with apt-get install ocaml-nox, tools/setup.sh builds a checker that is proven in Coq"
    else
        say "$fabric: $(head -n 1 "$own/said")"
        return 1
    fi
}

# --- with real frames ------------------------------------------------------------------------

as_root=(env PYTHONDONTWRITEBYTECODE=1) # the user of the checkout could not remove root's byte code

# As root, or as a user who may use sudo, with the rights to make network namespaces.
may_run_fabrics() {
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || return 1
        sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; } || return 1
        as_root=(sudo "${as_root[@]}")
    fi
    "${as_root[@]}" unshare --net --mount true 2>/dev/null
}

if may_run_fabrics && tools/setup.sh --demo &&
    "${as_root[@]}" .venv/bin/python -P -m knotless.emulation.requirements 2>/dev/null; then
    "${as_root[@]}" .venv/bin/knotless run deadlock
    prove .venv/bin/knotless
    exit
fi
missing="needs what tools/setup.sh installs"

# --- simulated -------------------------------------------------------------------------------

[ -w "$HOME" ] || export MPLCONFIGDIR=$own
modules='import knotless._core, knotless_experiments.commands.run, jinja2, matplotlib, pyarrow'

# simulate PYTHON [PATH]: run the experiment if all that it imports is there.
simulate() {
    local python=$1 out=results
    [ -z "${2-}" ] || export PYTHONPATH=$2
    "$python" -P -c "$modules" 2>/dev/null || { unset PYTHONPATH; return 1; }
    [ -w . ] || out=$(mktemp -d)
    "$python" -P -m knotless run deadlock --quick --on simulation --out "$out"
    reason=$("$python" -P -m knotless.emulation.requirements 2>&1) || missing=$reason
    local status=0
    prove "$python" -P -m knotless || status=1
    say "simulated, with the same model of switches; with real frames on Open vSwitch it $missing"
    exit "$status"
}

# install WHAT: into an environment of this demo alone.
install() {
    say "installing $1 into a temporary environment"
    python3 -m venv --clear "$own/env" >/dev/null 2>&1 &&
        PIP_DISABLE_PIP_VERSION_CHECK=1 "$own/env/bin/pip" install --quiet --use-pep517 \
            -c constraints.txt "${@:2}" "$1[results]" </dev/null
}

simulate .venv/bin/python || simulate python3 "$PWD:$PWD/experiments" || true
for wheel in dist/knotless-*.whl; do
    [ -f "$wheel" ] || continue
    python3 -m zipfile -e "$wheel" "$own/wheel" 2>/dev/null || continue
    simulate python3 "$own/wheel" || true
    ! install "$wheel" || simulate "$own/env/bin/python" || true
done
if command -v cargo >/dev/null; then
    say "building with cargo, which takes some minutes"
    ! install . -e || simulate "$own/env/bin/python" || true
fi
echo "demo: nothing of Knotless can run here: run it as root, put a wheel into dist/, or install" \
    "Rust (cargo)" >&2
exit 2
