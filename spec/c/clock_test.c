// SPDX-License-Identifier: MIT
//
// The system's clocks, and one that stands still.

#include "clock.h"

#include "check.h"

static void test_virtual(void) {
    struct clock clock;
    clock_init(&clock, 1000);
    CHECK("it shows what it was set to", clock_wall_ms(&clock) == 1000);
    int64_t began_us = clock_mono_us(&clock);
    CHECK("it does not begin at 0, which means never", began_us != 0);
    CHECK("it stands still", clock_wall_ms(&clock) == 1000);
    clock_advance(&clock, 250);
    CHECK("it goes on when told", clock_wall_ms(&clock) == 1250);
    CHECK("with both its faces", clock_mono_us(&clock) == began_us + 250000);
    clock_set_wall(&clock, 500);
    CHECK("it may be set back", clock_wall_ms(&clock) == 500);
    CHECK("but spans do not notice", clock_mono_us(&clock) == began_us + 250000);
}

static void test_system(void) {
    int64_t before = clock_mono_us(NULL);
    CHECK("it is later than 2020", clock_wall_ms(NULL) > INT64_C(1577836800000));
    CHECK("it does not run backwards", clock_mono_us(NULL) >= before);
}

static void test_naps(void) {
    struct clock clock;
    clock_init(&clock, 0);
    CHECK("a real wait is as long as it is", clock_nap_us(NULL, 5000000) == 5000000);
    CHECK("a virtual one is short", clock_nap_us(&clock, 5000000) < 10000);
    CHECK("and never longer than asked", clock_nap_us(&clock, 7) == 7);
}

int main(void) {
    test_virtual();
    test_system();
    test_naps();
    return check_report();
}
