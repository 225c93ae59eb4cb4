#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What tests/package/deb_install.sh runs inside a Debian that has Open MPI and libfabric1.
set -eu
cd "$(dirname "$0")"
export DEBIAN_FRONTEND=noninteractive OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
library=/usr/lib/x86_64-linux-gnu/libfabric.so.1
apt='apt-get -q -y --no-install-recommends'

fail() {
	echo "failed: $1"
	exit 1
}

# installed PACKAGE
installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# owner PACKAGE: the library is this package's, apt finds nothing broken, and Open MPI is still there.
owner() {
	dpkg -S "$(readlink -f $library)" | grep -q "^$1:" || fail "the library is not that of $1"
	$apt check || fail "apt finds broken packages"
	[ -z "$(dpkg --audit)" ] || fail "$(dpkg --audit)"
	installed libopenmpi3 || fail "Open MPI is gone"
}

# pingpong: fi_pingpong of the system between two processes.
pingpong() {
	timeout 60 fi_pingpong -e rdm >server 2>&1 &
	server=$!
	for try in 1 2 3 4 5; do
		sleep 1
		if timeout 20 fi_pingpong -e rdm 127.0.0.1 >client 2>&1; then break; fi
		[ "$try" -lt 5 ] || fail "fi_pingpong: $(cat client server)"
	done
	wait $server || fail "fi_pingpong: $(cat server)"
}

# openmpi: a program built with Debian's Open MPI.
openmpi() {
	timeout 100 mpirun --oversubscribe -n 2 --mca pml cm --mca mtl ofi ./mpi_check >ranks 2>&1 ||
		fail "Open MPI: $(cat ranks)"
	[ "$(grep -c " passed with $(readlink -f $library)\$" ranks)" = 2 ] || fail "not over the library: $(cat ranks)"
}

owner libfabric1

$apt install ./libweft1_*.deb ./weft-bin_*.deb ./weft-doc_*.deb
owner libweft1
for package in libfabric1 libfabric-bin; do
	! installed $package || fail "$package is still there"
done
fi_info | grep -q '^provider: weft' || fail "fi_info: $(fi_info)"
pingpong
openmpi

$apt install ./libweft-dev_*.deb
$apt install libfabric1 libfabric-bin
owner libfabric1
for package in libweft1 libweft-dev weft-bin; do
	! installed $package || fail "$package is still there"
done
! fi_info 2>&1 | grep -q '^provider: weft' || fail "fi_info still knows weft"
echo "Open MPI and fi_pingpong ran, and libfabric1 is back"
