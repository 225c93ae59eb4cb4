#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds Debian's packages from build/weft-VERSION.tar.gz into build/deb
# The version and the date of the changelog are those of the archive.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^VERSION = //p' config.mk)
archive=$PWD/build/weft-$version.tar.gz
tree=build/deb/weft-$version

rm -rf build/deb
mkdir -p build/deb
cp "$archive" "build/deb/weft_$version.orig.tar.gz"
tar -xzf "$archive" -C build/deb
cp -R packaging/debian "$tree/debian"
sed -e "s/@VERSION@/$version/" -e "s/@DATE@/$(date -u -R -r "$tree/configure")/" "$tree/debian/changelog.in" \
	>"$tree/debian/changelog"
rm "$tree/debian/changelog.in"

log=build/deb/log
(cd "$tree" && env -u MAKEFLAGS -u MAKELEVEL -u BUILD -u CC dpkg-buildpackage -us -uc) >"$log" 2>&1 || {
	tail -n 30 "$log" >&2
	exit 1
}
ls build/deb/*.deb
