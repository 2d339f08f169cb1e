// SPDX-License-Identifier: MIT
//
// A wake-up for event loops that wait for sockets of their own making and for nothing else: a unix
// socket to which the program connects, and over which a byte comes when there is something to do.
// Knows nothing of what that is, and has no lock: whoever owns a bell guards it.

#ifndef BATCH_BELL_H
#define BATCH_BELL_H

#include "status.h"

#include <stdbool.h>
#include <sys/un.h>

// Where the program connects to: a socket in a folder that only this user may enter.
struct bell_door {
    int fd;  // -1: closed
    struct sockaddr_un address;
};

// Returns 0, or STATUS_STORE with the sentence. Below TMPDIR, or /tmp.
int bell_open_door(struct bell_door *out_door, struct fault *fault);

// Removes the socket and its folder. Harmless on a door that is closed.
void bell_close_door(struct bell_door *door);

// The connection that was made, without waiting for one: STATUS_NOTHING. The door stays open.
int bell_accept(const struct bell_door *door, int *out_fd, struct fault *fault);

// Sends a byte, unless more wait there than fit, which wake up just as well. Never blocks. Returns
// whether there is anybody to hear it.
bool bell_ring(int fd);

// The other side sees its end, even where a fork's child holds a copy. Harmless with -1.
void bell_hang_up(int fd);

#endif
