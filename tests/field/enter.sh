#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs a command inside a tree of a Debian suite, as its root: enter.sh TREE COMMAND...
# Mounts are made in a namespace of the command's own, and its processes have one, too: whatever ends this script, by any
# signal, nothing stays mounted and nothing goes on.
set -eu
exec 3<&0
inner= # setpriv, then unshare, which ignores other signals than KILL
trap '[ -z "$inner" ] || kill -KILL "$inner"; exit 143' HUP INT TERM
# shellcheck disable=SC2016 # what the inner shell expands
setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private sh -ec '
	tree=$1
	shift
	mount -t proc proc "$tree/proc"
	mount --rbind /sys "$tree/sys"
	mount --rbind /dev "$tree/dev"
	mount -t tmpfs -o mode=1777 tmpfs "$tree/dev/shm"
	exec chroot "$tree" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' enter "$@" <&3 3<&- &
inner=$!
wait "$inner"
