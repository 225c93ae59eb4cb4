# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # BUILD and work are those of ours.bash
# Sourced after ours.bash. Builds an MPICH over libfabric and its own tests from the distribution's
# source package, in the build folder. Each function returns at once if its work is done.
old=$BUILD/old
mpich_source=${MPICH_SOURCE:-$BUILD/mpich-source}
mpich_tests=${MPICH_TESTS:-$BUILD/mpich-tests}

# Folders of MPICH's tests that are built and run; the others need MPI-IO, Fortran or C++.
mpich_folders=(attr coll comm datatype errhan errors group info init part pt2pt rma spawn threads topo)

# fetch_headers: unpacks the headers of the distribution's libfabric in the build folder.
fetch_headers() {
	[ ! -d "$old/usr/include/rdma" ] || return 0
	mkdir -p "$old"
	(cd "$old" && timeout 60 apt-get download libfabric-dev && dpkg-deb -x libfabric-dev_*.deb .) >"$work/apt" 2>&1
}

# apt_source PACKAGE: fetches its source archives to $work. apt-get uses lists of its own, so the
# system's lists stay unchanged.
apt_source() {
	local lists=$work/lists options
	mkdir -p "$lists/partial" "$work/parts"
	sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$work/parts/source.sources"
	options=(-qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/parts"
		-o Dir::State::lists="$lists" -o Dir::Cache="$work")
	{
		timeout 120 apt-get "${options[@]}" update &&
			(cd "$work" && timeout 300 apt-get "${options[@]}" source --download-only "$1")
	} >"$work/apt" 2>&1
}

# unpack FOLDER ARCHIVE TAR_OPTION...: the folder exists only if it is complete.
unpack() {
	mkdir -p "$1.part" && tar -xf "$2" -C "$1.part" --strip-components=1 "${@:3}" >>"$work/apt" 2>&1 &&
		mv "$1.part" "$1"
}

# fetch_mpich: fetches its source without the bundled libraries.
fetch_mpich() {
	[ ! -d "$mpich_source" ] || return 0
	rm -rf "$mpich_source.part"
	apt_source mpich &&
		unpack "$mpich_source" "$work"/mpich_*.orig.tar.xz --exclude='*/modules/libfabric' --exclude='*/modules/ucx'
}

# build_mpich PREFIX: compiles and links against the distribution's libfabric, as a distribution
# would.
build_mpich() {
	local fabric=$work/fabric reference
	[ ! -e "$1/.built" ] || return 0
	need apt-get dpkg-deb make
	reference=$(ldconfig -p | awk '$1 == "libfabric.so.1" { print $NF; exit }')
	[ -n "$reference" ] || skip "libfabric1 is not installed"
	{ fetch_headers && fetch_mpich; } || skip "the source can not be fetched: $(tail -n 1 "$work/apt")"
	mkdir -p "$fabric/lib" "$work/objects"
	ln -s "$old/usr/include" "$fabric/include"
	ln -s "$reference" "$fabric/lib/libfabric.so"
	ln -s "$reference" "$fabric/lib/libfabric.so.1"
	(
		cd "$work/objects" || exit
		"$mpich_source/configure" --prefix="$1" --with-device=ch4:ofi --with-libfabric="$fabric" --disable-fortran \
			--disable-cxx --disable-romio --with-datatype-engine=dataloop --disable-static CFLAGS=-O1 &&
			make -j"$(nproc)" && make install && touch "$1/.built"
	) >"$work/build" 2>&1 || fail "MPICH does not build: $(tail -n 30 "$work/build")"
}

# find_mpich: sets $prefix to the MPICH of MPICH=/prefix, or to the one in the build folder, which
# MPICH=build makes.
find_mpich() {
	prefix=${MPICH:-$BUILD/mpich}
	if [ "$prefix" = build ]; then
		prefix=$BUILD/mpich
		build_mpich "$prefix"
	fi
	[ -x "$prefix/bin/mpichversion" ] || skip "no MPICH=/prefix with ch4:ofi is named; MPICH=build makes one"
	"$prefix/bin/mpichversion" | grep -q 'ch4:ofi' || fail "$prefix is no MPICH over libfabric"
}

# configure_mpich_tests PREFIX: configures $mpich_tests and builds what all of them need, with mpicc
# instead of make's $CC.
configure_mpich_tests() {
	local folder
	fetch_mpich || skip "the source can not be fetched: $(tail -n 1 "$work/apt")"
	mkdir -p "$mpich_tests"
	if [ ! -x "$mpich_tests/config.status" ]; then
		(cd "$mpich_tests" && env -u CC "$mpich_source/test/mpi/configure" --with-mpi="$1" --disable-fortran --disable-cxx \
			--disable-romio) >"$mpich_tests/configured" 2>&1 ||
			fail "MPICH's tests: $(tail -n 30 "$mpich_tests/configured")"
	fi
	for folder in dtpools util; do
		make -j"$(nproc)" -C "$mpich_tests/$folder" >"$work/build" 2>&1 || fail "$folder: $(tail -n 30 "$work/build")"
	done
}

# build_mpich_tests PREFIX: builds all tests that are run. Tests that do not compile are missing
# then.
build_mpich_tests() {
	local folder
	configure_mpich_tests "$1"
	for folder in "${mpich_folders[@]}"; do
		[ ! -e "$mpich_tests/$folder/.built" ] || continue
		make -k -j"$(nproc)" -C "$mpich_tests/$folder" >"$mpich_tests/$folder/.log" 2>&1 || :
		touch "$mpich_tests/$folder/.built"
	done
}

# build_mpich_programs PREFIX FILE: builds the programs that begin the lines of FILE.
build_mpich_programs() {
	local name
	configure_mpich_tests "$1"
	sed 's/#.*//; s/ .*//; /^$/d' "$2" | sort -u | while read -r name; do
		[ -x "$mpich_tests/$name" ] ||
			make -j"$(nproc)" -C "$mpich_tests/${name%/*}" "${name##*/}" >>"$work/build" 2>&1 </dev/null || :
	done
}
