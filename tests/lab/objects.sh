#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What each RDMA device has of objects. Devices have no numbers here: one that was taken away comes back with another.
rdma resource show | sed 's/^[0-9]*: //' | sort
