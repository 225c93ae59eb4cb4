# SPDX-License-Identifier: BSD-2-Clause
# `make install` fills in the version. The library serves programs written for any version up to its own.
set(PACKAGE_VERSION "@VERSION@")

if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
	set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
	set(PACKAGE_VERSION_COMPATIBLE TRUE)
	if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
		set(PACKAGE_VERSION_EXACT TRUE)
	endif()
endif()
