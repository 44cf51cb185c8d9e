#!/usr/bin/env bash
# Make a virtual environment, or say plainly what is missing.
#   scripts/make_venv.sh DIRECTORY        (PYTHON=… chooses the interpreter)
set -euo pipefail

directory=${1:?"usage: $0 DIRECTORY"}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    {
        echo "make: no Python 3.11 or newer was found${PYTHON:+ (PYTHON=$PYTHON)}."
        echo "  Found: $(python3 --version 2>/dev/null || echo 'no python3 at all')."
        echo "  Debian, Ubuntu:  apt-get install python3 python3-venv"
        echo "  Another one:     make PYTHON=/path/to/python3.12 …"
    } >&2
    return 1
}

python=$(find_python)

# Debian ships Python without the part of venv that installs pip.
if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "Installing python3-venv, which $python lacks"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
    fi
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        echo "make: $python cannot make virtual environments." >&2
        echo "  Debian, Ubuntu:  sudo apt-get install python3-venv" >&2
        exit 1
    fi
fi

echo "Making $directory with $("$python" --version)"
"$python" -m venv --clear "$directory"
