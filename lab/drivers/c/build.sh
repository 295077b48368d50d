#!/bin/sh
# Builds crt-c, the driver over aws-c-s3, into a folder (.tools/lab/c of the checkout without an argument).
# The library's source is what awscrt's source distribution carries, got by pip; it is built once for each version.
# Needs: pip, cmake, a C and a C++ compiler. About two minutes of one core.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
awscrt=0.38.0
output=${1:-$here/../../../.tools/lab/c}
mkdir -p "$output"
output=$(cd "$output" && pwd)
source=$output/awscrt-$awscrt
prefix=$output/crt-$awscrt
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-2}"

if ! [ -e "$prefix/.built" ]; then
    if ! [ -d "$source/crt" ]; then
        rm -rf "$output/download"
        python3 -m pip download --quiet --no-deps --no-binary awscrt --dest "$output/download" "awscrt==$awscrt"
        tar -xzf "$output/download/awscrt-$awscrt.tar.gz" -C "$output"
        rm -rf "$output/download"
    fi
    cmake -S "$source/crt" -B "$output/build-crt" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib >"$output/cmake.log"
    cmake --build "$output/build-crt" --target install >>"$output/cmake.log"
    rm -rf "$output/build-crt" "$source"
    touch "$prefix/.built"
fi
cmake -S "$here" -B "$output/build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_PREFIX_PATH="$prefix" \
    -DAWSCRT_VERSION="$awscrt" >"$output/cmake-driver.log"
cmake --build "$output/build" >>"$output/cmake-driver.log"
cp "$output/build/crt-c" "$output/crt-c"
