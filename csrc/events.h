// SPDX-License-Identifier: MIT
//
// What happened, on its way to hooks that run elsewhere: one bounded list, and a descriptor that is
// readable while something is in it. Safe from any thread; an event is written by whoever caused it
// and read by whoever polls.

#ifndef BATCH_EVENTS_H
#define BATCH_EVENTS_H

#include "job.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Enough for some seconds of a busy runner that nobody polls; about 3 MiB when full.
enum { EVENTS_MAX_WAITING = 16384, EVENTS_PATH_SIZE = 128 };

enum event_kind {
    EVENT_DEPTH,
    EVENT_INFLIGHT,
    EVENT_TARGET,
    EVENT_JOB,
    EVENT_JOB_SECONDS,
    EVENT_LOG,
    EVENT_CHANGE,  // the store has changed, by this process or another; at most one waits
    EVENT_ANSWER,  // a call that nobody waited for has its end
    EVENT_TURN,    // targets may be taken; at most one waits
    EVENT_N_KINDS,
};

struct event {
    struct event *next;
    enum event_kind kind;
    int64_t number;    // depth, inflight; a target's idx; a log record's level; an answer's ticket
    int64_t bytes;     // of a target's result
    int64_t attempts;  // of a target
    double seconds;
    int job_status;
    int status;          // of an answer
    bool is_reused;      // of an answer to a submit
    int64_t expires_at;  // of an answer to a submit
    char job_id[JOB_ID_SIZE];
    // In the same allocation; NULL: none.
    const char *text;    // a target's error; a log record's message; a job's error
    const char *detail;  // a log record's detail
    const char *caller;
    const char *class_name;
};

struct events;

// wanted: a bit (1 << kind) for each kind that somebody will read; others are dropped uncounted.
// Returns 0, STATUS_STORE (no descriptor) or STATUS_NO_MEMORY.
int events_open(unsigned wanted, struct events **out_events);
void events_close(struct events *events);

bool events_wants(const struct events *events, enum event_kind kind);

// From now on somebody reads events of that kind.
void events_want(struct events *events, enum event_kind kind);

// Copies the event with its texts into the list; counts it as dropped when the list is full.
void events_add(struct events *events, const struct event *event);

// Appends an event that was allocated as one block, which from now on is the list's; even a full
// list takes it.
void events_put(struct events *events, struct event *event);

// The oldest event, which the caller frees; NULL when there is none.
struct event *events_take(struct events *events);

int events_fd(const struct events *events);

// The bell: a way to wait for events without the descriptor. Opens the door, whose path the
// program connects to; it is good until the door is closed by answering, by another one, or with
// the list. Returns 0 or STATUS_STORE.
int events_open_bell(struct events *events, char out_path[EVENTS_PATH_SIZE], struct fault *fault);

// Takes the connection that was made to the door, which is closed: from now on it gets a byte
// whenever the descriptor becomes readable, and one at once if something may have been missed. A
// former connection ends. Never waits: STATUS_NOTHING, and the door stays open. Or STATUS_STORE.
int events_answer_bell(struct events *events, struct fault *fault);

// Sends a byte for a reason of the program's own. Before there is a connection: with the first one.
void events_ring(struct events *events);

uint64_t events_dropped(struct events *events);

#endif
