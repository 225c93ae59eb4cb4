#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Debian's packages build; lintian has no word against them; each file `make install` knows is in one of them; their
# names, versions and what they provide satisfy what needs libfabric.
# TIMEOUT=600
set -eu
cd "$(dirname "$0")/../.."
for command in dpkg-buildpackage dh lintian git; do
	command -v $command >/dev/null || { echo "$command is not installed" && exit 77; }
done
[ -e .git ] || { echo "this tree is no clone: it has no list of the files to pack" && exit 77; }
version=$(sed -n 's/^VERSION = //p' config.mk)
deb=build/deb
fail() {
	echo "deb: $1"
	exit 1
}

env -u BUILD make -s dist
packaging/deb.sh >/dev/null

# Not uploaded to Debian: the address of the maintainer is not one of the internet, and no bug asks for the package.
lintian --allow-root --fail-on error,warning \
	--suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs $deb/*.changes ||
	fail "lintian is not content"

# field PACKAGE FIELD
field() {
	dpkg-deb -f $deb/"$1"_"$version"-1_*.deb "$2"
}
for pair in libweft1:libfabric1 libweft-dev:libfabric-dev weft-bin:libfabric-bin; do
	ours=${pair%:*} theirs=${pair#*:}
	[ "$(field "$ours" Provides)" = "$theirs (= $version-1)" ] || fail "$ours provides $(field "$ours" Provides)"
	[ "$(field "$ours" Conflicts) $(field "$ours" Replaces)" = "$theirs $theirs" ] ||
		fail "$ours does not take the place of $theirs"
done

# A symbol of the library is a line in the list that packages built with it find.
dpkg-deb -I $deb/libweft1_*.deb symbols >"$deb/symbols"
for symbol in 'fi_getinfo@FABRIC_1.10 2.6.0' 'fi_getinfo@FABRIC_1.9 2.6.0' 'fi_getinfo@FABRIC_1.0 2.6.0' 'fi_send@WEFT_1.0 2.6.0'; do
	grep -qxF " $symbol" "$deb/symbols" || fail "no symbol $symbol"
done
! grep -v '^ [A-Za-z_0-9.]*@\(FABRIC\|WEFT\)_1\.[0-9]* [0-9.]*$\|^libfabric.so.1 \|^\*' "$deb/symbols" ||
	fail "symbols of other versions"

# All files of `make install`, where Debian has them, each in one package.
root=$(realpath $deb)/root
rm -rf "$root"
make -s RUNPATH= prefix=/usr libdir=/usr/lib/x86_64-linux-gnu mandir=/usr/share/man DESTDIR="$root" install
(cd "$root" && find usr ! -type d -printf '%p\n') | sed '/\/share\/man\//s/$/.gz/' | sort >"$deb/wanted"
for package in "$deb"/*_amd64.deb "$deb"/*_all.deb; do
	case $package in *-dbgsym_*) ;; *) dpkg-deb --fsys-tarfile "$package" | tar -t ;; esac
done | sed 's|^\./||' | grep -v '/$\|^$\|^usr/share/\(doc\|lintian\)/' | sort >"$deb/packed"
diff "$deb/wanted" "$deb/packed" || fail "the packages have other files than make install"
echo "$(wc -l <"$deb/packed") files of $version"
