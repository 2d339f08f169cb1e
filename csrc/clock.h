// SPDX-License-Identifier: MIT
//
// Time behind a pointer. A NULL clock is the system's; a virtual one stands still until it is told
// to advance, so that leases, retries, time-outs and sweeps can be tested without waiting.
// Safe from any thread.

#ifndef BATCH_CLOCK_H
#define BATCH_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

struct clock {
    _Atomic int n_holders;    // of one made by clock_new
    _Atomic int64_t wall_ms;  // since the epoch
    _Atomic int64_t mono_us;  // never 0
};

// Makes a virtual clock that shows wall_ms and stands still.
void clock_init(struct clock *clock, int64_t wall_ms);

// One in memory of its own, which its last holder frees: a thread that was abandoned may look at
// the clock when all else is gone. NULL when memory ran out.
struct clock *clock_new(int64_t wall_ms);
// These do nothing to NULL, the system's clock.
struct clock *clock_hold(struct clock *clock);
void clock_drop(struct clock *clock);

// Moves a virtual clock forward by span_ms, both its faces.
void clock_advance(struct clock *clock, int64_t span_ms);

// Sets the wall clock of a virtual clock, as people and NTP do: what never runs backwards stays.
void clock_set_wall(struct clock *clock, int64_t wall_ms);

// Milliseconds since the epoch: for moments that are stored or shown.
int64_t clock_wall_ms(const struct clock *clock);

// Microseconds that never run backwards: for spans and waits.
int64_t clock_mono_us(const struct clock *clock);

// How long, in real microseconds, a thread may sleep when span_us are left on this clock. On a
// virtual clock that is a short nap after which the clock has to be read again.
int64_t clock_nap_us(const struct clock *clock, int64_t span_us);

#endif
