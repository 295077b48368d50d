#!/usr/bin/env bash
# Makes an environment of a newer Python than the oldest that the package runs on, in the folder named,
# where one is found: on the PATH or among pyenv's.
#
#   tools/newer_python.sh FOLDER
#
# Leaves FOLDER/venv, or the reason in FOLDER/missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/missing.sh
. "$here/missing.sh"

for version in 3.13 3.12 3.14; do
    for python in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
        # A shim of pyenv's answers to the name of a version that is not there.
        if "$python" -c 'import venv' 2>/dev/null; then
            "$python" -m venv --without-pip "$folder/venv"
            exit 0
        fi
    done
done
missing "there is no Python 3.12 or newer on the PATH or among pyenv's"
