# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # what is set here is used by those who source it, and the other way round
# The kernels of the virtual machines: Debian's packages, of which only the image and the needed
# modules are kept. They are fetched once with an apt configuration of their own, so the system's
# lists of packages stay unchanged.
#     LAB_CACHE   where they are kept; default: "lab" in the build folder
#     LAB_MIRROR  mirror to fetch them from

declare -A suites=([6.1]=bookworm [6.12]=bookworm-backports)
modules=(virtio_pci 9pnet_virtio 9p overlay rdma_rxe rdma_ucm ib_uverbs dummy veth tls sch_netem sch_tbf)
# For rxe's checksums and the cipher of TLS, where the kernel has them as modules.
optional=(crc32_generic crc32_pclmul gcm ctr ghash_generic aesni_intel ghash_clmulni_intel)

wanted="${modules[*]} ${optional[*]}"

# get_kernel VERSION: sets $kernel, a folder with the image, the modules numbered in load order, and
# the name; or fails and sets $why.
get_kernel() {
	local fresh cache=${LAB_CACHE:-$BUILD/lab}
	[ -n "${suites[$1]-}" ] || fail "no kernel $1: there are ${!suites[*]}"
	kernel=$cache/$1
	if [ -e "$kernel/name" ] && [ "$(cat "$kernel/wanted")" = "$wanted" ]; then return 0; fi
	why="kernel $1 is not to be had"
	if ! command -v apt-get >/dev/null; then
		why+=": it is a package of Debian, and there is no apt-get to fetch it with"
		return 1
	fi
	mkdir -p "$cache" || fail "no folder $cache"
	fresh=$(mktemp -d "$cache/new.XXXXXX") || fail "no folder in $cache"
	echo "kernel $1: fetching it"
	if fetch_kernel "$1" "$fresh" >"$fresh/log" 2>&1; then
		rm -rf "$fresh"/{apt,root} "$kernel"
		chmod 755 "$fresh"
		mv -T "$fresh" "$kernel"
	else
		tail -n 20 "$fresh/log"
		rm -rf "$fresh"
		unset APT_CONFIG
		return 1
	fi
}

# fetch_kernel VERSION FOLDER
fetch_kernel() {
	local apt=$2/apt package root=$2/root
	mkdir -p "$apt"/{lists,archives}/partial "$root" || return
	cat >"$apt/conf" <<-END
		Dir::State::lists "$apt/lists";
		Dir::Cache "$apt";
		Dir::Cache::archives "archives";
		Dir::Etc::sourcelist "$apt/sources.list";
		Dir::Etc::sourceparts "-";
		APT::Sandbox::User "";
	END
	echo "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"${LAB_MIRROR:-http://deb.debian.org/debian} ${suites[$1]} main" >"$apt/sources.list"
	export APT_CONFIG=$apt/conf
	timeout 120 apt-get -q update || return
	package=$(apt-cache depends linux-image-amd64:amd64 | sed -n 's/.*Depends: //p')
	package=${package%:amd64}
	case $package in
	linux-image-"$1".*) ;;
	*) echo "${suites[$1]} has '$package', which is no kernel $1" && return 1 ;;
	esac
	(cd "$apt" && timeout 240 apt-get -q download "$package:amd64") && dpkg-deb -x "$apt"/linux-image-*.deb "$root" || return
	unset APT_CONFIG
	[ -d "$root/lib" ] || ln -s usr/lib "$root/lib"
	take_modules "$root" "${package#linux-image-}" "$2/modules" && mv "$root"/boot/vmlinuz-* "$2/vmlinuz" &&
		echo "$wanted" >"$2/wanted" && echo "${package#linux-image-}" >"$2/name"
}

# take_modules ROOT NAME FOLDER: copies what modprobe would load, in its order.
take_modules() {
	local path module file n=100
	mkdir -p "$3" && depmod -b "$1" "$2" || return
	for module in "${modules[@]}"; do
		modprobe -d "$1" -S "$2" --show-depends "$module" || return
	done >"$3.list"
	for module in "${optional[@]}"; do modprobe -d "$1" -S "$2" --show-depends "$module"; done >>"$3.list"
	awk '$1 == "insmod" && !seen[$2]++ { print $2 }' "$3.list" >"$3.order"
	while read -r path; do
		n=$((n + 1)) file=$3/$n-$(basename "$path")
		cp "$path" "$file" || return
		case $file in *.xz) busybox unxz "$file" || return ;; esac
	done <"$3.order"
}
