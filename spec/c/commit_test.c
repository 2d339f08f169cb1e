// SPDX-License-Identifier: MIT
//
// The commit queue over a store of our own that fails when it is told to.

#include "commit.h"

#include "check.h"
#include "clock.h"
#include "status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct stub {
    struct store store;  // first
    _Atomic int n_begun;
    int n_committed;
    int n_in_transaction;
    _Atomic int fail_from;  // the begin or commit (counted together) that fails first; 0: none
    _Atomic int n_failing;  // so many fail from there on
    _Atomic int status;     // with this
    _Atomic int n_calls;
    bool is_slow;       // a locked begin takes the time that it was given
    int64_t waited_ms;  // for locks
    int64_t sum;        // of the values of the items that are stored
    int64_t pending;
};

static int call(struct stub *stub) {
    stub->n_calls++;
    bool fails = stub->fail_from && stub->n_calls >= stub->fail_from &&
                 stub->n_calls < stub->fail_from + stub->n_failing;
    return fails ? fault_set(&stub->store.fault, stub->status, "told to fail") : STATUS_OK;
}

static int stub_begin(struct store *store, int64_t patience_ms) {
    struct stub *stub = (struct stub *)store;
    stub->n_begun++;
    stub->pending = 0;
    int status = call(stub);
    if (status == STATUS_LOCKED)
        stub->waited_ms += patience_ms;
    if (status == STATUS_LOCKED && stub->is_slow)
        usleep((useconds_t)patience_ms * 1000);
    stub->n_in_transaction += !status;
    return status;
}

static int stub_commit(struct store *store) {
    struct stub *stub = (struct stub *)store;
    int status = call(stub);
    if (status)
        return status;
    stub->n_committed++;
    stub->n_in_transaction--;
    stub->sum += stub->pending;
    return STATUS_OK;
}

static void stub_rollback(struct store *store) {
    ((struct stub *)store)->n_in_transaction = 0;
}

static const struct store_ops stub_ops = {
    .begin = stub_begin, .commit = stub_commit, .rollback = stub_rollback};

struct rig {
    struct stub stub;
    struct commit_queue *queue;
    bool is_stopped;
    _Atomic int n_failures;
    _Atomic bool is_flooded;
    pthread_mutex_t lock;  // held while settling, as a runner's is
    _Atomic int n_flood;
};

struct item {
    struct commit_item item;  // first
    int64_t value;
    int apply_status;      // what apply answers
    _Atomic bool is_held;  // apply waits while this is set
    _Atomic bool is_applying;
    _Atomic int n_done;
    struct fault fault;
};

static int apply(struct commit_item *commit_item, struct store *store) {
    struct item *item = (struct item *)commit_item;
    item->is_applying = true;
    while (item->is_held)
        usleep(100);
    if (item->apply_status)
        return fault_set(&store->fault, item->apply_status, "poison");
    ((struct stub *)store)->pending += item->value;
    return STATUS_OK;
}

static void done(struct commit_item *commit_item) {
    ((struct item *)commit_item)->n_done++;
}

static void free_item(struct commit_item *item) {
    free(item);
}

static struct item item_of(int64_t value) {
    struct item item = {.value = value};
    item.item.apply = apply;
    item.item.done = done;
    return item;
}

static bool on_tick(void *context) {
    (void)context;
    return false;
}

static int64_t tick_us(void *context) {
    (void)context;
    return 150;
}

enum { FLOOD = 3000 };

static void begin_settling(void *context, const struct committed *committed) {
    struct rig *rig = context;
    pthread_mutex_lock(&rig->lock);
    if (!committed || !rig->is_flooded || rig->n_flood >= FLOOD)
        return;
    struct item *item = calloc(1, sizeof *item);
    item->item.apply = apply;
    item->item.done = free_item;
    rig->n_flood++;
    commit_leave(rig->queue, &item->item, COMMIT_BY_ANYBODY);
}

static void end_settling(void *context) {
    pthread_mutex_unlock(&((struct rig *)context)->lock);
}

static void on_failure(void *context, int status, const char *text) {
    (void)status;
    (void)text;
    ((struct rig *)context)->n_failures++;
}

static struct rig *open_rig(void) {
    struct rig *rig = calloc(1, sizeof *rig);
    rig->stub.store.ops = &stub_ops;
    pthread_mutex_init(&rig->lock, NULL);
    struct commit_config config = {.store = &rig->stub.store,
                                   .context = rig,
                                   .on_tick = on_tick,
                                   .tick_us = tick_us,
                                   .begin_settling = begin_settling,
                                   .end_settling = end_settling,
                                   .on_failure = on_failure};
    CHECK("a queue opens", commit_open(&config, &rig->queue) == STATUS_OK);
    return rig;
}

static void stop(struct rig *rig, int64_t give_up_ms) {
    if (!rig->is_stopped)
        commit_stop(rig->queue, give_up_ms);
    rig->is_stopped = true;
}

static void close_rig(struct rig *rig) {
    stop(rig, 1000);
    CHECK("each transaction has ended", rig->stub.n_in_transaction == 0);
    commit_close(rig->queue);
    free(rig);
}

static void fail_calls(struct rig *rig, int from, int count, int status) {
    rig->stub.fail_from = rig->stub.n_calls + from;
    rig->stub.n_failing = count;
    rig->stub.status = status;
}

static bool eventually(_Atomic int *counter, int wanted) {
    for (int i = 0; i < 200000 && *counter < wanted; i++)
        usleep(100);
    return *counter >= wanted;
}

static void test_plain(void) {
    struct rig *rig = open_rig();
    struct item run = item_of(1), left = item_of(10), urgent = item_of(100), led = item_of(1000);
    CHECK("a waited-for item is stored", commit_run(rig->queue, &run.item) == STATUS_OK);
    CHECK("and has its end", run.n_done == 1);
    commit_leave(rig->queue, &left.item, COMMIT_BY_ANYBODY);
    CHECK("an item that is left is stored soon", eventually(&left.n_done, 1));
    commit_leave(rig->queue, &urgent.item, COMMIT_BY_COMMITTER);
    CHECK("so is an urgent one", eventually(&urgent.n_done, 1));
    commit_leave(rig->queue, &led.item, COMMIT_BY_CALLER);
    CHECK("a caller that leads has stored it on return", led.n_done == 1);
    stop(rig, 1000);
    CHECK("each once", rig->stub.sum == 1111);
    close_rig(rig);
}

static void *run_item(void *argument) {
    void **pair = argument;
    commit_run(pair[0], pair[1]);
    return NULL;
}

static void test_followers(void) {
    struct rig *rig = open_rig();
    struct item first = item_of(1), others[20];
    pthread_t leader;
    first.is_held = true;
    void *pair[] = {rig->queue, &first.item};
    pthread_create(&leader, NULL, run_item, pair);
    while (!first.is_applying)
        usleep(100);
    for (int i = 0; i < 20; i++) {
        others[i] = item_of(1);
        commit_leave(rig->queue, &others[i].item, COMMIT_BY_CALLER);
    }
    CHECK("nobody else leads meanwhile", others[0].n_done == 0);
    first.is_held = false;
    pthread_join(leader, NULL);
    for (int i = 0; i < 20; i++)
        CHECK("a follower has its end", eventually(&others[i].n_done, 1));
    stop(rig, 1000);
    CHECK("those that waited share a transaction", rig->stub.n_committed == 2);
    CHECK("and all are stored", rig->stub.sum == 21);
    close_rig(rig);
}

static void test_failures(int call_that_fails) {
    struct rig *rig = open_rig();
    struct item kept = item_of(10), refused = item_of(1);
    kept.item.must_be_stored = true;
    refused.item.fault = &refused.fault;
    fail_calls(rig, call_that_fails, 1, STATUS_STORE);
    CHECK("a failure is told to whoever waits",
          commit_run(rig->queue, &refused.item) == STATUS_STORE);
    CHECK_TEXT("told to fail", refused.fault.text);
    CHECK("once", refused.n_done == 1);
    fail_calls(rig, call_that_fails, 3, STATUS_STORE);
    commit_leave(rig->queue, &kept.item, COMMIT_BY_CALLER);
    CHECK("what must be stored waits", kept.n_done == 0);
    CHECK("until it is", eventually(&kept.n_done, 1));
    CHECK("and then says so", kept.item.status == STATUS_OK);
    CHECK("failures are reported", rig->n_failures >= 2);
    stop(rig, 1000);
    CHECK("what failed left nothing", rig->stub.sum == 10);
    close_rig(rig);
}

// Queues items behind one that is being applied, then lets all go.
static void leave_behind(struct rig *rig, struct item *items, int count) {
    struct item first = item_of(0);
    pthread_t leader;
    first.is_held = true;
    void *pair[] = {rig->queue, &first.item};
    pthread_create(&leader, NULL, run_item, pair);
    while (!first.is_applying)
        usleep(100);
    for (int i = 0; i < count; i++)
        commit_leave(rig->queue, &items[i].item, COMMIT_BY_ANYBODY);
    first.is_held = false;
    pthread_join(leader, NULL);
    for (int i = 0; i < count; i++)
        eventually(&items[i].n_done, 1);
}

static void test_poison(void) {
    struct rig *rig = open_rig();
    struct item items[] = {item_of(1), item_of(2), item_of(4)};
    items[1].apply_status = STATUS_STORE;
    leave_behind(rig, items, 3);
    CHECK("one that cannot be stored is refused", items[1].item.status == STATUS_STORE);
    CHECK("and holds up nobody", items[0].n_done == 1 && items[2].n_done == 1);
    stop(rig, 1000);
    CHECK("the others are stored", rig->stub.sum == 5);
    close_rig(rig);
}

static void test_locked(void) {
    struct rig *rig = open_rig();
    struct item items[] = {item_of(1), item_of(2), item_of(4)};
    fail_calls(rig, 3, 1000000, STATUS_LOCKED);  // from the begin of the second transaction
    leave_behind(rig, items, 3);
    for (int i = 0; i < 3; i++)
        CHECK("a lock that others hold fails all alike", items[i].item.status == STATUS_LOCKED);
    stop(rig, 1000);
    CHECK("and is waited for once", rig->stub.waited_ms == 10000);
    close_rig(rig);
}

static void test_flood(void) {
    struct rig *rig = open_rig();
    struct item own = item_of(0);
    rig->is_flooded = true;
    CHECK("an item is stored in a flood", commit_run(rig->queue, &own.item) == STATUS_OK);
    CHECK("and its waiter does not lead the flood", rig->n_flood < FLOOD);
    CHECK("which others do", eventually(&rig->n_flood, FLOOD));
    close_rig(rig);
}

static void test_stop(void) {
    struct rig *rig = open_rig();
    struct item kept = item_of(1), late = item_of(2), later = item_of(4);
    kept.item.must_be_stored = true;
    fail_calls(rig, 1, 1000000, STATUS_STORE);
    commit_leave(rig->queue, &kept.item, COMMIT_BY_CALLER);
    int64_t began_us = clock_mono_us(NULL);
    stop(rig, 50);
    int64_t span_us = clock_mono_us(NULL) - began_us;
    CHECK("a stop waits for a failing store", span_us >= 50000);
    CHECK("but gives up", span_us < 10000000);
    CHECK("and says so once", kept.n_done == 1 && kept.item.status == STATUS_STORE);
    CHECK("nothing is run after it", commit_run(rig->queue, &late.item) == STATUS_CLOSED);
    commit_leave(rig->queue, &later.item, COMMIT_BY_ANYBODY);
    CHECK("or stored", later.n_done == 1 && later.item.status == STATUS_CLOSED);
    close_rig(rig);
}

static void test_stop_while_locked(void) {
    struct rig *rig = open_rig();
    struct item kept = item_of(1);
    kept.item.must_be_stored = true;
    rig->stub.is_slow = true;
    fail_calls(rig, 1, 1000000, STATUS_LOCKED);
    commit_leave(rig->queue, &kept.item, COMMIT_BY_COMMITTER);
    while (!rig->stub.n_begun)
        usleep(100);
    int64_t began_us = clock_mono_us(NULL);
    stop(rig, 50);
    CHECK("a lock is waited for no longer than a stop has time",
          clock_mono_us(NULL) - began_us < 8000000);
    CHECK("what it holds up is told", kept.item.status == STATUS_LOCKED);
    close_rig(rig);
}

// Leaves an item that wants an answer. Returns how long that took, in ms.
static int64_t answer_ms(struct rig *rig, struct item *item) {
    int64_t began_us = clock_mono_us(NULL);
    commit_leave(rig->queue, &item->item, COMMIT_TO_ANSWER);
    CHECK("an answer comes", eventually(&item->n_done, 1));
    return (clock_mono_us(NULL) - began_us) / 1000;
}

static void test_answers(void) {
    struct rig *rig = open_rig();
    struct item fine = item_of(1), poison = item_of(2), last = item_of(4);
    poison.apply_status = STATUS_STORE;
    poison.item.fault = &poison.fault;
    answer_ms(rig, &fine);
    answer_ms(rig, &poison);
    answer_ms(rig, &last);
    CHECK("an answer is what became of it",
          !fine.item.status && poison.item.status == STATUS_STORE && !last.item.status);
    CHECK_TEXT("poison", poison.fault.text);
    stop(rig, 1000);
    struct item late = item_of(8);
    answer_ms(rig, &late);
    CHECK("also when the queue is closed", late.item.status == STATUS_CLOSED);
    CHECK("each is given once",
          fine.n_done + poison.n_done + last.n_done + late.n_done == 4 && rig->stub.sum == 5);
    close_rig(rig);
}

// Each failure makes the pause longer: after ten it is as long as pauses get.
static void test_answers_while_pausing(void) {
    struct rig *rig = open_rig();
    struct item kept = item_of(1), asked[10], late = item_of(2);
    kept.item.must_be_stored = true;
    fail_calls(rig, 1, 1000000, STATUS_STORE);
    commit_leave(rig->queue, &kept.item, COMMIT_BY_CALLER);
    int64_t all_ms = 0;
    for (int i = 0; i < 10; i++) {
        asked[i] = item_of(100);
        all_ms += answer_ms(rig, &asked[i]);
        CHECK("a store that fails is the answer", asked[i].item.status == STATUS_STORE);
    }
    // The pauses would come to more than six seconds.
    CHECK("which does not wait for the next try", all_ms < 4000);
    kept.is_held = true;
    kept.is_applying = false;
    rig->stub.fail_from = 0;
    struct item other = item_of(0);
    commit_leave(rig->queue, &other.item, COMMIT_TO_ANSWER);
    while (!kept.is_applying)
        usleep(100);
    fail_calls(rig, 1, 1000000, STATUS_STORE);
    int64_t began_us = clock_mono_us(NULL);
    commit_leave(rig->queue, &late.item, COMMIT_TO_ANSWER);
    kept.is_held = false;
    CHECK("one that comes during a try that fails is answered, too", eventually(&late.n_done, 1));
    CHECK("at once", clock_mono_us(NULL) - began_us < 1500000);
    CHECK("what must be stored still waits", kept.n_done == 0);
    rig->stub.fail_from = 0;
    stop(rig, 5000);
    CHECK("and is stored", kept.n_done == 1 && rig->stub.sum == 1);
    close_rig(rig);
}

static void *run_and_time(void *argument) {
    void **pair = argument;
    int64_t began_us = clock_mono_us(NULL);
    commit_run(pair[0], pair[1]);
    ((struct item *)pair[1])->value = (clock_mono_us(NULL) - began_us) / 1000;
    return NULL;
}

static void test_answers_while_locked(void) {
    struct rig *rig = open_rig();
    struct item kept = item_of(1), asked = item_of(2), waited = item_of(4), early = item_of(8);
    kept.item.must_be_stored = true;
    rig->stub.is_slow = true;
    fail_calls(rig, 1, 1000000, STATUS_LOCKED);
    commit_leave(rig->queue, &kept.item, COMMIT_BY_COMMITTER);
    commit_leave(rig->queue, &early.item, COMMIT_TO_ANSWER);
    usleep(200000);
    rig->stub.n_failing = 0;
    CHECK("a lock that others give up is waited for", eventually(&early.n_done, 1));
    CHECK("and all is well", !early.item.status && eventually(&kept.n_done, 1));
    fail_calls(rig, 1, 1000000, STATUS_LOCKED);
    pthread_t thread;
    void *pair[] = {rig->queue, &waited.item};
    pthread_create(&thread, NULL, run_and_time, pair);
    int64_t began_us = clock_mono_us(NULL);
    commit_leave(rig->queue, &asked.item, COMMIT_TO_ANSWER);
    eventually(&asked.n_done, 1);
    int64_t asked_ms = (clock_mono_us(NULL) - began_us) / 1000;
    pthread_join(thread, NULL);
    CHECK("one that is not given up is the answer", asked.item.status == STATUS_LOCKED);
    CHECK("as it is for who waits", waited.item.status == STATUS_LOCKED);
    CHECK("after the same ten seconds",
          asked_ms >= 9900 && asked_ms < 19000 && waited.value >= 9900 && waited.value < 19000);
    CHECK("once", asked.n_done == 1 && waited.n_done == 1);
    rig->stub.n_failing = 0;
    close_rig(rig);
}

enum { THREADS = 6, ROUNDS = 400 };

static _Atomic int64_t n_expected;

static void *hammer(void *argument) {
    struct rig *rig = argument;
    for (int i = 0; i < ROUNDS; i++) {
        struct item run = item_of(1);
        struct item *left = calloc(1, sizeof *left);
        left->value = 1;
        left->item = (struct commit_item){.apply = apply, .done = free_item};
        left->item.must_be_stored = true;
        commit_leave(rig->queue, &left->item, (enum commit_by)(i % (COMMIT_TO_ANSWER + 1)));
        n_expected += 1 + (commit_run(rig->queue, &run.item) == STATUS_OK);
        if (i % 16 == 0)
            commit_nudge(rig->queue);
    }
    return NULL;
}

static void test_stress(void) {
    struct rig *rig = open_rig();
    pthread_t threads[THREADS];
    fail_calls(rig, 200, 3, STATUS_STORE);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, hammer, rig);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    stop(rig, 3000);
    CHECK("all that was promised is stored, once", rig->stub.sum == n_expected);
    close_rig(rig);
}

int main(void) {
    test_plain();
    test_followers();
    test_failures(1);
    test_failures(2);
    test_poison();
    test_locked();
    test_flood();
    test_stop();
    test_stop_while_locked();
    test_answers();
    test_answers_while_pausing();
    test_answers_while_locked();
    test_stress();
    return check_report();
}
