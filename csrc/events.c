// SPDX-License-Identifier: MIT
//
// A list under its own lock. The descriptor is written only when the list stops being empty.

#include "events.h"

#include "status.h"

#include <pthread.h>
#include <stdatomic.h>
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
    bool has_change;
    _Atomic unsigned wanted;
    int fd;
};

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
    }
}

static void add_copy_locked(struct events *events, const struct event *event) {
    bool is_change = event->kind == EVENT_CHANGE;
    // Whoever misses a change would miss it for good, so that one finds room in a full list too.
    bool has_room = is_change || events->count < EVENTS_MAX_WAITING;
    struct event *copy = has_room ? copy_event(event) : NULL;
    if (copy)
        append_locked(events, copy);
    else
        events->n_dropped++;
    events->has_change |= is_change && copy;
}

void events_add(struct events *events, const struct event *event) {
    if (!events_wants(events, event->kind))
        return;
    pthread_mutex_lock(&events->lock);
    if (event->kind != EVENT_CHANGE || !events->has_change)
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
        if (event->kind == EVENT_CHANGE)
            events->has_change = false;
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

uint64_t events_dropped(struct events *events) {
    pthread_mutex_lock(&events->lock);
    uint64_t n_dropped = events->n_dropped;
    pthread_mutex_unlock(&events->lock);
    return n_dropped;
}
