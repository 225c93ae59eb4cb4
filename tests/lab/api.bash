# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # what lab.bash sets
# Sourced by tests that run cases of API tests over RDMA devices.
. "$(dirname "${BASH_SOURCE[0]}")/lab.bash"
export HW=verbs

# run PROGRAM CASE...: runs each case, which must pass.
run() {
	local name program=$1
	shift
	timeout $((120 * ${SLOWER:-1})) "$BUILD/t/api_$program" "$@" >"$work/out" 2>&1 || fail "api_$program: $(cat "$work/out")"
	for name in "$@"; do
		grep -q "^ok  *$name " "$work/out" || fail "api_$program: $name was not run: $(cat "$work/out")"
	done
	echo "$program: $(grep '^ok ' "$work/out" | cut -c6- | paste -sd,)"
}
