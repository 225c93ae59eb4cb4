#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Prints the objects of each RDMA device. Device numbers are left out: a device that was removed
# comes back with another one.
rdma resource show | sed 's/^[0-9]*: //' | sort
