// SPDX-License-Identifier: MIT
//
// What a runner says about itself: figures and the log.

#include "runner_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t count_in_flight(struct runner *runner, struct store *store) {
    struct in_flight in_flight[OWNER_MAX_IN_FLIGHT];
    struct owner_row owner = {0};
    int64_t n = 0;
    while (store->ops->next_owner(store, owner.id, &owner) == STATUS_OK)
        if (owner.id != runner->owner.id && owners_is_alive(runner->owners, owner.id))
            n += (int64_t)owners_read(runner->owners, owner.slot, in_flight, OWNER_MAX_IN_FLIGHT);
    return n;
}

int runner_stats(struct runner *runner, struct runner_stats *out_stats, struct fault *fault) {
    struct store *store;
    memset(out_stats, 0, sizeof *out_stats);
    int status = runner_begin_read(runner, &store, fault);
    if (!status) {
        status = store->ops->read_gauges(store, &out_stats->gauges);
        if (status)
            fault_set(fault, status, "%s", store->fault.text);
        out_stats->inflight_targets = count_in_flight(runner, store);
        runner_end_read(runner, store);
    }
    bool has_keeper = !runner_keeper_hangs(runner), has_commits = !runner_commits_hang(runner);
    pthread_mutex_lock(&runner->lock);
    out_stats->figures = runner->figures;
    out_stats->inflight_targets += runner->n_in_flight;
    out_stats->waiting_targets = (int64_t)runner->rotation.n_waiting;
    runner->is_asked = true;
    bool has_hands =
        !runner->workers || (int)workers_alive(runner->workers) == runner->config.workers;
    out_stats->has_store = !status && !runner->is_failing && has_commits;
    out_stats->is_healthy = out_stats->has_store && has_keeper && has_hands && !runner->is_closing;
    pthread_mutex_unlock(&runner->lock);
    out_stats->events_dropped = events_dropped(runner->events);
    return status;
}

// --- log ---

const char *runner_log_level_name(int level) {
    static const char *const names[] = {"info", "warn", "error"};
    return names[level];
}

static void print_quoted(FILE *out, const char *key, const char *text) {
    fprintf(out, " %s=\"", key);
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c == '\n')
            fputs("\\n", out);
        else if ((unsigned char)*c >= ' ')
            fputc(*c, out);
    }
    fputc('"', out);
}

static void log_to_stderr(enum log_level level, const char *message, const struct task *task,
                          const char *detail) {
    char *line = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&line, &size);
    if (!out)
        return;
    struct timespec now;
    struct tm utc;
    char stamp[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    fprintf(out, "time=%s.%03ldZ level=%s", stamp, now.tv_nsec / 1000000,
            runner_log_level_name(level));
    print_quoted(out, "message", message);
    if (task)
        fprintf(out, " job=%s idx=%" PRId64, task->job_id, task->idx);
    if (detail)
        print_quoted(out, "detail", detail);
    fputc('\n', out);
    if (fclose(out) == 0) {
        ssize_t n = write(STDERR_FILENO, line, size);  // one write: lines of threads do not mix
        (void)n;
    }
    free(line);
}

void runner_log(struct runner *runner, enum log_level level, const char *message,
                const struct task *task, const char *detail) {
    if (runner->config.logs_to_stderr) {
        if (level >= LOG_WARN)
            log_to_stderr(level, message, task, detail);
        return;
    }
    struct event event = {.kind = EVENT_LOG, .number = level, .text = message, .detail = detail};
    if (task) {
        memcpy(event.job_id, task->job_id, JOB_ID_SIZE);
        event.bytes = task->idx;
    }
    events_add(runner->events, &event);
}
