#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A part of MPICH's own tests over this library, run as make check-clients runs all: the tests named
# by suites/short, with MPICH's choice of provider and over tcp. Needs an MPICH as mpich.sh does:
# MPICH=/prefix, or MPICH=build, or one built before.
# TIMEOUT=1500
. "$(dirname "$0")/ours.bash"
. "$(dirname "$0")/mpich.bash"
need python3
find_mpich
short=$PWD/tests/client/suites/short
build_mpich_programs "$prefix" "$short" # takes a minute or two the first time
# Limits the time: tests that would begin after eight minutes are left out.
MPICH=$prefix MPICH_SOURCE=$mpich_source MPICH_TESTS=$mpich_tests SUITES=mpich PROGRAMS=$short BUDGET=480 \
	RESULTS=$work/results python3 tests/client/suites/run.py
