# shellcheck shell=bash
# Sourced: apt with a state of its own below the folder that $private names, so that nothing needs to
# be root, nothing is installed, and the machine's own apt never hears of it.

private_apt_get() { # private_apt_get ARGUMENT...: apt-get with its state and downloads below $private
    mkdir -p "${private:?}/state/lists/partial" "$private/cache/archives/partial"
    apt-get -o "Dir::State=$private/state" -o "Dir::State::status=${status:-/var/lib/dpkg/status}" \
        -o "Dir::Cache=$private/cache" -o Debug::NoLocking=1 -o "APT::Sandbox::User=$(id -un)" "$@"
}
