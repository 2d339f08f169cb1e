// SPDX-License-Identifier: MIT
//
// From gumbo's tree to the flat list of struct html.

#ifndef BATCH_HTML_FLATTEN_H
#define BATCH_HTML_FLATTEN_H

#include "buffer.h"
#include "html.h"

#include <gumbo.h>

// Fills html's nodes and attributes, which point into the tree and into text. Returns 0,
// STATUS_NO_MEMORY, or STATUS_INVALID for too many nodes; what is filled is the caller's to free.
int html_flatten(struct html *html, const GumboNode *root, const struct html_limits *limits,
                 struct buffer *text);

// The value, or NULL.
const char *html_attribute_value(const GumboNode *element, const char *name);

#endif
