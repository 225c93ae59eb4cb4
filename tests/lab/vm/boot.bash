# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # what kernel.bash sets
# Starts a virtual machine: its own kernel under qemu's emulation, which sees the files of this host
# read-only, and no network.

memory=2048                      # MiB
timer=(timeout --kill-after=5) # ends qemu

# new_work: sets $work, a folder for this run.
new_work() {
	mkdir -p "$BUILD/lab" || fail "no folder $BUILD/lab"
	work=$(mktemp -d "$BUILD/lab/run.XXXXXX") || fail "no folder for this run"
}

# make_initramfs FILE SHELL COMMAND...: if SHELL is not empty, COMMAND gets a terminal.
make_initramfs() {
	local root=$work/initramfs
	rm -rf "$root"
	mkdir -p "$root"/{bin,proc,sys,dev,host,upper,modules} &&
		cp "$(command -v busybox)" "$root/bin/" && ln -sf busybox "$root/bin/sh" && cp tests/lab/vm/init.sh "$root/init" &&
		cp "$kernel"/modules/* "$root/modules/" || return
	chmod +x "$root/init"
	printf 'build=%q\nshell=%q\n' "$BUILD" "$2" >"$root/settings"
	{
		printf 'cd %q\nexport BUILD=%q\n' "$PWD" "$BUILD"
		printf 'export HOME=/run/home TMPDIR=/run/tmp PATH=%q LANG=C\n' "$PATH"
		echo 'mkdir /run/home /run/tmp'
		printf '%q ' exec "${@:3}"
		echo
	} >"$root/job"
	(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) >"$1"
}

# guest LIMIT OPTION...: runs qemu for LIMIT seconds at most, the second serial line being its standard input and output
# unless the options say something else.
guest() {
	exec "${timer[@]}" "$1" qemu-system-x86_64 -nodefaults -no-user-config -display none \
		-no-reboot -net none -accel tcg,thread=multi -cpu max -smp 2 -m $memory \
		-kernel "$kernel/vmlinuz" -initrd "$work/initrd" \
		-append "console=ttyS0 loglevel=5 panic=-1 oops=panic sysctl.kernel.hung_task_panic=1 mitigations=off nokaslr tsc=reliable nowatchdog" \
		-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
		-serial "file:$work/console" "${@:2}"
}
