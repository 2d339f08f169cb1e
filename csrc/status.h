// SPDX-License-Identifier: MIT
//
// What a call ended with: the one convention of this tree. A function that can be refused returns 0
// or a negative STATUS_; where a sentence is owed, it also fills a struct fault. Knows nothing
// else.

#ifndef BATCH_STATUS_H
#define BATCH_STATUS_H

enum status {
    STATUS_OK = 0,
    STATUS_INVALID = -1,
    STATUS_NOT_FOUND = -2,
    STATUS_EXPIRED = -3,
    STATUS_TOO_MANY_TARGETS = -4,
    STATUS_CALLER_BUSY = -5,
    STATUS_BUSY = -6,
    STATUS_CLOSED = -7,
    STATUS_STORE = -8,   // the store refused: disk full, I/O error, corrupt, not a store
    STATUS_LOCKED = -9,  // the store is locked by others; trying again may help
    STATUS_TIMEOUT = -10,
    STATUS_NO_MEMORY = -11,
    STATUS_NOTHING = -12,  // there is nothing to hand out now, or no row left
};

// A sentence for the user: lower case, no full stop, always terminated.
struct fault {
    char text[512];
};

// The code that users see for a status: "invalid", "not_found", … Never NULL.
const char *status_code(int status);

// The sentence that users see where no better one is at hand. Never NULL.
const char *status_message(int status);

// Writes the sentence and returns the status, so that a refusal is one statement. fault may be
// NULL.
int fault_set(struct fault *fault, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
