// SPDX-License-Identifier: MIT
//
// An HTML document as a flat list of nodes, in the order of the document: what a browser would show
// of its body, with white space folded, and a few facts of its head. Hides gumbo, whose work it
// bounds in time and memory whatever the document is. Knows nothing of URLs and of what is worth
// reading. A document belongs to one thread.

#ifndef BATCH_HTML_H
#define BATCH_HTML_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct html_limits {
    size_t max_bytes;    // of memory for the parser's tree
    size_t max_nodes;    // in the list
    int64_t max_cpu_us;  // of this thread's processor time
    int cancel_fd;       // readable: give up; -1: none
    bool has_hidden;     // also what is there but not shown, and noscript
};

struct html_attribute {
    const char *name;
    const char *value;
};

struct html_node {
    const char *name;   // NULL: a text
    const char *text;   // UTF-8, not terminated; of an element: NULL
    uint32_t len;       // of the text, or of the texts inside
    uint32_t link_len;  // of these what is inside links
    bool has_signs;     // of a text: it has punctuation that means something in Markdown
    uint32_t end;       // index of the next node that is not inside
    uint32_t first_attribute;
    uint32_t n_attributes;
};

struct html {
    struct html_node *nodes;  // the first one is the body
    size_t n_nodes;
    struct html_attribute *attributes;
    size_t n_attributes;
    const char *title;  // this and the next two may be NULL
    const char *og_title;
    const char *base;
    struct html_tree *tree;
};

// Parses len bytes of UTF-8. Returns 0, STATUS_INVALID for a document beyond the limits,
// STATUS_CLOSED when cancel_fd was readable, or STATUS_NO_MEMORY; fault says which. The document
// is html_free's.
int html_parse(const char *text, size_t len, const struct html_limits *limits,
               struct html **out_html, struct fault *fault);

// NULL is harmless.
void html_free(struct html *html);

#endif
