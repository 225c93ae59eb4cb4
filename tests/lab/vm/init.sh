#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# First process of the virtual machine, run by busybox. It loads the modules, mounts the host's
# files and runs /job in them. The job's output uses the second serial line, the kernel's the first.
export PATH=/bin

end() {
	echo "lab: $*" >/dev/ttyS1
	poweroff -f
}

/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
exec >/dev/ttyS0 2>&1 </dev/null
stty -F /dev/ttyS1 raw -echo
for module in /modules/*; do
	insmod "$module" || end "broken: ${module##*/} does not load"
done
build='' shell=''
. /settings

mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose host /host || end "broken: no files of the host"
mkdir -p /dev/shm /dev/pts
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
mount -t devpts -o ptmxmode=666 none /dev/pts
for folder in proc sys dev; do mount --rbind /$folder /host/$folder; done
mount -t tmpfs none /host/dev/shm
mount -t tmpfs none /host/run
mount -t tmpfs none /upper
mkdir /upper/files /upper/work
mount -t overlay -o "lowerdir=/host$build,upperdir=/upper/files,workdir=/upper/work" none "/host$build" ||
	end "broken no build folder to write to"
cp /job /host/run/job
hostname lab
ip link set lo up

if [ -n "$shell" ]; then
	stty -F /dev/ttyS1 sane
	setsid sh -c 'exec chroot /host bash /run/job </dev/ttyS1 >/dev/ttyS1 2>&1'
	end "end 0"
fi
{
	chroot /host bash /run/job 2>&1
	echo $? >/status
} | cat >/dev/ttyS1
end "end $(cat /status)"
