#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Clients find a provider by the names of libfabric's, with nothing set: those that their configure script found in
# what fi_info prints, in its order or their own; those of a list of their own; a domain. What is not there is refused
# with a reason. names_check.c tells the ways to ask.
. "$(dirname "$0")/ours.bash"
check=$work/names_check
unset FI_PROVIDER
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra ${WERROR-} -Iinclude -o "$check" tests/client/names_check.c "$lib" ||
	fail "names_check.c does not compile"
export LD_LIBRARY_PATH=$BUILD
mapfile -t printed < <("$BUILD/bin/fi_info" | sed -n 's/^provider: //p' | awk '!seen[$0]++')

# gets WAY NAME PROVIDER: the way of asking for NAME gives an entry of PROVIDER that works.
gets() {
	local out
	out=$(timeout 20 "$check" "$1" "$2" 2>&1) || fail "$1 $2: $out"
	[ "${out%% *}" = "$3" ] || fail "$1 $2: $out"
}

# refused NAME REASON: no way of asking gives an entry; the log has the reason.
refused() {
	local out way
	for way in ask scan domain; do
		timeout 20 "$check" $way "$1" >"$work/out" 2>&1
		[ $? -eq 2 ] || fail "$way $1: $(cat "$work/out")"
	done
	out=$(FI_LOG_LEVEL=info "$check" ask "$1" 2>&1)
	[[ $out == *"$2"* ]] || fail "$1: no reason: $out"
}

# A client that keeps what fi_info prints first, and one that looks for names of its own, best first.
gets ask "${printed[0]}" "${printed[0]}"
gets scan "${printed[0]}" "${printed[0]}"
wanted=('verbs;ofi_rxm' cxi psm3 efa 'tcp;ofi_rxm' 'udp;ofi_rxd' sockets)
for name in "${wanted[@]}"; do
	for has in "${printed[@]}"; do
		[ "$has" = "$name" ] && break 2
	done
done
[ "$has" = "$name" ] || fail "fi_info prints none of ${wanted[*]}, but ${printed[*]}"
echo "of ${wanted[*]} the first that is printed: $name"
for way in ask scan domain; do gets $way "$name" "$name"; done
# One that was configured with the distribution's library.
for name in 'tcp;ofi_rxm' sockets net tcp; do
	for way in ask scan domain; do gets $way "$name" "$name"; done
done
# One that looks for a domain.
read -r _ iface < <("$check" ask weft)
gets iface "$iface" weft
FI_PROVIDER=sockets gets iface "$iface" sockets

for name in cxi psm3 psm2 efa gni 'udp;ofi_rxd'; do
	refused $name "no provider has such a name: fabric_attr->prov_name: \"$name\" asked"
done
[ -n "$(ls /sys/class/infiniband 2>/dev/null)" ] ||
	refused 'verbs;ofi_rxm' 'verbs;ofi_rxm: src_addr: no RDMA device has that address'
