// SPDX-License-Identifier: MIT
//
// The runner: the jobs that this process owns, and hands that work on them. The store is the truth;
// this is a cache of it that keeps the rules. Every function may be called from any thread unless
// it says otherwise; none calls back into the caller's code except through the config.

#ifndef BATCH_RUNNER_H
#define BATCH_RUNNER_H

#include "caps.h"
#include "clock.h"
#include "events.h"
#include "figures.h"
#include "store.h"
#include "task.h"
#include "workers.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BATCH_MAX_ABANDONED = 16,       // threads given up on, before no more are started
    BATCH_ABANDON_AFTER_MS = 5000,  // past its time-out, for code that cannot be stopped
};

enum executor {
    EXECUTOR_NONE,     // a client: submits, reads, cancels
    EXECUTOR_THREADS,  // the runner's own threads fetch
    EXECUTOR_MANUAL,   // the program takes tasks itself
};

enum log_level { LOG_INFO, LOG_WARN, LOG_ERROR };

// How targets are fetched by the runner's threads. All are called in the hand's thread, and all are
// needed.
struct fetcher {
    void *context;
    // Makes the state that the hand's fetches share. NULL: there is none, and end is not called.
    void *(*begin)(void *context, struct hand *hand);
    // Sets the task's verdict; touches nothing but the task, its state and its hand.
    void (*fetch)(void *state, struct task *task);
    void (*end)(void *state);
};

// Nothing here has a default: 0 is 0. What Lua programs get is in lua/batch/sections.lua.
struct runner_config {
    const struct place *place;  // copied
    struct clock *clock;        // held; NULL: the system's
    enum executor executor;
    int workers;
    struct caps caps;
    int64_t ttl_ms;
    int64_t max_bytes;
    int64_t max_result_bytes;
    int64_t retry_wait_ms;
    int64_t retry_for_ms;
    int64_t target_timeout_ms;
    int64_t crash_limit;
    int64_t patience_ms;     // of runner_open with a store that is locked; 0: ten seconds
    int64_t stuck_after_ms;  // when a thread of the runner that does not move hangs; 0: 15 seconds
    enum store_durability durability;
    bool resumes;         // on_restart = "resume"
    bool logs_to_stderr;  // else to the events
    unsigned wanted;      // events that somebody will read, as in events_open
    struct fetcher fetcher;
};

struct runner;

// Opens the store, becomes an owner, reaps the jobs of dead ones, starts the threads.
// Returns 0, or a status with the sentence in fault.
int runner_open(const struct runner_config *config, struct runner **out_runner,
                struct fault *fault);

// Refuses submits and hands nothing out from now on; cancels the contexts of what runs. Does not
// wait.
void runner_begin_close(struct runner *runner);

// Gives its jobs to whoever takes them on this store: hands nothing out and claims nothing from now
// on, makes at once those everybody's that are not in flight, and each of the others once its
// target is stored. Contexts are not cancelled; submits are stored for others. Does not wait: what
// it still has in flight runner_n_unsettled tells, then it may be closed.
void runner_begin_handover(struct runner *runner);

// Targets of this runner that are being fetched, or whose outcome is not stored yet: what a close
// waits for. Looks at each live job.
int64_t runner_n_unsettled(struct runner *runner);

// Ends what runs: contexts are cancelled, hands waited for until timeout_ms (-1: as long as it
// takes), jobs given up; what a store that fails or is locked has not taken by then, or after ten
// seconds, is left as it is there. Returns 0, after which only runner_free may follow, or
// STATUS_TIMEOUT: hands still work, and it may be called again.
int runner_close(struct runner *runner, int64_t timeout_ms);

// After runner_close returned 0, when no thread is in a call any more.
void runner_free(struct runner *runner);

// The number of the process that opened it, if that is another one than this; else 0.
int64_t runner_foreign_pid(const struct runner *runner);

struct submit {
    struct bytes caller;
    struct bytes class_name;        // "" for none, never absent
    const struct targets *targets;  // at least one
};

// Returns 0, a refusal of the caps, STATUS_CLOSED, or the store's failure with its sentence.
int runner_submit(struct runner *runner, const struct submit *submit, char out_id[JOB_ID_SIZE],
                  bool *out_reused, struct fault *fault);

// STATUS_NOT_FOUND: unknown, or terminal already.
int runner_cancel(struct runner *runner, const char *id, struct fault *fault);
// STATUS_NOT_FOUND: unknown, or its lease has lapsed.
int runner_touch(struct runner *runner, const char *id, struct fault *fault);

// The same for threads that may not wait: each that returns 0 is answered by an EVENT_ANSWER with
// the ticket. Of the targets the runner has taken what was in them, unless it was closed.
int runner_begin_submit(struct runner *runner, const struct submit *submit, struct targets *targets,
                        int64_t ticket, struct fault *fault);
// STATUS_NOT_FOUND, at once: no id has that form. STATUS_NO_MEMORY.
int runner_begin_cancel(struct runner *runner, const char *id, int64_t ticket);
int runner_begin_touch(struct runner *runner, const char *id, int64_t ticket);

// Blocks until the job is terminal: 0; STATUS_TIMEOUT, STATUS_NOT_FOUND, STATUS_EXPIRED, or
// STATUS_CLOSED when the runner closes meanwhile.
int runner_wait(struct runner *runner, const char *id, int64_t timeout_ms, struct fault *fault);

// --- reading; between begin and end the same thread uses the store it was lent ---
int runner_begin_read(struct runner *runner, struct store **out_store, struct fault *fault);
void runner_end_read(struct runner *runner, struct store *store);

// A job as this process knows it, inside a read. caller: whose it has to be; absent: anybody's.
// STATUS_NOT_FOUND, also for another's, or STATUS_EXPIRED (out_job is filled). Renews the lease,
// without waiting for it, where it would move by a hundredth.
int runner_read_job(struct runner *runner, struct store *store, const char *id, struct bytes caller,
                    struct job_row *out_job);

// Corrects a row by what has not reached the store yet: a job whose first target runs is running.
void runner_refresh_job(struct runner *runner, struct job_row *job);

// --- the way of a target ---
// STATUS_NOTHING: none may start now; out_wait_us: until one may, as far as is known. With a hand
// the task's deadline is enforced, it can be cancelled, and the caller may lead its commit.
int runner_take(struct runner *runner, struct hand *hand, struct task **out_task,
                int64_t *out_wait_us);

// Takes the task's verdict; the task is gone. Never blocks. Returns whether the target has got its
// outcome; false: it is pending again.
bool runner_finish(struct runner *runner, struct task *task);

// Whether what a task's holder does is not wanted any more: its job was cancelled, or the runner
// closes.
bool runner_is_cancelled(struct runner *runner, const struct task *task);

// From now on an EVENT_TURN tells that targets may be taken, of a runner without threads.
void runner_watch_turns(struct runner *runner);

// Waits until a task may be taken, no live job is left that this runner has or could claim, or the
// time is up. Returns whether one is left; false, too, when the runner closes.
bool runner_wait_for_work(struct runner *runner, int64_t timeout_us);
// How long nothing happens unless a new job comes: until the first turn, when every live job waits
// for its moment; else -1.
int64_t runner_idle_us(struct runner *runner);

// --- events and figures ---
struct events *runner_events(struct runner *runner);
// "info", "warn" or "error".
const char *runner_log_level_name(int level);

void runner_log(struct runner *runner, enum log_level level, const char *message,
                const struct task *task, const char *detail);

struct runner_stats {
    struct figures figures;
    struct store_gauges gauges;
    int64_t inflight_targets;
    int64_t waiting_targets;  // of this runner: came back busy, not yet due again
    uint64_t events_dropped;
    bool has_store;  // it can be read and written; asking has an idle runner find out
    bool is_healthy;
};

int runner_stats(struct runner *runner, struct runner_stats *out_stats, struct fault *fault);

// What all runners on the store have counted since its owners file was made, those that live and
// those that ended, however they did; of clients, this one alone. Returns 0 or STATUS_STORE.
int runner_figures_of_all(struct runner *runner, struct figures *out_figures);

const struct runner_config *runner_config(const struct runner *runner);

#endif
