#!/usr/bin/env bash
# Puts Debian's torch, and all that it needs and this machine lacks, in the folder named, with an
# environment of the system's interpreter that sees it. PyPI's build brings CUDA along, gigabytes of
# it; Debian's is for the CPU and takes a minute. Nothing is installed: apt resolves and fetches, the
# packages are unpacked side by side.
#
#   tools/debian_torch.sh FOLDER
#
# Leaves FOLDER/python, which runs the interpreter, and FOLDER/venv; or where there is none to be had,
# the reason in FOLDER/missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/missing.sh
. "$here/missing.sh"
private=$folder/apt
# shellcheck source=tools/private_apt.sh
. "$here/private_apt.sh"

command -v apt-get >/dev/null || missing "no apt to fetch torch with"
[ -x /usr/bin/python3 ] || missing "the system has no Python of its own"
{
    private_apt_get --error-on=any update
    private_apt_get install --yes --download-only --no-install-recommends python3-torch python3-numpy
} >"$folder/log" 2>&1 || missing "apt does not give out python3-torch: see $folder/log"
for package in "$private"/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$folder/root"
done
rm -rf "$private"

# Where the packages put libraries; of what is an alternative (BLAS), installing would have chosen one.
machine=$(/usr/bin/python3 -c 'import sys; print(sys.implementation._multiarch)')
libraries=
for part in "usr/lib/$machine" "usr/lib/$machine/blas" "usr/lib/$machine/lapack" "lib/$machine" usr/lib lib; do
    libraries=$libraries${libraries:+:}$folder/root/$part
done
/usr/bin/python3 -m venv --without-pip "$folder/venv"
# Behind the environment's own packages, which are newer than some of Debian's.
site=$(echo "$folder"/venv/lib/python3*/site-packages)
printf '%s\n' "$folder/root/usr/lib/python3/dist-packages" /usr/lib/python3/dist-packages >"$site/debian.pth"
cat >"$folder/python" <<RUN
#!/bin/sh
export LD_LIBRARY_PATH="$libraries"
exec "$folder/venv/bin/python" "\$@"
RUN
chmod +x "$folder/python"
"$folder/python" -c 'import torch; print("unpacked torch", torch.__version__)' >>"$folder/log" 2>&1 ||
    missing "Debian's torch does not load here: see $folder/log"
