// SPDX-License-Identifier: MIT
//
// Slots of hosts: limits, delays, queues, what becomes of lost slots and of memory; whole runs of
// many who wait, simulated, for how near they come to the ideal; and threads.

#include "hosts.h"

#include "check.h"
#include "status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECOND = 1000000, LATENCY_US = 150 };

static struct clock now;

static int enter_as(struct hosts *hosts, const char *name, const char *who,
                    const struct hosts_wish *rules, struct hosts_slot *slot, int64_t *out_wait_us) {
    struct hosts_wish wish = *rules;
    wish.name = name;
    wish.name_len = strlen(name);
    wish.who = who;
    wish.who_len = strlen(who);
    return hosts_enter(hosts, &wish, slot, out_wait_us);
}

static const struct hosts_wish two = {.limit = 2, .lasts_us = 100 * SECOND};
static const struct hosts_wish spaced = {.limit = 2, .delay_us = SECOND, .lasts_us = 100 * SECOND};

static void test_limit(void) {
    struct hosts *hosts = hosts_new(&now);
    struct hosts_slot a, b, c, d;
    int64_t wait_us;
    CHECK("a host takes one", enter_as(hosts, "h", "a", &two, &a, &wait_us) == STATUS_OK);
    CHECK("and another", enter_as(hosts, "h", "b", &two, &b, &wait_us) == STATUS_OK);
    CHECK("no third", enter_as(hosts, "h", "c", &two, &c, &wait_us) == STATUS_BUSY);
    CHECK("who is told when to come back", wait_us >= 1000 && wait_us <= SECOND);
    CHECK("another host does", enter_as(hosts, "i", "c", &two, &c, &wait_us) == STATUS_OK);
    hosts_leave(&a);
    CHECK("what is given back is free", enter_as(hosts, "h", "d", &two, &d, &wait_us) == STATUS_OK);
    CHECK("and full again", enter_as(hosts, "h", "a", &two, &a, &wait_us) == STATUS_BUSY);
    hosts_leave(&a);
    hosts_leave(&d);
    hosts_leave(&d);
    CHECK("given back twice it is free once",
          enter_as(hosts, "h", "a", &two, &a, &wait_us) == STATUS_OK &&
              enter_as(hosts, "h", "d", &two, &d, &wait_us) == STATUS_BUSY);
    hosts_leave(&a);
    hosts_leave(&b);
    hosts_leave(&c);
    hosts_free(hosts);
}

static void test_lost_slots(void) {
    struct hosts *hosts = hosts_new(&now);
    struct hosts_slot lost, later;
    struct hosts_wish one = {.limit = 1, .lasts_us = 60 * SECOND};
    int64_t wait_us;
    CHECK("a slot is taken", enter_as(hosts, "h", "a", &one, &lost, &wait_us) == STATUS_OK);
    clock_advance(&now, 59999);
    CHECK("it holds", enter_as(hosts, "h", "b", &one, &later, &wait_us) == STATUS_BUSY);
    clock_advance(&now, 1);
    CHECK("as long as it lasts", enter_as(hosts, "h", "b", &one, &later, &wait_us) == STATUS_OK);
    hosts_leave(&lost);
    CHECK("what comes late frees nothing that is another's",
          enter_as(hosts, "h", "a", &one, &lost, &wait_us) == STATUS_BUSY);
    hosts_leave(&later);
    hosts_free(hosts);
}

// Whoever has no delay of his own does not come back over and over until another's has passed.
static void test_foreign_delay(void) {
    struct hosts *hosts = hosts_new(&now);
    struct hosts_slot spaced_slot, slot;
    struct hosts_wish hasty = {.limit = 2, .lasts_us = 60 * SECOND};
    int64_t wait_us;
    CHECK("a delay begins",
          enter_as(hosts, "h", "a", &spaced, &spaced_slot, &wait_us) == STATUS_OK);
    hosts_leave(&spaced_slot);
    CHECK("another waits for its end",
          enter_as(hosts, "h", "b", &hasty, &slot, &wait_us) == STATUS_BUSY && wait_us == SECOND);
    clock_advance(&now, 1000);
    CHECK("and begins", enter_as(hosts, "h", "b", &hasty, &slot, &wait_us) == STATUS_OK);
    hosts_leave(&slot);
    hosts_free(hosts);
}

// The n-th that comes gets a slot n delays later, and returns exactly then.
static void test_delay(void) {
    struct hosts *hosts = hosts_new(&now);
    struct hosts_slot slots[5];
    int64_t waits[5];
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 5; i++) {
        int status = enter_as(hosts, "h", names[i], &spaced, &slots[i], &waits[i]);
        CHECK("the first begins, the others wait one delay longer each",
              status == (i == 0 ? STATUS_OK : STATUS_BUSY) && waits[i] == i * SECOND);
    }
    hosts_leave(&slots[0]);
    for (int i = 1; i < 5; i++) {
        struct hosts_slot stranger;
        int64_t wait_us;
        clock_advance(&now, 999);
        CHECK("nobody begins early",
              enter_as(hosts, "h", names[i], &spaced, &slots[i], &wait_us) == STATUS_BUSY);
        CHECK("he keeps his moment", wait_us == 1000);
        clock_advance(&now, 1);
        CHECK("a stranger waits behind all",
              enter_as(hosts, "h", "stranger", &spaced, &stranger, &wait_us) == STATUS_BUSY &&
                  wait_us == (5 - i) * SECOND);
        CHECK("in his turn he begins",
              enter_as(hosts, "h", names[i], &spaced, &slots[i], &wait_us) == STATUS_OK);
        hosts_leave(&slots[i]);
    }
    hosts_free(hosts);
}

static void test_absent(void) {
    struct hosts *hosts = hosts_new(&now);
    struct hosts_slot first, second, third;
    int64_t wait_us;
    enter_as(hosts, "h", "a", &spaced, &first, &wait_us);
    enter_as(hosts, "h", "b", &spaced, &second, &wait_us);
    enter_as(hosts, "h", "c", &spaced, &third, &wait_us);
    hosts_leave(&first);
    clock_advance(&now, 2000);
    CHECK("one who does not come back costs the next nothing but his moment",
          wait_us == 2 * SECOND &&
              enter_as(hosts, "h", "c", &spaced, &third, &wait_us) == STATUS_OK);
    hosts_leave(&third);
    hosts_free(hosts);
}

static void test_memory(void) {
    struct hosts *hosts = hosts_new(&now);
    struct hosts_slot slot;
    int64_t wait_us;
    char name[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "host %d", i);
        enter_as(hosts, name, "a", &two, &slot, &wait_us);
        hosts_leave(&slot);
        if (i % 10 == 0)
            clock_advance(&now, 100);
    }
    size_t count = hosts_count(hosts);
    CHECK("idle hosts are forgotten", count < 1000);
    struct hosts_slot one = {0};
    struct hosts_wish single = {.limit = 1, .lasts_us = SECOND};
    enter_as(hosts, "h", "holder", &single, &one, &wait_us);
    for (int i = 0; i < HOSTS_MAX_QUEUE + 100; i++) {
        snprintf(name, sizeof name, "waiter %d", i);
        if (enter_as(hosts, "h", name, &single, &slot, &wait_us) != STATUS_BUSY ||
            wait_us > 10 * SECOND)
            break;
    }
    CHECK("who comes to a full queue waits like the others",
          strcmp(name, "waiter 4195") == 0 && wait_us >= SECOND / 2);
    hosts_leave(&one);
    hosts_free(hosts);
}

static void test_fork(void) {
    struct hosts *hosts = hosts_shared();
    struct hosts_wish one = {.limit = 1, .lasts_us = 100 * SECOND};
    struct hosts_slot ours, theirs;
    int64_t wait_us;
    int status = 0;
    enter_as(hosts, "h", "a", &one, &ours, &wait_us);
    pid_t child = fork();
    if (child == 0) {
        bool is_free = hosts_count(hosts) == 0 &&
                       enter_as(hosts, "h", "b", &one, &theirs, &wait_us) == STATUS_OK;
        hosts_leave(&ours);
        bool is_taken = enter_as(hosts, "h", "c", &one, &ours, &wait_us) == STATUS_BUSY;
        _exit(is_free && is_taken ? 0 : 1);
    }
    waitpid(child, &status, 0);
    CHECK("a child begins with nothing, and its parent's slots are not its own", status == 0);
    CHECK("the parent's stay", enter_as(hosts, "h", "b", &one, &theirs, &wait_us) == STATUS_BUSY);
    hosts_leave(&ours);
}

// Jobs, each with targets of one host one after the other, as a runner would try them.
struct job {
    struct hosts_slot slot;
    bool is_running;
    int n_left;
    int64_t event_us;
    int64_t waiting_since_us;  // -1: not waiting
    char who[16];
};

struct run {
    int n_jobs;
    int n_targets;  // of each
    struct hosts_wish rules;
    int64_t span_us;  // of a request
    bool is_random;   // any from 0 to twice the span
};

struct figures {
    double slowness;  // of the time that cannot be undercut
    double calls;     // of enter, for each request
    int most_at_once;
    int64_t least_gap_us;
    int64_t longest_wait_us;
};

static struct job *next_job(struct job *jobs, int n_jobs) {
    struct job *next = NULL;
    for (int i = 0; i < n_jobs; i++)
        if ((jobs[i].is_running || jobs[i].n_left > 0) &&
            (!next || jobs[i].event_us < next->event_us))
            next = &jobs[i];
    return next;
}

struct simulation {
    const struct run *run;
    struct hosts *hosts;
    struct figures figures;
    unsigned seed;
    int n_at_once;
    int64_t n_calls;
    int64_t work_us;
    int64_t last_us;
};

static void begin(struct simulation *simulation, struct job *job, int64_t time_us) {
    const struct run *run = simulation->run;
    struct figures *figures = &simulation->figures;
    int64_t span_us = run->span_us;
    if (run->is_random)
        span_us = (int64_t)((double)rand_r(&simulation->seed) / RAND_MAX * 2 * (double)span_us);
    int64_t waited_us = job->waiting_since_us >= 0 ? time_us - job->waiting_since_us : 0;
    if (waited_us > figures->longest_wait_us)
        figures->longest_wait_us = waited_us;
    if (simulation->last_us && time_us - simulation->last_us < figures->least_gap_us)
        figures->least_gap_us = time_us - simulation->last_us;
    if (++simulation->n_at_once > figures->most_at_once)
        figures->most_at_once = simulation->n_at_once;
    simulation->last_us = time_us;
    simulation->work_us += span_us;
    job->is_running = true;
    job->n_left--;
    job->waiting_since_us = -1;
    job->event_us = time_us + span_us;
}

static void step(struct simulation *simulation, struct job *job) {
    int64_t time_us = job->event_us;
    int64_t wait_us;
    atomic_store(&now.mono_us, time_us);
    if (job->is_running) {
        hosts_leave(&job->slot);
        job->is_running = false;
        job->event_us = time_us + LATENCY_US;
        simulation->n_at_once--;
        return;
    }
    simulation->n_calls++;
    int status =
        enter_as(simulation->hosts, "h", job->who, &simulation->run->rules, &job->slot, &wait_us);
    if (status == STATUS_OK) {
        begin(simulation, job, time_us);
        return;
    }
    if (job->waiting_since_us < 0)
        job->waiting_since_us = time_us;
    job->event_us = time_us + (wait_us + 999) / 1000 * 1000 + LATENCY_US;
}

static struct figures simulate(const struct run *run) {
    struct simulation simulation = {
        .run = run, .hosts = hosts_new(&now), .seed = 1, .figures.least_gap_us = INT64_MAX};
    struct job *jobs = calloc((size_t)run->n_jobs, sizeof *jobs);
    int64_t begun_us = atomic_load(&now.mono_us);
    for (int i = 0; i < run->n_jobs; i++) {
        jobs[i].n_left = run->n_targets;
        jobs[i].event_us = begun_us;
        jobs[i].waiting_since_us = -1;
        snprintf(jobs[i].who, sizeof jobs[i].who, "job %d", i);
    }
    for (struct job *job; (job = next_job(jobs, run->n_jobs));)
        step(&simulation, job);
    int n_requests = run->n_jobs * run->n_targets;
    int64_t took_us = atomic_load(&now.mono_us) - begun_us;
    int64_t least_us = simulation.work_us / run->rules.limit;
    if (least_us < (n_requests - 1) * run->rules.delay_us)
        least_us = (n_requests - 1) * run->rules.delay_us;
    simulation.figures.slowness = (double)took_us / (double)least_us;
    simulation.figures.calls = (double)simulation.n_calls / n_requests;
    free(jobs);
    hosts_free(simulation.hosts);
    return simulation.figures;
}

#define RULES(n, delay)                                                                            \
    { .limit = (n), .delay_us = (delay), .lasts_us = INT64_C(1) << 50 }

static const struct {
    struct run run;
    double max_slowness;
    double max_calls;
} runs[] = {
    {{16, 12, RULES(2, 0), 1000, false}, 1.6, 10},
    {{16, 12, RULES(2, 0), 10000, false}, 1.2, 10},
    {{16, 12, RULES(2, 0), 10000, true}, 1.25, 10},
    {{16, 12, RULES(2, 0), 100000, false}, 1.1, 10},
    {{16, 12, RULES(2, 0), 100000, true}, 1.2, 10},
    {{16, 12, RULES(2, 0), SECOND, true}, 1.2, 10},
    {{16, 12, RULES(1, 0), 100000, true}, 1.25, 10},
    {{64, 4, RULES(2, 0), 50000, true}, 1.2, 12},
    {{64, 4, RULES(8, 0), 50000, true}, 1.3, 8},
    {{100, 1, RULES(2, 0), 22000, false}, 1.2, 10},
    {{500, 1, RULES(4, 0), 20000, true}, 1.3, 15},
    {{2, 50, RULES(1, 0), 20000, true}, 1.25, 5},
    {{16, 12, RULES(2, 20000), 1000, false}, 1.1, 4},
    {{16, 12, RULES(2, 200000), 10000, true}, 1.02, 4},
    {{16, 12, RULES(1, 50000), 100000, true}, 1.4, 8},
};

static void test_runs(void) {
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const struct run *run = &runs[i].run;
        struct figures figures = simulate(run);
        char claim[200];
        int64_t share_us = run->n_jobs * (run->span_us / run->rules.limit + run->rules.delay_us);
        snprintf(claim, sizeof claim,
                 "%d jobs, %d at once, %.0f ms each: %.2f of the ideal, %.1f calls, %d at once, "
                 "waited %.1f of a share, gap %.3f ms",
                 run->n_jobs, (int)run->rules.limit, (double)run->span_us / 1000, figures.slowness,
                 figures.calls, figures.most_at_once,
                 (double)figures.longest_wait_us / (double)share_us,
                 (double)figures.least_gap_us / 1000);
        if (getenv("HOSTS_TEST_SHOW"))
            puts(claim);
        CHECK(claim, figures.slowness < runs[i].max_slowness);
        CHECK(claim, figures.calls < runs[i].max_calls);
        CHECK(claim, figures.most_at_once <= (int)run->rules.limit);
        CHECK(claim, figures.least_gap_us >= run->rules.delay_us);
        CHECK(claim, figures.longest_wait_us < 4 * share_us + 200000);
    }
}

enum { N_THREADS = 8, N_TURNS = 20000 };

static _Atomic int n_inside, most_inside, n_served;

static void *come_and_go(void *data) {
    struct hosts *hosts = data;
    struct hosts_wish rules = {.limit = 3, .lasts_us = 100 * SECOND};
    char who[32];
    snprintf(who, sizeof who, "%p", (void *)&rules);
    for (int i = 0; i < N_TURNS; i++) {
        struct hosts_slot slot;
        int64_t wait_us;
        if (enter_as(hosts, i % 2 ? "h" : who, who, &rules, &slot, &wait_us) != STATUS_OK)
            continue;
        int inside = i % 2 ? atomic_fetch_add(&n_inside, 1) + 1 : 0;
        if (inside > atomic_load(&most_inside))
            atomic_store(&most_inside, inside);
        atomic_fetch_add(&n_served, 1);
        atomic_fetch_sub(&n_inside, i % 2);
        hosts_leave(&slot);
    }
    return NULL;
}

static void test_threads(void) {
    struct hosts *hosts = hosts_new(NULL);
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, come_and_go, hosts);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK("threads never get in beyond the limit", most_inside <= 3);
    CHECK("and most get in", n_served >= N_THREADS * N_TURNS / 2);
    hosts_free(hosts);
}

int main(void) {
    clock_init(&now, 1000);
    test_limit();
    test_lost_slots();
    test_delay();
    test_foreign_delay();
    test_absent();
    test_memory();
    test_fork();
    test_runs();
    test_threads();
    return check_report();
}
