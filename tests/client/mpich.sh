#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# MPICH over ours: messages, one-sided communication, atomics; all of it, also between ranks of one host. The MPICH of
# the distribution does not use libfabric, so this needs another one:
#   MPICH=/prefix make t/client_mpich     one configured --with-device=ch4:ofi
#   MPICH=build make t/client_mpich       builds one from the distribution's source first: some ten minutes
# TIMEOUT=1800
. "$(dirname "$0")/ours.bash"
old=$BUILD/old

# fetch_headers: those of the distribution's libfabric, unpacked in the build folder.
fetch_headers() {
	[ ! -d "$old/usr/include/rdma" ] || return 0
	mkdir -p "$old"
	(cd "$old" && timeout 60 apt-get download libfabric-dev && dpkg-deb -x libfabric-dev_*.deb .) >"$work/apt" 2>&1
}

# fetch_source FOLDER: MPICH's own source, without the libraries it brings along that are of no use here. The lists
# of the system stay as they are: apt-get is given its own.
fetch_source() {
	local lists=$work/lists options
	mkdir -p "$1" "$lists/partial" "$work/parts"
	sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$work/parts/source.sources"
	options=(-qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/parts"
		-o Dir::State::lists="$lists" -o Dir::Cache="$work")
	{
		timeout 120 apt-get "${options[@]}" update &&
			(cd "$work" && timeout 300 apt-get "${options[@]}" source --download-only mpich) &&
			tar -xf "$work"/mpich_*.orig.tar.xz -C "$1" --strip-components=1 \
				--exclude='*/modules/libfabric' --exclude='*/modules/ucx'
	} >"$work/apt" 2>&1
}

# build_mpich PREFIX: compiled and linked against the distribution's libfabric, as a distribution would.
build_mpich() {
	local fabric=$work/fabric reference
	need apt-get dpkg-deb make
	reference=$(ldconfig -p | awk '$1 == "libfabric.so.1" { print $NF; exit }')
	[ -n "$reference" ] || skip "libfabric1 is not installed"
	{ fetch_headers && fetch_source "$work/source"; } ||
		skip "the source can not be fetched: $(tail -n 1 "$work/apt")"
	mkdir -p "$fabric/lib" "$work/objects"
	ln -s "$old/usr/include" "$fabric/include"
	ln -s "$reference" "$fabric/lib/libfabric.so"
	ln -s "$reference" "$fabric/lib/libfabric.so.1"
	(
		cd "$work/objects" || exit
		../source/configure --prefix="$1" --with-device=ch4:ofi --with-libfabric="$fabric" --disable-fortran \
			--disable-cxx --disable-romio --with-datatype-engine=dataloop --disable-static CFLAGS=-O1 &&
			make -j"$(nproc)" && make install
	) >"$work/build" 2>&1 || fail "MPICH does not build: $(tail -n 30 "$work/build")"
}

prefix=${MPICH-}
[ -n "$prefix" ] || skip "no MPICH=/prefix with ch4:ofi is named; MPICH=build makes one"
if [ "$prefix" = build ]; then
	prefix=$BUILD/mpich
	[ -x "$prefix/bin/mpiexec" ] || build_mpich "$prefix"
fi
"$prefix/bin/mpichversion" | grep -q 'ch4:ofi' || fail "$prefix is no MPICH over libfabric"

# MPIR_CVAR_NOLOCAL: every rank treats every other one as if it were on another host, so that all goes over libfabric.
export LD_LIBRARY_PATH=$BUILD:$prefix/lib MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_DEBUG_SUMMARY=1
for program in mpi_check mpi_rma mpi_accumulate; do
	"$prefix/bin/mpicc" -O2 -w -std=gnu11 -o "$work/$program" tests/client/$program.c || fail "mpicc $program"
done

# ranks N PROGRAM WORD...
ranks() {
	timeout 120 "$prefix/bin/mpiexec" -n "$@" >"$work/out" 2>"$work/err" ||
		fail "$*: $(tail -n 30 "$work/out" "$work/err")"
	[ "$(grep -c " of $1: .* passed with $(realpath "$lib")\$" "$work/out")" -eq "$1" ] ||
		fail "not every rank had loaded $lib: $(cat "$work/out")"
	local line
	for line in 'libfabric provider: weft - ' 'MPIDI_OFI_ENABLE_TAGGED: 1' 'MPIDI_OFI_ENABLE_RMA: 1' \
		'MPIDI_OFI_ENABLE_ATOMICS: 1'; do
		grep -q "^$line" "$work/out" || fail "$*: no line '$line': $(cat "$work/out")"
	done
	grep '^rank' "$work/out" | sort
}

for n in 2 3; do
	ranks $n "$work/mpi_check"
	for window in create allocate; do
		ranks $n "$work/mpi_rma" $window
		ranks $n "$work/mpi_accumulate" $window
	done
done
