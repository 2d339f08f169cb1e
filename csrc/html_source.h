// SPDX-License-Identifier: MIT
//
// What of a document's source the parser need not see, which takes it as long as what it shows: the
// insides of scripts and styles. And what it must not see: more attributes than it can bear, for it
// compares each of a tag with all before it. No parser: where a tag may mean something else than it
// seems to, all stays as it is.

#ifndef BATCH_HTML_SOURCE_H
#define BATCH_HTML_SOURCE_H

#include "status.h"

#include <stddef.h>

// Gives a lighter copy, which is the caller's to free(), or NULL when there is nothing to leave
// out. Returns 0 or STATUS_NO_MEMORY.
int html_source_lighten(const char *text, size_t len, char **out_copy, size_t *out_len);

#endif
