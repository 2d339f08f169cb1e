// SPDX-License-Identifier: MIT
//
// Idle connections in an array, used last in first out so that few stay warm.

#include "readers.h"

#include "threads.h"

#include <stdlib.h>

// A read is short; more would only fight over two to eight cores.
enum { MAX_READERS = 8 };

struct readers {
    pthread_mutex_t lock;
    pthread_cond_t given_back;
    struct place place;
    struct store *idle[MAX_READERS];
    int n_idle;
    int n_open;
};

int readers_open(const struct place *place, struct readers **out_readers, struct fault *fault) {
    *out_readers = NULL;
    struct readers *readers = calloc(1, sizeof *readers);
    if (!readers)
        return fault_set(fault, STATUS_NO_MEMORY, "out of memory");
    int status = place_copy(place, &readers->place, fault);
    if (status) {
        free(readers);
        return status;
    }
    pthread_mutex_init(&readers->lock, NULL);
    threads_cond_init(&readers->given_back);
    *out_readers = readers;
    return STATUS_OK;
}

void readers_close(struct readers *readers) {
    if (!readers)
        return;
    while (readers->n_idle > 0) {
        struct store *store = readers->idle[--readers->n_idle];
        store->ops->close(store);
    }
    pthread_cond_destroy(&readers->given_back);
    pthread_mutex_destroy(&readers->lock);
    place_close(&readers->place);
    free(readers);
}

// An idle connection, or NULL with a place reserved for a new one.
static struct store *take_idle(struct readers *readers) {
    struct store *store = NULL;
    pthread_mutex_lock(&readers->lock);
    while (readers->n_idle == 0 && readers->n_open == MAX_READERS)
        pthread_cond_wait(&readers->given_back, &readers->lock);
    if (readers->n_idle > 0)
        store = readers->idle[--readers->n_idle];
    else
        readers->n_open++;
    pthread_mutex_unlock(&readers->lock);
    return store;
}

// Makes room for another connection after this one failed.
static void discard(struct readers *readers, struct store *store) {
    if (store)
        store->ops->close(store);
    pthread_mutex_lock(&readers->lock);
    readers->n_open--;
    pthread_cond_signal(&readers->given_back);
    pthread_mutex_unlock(&readers->lock);
}

int readers_take(struct readers *readers, struct store **out_store, struct fault *fault) {
    *out_store = NULL;
    struct store *store = take_idle(readers);
    int status = STATUS_OK;
    if (!store)
        status = store_open(&readers->place, DURABILITY_NORMAL, false, &store, fault);
    if (!status) {
        status = store->ops->begin_read(store);
        if (status)
            fault_set(fault, status, "%s", store->fault.text);
    }
    if (status)
        discard(readers, store);
    else
        *out_store = store;
    return status;
}

void readers_give(struct readers *readers, struct store *store) {
    store->ops->end_read(store);
    pthread_mutex_lock(&readers->lock);
    readers->idle[readers->n_idle++] = store;
    pthread_cond_signal(&readers->given_back);
    pthread_mutex_unlock(&readers->lock);
}
