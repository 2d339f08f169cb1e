// SPDX-License-Identifier: MIT
//
// Thin over pthread.

#include "threads.h"

#include "fault_point.h"
#include "status.h"

#include <signal.h>
#include <stddef.h>

// Enough for Lua's C stack limit (200 nested C calls) with room for libcurl and SQLite.
enum { STACK_SIZE = 1024 * 1024 };

int threads_start(pthread_t *out_thread, void *(*run)(void *), void *argument) {
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    if (fault_point_pass(FAULT_AT_THREAD))
        return STATUS_NO_MEMORY;
    pthread_attr_t attributes;
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        sigdelset(&blocked, deadly[i]);
    if (pthread_attr_init(&attributes))
        return STATUS_NO_MEMORY;
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    // A new thread inherits the mask: blocked before it starts, there is no moment without it.
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int error = pthread_create(out_thread, &attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error ? STATUS_NO_MEMORY : STATUS_OK;
}

void threads_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool threads_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t due_at_us) {
    struct timespec until = {due_at_us / 1000000, (long)(due_at_us % 1000000) * 1000};
    return pthread_cond_timedwait(cond, lock, &until) == 0;
}
