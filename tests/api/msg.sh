#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# TIMEOUT=240
# Connected endpoints can do what unconnected ones can: runs tests of two processes on FI_EP_MSG.
# Leaves out cases that send to themselves or a third process, ask for sources, or open more
# endpoints.
set -u
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
export EP=msg

# run PROGRAM [CASE...]: runs the cases; each that can run must pass, and the named ones must run.
run() {
	local out name program=$1
	shift
	if ! out=$("$BUILD/t/api_$program" "$@" 2>&1); then
		echo "$out"
		echo "api_$program: failed on connected endpoints"
		exit 1
	fi
	for name in "$@"; do
		if ! grep -q "^ok  *$name " <<<"$out"; then
			echo "$out"
			echo "api_$program: $name was not run"
			exit 1
		fi
	done
	echo "$program: $(grep -c '^ok ' <<<"$out") cases"
}

if "$BUILD/t/api_cm" data-size | grep -q '^skip'; then
	echo "${HW:-weft} has no connected endpoints"
	exit 77
fi

run tags
run forms
run sizes
run multi_recv
run truncate
run cancel
run completions
run order
run rows
run threads
run levels
run flood storm-read storm-blind both-then-read both-blind both-long
run peek peek claim discard
run rma
run rma_complete injected selective asked_by_default alias told flood counters_alone
run rma_contexts
run rma_crossing
run rma_denied
run rma_events
run rma_keys
run rma_many
run rma_order
run rma_pmem
run atomic
run atomic_errors
run atomic_forms
run atomic_matching
run atomic_order order rounds fence
run atomic_tagged
run atomic_hammer one-endpoint
