/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder where external providers are looked for if the user names none. */
#ifndef WEFT_INFO_EXTERNAL_FOLDER_H
#define WEFT_INFO_EXTERNAL_FOLDER_H

/*
 * Returns the folder libfabric beside this library, LIBDIR/libfabric of the installation, which need not exist; free it.
 * NULL: the library is part of a program (the archive), was loaded by a relative path, or memory is out.
 */
char *external_folder(void);

#endif
