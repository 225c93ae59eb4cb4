#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Fetches and builds what a suite needs, in the build folder. If that is impossible, exits with 77
# and the reason as the last line.
#   prepare.sh mpich [FILE]    MPICH and its tests, or those named in FILE, one per line
#   prepare.sh mpi4py          the source of mpi4py, for its tests
. "$(dirname "$0")/../ours.bash"
. "$(dirname "$0")/../mpich.bash"

case $1 in
mpich)
	MPICH=${MPICH:-build}
	find_mpich
	if [ -n "${2-}" ]; then
		build_mpich_programs "$prefix" "$2"
	else
		build_mpich_tests "$prefix"
	fi
	;;
mpi4py)
	{ apt_source mpi4py && unpack "$BUILD/mpi4py-source" "$work"/mpi4py_*.orig.tar.gz; } ||
		skip "its source can not be fetched: $(tail -n 1 "$work/apt")"
	;;
esac
