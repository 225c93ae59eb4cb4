# SPDX-License-Identifier: BSD-2-Clause
# find_package(libfabric) gives the target libfabric::libfabric. `make install` fills in @INCLUDE@, the way from here
# to the folder of the headers, so what is installed may be moved as a whole.
get_filename_component(libfabric_here "${CMAKE_CURRENT_LIST_DIR}" REALPATH)

if(NOT TARGET libfabric::libfabric)
	add_library(libfabric::libfabric SHARED IMPORTED)
	set_target_properties(libfabric::libfabric PROPERTIES
		IMPORTED_LOCATION "${libfabric_here}/../../libfabric.so"
		IMPORTED_SONAME libfabric.so.1
		INTERFACE_INCLUDE_DIRECTORIES "${libfabric_here}/@INCLUDE@")
endif()
unset(libfabric_here)
