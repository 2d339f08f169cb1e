// SPDX-License-Identifier: MIT
//
// What a limited child may not ask of the kernel, as a seccomp program: no network, no look into
// other processes and, unless it may, no processes of its own. Files are not its business. Knows of
// this machine's system calls only; on an architecture that it does not know it forbids nothing.

#ifndef BATCH_CHILD_FILTER_H
#define BATCH_CHILD_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>

enum { CHILD_FILTER_MAX = 40 };

struct child_filter {
    struct sock_filter code[CHILD_FILTER_MAX];
    unsigned short len;  // 0: nothing is forbidden
};

void child_filter_make(struct child_filter *out_filter, bool may_spawn);

// Whether there is a filter for this architecture and the kernel takes one. Where it does not,
// children run without.
bool child_filter_is_taken(void);

#endif
