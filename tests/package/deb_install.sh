#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Debian's packages take the place of its libfabric in a Debian made for the test, which has nothing else of the
# machine: apt keeps Open MPI, whose programs and fi_pingpong run over the library with nothing set; libfabric1 comes
# back when it is asked for. Builds the packages if there are none.
# TIMEOUT=600
set -eu
cd "$(dirname "$0")/../.."
skip() {
	echo "$1"
	exit 77
}
for command in mmdebstrap mpicc; do
	command -v $command >/dev/null || skip "$command is not installed"
done
# shellcheck source=/dev/null
. /etc/os-release
[ "$ID" = debian ] || skip "$ID is not Debian"
version=$(sed -n 's/^VERSION = //p' config.mk)
[ -e "build/deb/libweft1_$version-1_amd64.deb" ] || bash tests/package/deb.sh

files=build/deb/files
rm -rf $files
mkdir -p $files
cp tests/package/chroot/check.sh build/deb/{libweft1,libweft-dev,weft-bin,weft-doc}_"$version"-1_*.deb $files
mpicc -O2 -o $files/mpi_check tests/client/mpi_check.c
chmod -R a+rX $files

# shellcheck disable=SC2016 # mmdebstrap sets $1 to the folder of the Debian
# The Debian is a temporary folder of mmdebstrap, which needs no root where user namespaces are allowed.
mmdebstrap --quiet --format=null --variant=apt --include=openmpi-bin,libfabric-bin \
	--aptopt='APT::Install-Recommends "false"' --skip=cleanup/apt \
	--customize-hook="copy-in $files /" --customize-hook='echo made; chroot "$1" timeout 200 sh /files/check.sh' \
	"$VERSION_CODENAME" >build/deb/chroot.log 2>&1 || {
	grep -q '^made$' build/deb/chroot.log || skip "no Debian can be made here: $(tail -n 1 build/deb/chroot.log)"
	tail -n 30 build/deb/chroot.log
	exit 1
}
tail -n 1 build/deb/chroot.log
