// SPDX-License-Identifier: MIT
//
// A list under its own lock. The descriptor is written, and the bell rung, only when the list stops
// being empty.

#include "events.h"

#include "bell.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct events {
    pthread_mutex_t lock;
    struct event *first;
    struct event *last;
    size_t count;
    uint64_t n_dropped;
    unsigned waiting_once;  // a bit for each kind of which one waits, and no second one may
    _Atomic unsigned wanted;
    int fd;
    struct bell_door door;
    int bell_fd;   // -1: nobody is there
    bool is_rung;  // and nobody has heard it
};

enum { COALESCED = 1u << EVENT_CHANGE | 1u << EVENT_TURN };

int events_open(unsigned wanted, struct events **out_events) {
    *out_events = NULL;
    struct events *events = calloc(1, sizeof *events);
    if (!events)
        return STATUS_NO_MEMORY;
    events->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (events->fd < 0) {
        free(events);
        return STATUS_STORE;
    }
    events->wanted = wanted;
    events->door.fd = events->bell_fd = -1;
    pthread_mutex_init(&events->lock, NULL);
    *out_events = events;
    return STATUS_OK;
}

void events_close(struct events *events) {
    if (!events)
        return;
    while (events->first) {
        struct event *event = events->first;
        events->first = event->next;
        free(event);
    }
    close(events->fd);
    bell_close_door(&events->door);
    bell_hang_up(events->bell_fd);
    pthread_mutex_destroy(&events->lock);
    free(events);
}

bool events_wants(const struct events *events, enum event_kind kind) {
    return atomic_load(&events->wanted) >> kind & 1;
}

void events_want(struct events *events, enum event_kind kind) {
    atomic_fetch_or(&events->wanted, 1u << kind);
}

static const char *put(char **place, const char *text) {
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    const char *start = memcpy(*place, text, size);
    *place += size;
    return start;
}

static size_t size_of(const char *text) {
    return text ? strlen(text) + 1 : 0;
}

static struct event *copy_event(const struct event *event) {
    struct event *copy = malloc(sizeof *copy + size_of(event->text) + size_of(event->detail) +
                                size_of(event->caller) + size_of(event->class_name));
    if (!copy)
        return NULL;
    char *place = (char *)(copy + 1);
    *copy = *event;
    copy->next = NULL;
    copy->text = put(&place, event->text);
    copy->detail = put(&place, event->detail);
    copy->caller = put(&place, event->caller);
    copy->class_name = put(&place, event->class_name);
    return copy;
}

static void ring_locked(struct events *events) {
    bool is_heard = events->bell_fd >= 0 && bell_ring(events->bell_fd);
    if (!is_heard) {
        bell_hang_up(events->bell_fd);
        events->bell_fd = -1;
    }
    events->is_rung = !is_heard;
}

static void append_locked(struct events *events, struct event *event) {
    if (events->last)
        events->last->next = event;
    else
        events->first = event;
    events->last = event;
    if (events->count++ == 0) {
        uint64_t one = 1;
        ssize_t n = write(events->fd, &one, sizeof one);
        (void)n;  // it cannot fill up: it is reset before the list is empty again
        if (events->bell_fd >= 0)
            ring_locked(events);
    }
}

static void add_copy_locked(struct events *events, const struct event *event) {
    unsigned once = COALESCED & 1u << event->kind;
    // Whoever misses a change would miss it for good, so that one finds room in a full list too.
    bool has_room = once || events->count < EVENTS_MAX_WAITING;
    struct event *copy = has_room ? copy_event(event) : NULL;
    if (copy)
        append_locked(events, copy);
    else
        events->n_dropped++;
    events->waiting_once |= copy ? once : 0;
}

void events_add(struct events *events, const struct event *event) {
    if (!events_wants(events, event->kind))
        return;
    pthread_mutex_lock(&events->lock);
    if (!(events->waiting_once >> event->kind & 1))
        add_copy_locked(events, event);
    pthread_mutex_unlock(&events->lock);
}

void events_put(struct events *events, struct event *event) {
    event->next = NULL;
    pthread_mutex_lock(&events->lock);
    append_locked(events, event);
    pthread_mutex_unlock(&events->lock);
}

struct event *events_take(struct events *events) {
    pthread_mutex_lock(&events->lock);
    struct event *event = events->first;
    if (event) {
        events->first = event->next;
        events->waiting_once &= ~(1u << event->kind);
        if (--events->count == 0) {
            uint64_t count;
            events->last = NULL;
            ssize_t n = read(events->fd, &count, sizeof count);
            (void)n;
        }
    }
    pthread_mutex_unlock(&events->lock);
    return event;
}

int events_fd(const struct events *events) {
    return events->fd;
}

// What takes its time in the file system happens outside of the lock.
int events_open_bell(struct events *events, char out_path[EVENTS_PATH_SIZE], struct fault *fault) {
    struct bell_door door;
    int status = bell_open_door(&door, fault);
    if (status)
        return status;
    snprintf(out_path, EVENTS_PATH_SIZE, "%s", door.address.sun_path);
    pthread_mutex_lock(&events->lock);
    struct bell_door former = events->door;
    events->door = door;
    pthread_mutex_unlock(&events->lock);
    bell_close_door(&former);
    return STATUS_OK;
}

int events_answer_bell(struct events *events, struct fault *fault) {
    int fd;
    pthread_mutex_lock(&events->lock);
    struct bell_door door = events->door;
    int former_fd = events->bell_fd;
    int status = bell_accept(&door, &fd, fault);
    if (!status) {
        events->door.fd = -1;
        events->bell_fd = fd;
        // What the former connection was told may not have been read there.
        if (events->count > 0 || events->is_rung || former_fd >= 0)
            ring_locked(events);
    }
    pthread_mutex_unlock(&events->lock);
    if (status)
        return status;
    bell_hang_up(former_fd);
    bell_close_door(&door);
    return STATUS_OK;
}

void events_ring(struct events *events) {
    pthread_mutex_lock(&events->lock);
    ring_locked(events);
    pthread_mutex_unlock(&events->lock);
}

uint64_t events_dropped(struct events *events) {
    pthread_mutex_lock(&events->lock);
    uint64_t n_dropped = events->n_dropped;
    pthread_mutex_unlock(&events->lock);
    return n_dropped;
}
