#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# TIMEOUT=240 HW=tcp
# Encrypted endpoints can do what others can: runs tests with a key and FI_WEFT_AUTH=encrypt.
set -u
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
FI_WEFT_AUTH_KEY_FILE=$(mktemp)
trap 'rm -f "$FI_WEFT_AUTH_KEY_FILE"' EXIT
head -c 32 /dev/urandom >"$FI_WEFT_AUTH_KEY_FILE"
export FI_WEFT_AUTH=encrypt FI_WEFT_AUTH_KEY_FILE

# run PROGRAM [CASE...]: runs the cases; each that can run must pass, and some must run.
run() {
	local out program=$1
	shift
	if ! out=$("$BUILD/t/api_$program" "$@" 2>&1) || ! grep -q '^ok ' <<<"$out"; then
		echo "$out"
		echo "api_$program: failed with encryption"
		exit 1
	fi
	echo "$program: $(grep -c '^ok ' <<<"$out") cases"
}

"$BUILD/t/api_encrypt" both || exit

run tags
run forms
run sizes
run pieces
run truncate
run truncate_ways all selective short-packets no-zero-copy
run cancel
run order
run rows
run threads
run waits
run wakeup
run flood storm-read storm-blind both-then-read both-blind both-long
run closes
run rma
run rma_complete
run rma_order
run atomic
run atomic_order
run deferred
run coll
run cm
run cm_ends
run cm_keys
run keys
run keys_av
EP=msg run tags
EP=msg run sizes
EP=msg run rma
