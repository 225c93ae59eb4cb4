#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# TIMEOUT=240
# Objects that FI_HOOK wraps can do what others can: runs tests with all hooks, and the trace written to files. Each file is what
# Perfetto reads, and the calls that a test makes are in it.
set -u
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FI_HOOK='trace;perf;profile;monitor' FI_OFI_HOOK_MONITOR_BASEPATH=$work/figures FI_WEFT_TRACE_FILE=$work/trace

# run PROGRAM CALL...: some cases run, all pass, and the processes together have made each of the calls.
run() {
	local out program=$1
	shift
	if ! out=$("$BUILD/t/api_$program" 2>&1) || ! grep -q '^ok ' <<<"$out"; then
		echo "$out"
		echo "api_$program: failed with hooks"
		exit 1
	fi
	python3 - "$work" "$@" <<'PY' || { echo "api_$program: the trace is wrong"; exit 1; }
import glob, json, sys
made = set()
for path in glob.glob(sys.argv[1] + "/trace.*.json"):
    with open(path, encoding="ascii") as file:
        head, *events = json.load(file)
    assert head["ph"] == "M" and head["args"]["name"], head
    for e in events:
        assert e["ph"] == "X" and e["dur"] >= 0 and e["pid"] == head["pid"] and e["tid"] > 0 and "result" in e["args"], e
        made.add(e["name"])
lacks = set(sys.argv[2:]) - made
sys.exit(f"not in the trace: {lacks}" if lacks else 0)
PY
	rm -f "$work"/trace.*
	echo "$program: $(grep -c '^ok ' <<<"$out") cases"
}

run alias fi_control fi_bind fi_close fi_endpoint
run tags fi_trecv fi_tinject fi_cq_read
run forms fi_sendv fi_recvmsg fi_inject
run multi_recv fi_recvmsg
run rma fi_read fi_write
run mr fi_mr_reg fi_mr_regattr
run atomic_forms fi_atomicv fi_fetch_atomicmsg fi_compare_atomic
run deferred fi_control fi_cntr_open
run cancel fi_cancel
run late_binding fi_bind
run refuse fi_endpoint
run fork fi_domain
run cm fi_connect fi_accept fi_listen fi_eq_open
run sep fi_scalable_ep fi_tx_context fi_rx_context
run srx fi_srx_context
run coll fi_join fi_barrier fi_allreduce
run wait_sets fi_wait_open fi_wait
run polls fi_poll_open fi_poll
run av fi_av_insert fi_av_remove
run options fi_getopt fi_setopt
