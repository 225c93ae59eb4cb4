#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Connected endpoints of the provider "verbs" whose peer dies, whose link goes down for good or for
# a moment, and whose device is removed.
# TIMEOUT=240 KERNELS=all
. "$(dirname "$0")/faults.bash"
FI_WEFT_PEER_TIMEOUT=30000 # limits the connection setup only

busy 2 msg_fault busy end "${address[@]}"
pkill -KILL -P "$talk" -n || fail "nobody to kill"
over "side 1 killed" 'side 0 was told: ' 'side 0: closed'
clean "side 1 killed"

busy 2 msg_fault busy go-on "${address[@]}"
flap
pkill -USR1 -P "$talk"
over "the link down for a moment" 'side 0: goes on' 'side 1: goes on'
clean "the link down for a moment"

for traffic in busy shared idle still; do
	nothing='had nothing under way'
	case $traffic in idle | still) nothing=- ;; esac
	busy 2 msg_fault $traffic end "${address[@]}"
	remove
	# Both sides are on the device. Who hears of its end second may hear of the other's close first.
	over "$traffic, the device taken away" "side [01] (was told: No such device \\(Work Request Flushed Error\\)|$nothing)" \
		'side [01]: a send is refused: No such device' "side 0 (was told: |$nothing)" "side 1 (was told: |$nothing)" \
		'side 0: closed' 'side 1: closed'
	bring_back
	clean "$traffic, the device taken away"
done

busy 2 msg_fault busy end "${address[@]}"
dark
told $((20 + patience)) 'Connection timed out \(transport retry counter exceeded\)'
over "the wire dark" 'side 0 was told: ' 'side 1 was told: ' 'side 0: closed' 'side 1: closed'
light
clean "the wire dark"

# In Linux 6.1 a software device without a link sometimes stops retransmitting without an error.
case $(uname -r) in 6.1.*) exit ;; esac
busy 2 msg_fault busy end "${address[@]}"
down
over "the link down" 'side 0 was told: ' 'side 1 was told: ' 'side 0: closed' 'side 1: closed'
up
remove # packets of a software device to another one in this state break its queue pair for connections
bring_back
clean "the link down"
