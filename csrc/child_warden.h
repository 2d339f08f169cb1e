// SPDX-License-Identifier: MIT
//
// The process between the host and a program. A host may ignore SIGCHLD, or wait for whatever child
// comes by, as nginx does; then a child of the host's own would be lost to it. The warden ends
// without a signal, so neither sees it (wait(2), __WCLONE); the program is the warden's child, and
// the warden alone waits for it. When its link to the host ends, by the host's wish or death, it
// kills the program; when it is killed itself, the kernel does.

#ifndef BATCH_CHILD_WARDEN_H
#define BATCH_CHILD_WARDEN_H

#include "child_filter.h"

#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum {
    WARDEN_LINK = 3,  // its descriptor of the link; those handed to it must be above
    WARDEN_N_LIMITS = 5,
    WARDEN_STACKS_SIZE = 64 * 1024,
};

struct warden_order {
    char *stacks;  // WARDEN_STACKS_SIZE bytes to work on
    const char *path;
    char *const *arguments;  // from the program's name to NULL
    int input_fd;
    int output_fd;
    int errors_fd;
    int link_fd;  // a socket of packets; its other end shut down is the order to end
    struct {
        int resource;
        struct rlimit limit;
    } limits[WARDEN_N_LIMITS];
    struct child_filter filter;
};

// What comes through the link, once.
struct warden_report {
    int error;   // not 0: the errno with which the program could not be started
    int status;  // as of wait(2)
    int64_t cpu_us;
};

// Starts the warden and returns its number, or -1 with errno. All signals must be blocked. The
// warden shares this process's memory, a copy of which could cost more than the program: the order
// must stay as it is until waitpid(…, __WALL) has returned, which is called when the report is
// there or the link has ended. Up to then this thread must not depend on errno, which is the
// warden's too.
pid_t warden_start(const struct warden_order *order);

#endif
