#!/usr/bin/env bash
# Makes .venv with everything that constraints.txt pins, builds the protos and installs the packages of this repository
# editable. Does nothing when constraints.txt, the pyproject files and the protos are as they were; safe to run twice at
# once. PYTHON= picks the interpreter (3.11 or newer).
set -euo pipefail
cd "$(dirname "$0")/.."

PACKAGES=(protos protos/rpc kernels services/engine services/gateway services/grammar tools deploy/demo)
STAMP=.venv/installed
LOG=.venv/setup.log

say() { printf '[setup] %s\n' "$*"; }
fail() { printf '[setup] error: %s\n' "$*" >&2; exit 1; }

# What the environment must match; a clone that was moved needs new editable installs.
state() {
    { pwd; cat constraints.txt pyproject.toml; for package in "${PACKAGES[@]}"; do cat "$package/pyproject.toml"; done; } | sha256sum
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or newer found${PYTHON:+ at $PYTHON}; install one, or name it with PYTHON="
}

# Debian ships Python without ensurepip, in a package of its own.
need_venv() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null && return
    local package
    package="$("$1" -c 'import sys; print(f"python{sys.version_info[0]}.{sys.version_info[1]}-venv")')"
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "$1 has no venv module; install it (Debian: apt-get install $package)"
    say "installing the system package $package"
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "$package"; } >/dev/null ||
        fail "apt-get could not install $package"
}

# A shell loop: Debian's awk would hold lines back until the pipe is full.
show_progress() {
    local line num_found=0 words
    while IFS= read -r line; do
        read -ra words <<<"$line"
        case "$line" in
        Collecting*) if ((++num_found % 10 == 0)); then say "  $num_found packages found"; fi ;;
        *Downloading*[0-9]\ [MG]B\)*) say "  downloading ${words[*]:1:3}" ;;
        Installing\ collected\ packages*) say "  installing $((${#words[@]} - 3)) packages" ;;
        esac
    done
}

# Runs pip and shows one line for each download and each tenth package; the whole output is in the log.
pip_install() {
    if ! .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off -c constraints.txt "$@" 2>&1 |
        tee -a "$LOG" | show_progress; then
        tail -n 25 "$LOG" >&2
        fail "pip failed; the whole output is in $LOG"
    fi
}

install_all() {
    local python
    if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
        python="$(find_python)"
        need_venv "$python"
        say "creating .venv with $("$python" --version)"
        rm -rf .venv
        "$python" -m venv .venv
    fi
    rm -f "$STAMP"
    : >"$LOG"
    say "1/3 installing pip and the tools that build, check and test"
    pip_install "$(grep '^pip==' constraints.txt)"
    pip_install --group dev
    say "2/3 building the protos"
    scripts/protos.sh
    say "3/3 installing the packages and what they need (torch is the large one; the first time takes minutes)"
    local editable=() package
    for package in "${PACKAGES[@]}"; do editable+=(-e "./$package"); done
    pip_install --no-build-isolation "${editable[@]}"
    state >"$STAMP"
    say "done"
}

if command -v flock >/dev/null; then
    exec 9>.setup.lock
    flock -n 9 || { say "waiting for another set-up of this clone"; flock 9; }
fi
if [ "$(state)" = "$(cat "$STAMP" 2>/dev/null)" ] && [ -x .venv/bin/python ]; then
    scripts/protos.sh
else
    install_all
fi
