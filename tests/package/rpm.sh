#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# packaging/rpm/weft.spec builds packages, which hold each file of `make install` and provide the library under the
# names programs ask rpm for.
# TIMEOUT=600
set -eu
cd "$(dirname "$0")/../.."
for command in rpmbuild rpm git; do
	command -v $command >/dev/null || { echo "$command is not installed" && exit 77; }
done
[ -e .git ] || { echo "this tree is no clone: it has no list of the files to pack" && exit 77; }
version=$(sed -n 's/^VERSION = //p' config.mk)
work=build/rpm
fail() {
	echo "rpm: $1"
	exit 1
}

rm -rf $work
mkdir -p $work
env -u BUILD make -s rpm RPMBUILD=--nodeps >$work/log 2>&1 || fail "$(tail -n 20 $work/log)"
mapfile -t packages < <(find $work/RPMS -name 'weft-[0-9d]*.rpm' ! -name '*debug*')
[ ${#packages[@]} -eq 2 ] || fail "built: ${packages[*]}"

rpm -qp --nosignature --provides "${packages[@]}" >$work/provides
for name in "libfabric = $version" "libfabric-devel = $version" 'libfabric.so.1()(64bit)' \
	'libfabric.so.1(FABRIC_1.0)(64bit)' 'libfabric.so.1(FABRIC_1.9)(64bit)' 'libfabric.so.1(FABRIC_1.10)(64bit)'; do
	grep -qxF "$name" $work/provides || fail "nothing provides $name"
done

make -s RUNPATH= prefix=/usr libdir=/usr/lib64 mandir=/usr/share/man DESTDIR="$PWD/$work/root" install
(cd $work/root && find usr ! -type d -printf '/%p\n') | sort >$work/wanted
rpm -qp --nosignature --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "${packages[@]}" | sed -n 's/\.gz$//; s/^[^d][^ ]* //p' |
	grep -v '^/usr/share/\(doc\|licenses\)/\|^/usr/lib/\.build-id' | sort >$work/packed
diff $work/wanted $work/packed || fail "the packages have other files than make install"
echo "$(wc -l <$work/packed) files of $version"
