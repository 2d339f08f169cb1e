// SPDX-License-Identifier: MIT
//
// The table of functions of a store, straight, without a runner: what each call answers, and that
// the invariants hold after it.

#include "fresh_store.h"

#include "canonical.h"
#include "fault_point.h"

#include <pthread.h>
#include <unistd.h>

static char last_id[JOB_ID_SIZE];

static unsigned char last_key[CANONICAL_KEY_BYTES];

// Inserts a job of n targets, whose URL is one letter.
static int64_t insert(const char *caller, char letter, int n_targets, int64_t owner) {
    struct targets targets;
    struct new_job job = {.caller = text(caller),
                          .class_name = text("user"),
                          .owner = owner,
                          .now = NOW,
                          .expires_at = LEASE,
                          .targets = &targets};
    int64_t key;
    targets_init(&targets);
    for (int i = 0; i < n_targets; i++) {
        struct target target = {&letter, 1, i ? "{\"mode\":\"text\"}" : "{}", i ? 15 : 2};
        targets_add(&targets, &target);
    }
    CHECK("its key is made", !canonical_key(caller, strlen(caller), &targets, job.idem_key));
    job_id_make(NOW, job.id);
    memcpy(last_id, job.id, JOB_ID_SIZE);
    memcpy(last_key, job.idem_key, sizeof last_key);
    begin();
    CHECK("a job is inserted", ops->insert_job(store, &job, &key) == STATUS_OK);
    commit();
    targets_fini(&targets);
    return key;
}

static struct job_row read_back(const char *id) {
    struct job_row job = {0};
    CHECK("the job is there", ops->read_job(store, id, &job) == STATUS_OK);
    return job;
}

// Memory that was short for one read once made its connection useless for good.
static void test_memory_shortage(void) {
    static const struct fault_plan plan = {.answer = FAULT_FAIL, .nth = 1, .times = 1};
    struct job_row job;
    open_store();
    insert("ann", 'k', 2, 0);
    fault_point_begin();
    fault_point_set(FAULT_AT_ALLOCATION, &plan);
    CHECK("a read without memory says so", ops->read_job(store, last_id, &job) == STATUS_NO_MEMORY);
    CHECK("and leaves the next one alone", ops->read_job(store, last_id, &job) == STATUS_OK);
    CHECK("which has its texts", job.caller.len == 3 && memcmp(job.caller.start, "ann", 3) == 0);
    close_store();
}

static void test_insert(void) {
    struct job_row job;
    int64_t of_caller, total;
    open_store();
    insert("ann", 'k', 2, 0);
    job = read_back(last_id);
    CHECK("a new job is queued", job.status == JOB_QUEUED);
    CHECK("its counts are its targets'", job.targets_total == 2 && job.targets_done == 0);
    CHECK("it has neither begun nor ended", job.started_at == 0 && job.finished_at == 0);
    CHECK("its caller comes back", job.caller.len == 3 && memcmp(job.caller.start, "ann", 3) == 0);
    CHECK("it is known by its key", ops->find_job(store, text("ann"), last_key, NOW, &job) == 0);
    CHECK("to its caller alone",
          ops->find_job(store, text("bob"), last_key, NOW, &job) == STATUS_NOT_FOUND);
    CHECK("up to its lease", ops->find_job(store, text("ann"), last_key, LEASE - 1, &job) == 0);
    CHECK("and not at it",
          ops->find_job(store, text("ann"), last_key, LEASE, &job) == STATUS_NOT_FOUND);
    insert("bob", 'l', 1, 0);
    ops->count_live_of(store, text("ann"), &of_caller);
    ops->count_live(store, &total);
    CHECK("live jobs are counted by caller and in all", of_caller == 1 && total == 2);
    close_store();
}

static void test_rollback(void) {
    int64_t of_caller, total;
    struct outcome outcome;
    struct job_row job;
    int status;
    open_store();
    int64_t key = insert("ann", 'k', 2, 0);
    begin();
    outcome = outcome_of(key, 0, "abc", false);
    ops->put_outcome(store, &outcome, &status);
    ops->rollback(store);
    job = read_back(last_id);
    CHECK("nothing is left of what was rolled back", job.targets_done == 0 && job.bytes == 0);
    ops->rollback(store);
    ops->count_live_of(store, text("ann"), &of_caller);
    ops->count_live(store, &total);
    CHECK("rolling back nothing harms nothing", of_caller == 1);
    close_store();
}

static void test_outcomes(void) {
    struct job_row job;
    struct store_gauges gauges;
    int status;
    open_store();
    int64_t key = insert("ann", 'k', 3, 0);
    begin();
    CHECK("a job starts", ops->start_job(store, key, NOW + 5) == STATUS_OK);
    CHECK("starting again changes nothing", ops->start_job(store, key, NOW + 9) == STATUS_OK);
    commit();
    CHECK("it began once", read_back(last_id).started_at == NOW + 5);
    CHECK("the second target cannot be first",
          put(key, 1, "x", false, &status) == STATUS_NOT_FOUND);
    CHECK("the first is stored", put(key, 0, "abc", false, &status) == 0 && status == JOB_RUNNING);
    CHECK("and only once", put(key, 0, "again", false, &status) == STATUS_NOT_FOUND);
    CHECK("a failure is stored", put(key, 1, NULL, false, &status) == STATUS_OK);
    job = read_back(last_id);
    CHECK("both count", job.targets_done == 2 && job.targets_failed == 1 && job.bytes == 3);
    CHECK("outcomes renew the lease", job.expires_at == LEASE + 1);
    CHECK("the last ends the job", put(key, 2, "", true, &status) == 0 && status == JOB_PARTIAL);
    job = read_back(last_id);
    CHECK("it ended when its last target did", job.finished_at == NOW + 2);
    ops->read_gauges(store, &gauges);
    CHECK("the gauge follows", gauges.live_jobs == 0 && gauges.stored_bytes == 3);
    CHECK("nothing comes after the end", put(key, 3, "x", true, &status) == STATUS_NOT_FOUND);
    CHECK("a job that is not there takes nothing",
          put(key + 7, 0, "x", true, &status) == STATUS_NOT_FOUND);
    close_store();
}

static void test_endings(void) {
    int status;
    open_store();
    put(insert("ann", 'a', 1, 0), 0, "x", true, &status);
    CHECK("one success is done", status == JOB_DONE);
    put(insert("ann", 'b', 1, 0), 0, NULL, true, &status);
    CHECK("one failure is failed", status == JOB_FAILED);
    close_store();
}

static void test_cancel(void) {
    struct job_row job;
    struct store_gauges gauges;
    struct job_row cancelled;
    int64_t key;
    int status;
    open_store();
    key = insert("ann", 'k', 2, 0);
    begin();
    CHECK("a live job is cancelled", ops->cancel_job(store, last_id, NOW + 1, &cancelled) == 0);
    CHECK("it is told", cancelled.key == key);
    CHECK("once", ops->cancel_job(store, last_id, NOW + 2, &cancelled) == STATUS_NOT_FOUND);
    CHECK("what is unknown is not", ops->cancel_job(store, "0190a1b2-c3d4-7e5f-8a6b-0123456789ab",
                                                    NOW, &cancelled) == STATUS_NOT_FOUND);
    commit();
    CHECK("the target in flight is stored late", put(key, 0, "late", false, &status) == 0);
    CHECK("and changes no status", status == JOB_CANCELLED);
    CHECK("the last one neither", put(key, 1, "last", true, &status) == STATUS_OK);
    job = read_back(last_id);
    CHECK("cancelled it stays", job.status == JOB_CANCELLED && job.finished_at == NOW + 1);
    CHECK("late outcomes count", job.targets_done == 2 && job.bytes == 8);
    CHECK("there are no more targets", put(key, 2, "x", true, &status) == STATUS_NOT_FOUND);
    ops->read_gauges(store, &gauges);
    CHECK("late bytes are in the gauge", gauges.stored_bytes == 8 && gauges.live_jobs == 0);
    close_store();
}

static void test_touch(void) {
    open_store();
    insert("ann", 'k', 1, 0);
    begin();
    CHECK("a lease moves", ops->touch_job(store, last_id, NOW, LEASE + 100) == STATUS_OK);
    CHECK("a shorter one is not taken", ops->touch_job(store, last_id, NOW, LEASE) == STATUS_OK);
    CHECK("one that has lapsed does not move",
          ops->touch_job(store, last_id, LEASE + 100, LEASE + 200) == STATUS_NOT_FOUND);
    commit();
    CHECK("it moved forward", read_back(last_id).expires_at == LEASE + 100);
    close_store();
}

static void see_failed(void *context, const struct job_row *job) {
    if (job->status == JOB_FAILED && job->finished_at == NOW + 9)
        *(int64_t *)context = job->key;
}

static void test_owners(void) {
    struct owner_row first, second, found;
    struct job_row job;
    int64_t count, found_key = 0;
    bool is_waiting;
    int status;
    open_store();
    begin();
    ops->insert_owner(store, 1, NOW, &first);
    ops->insert_owner(store, 2, NOW, &second);
    commit();
    CHECK("owners have numbers and slots of their own",
          first.id != second.id && first.slot != second.slot);
    int64_t key = insert("ann", 'a', 2, first.id);
    put(key, 0, "abc", false, &status);
    insert("bob", 'b', 1, 0);
    begin();
    CHECK("one waits for an owner", ops->has_unowned(store, &is_waiting) == 0 && is_waiting);
    CHECK("it is claimed", ops->claim_job(store, second.id, &job) == 0 && job.owner == second.id);
    CHECK("by one", ops->claim_job(store, first.id, &job) == STATUS_NOTHING);
    CHECK("then none waits", ops->has_unowned(store, &is_waiting) == 0 && !is_waiting);
    struct mass_failure failure = {second.id, "restart", NOW + 9, 10, see_failed, &found_key};
    CHECK("an owner fails", ops->fail_jobs(store, &failure, &count) == 0);
    CHECK("each job is shown", found_key == job.key);
    CHECK("with its job alone", count == 1);
    CHECK("another gives its job up", ops->release_jobs(store, first.id, &count) == 0);
    CHECK("which is one", count == 1);
    CHECK("a job that nobody has is given up by nobody",
          ops->release_job(store, key, first.id) == STATUS_NOT_FOUND);
    CHECK("nor is one that has ended",
          ops->release_job(store, found_key, second.id) == STATUS_NOT_FOUND);
    commit();
    job = read_back(last_id);
    CHECK("a failed job says why", job.status == JOB_FAILED && strcmp(job.error, "restart") == 0);
    begin();
    CHECK("a job given up is claimed again", ops->claim_job(store, second.id, &job) == STATUS_OK);
    CHECK("where it stopped", job.key == key && job.targets_done == 1 && job.status == JOB_QUEUED);
    CHECK("one alone is given up by its owner",
          ops->release_job(store, key, first.id) == STATUS_NOT_FOUND &&
              ops->release_job(store, key, second.id) == STATUS_OK);
    ops->delete_owner(store, first.id);
    commit();
    CHECK("an owner that left is gone",
          ops->next_owner(store, 0, &found) == STATUS_OK && found.id == second.id);
    CHECK("and nobody is behind the last",
          ops->next_owner(store, second.id, &found) == STATUS_NOTHING);
    close_store();
}

static void test_deaths(void) {
    struct job_row job;
    int status;
    open_store();
    int64_t key = insert("ann", 'k', 2, 0);
    begin();
    CHECK("a death is noted", ops->note_death(store, key, 0, &job) == 0 && job.deaths == 1);
    CHECK("and another", ops->note_death(store, key, 0, &job) == 0 && job.deaths == 2);
    CHECK("not one of a target that is not in turn",
          ops->note_death(store, key, 1, &job) == STATUS_NOT_FOUND);
    ops->set_busy(store, key, 0, 4, 250);
    commit();
    job = read_back(last_id);
    CHECK("busy calls are noted", job.attempts == 4 && job.busy_ms == 250);
    put(key, 0, "x", false, &status);
    job = read_back(last_id);
    CHECK("the next target begins at nothing", !job.deaths && !job.attempts && !job.busy_ms);
    close_store();
}

// Ends a job of one target with that content.
static void end(int64_t key, const char *content, int64_t finished_at) {
    int status;
    struct outcome outcome = outcome_of(key, 0, content, true);
    outcome.finished_at = finished_at;
    begin();
    ops->put_outcome(store, &outcome, &status);
    commit();
}

static void finish(char key_byte, const char *content, int64_t finished_at) {
    end(insert("ann", key_byte, 1, 0), content, finished_at);
}

static void clear_all(void) {
    begin();
    while (ops->clear_dropped(store, 1) == STATUS_OK)
        ;
    commit();
}

static void test_eviction(void) {
    char first[JOB_ID_SIZE], live[JOB_ID_SIZE];
    struct store_gauges gauges;
    struct job_row job;
    open_store();
    int64_t earlier = insert("ann", 'b', 1, 0);
    finish('a', "12345", NOW + 10);  // submitted later, finished sooner
    memcpy(first, last_id, JOB_ID_SIZE);
    end(earlier, "12345", NOW + 20);
    finish('c', "12345", NOW - 30);  // the clock was set back
    CHECK("none ends before an earlier one", read_back(last_id).finished_at == NOW + 20);
    insert("ann", 'd', 1, 0);
    memcpy(live, last_id, JOB_ID_SIZE);
    begin();
    CHECK("what fits stays", ops->drop_oldest(store, 15) == STATUS_NOTHING);
    CHECK("what does not, goes", ops->drop_oldest(store, 14) == STATUS_OK);
    CHECK("until it fits", ops->drop_oldest(store, 14) == STATUS_NOTHING);
    CHECK("first the one that finished longest ago",
          ops->read_job(store, first, &job) == STATUS_NOT_FOUND);
    CHECK("then the next", ops->drop_oldest(store, 0) == STATUS_OK);
    CHECK("but never the newest", ops->drop_oldest(store, 0) == STATUS_NOTHING);
    CHECK("nor a live one", ops->read_job(store, live, &job) == STATUS_OK);
    commit();
    ops->read_gauges(store, &gauges);
    CHECK("the gauge is what stays", gauges.stored_bytes == 5 && gauges.live_jobs == 1);
    CHECK("rows on their way out are no fault", n_faults_found() == 0);
    clear_all();
    close_store();
}

static void test_expiry(void) {
    struct job_row job;
    int64_t count;
    open_store();
    finish('a', "x", NOW);
    finish('b', "x", NOW);
    insert("ann", 'c', 1, 0);
    begin();
    CHECK("an open lease keeps", ops->drop_expired(store, LEASE, 9, &count) == 0 && count == 0);
    CHECK("so many at once as asked",
          ops->drop_expired(store, LEASE + 1, 1, &count) == 0 && count == 1);
    CHECK("and the rest", ops->drop_expired(store, LEASE * 2, 9, &count) == 0 && count == 1);
    commit();
    CHECK("a live job never lapses", ops->read_job(store, last_id, &job) == STATUS_OK);
    clear_all();
    close_store();
}

static void *end_read_late(void *reader) {
    usleep(200000);
    ((struct store *)reader)->ops->end_read(reader);
    return NULL;
}

// A transaction in memory is patient for 50 ms when it begins, and with readers all the same.
static void test_slow_reader(void) {
    struct store *reader;
    struct fault fault;
    struct job_row job;
    pthread_t thread;
    open_store();
    int64_t key = insert("ann", 'k', 1, 0);
    CHECK("another connection opens",
          store_open(&place, DURABILITY_NORMAL, false, &reader, &fault) == STATUS_OK);
    CHECK("it reads", reader->ops->begin_read(reader) == STATUS_OK &&
                          reader->ops->read_job(reader, last_id, &job) == STATUS_OK);
    pthread_create(&thread, NULL, end_read_late, reader);
    CHECK("a transaction begins beside it", ops->begin(store, 50) == STATUS_OK);
    CHECK("and writes", ops->set_busy(store, key, 0, 1, 0) == STATUS_OK);
    CHECK("and ends when the reader has", ops->commit(store) == STATUS_OK);
    pthread_join(thread, NULL);
    reader->ops->close(reader);
    close_store();
}

int main(void) {
    test_memory_shortage();
    test_insert();
    test_rollback();
    test_outcomes();
    test_endings();
    test_cancel();
    test_touch();
    test_owners();
    test_deaths();
    test_eviction();
    test_expiry();
    test_slow_reader();
    return check_report();
}
