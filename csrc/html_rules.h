// SPDX-License-Identifier: MIT
//
// What becomes of each element and attribute of HTML on the way into the list of nodes.

#ifndef BATCH_HTML_RULES_H
#define BATCH_HTML_RULES_H

#include <gumbo.h>

enum html_role {
    UNWRAPPED,  // as if only its content were there
    DROPPED,
    INLINE,
    BLOCK,
};

// Which attributes of an element are kept.
enum {
    NAMING = 1,  // class, id, role
    LINK = 2,
    IMAGE = 4,
    CELL = 8,
    LIST = 16,
    CODE = 32,
    CONTROL = 64,
};

struct html_rule {
    const char *name;  // in the list; elements that mean the same have the same
    enum html_role role;
    unsigned keeps;
};

extern const struct html_rule html_rules[GUMBO_TAG_LAST];

struct html_kept {
    const char *name;
    unsigned of;
};

// The attributes that anything keeps; the last one has no name.
extern const struct html_kept html_kept[];

#endif
