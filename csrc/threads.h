// SPDX-License-Identifier: MIT
//
// How this library starts threads and waits: all signals but the deadly ones blocked, an explicit
// stack size, and conditions on the monotonic clock.

#ifndef BATCH_THREADS_H
#define BATCH_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// Starts a thread. Returns 0 or STATUS_NO_MEMORY when the system gives none.
int threads_start(pthread_t *out_thread, void *(*run)(void *), void *argument);

void threads_cond_init(pthread_cond_t *cond);

// Waits for the condition until due_at_us of the monotonic clock. Returns whether it was signalled.
bool threads_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t due_at_us);

#endif
