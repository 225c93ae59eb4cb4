#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Reliable datagrams whose peer dies, whose link goes down for good or for a moment, and whose
# device is removed.
# (A software device breaks at once if it has to send by an interface that is down.)
# TIMEOUT=240 KERNELS=all
. "$(dirname "$0")/faults.bash"
apart

busy 2 rdm_fault write end "${interface[@]}"
pkill -KILL -P "$talk" -n || fail "nobody to kill"
over "side 1 killed" 'side 0 was told: ' 'side 0 is refused: ' 'side 0: closed'
clean "side 1 killed"

busy 2 rdm_fault write go-on "${interface[@]}"
flap
pkill -USR1 -P "$talk"
over "the link down for a moment" 'side 0: goes on' 'side 1: goes on'
clean "the link down for a moment"

# (The device has to tell, not TCP's probes: in a slow guest these are as fast. And an operation that begins a connection
# meanwhile has to end while the test waits.)
FI_WEFT_PEER_TIMEOUT=15000 busy 2 rdm_fault write cut "${interface[@]}"
dark
told "$patience" 'Connection timed out \(transport retry counter exceeded\)'
over "the wire dark" 'side 0 was told: ' 'side 1 was told: ' 'side 0: closed' 'side 1: closed'
light
clean "the wire dark"

busy 2 rdm_fault write lost "${interface[@]}"
dark
over "quiet, the wire dark" 'side 0 was told: Connection timed out' 'side 1 was told: Connection timed out' 'side 0: closed' 'side 1: closed'
light
clean "quiet, the wire dark"

# (A software device may lose its state then: TCP's probes find no peer.)
busy 2 rdm_fault long end "${interface[@]}"
down
over "long, the link down" 'side 0 was told: ' 'side 1 was told: ' 'side 0: closed' 'side 1: closed'
up
clean "long, the link down"

for traffic in long write; do
	busy 2 rdm_fault $traffic end "${interface[@]}"
	remove
	over "$traffic, the device taken away" 'side 0 was told: No such device' 'side 1 was told: ' 'side 0: closed' 'side 1: closed'
	bring_back
	clean "$traffic, the device taken away"
done

HW=weft busy 2 rdm_fault write again "${interface[@]}"
remove
over "the device of one of the ways taken away" 'side 0 was told: No such device' 'side 0: reached again' 'side 1: reached again'
bring_back
clean "the device of one of the ways taken away"
