#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A project that asks CMake for libfabric by find_package builds on what `make install` installed, even after it was
# moved, and runs; versions newer than the library are refused. Scripts that know no package of ours read the version
# out of the header, and expect one blank before the number.
set -eu
cd "$(dirname "$0")/../.."
command -v cmake >/dev/null || { echo "cmake is not installed" && exit 77; }
build=$(realpath "${BUILD:-build}")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
version=$(sed -n 's/^VERSION = //p' config.mk)

cat >"$root/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(program C)
find_package(libfabric ${WANTED} REQUIRED)
file(READ ${CMAKE_PREFIX_PATH}/include/weft/rdma/fabric.h header)
foreach(part MAJOR MINOR REVISION)
  if(NOT header MATCHES "\n#define FI_${part}_VERSION ([0-9]+)\n")
    message(FATAL_ERROR "no FI_${part}_VERSION with one blank before its number")
  endif()
  list(APPEND parts ${CMAKE_MATCH_1})
endforeach()
list(JOIN parts . read)
add_executable(program program.c)
target_link_libraries(program libfabric::libfabric)
message(STATUS "found ${libfabric_VERSION}, read ${read}")
CMAKE
cat >"$root/program.c" <<'C'
#include <rdma/fabric.h>
#include <stdio.h>

int main(void)
{
	printf("%u.%u\n", FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
	return 0;
}
C

# configured VERSION: configures the project, which asks for this version.
configured() {
	rm -rf "$root/out"
	cmake -S "$root" -B "$root/out" -DCMAKE_PREFIX_PATH="$root/moved" -DWANTED="$1" >"$root/log" 2>&1
}

make -s BUILD="$build" prefix=/opt/weft libdir=/opt/weft/lib includedir=/opt/weft/include/weft DESTDIR="$root" install
mv "$root/opt/weft" "$root/moved"

for wanted in "" 1.17 2 "$version" "$version;EXACT"; do
	configured "$wanted" || { echo "version '$wanted' is refused:" && cat "$root/log" && exit 1; }
	grep -q "found $version, read $version\$" "$root/log"
done
cmake --build "$root/out" >"$root/log" 2>&1 || { cat "$root/log" && exit 1; }
[ "$("$root/out/program")" = "${version%.*}" ]
[ "$(ldd "$root/out/program" | awk '$1 == "libfabric.so.1" { print $3 }' | xargs realpath)" = \
	"$(realpath "$root/moved/lib/libfabric.so.1")" ]
for wanted in 99 "${version%.*}.99" "1.17;EXACT"; do
	if configured "$wanted"; then echo "version '$wanted' is found" && exit 1; fi
done
echo "$version"
