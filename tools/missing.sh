# shellcheck shell=bash
# Sourced by what makes an environment in the folder that $1 names, afresh: $folder is its absolute path.

rm -rf "$1"
folder=$(mkdir -p "$1" && cd "$1" && pwd)

missing() { # missing REASON...: what needs this environment is skipped with the reason; it is no failure
    echo "$*" >"$folder/missing"
    echo "NOT made: $1: $*"
    exit 0
}
