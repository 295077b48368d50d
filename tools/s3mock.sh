#!/usr/bin/env bash
# Puts Adobe's S3Mock, a server in Java that the conformance suite runs against, in the folder named.
#
#   tools/s3mock.sh FOLDER
#
# Leaves FOLDER/s3mock.jar; or where it can't be had, the reason in FOLDER/missing. A jar that is not the
# one in tools/s3mock/sha256 is an error.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/missing.sh
. "$here/missing.sh"

command -v java >/dev/null || missing "no Java (Debian: apt-get install default-jre-headless)"
command -v mvn >/dev/null || missing "no Maven (Debian: apt-get install maven)"
mvn --quiet --batch-mode --file "$here/s3mock/pom.xml" -Doutput="$folder" package >"$folder/log" 2>&1 ||
    missing "Maven does not fetch S3Mock: see $folder/log"
(cd "$folder" && sha256sum --check --quiet "$here/s3mock/sha256")
