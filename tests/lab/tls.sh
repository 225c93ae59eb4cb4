#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Links that the kernel encrypts, counted in /proc/net/tls_stat: whole streams, a link of which only one end is the kernel's,
# bytes changed on their way, an end without it.
# TIMEOUT=180 KERNELS=all
. "$(dirname "$0")/../client/ours.bash"
if [ ! -e /proc/net/tls_stat ]; then ${LAB_GUEST:+fail} skip "this kernel has no TLS: no module tls is loaded"; fi
printf 'a key of the lab' >"$work/key"
chmod 600 "$work/key"
export HW=tcp LD_LIBRARY_PATH=$BUILD FI_WEFT_AUTH=encrypt FI_WEFT_AUTH_KEY_FILE=$work/key

# counted NAME: prints a count of the kernel.
counted() {
	awk -v name="$1" '$1 == name { print $2 }' /proc/net/tls_stat
}

# by_kernel LEAST MOST COMMAND...: the command succeeds, and the kernel encrypts and decrypts so many ends more.
by_kernel() {
	local tx rx
	tx=$(counted TlsTxSw) rx=$(counted TlsRxSw)
	timeout 100 "${@:3}" >"$work/out" 2>&1 || fail "${*:3}: status $?: $(cat "$work/out")"
	tx=$(($(counted TlsTxSw) - tx)) rx=$(($(counted TlsRxSw) - rx))
	echo "${*:3}: $tx ends encrypted, $rx decrypted by the kernel"
	if [ $tx -ne $rx ] || [ $tx -lt "$1" ] || [ $tx -gt "$2" ]; then fail "these should be $1 to $2"; fi
}

# talk: fi_pingpong, of which only the client may use the kernel's TLS.
talk() {
	local server
	next_port
	start env FI_WEFT_KERNEL_TLS=no timeout 50 "$BUILD/bin/fi_pingpong" -B $port -p tcp -e rdm -I 10
	server=$pid
	within 10 listening $port || return
	timeout 50 "$BUILD/bin/fi_pingpong" -P $port -p tcp -e rdm -I 10 127.0.0.1 && wait "$server"
}

links=$BUILD/t/lab_tls_links
by_kernel 2 2 "$links" both
by_kernel 1 1 "$links" first
by_kernel 1 1 "$links" second
by_kernel 0 0 "$links" none
by_kernel 2 2 "$links" record
by_kernel 1 1000 "$BUILD/t/api_tutorial"
export TEMP=$work # of libcheck
by_kernel 1 1000 "$BUILD/t/hw_tcp_rails_tls"
by_kernel 0 0 env FI_WEFT_KERNEL_TLS=no "$BUILD/t/hw_tcp_rails_tls"
by_kernel 1 1000 "$BUILD/t/hw_tcp_tls_member"
broken=$(counted TlsDecryptError)
by_kernel 1 1000 "$BUILD/t/fault_eavesdrop"
[ "$(counted TlsDecryptError)" -gt "$broken" ] || fail "the kernel has found no changed record"

tx=$(counted TlsTxSw)
talk >"$work/out" 2>&1 || fail "fi_pingpong: $(cat "$work/out")"
[ "$(counted TlsTxSw)" -eq "$tx" ] || fail "the kernel encrypts for an end that does not want it"
