#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs the missing packages of the groups named: tests/setup.sh build [test] [package] [lab] [aarch64] [clients] [lint] [doc] [bench].
# It says what it will install before it does; where it may not, it prints the command to run. With `list` before the groups
# it only prints their packages.
# The apt-get column is the tested one; the others name the same things for their systems.
set -eu
cd "$(dirname "$0")/.."

# group  apt-get               dnf                  zypper                  (- : no such package, or part of another)
packages() {
	cat <<-'END'
	build    gcc                   gcc                  gcc
	build    libc6-dev             glibc-devel          glibc-devel
	build    make                  make                 make
	build    autoconf              autoconf             autoconf
	build    pkg-config            pkgconf-pkg-config   pkg-config
	build    libibverbs-dev        rdma-core-devel      rdma-core-devel
	build    librdmacm-dev         -                    -
	build    libnl-3-dev           libnl3-devel         libnl3-devel
	build    libnl-route-3-dev     -                    -
	build    libssl-dev            openssl-devel        libopenssl-3-devel
	test     clang                 clang                clang
	test     libclang-rt-dev       compiler-rt          -
	test     g++                   gcc-c++              gcc-c++
	test     check                 check-devel          check-devel
	test     valgrind              valgrind             valgrind
	test     libc6-dbg             -                    -
	test     binutils              binutils             binutils
	test     systemtap-sdt-dev     systemtap-sdt-devel  systemtap-sdt-devel
	test     python3               python3              python3
	test     abigail-tools         libabigail           libabigail-tools
	test     libnuma-dev           numactl-devel        libnuma-devel
	test     mandoc                mandoc               mandoc
	test     iproute2              iproute              iproute2
	test     nftables              nftables             nftables
	test     libfabric1            libfabric            libfabric1
	test     libfabric-bin         -                    libfabric
	test     openmpi-bin           openmpi              openmpi4
	test     libopenmpi-dev        openmpi-devel        openmpi4-devel
	test     netpipe-openmpi       -                    -
	test     cmake                 cmake                cmake
	package  debhelper             -                    -
	package  fakeroot              -                    -
	package  lintian               -                    -
	package  mmdebstrap            -                    -
	package  rpm                   rpm-build            rpm-build
	lab      qemu-system-x86       qemu-system-x86-core qemu-x86
	lab      busybox-static        busybox              busybox-static
	lab      kmod                  kmod                 kmod
	lab      ibverbs-providers     libibverbs           libibverbs
	lab      ibverbs-utils         libibverbs-utils     libibverbs-utils
	lab      rdmacm-utils          librdmacm-utils      librdmacm-utils
	lab      perftest              perftest             perftest
	aarch64  gcc-aarch64-linux-gnu -                    -
	aarch64  libc6-dev-arm64-cross -                    -
	aarch64  qemu-user-static      -                    -
	clients  python3-mpi4py        python3-mpi4py-openmpi python3-mpi4py
	clients  python3-numpy         python3-numpy        python3-numpy
	clients  hpcc                  -                    -
	clients  scalapack-mpi-test    -                    -
	clients  libcoarrays-openmpi-dev -                  -
	clients  lammps                -                    -
	clients  lammps-examples       -                    -
	clients  nwchem-openmpi        -                    -
	lint     clang-format          clang-tools-extra    clang
	lint     clang-tidy            -                    -
	lint     cppcheck              cppcheck             cppcheck
	doc      mandoc                mandoc               mandoc
	field    debootstrap           debootstrap          debootstrap
	tree     mpich                 -                    -
	tree     libmpich-dev          -                    -
	tree     python3-adios2        -                    -
	tree     python3-adios2-mpi    -                    -
	tree     gromacs               -                    -
	tree     procps                -                    -
	bench    gnuplot-nox           gnuplot              gnuplot
	bench    liburing-dev          liburing-devel       liburing-devel
	bench    ucx-utils             ucx                  ucx
	END
}

installed() {
	case $column in
	2) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
	*) rpm -q --whatprovides "$1" >/dev/null 2>&1 ;;
	esac
}

missing() {
	packages | while read -r group apt dnf zypper; do
		case " $groups " in *" $group "*) ;; *) continue ;; esac
		case $column in 2) p=$apt ;; 3) p=$dnf ;; *) p=$zypper ;; esac
		[ "$p" = - ] || installed "$p" || printf '%s ' "$p"
	done
}

if [ "${1-}" = list ]; then
	shift
	for group; do packages | awk -v g="$group" '$1 == g && $2 != "-" { print $2 }'; done
	exit 0
fi
groups=${*:-build test}
if command -v apt-get >/dev/null; then
	column=2 install='apt-get install -y --no-install-recommends'
elif command -v dnf >/dev/null; then
	column=3 install='dnf install -y'
elif command -v zypper >/dev/null; then
	column=4 install='zypper --non-interactive install'
else
	echo "setup: no apt-get, dnf or zypper here: nothing is installed, going on with what there is" >&2
	exit 0
fi

need=$(missing)
need=${need% }
[ -n "$need" ] || exit 0
rm -f config.mk # a tree configured before looks again, with the options it had

as=
if [ "$(id -u)" -ne 0 ]; then
	as='sudo -n env DEBIAN_FRONTEND=noninteractive'
	if ! sudo -n true 2>/dev/null; then
		echo "setup: packages are missing and this user may not install them. Run:" >&2
		echo "    sudo $install $need" >&2
		exit 1
	fi
fi
echo "setup: installing through ${install%% *}${as:+ (sudo)}: $need"
export DEBIAN_FRONTEND=noninteractive
[ $column -ne 2 ] || $as apt-get update -qq || :
# shellcheck disable=SC2086 # the words of the commands
$as $install $need </dev/null >setup.log 2>&1 || {
	tail -n 20 setup.log >&2
	echo "setup: failed: $as $install $need" >&2
	exit 1
}
rm -f setup.log
