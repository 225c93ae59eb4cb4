#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two processes play ping-pong over every transport the library offers here, then the examples of one-sided
# communication run over the first that has it; BUILD is the build folder.
set -u
cd "$(dirname "$0")/.." || exit
build=$(realpath "${BUILD:-build}") || exit
bin=$build/bin
server='' port=$((7000 + $$ % 20000))
lines=$(mktemp)
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -f "$lines"' EXIT
# The client waits for its server only as long as the library does: the server gets a head start.
head_start=0.5

# pingpong PROVIDER: leaves lines "bytes microseconds megabytes/s" in $lines.
pingpong() {
	port=$((port + 1))
	timeout 60 "$bin/rdm_pingpong" -p "$1" -P $port 127.0.0.1 &
	server=$!
	sleep $head_start
	timeout 60 "$bin/rdm_pingpong" -p "$1" -P $port -c 127.0.0.1 >"$lines"
	local status=$?
	[ $status -eq 0 ] || kill "$server" 2>/dev/null
	wait "$server" || status=1
	server=
	return $status
}

table() {
	awk 'BEGIN { printf "  %10s  %14s  %14s\n", "bytes", "one way, us", "MB/s" }
		{ printf "  %10d  %14.2f  %14.1f\n", $1, $2, $3 }' "$lines"
}

# one_sided PROVIDER PROGRAM WORDS...
one_sided() {
	printf '\n%s, over %s: %s\n' "$2" "$1" "${*:3}"
	timeout 60 "$bin/$2" -p "$1" 2>&1 | sed 's/^/  /'
	[ "${PIPESTATUS[0]}" -eq 0 ] || { echo "  failed" && failed=1; }
}

# providers CAPABILITIES: those that offer them on reliable datagrams, a line each.
providers() {
	"$bin/fi_info" -t FI_EP_RDM -c "$1" 2>/dev/null | sed -n 's/^provider: //p' | awk '!seen[$0]++'
}

failed=0 count=0
"$bin/fi_info" --version | sed -n '2,$p'
while IFS= read -r provider; do
	count=$((count + 1))
	printf '\nping-pong between two processes over %s\n' "$provider"
	if pingpong "$provider"; then
		table
	else
		echo "  failed"
		failed=1
	fi
done < <(providers FI_MSG)
[ $count -gt 0 ] || { echo "no transport here" >&2; exit 1; }
provider=$(providers 'FI_RMA|FI_ATOMIC' | head -n 1)
if [ -n "$provider" ]; then
	one_sided "$provider" rma_put "one process reads and writes the memory of another"
	one_sided "$provider" shmem_like "every process works in the memory of the others"
	one_sided "$provider" remote_log "several processes append to a log that another keeps"
fi
exit $failed
