// SPDX-License-Identifier: MIT
//
// Which addresses may be connected to. By default only public unicast ones; an operator's networks
// are let through (allow) or refused (deny), and deny wins. Looks at addresses alone: knows nothing
// of names, URLs or sockets. Once filled it is only read, so any number of threads may ask it.

#ifndef BATCH_GUARD_H
#define BATCH_GUARD_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

// An IPv4 network lies in ::ffff:0:0/96, so that one comparison serves both families.
struct network {
    uint8_t bytes[16];
    unsigned bits;  // of the prefix, 0 to 128
    bool is_ipv4;
    bool is_allow;
};

struct guard {
    struct network *networks;
    size_t n_networks;
};

void guard_init(struct guard *guard);
void guard_fini(struct guard *guard);

// Adds a network to those let through, or to those refused: "10.0.0.0/8", "fd00::/8", or a lone
// address. Returns 0, STATUS_NO_MEMORY, or STATUS_INVALID with a sentence that shows the text.
int guard_add(struct guard *guard, bool is_allow, const char *text, struct fault *fault);

// An address of any family but IPv4 and IPv6 is refused.
bool guard_admits(const struct guard *guard, const struct sockaddr *address);

#endif
