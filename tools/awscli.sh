#!/usr/bin/env bash
# Puts AWS CLI 2 in the folder named. It is on no registry but Debian's, and there only in unstable as
# new as the CRT transfer client needs; the package is plain Python, which is unpacked and run by an
# environment with its dependencies from PyPI. Nothing is installed.
#
#   tools/awscli.sh FOLDER
#
# Leaves FOLDER/aws, which runs it; or where it can't be had, the reason in FOLDER/missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/missing.sh
. "$here/missing.sh"
private=$folder/apt
# shellcheck source=tools/private_apt.sh
. "$here/private_apt.sh"

command -v apt-get >/dev/null || missing "no apt to fetch awscli with"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || missing "no keyring of Debian's archive"
# The dollar is apt's own.
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 '/debian/\?$') ||
    missing "apt knows no mirror of Debian"
mkdir -p "$private"
echo "deb [signed-by=$keyring] $mirror sid main" >"$private/sources.list"
sid=(-o "Dir::Etc::SourceList=$private/sources.list" -o Dir::Etc::SourceParts=/dev/null)
{
    private_apt_get "${sid[@]}" --error-on=any update
    (cd "$private" && private_apt_get "${sid[@]}" download awscli)
} >"$folder/log" 2>&1 || missing "apt does not give out awscli: see $folder/log"
dpkg-deb --extract "$private"/awscli_*.deb "$folder/root"
rm -rf "$private"

python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip --disable-pip-version-check install --quiet --no-deps \
    -r "$here/awscli-requirements.txt" >>"$folder/log" 2>&1 ||
    missing "its dependencies can't be installed: see $folder/log"
site=$(echo "$folder"/venv/lib/python3*/site-packages)
echo "$folder/root/usr/lib/python3/dist-packages" >"$site/debian.pth"
cat >"$folder/aws" <<RUN
#!/bin/sh
exec "$folder/venv/bin/python" "$folder/root/usr/bin/aws" "\$@"
RUN
chmod +x "$folder/aws"
"$folder/aws" --version >>"$folder/log" 2>&1 || missing "it does not run here: see $folder/log"
