# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The libraries of Debian for arm64, unpacked into a folder. They are fetched once with an apt
# configuration of their own, so the system's lists of packages and architectures stay unchanged.
#     AARCH64_MIRROR  mirror to fetch them from
#     AARCH64_SUITE   release of Debian: its libraries have to fit the cross compiler

wanted="libc6-dev libibverbs-dev librdmacm-dev libnl-3-dev libnl-route-3-dev libssl-dev check"

# get_sysroot FOLDER: makes FOLDER/root; succeeds at once if it is there.
get_sysroot() {
	local fresh=$1/new
	if [ "$(cat "$1/wanted" 2>/dev/null)" = "$wanted" ]; then return 0; fi
	echo "aarch64: fetching the libraries"
	rm -rf "$fresh" "$1/root"
	if ! fetch_packages "$fresh" >"$1/fetch.log" 2>&1; then
		tail -n 20 "$1/fetch.log"
		return 1
	fi
	mv "$fresh/root" "$1/root" && rm -rf "$fresh" && echo "$wanted" >"$1/wanted"
}

# fetch_packages FOLDER: unpacks what is wanted, and what that depends on, into FOLDER/root.
fetch_packages() (
	local package
	mkdir -p "$1"/lists/partial "$1"/archives/partial "$1"/root || return
	: >"$1/status"
	cat >"$1/conf" <<-END
		APT::Architecture "arm64";
		APT::Architectures { "arm64"; };
		APT::Sandbox::User "";
		Dir::State::lists "$1/lists";
		Dir::State::status "$1/status";
		Dir::Cache "$1";
		Dir::Cache::archives "archives";
		Dir::Etc::sourcelist "$1/sources.list";
		Dir::Etc::sourceparts "-";
	END
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"${AARCH64_MIRROR:-http://deb.debian.org/debian} ${AARCH64_SUITE:-$(release)} main" >"$1/sources.list"
	export APT_CONFIG=$1/conf
	timeout 120 apt-get -q update || return
	# shellcheck disable=SC2086 # names
	timeout 240 apt-get -q -y --no-install-recommends --download-only install $wanted || return
	for package in "$1"/archives/*.deb; do
		dpkg-deb -x "$package" "$1/root" || return
	done
	[ -d "$1/root/lib" ] || ln -s usr/lib "$1/root/lib"
)

# release: the name of this system's release.
release() {
	# shellcheck source=/dev/null
	. /etc/os-release && echo "$VERSION_CODENAME"
}
