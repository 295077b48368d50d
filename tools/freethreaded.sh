#!/usr/bin/env bash
# Builds a free-threaded CPython, which nobody packages, in the folder named: Debian's source package,
# fetched through this machine's own apt (which checks its signature), configured with --disable-gil
# and run from where it was built; nothing is installed. It is for tests and for a client of the lab, and
# optimised as CPython is where nobody asks for more.
#
#   tools/freethreaded.sh FOLDER
#
# Leaves FOLDER/venv, or where there is none to be had, the reason in FOLDER/missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/missing.sh
. "$here/missing.sh"
private=$folder/apt
# Sources are fetched, nothing is resolved: what is installed doesn't matter.
status=/dev/null
release=trixie
package=python3.13
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# shellcheck source=tools/private_apt.sh
. "$here/private_apt.sh"

command -v apt-get >/dev/null || missing "no apt to fetch the source of $package with"
command -v cc >/dev/null || missing "no C compiler"
[ -e "$keyring" ] || missing "the Debian archive's keys are not here"
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# The archive that this machine's own release comes from offers the newer one's sources too.
# shellcheck disable=SC2016 # apt fills these in
archive=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
    awk -v release="$codename" '$2 == release { print $1; exit }')
[ -n "$archive" ] || missing "apt knows no archive of this machine's release"

cd "$folder"
echo "deb-src [signed-by=$keyring] $archive $release main" >sources.list
only=(-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=-)
{
    private_apt_get "${only[@]}" --error-on=any update
    private_apt_get "${only[@]}" source --download-only "$package"
} >log 2>&1 || missing "apt does not give out the source of $package: see $folder/log"

mkdir source
tar --extract --strip-components=1 --directory source --file "$package"_*.orig.tar.xz
rm -rf apt "$package"_*
cd source
./configure --quiet --disable-gil --disable-test-modules --with-ensurepip=no OPT='-O3 -DNDEBUG' >>../log 2>&1
# This script may run below a make whose flags are not for this one.
env -u MAKEFLAGS make --silent -j2 >>../log 2>&1
find . -name '*.o' -delete
# As an installation does it: no process compiles anew what it imports.
./python -m compileall -q -x /test/ Lib >>../log
# By its full path, from which it finds the rest of itself.
"$folder/source/python" -m venv --without-pip "$folder/venv"
"$folder/venv/bin/python" -c 'import sys; assert not sys._is_gil_enabled(); print("built", sys.version)'
