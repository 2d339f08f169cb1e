// SPDX-License-Identifier: MIT
//
// The system's two clocks, and the virtual one.

#include "clock.h"

#include <stdlib.h>
#include <time.h>

// Short enough that a test does not feel it, long enough to leave a core idle.
enum { VIRTUAL_NAP_US = 1000 };

// Not 0, which stands for "never" where a moment is kept.
enum { VIRTUAL_BEGIN_US = 1000000 };

void clock_init(struct clock *clock, int64_t wall_ms) {
    atomic_init(&clock->n_holders, 1);
    atomic_init(&clock->wall_ms, wall_ms);
    atomic_init(&clock->mono_us, VIRTUAL_BEGIN_US);
}

struct clock *clock_new(int64_t wall_ms) {
    struct clock *clock = malloc(sizeof *clock);
    if (clock)
        clock_init(clock, wall_ms);
    return clock;
}

struct clock *clock_hold(struct clock *clock) {
    if (clock)
        atomic_fetch_add(&clock->n_holders, 1);
    return clock;
}

void clock_drop(struct clock *clock) {
    if (clock && atomic_fetch_sub(&clock->n_holders, 1) == 1)
        free(clock);
}

void clock_advance(struct clock *clock, int64_t span_ms) {
    atomic_fetch_add(&clock->wall_ms, span_ms);
    atomic_fetch_add(&clock->mono_us, span_ms * 1000);
}

void clock_set_wall(struct clock *clock, int64_t wall_ms) {
    atomic_store(&clock->wall_ms, wall_ms);
}

int64_t clock_wall_ms(const struct clock *clock) {
    if (clock)
        return atomic_load(&clock->wall_ms);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_mono_us(const struct clock *clock) {
    if (clock)
        return atomic_load(&clock->mono_us);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_nap_us(const struct clock *clock, int64_t span_us) {
    return clock && span_us > VIRTUAL_NAP_US ? VIRTUAL_NAP_US : span_us;
}
