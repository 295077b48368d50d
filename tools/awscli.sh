#!/usr/bin/env bash
# Puts AWS CLI 2 in the folder named. It is on no registry but Debian's, and there only in unstable as
# new as the CRT transfer client needs; the package is plain Python, which is unpacked and run by an
# environment with its dependencies from PyPI. Nothing is installed.
#
#   tools/awscli.sh FOLDER INSTALLER [RELEASE REQUIREMENTS INTERPRETER]
#
# INSTALLER is a Python whose pip installs: an old one takes wheels for free-threaded interpreters that
# crash there. RELEASE is Debian's (sid), REQUIREMENTS a file beside this one. INTERPRETER is a folder
# that tools/freethreaded.sh left: what is in it runs the CLI then, and must do so without a GIL.
# Leaves FOLDER/aws, which runs it; or where it can't be had, the reason in FOLDER/missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
installer=$2
release=${3:-sid}
requirements=$here/${4:-awscli-requirements.txt}
interpreter=${5:+$(cd "$5" && pwd)}
# shellcheck source=tools/missing.sh
. "$here/missing.sh"
private=$folder/apt
# shellcheck source=tools/private_apt.sh
. "$here/private_apt.sh"

python=python3
if [ -n "$interpreter" ]; then
    [ ! -e "$interpreter/missing" ] || missing "no free-threaded CPython: $(cat "$interpreter/missing")"
    python=$interpreter/source/python
fi
command -v apt-get >/dev/null || missing "no apt to fetch awscli with"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || missing "no keyring of Debian's archive"
# The dollar is apt's own.
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 '/debian/\?$') ||
    missing "apt knows no mirror of Debian"
mkdir -p "$private"
echo "deb [signed-by=$keyring] $mirror $release main" >"$private/sources.list"
only=(-o "Dir::Etc::SourceList=$private/sources.list" -o Dir::Etc::SourceParts=/dev/null)
{
    private_apt_get "${only[@]}" --error-on=any update
    (cd "$private" && private_apt_get "${only[@]}" download awscli)
} >"$folder/log" 2>&1 || missing "apt does not give out awscli: see $folder/log"
dpkg-deb --extract "$private"/awscli_*.deb "$folder/root"
rm -rf "$private"

"$python" -m venv --without-pip "$folder/venv"
"$installer" -m pip --disable-pip-version-check --python "$folder/venv/bin/python" \
    install --quiet --no-deps --only-binary :all: -r "$requirements" >>"$folder/log" 2>&1 ||
    missing "its dependencies can't be installed: $(grep -m 1 ERROR "$folder/log" || echo "see $folder/log")"
site=$(echo "$folder"/venv/lib/python3*/site-packages)
echo "$folder/root/usr/lib/python3/dist-packages" >"$site/debian.pth"
# As a package's own installation does it: no command compiles anew what it imports.
"$folder/venv/bin/python" -m compileall -q "$folder/root/usr/lib/python3/dist-packages" >>"$folder/log" 2>&1 || true
cat >"$folder/aws" <<RUN
#!/bin/sh
exec "$folder/venv/bin/python" "$folder/root/usr/bin/aws" "\$@"
RUN
chmod +x "$folder/aws"
# What `aws s3` imports, which is more than the version needs.
"$folder/venv/bin/python" -c 'import awscli.customizations.s3.subcommands' >>"$folder/log" 2>&1 ||
    missing "it does not run here: $(tail -n 1 "$folder/log")"
[ -z "$interpreter" ] || "$folder/venv/bin/python" -c 'import awscli.customizations.s3.subcommands, sys
assert not sys._is_gil_enabled()' 2>>"$folder/log" || missing "what it imports brings the GIL back"
"$folder/aws" --version >>"$folder/log" 2>&1 || missing "it does not run here: see $folder/log"
