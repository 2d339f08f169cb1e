// SPDX-License-Identifier: MIT
//
// Mends what can be mended of a store, inside of a transaction of the caller's. What the rows of
// outcomes and inputs tell is the truth; counters, gauges, statuses and indexes follow from it. No
// content and no input is ever made up, and none is removed that a job could show. Live jobs of
// living owners are left alone: their owners know in memory where they are. Has its statements
// here, beside what they are for.

#include "store_check.h"

// Whether an owner lives, as SQL sees it: is_held(owner).
static void is_held(sqlite3_context *context, int n_values, sqlite3_value **values) {
    const struct repair *repair = sqlite3_user_data(context);
    (void)n_values;
    int64_t owner = sqlite3_value_int64(values[0]);
    sqlite3_result_int(context, owner > 0 && repair->is_alive(repair->context, owner));
}

#define LIVE "status in ('queued', 'running')"
#define KNOWN "status in ('queued', 'running', 'done', 'partial', 'failed', 'cancelled')"
#define ENDING                                                                                     \
    "case f.n_failed when 0 then 'done' when targets_total then 'failed' else 'partial' end"

// What belongs to no job, or is no target's.
static const char *const sql_strays[] = {
    "delete from dropped\n"
    "where job in (select key from job)\n"
    "returning format('job %s: it is not marked as dropped any more',\n"
    "  (select id from job where key = dropped.job))",
    "delete from outcome\n"
    "where job not in (select key from job) and job not in (select job from dropped)\n"
    "returning format('an outcome that belongs to no job is gone, with idx %d', idx)",
    "delete from input\n"
    "where key >> 24 not in (select key from job) and key >> 24 not in (select job from dropped)\n"
    "returning format('inputs that belong to no job are gone, from idx %d on', key & 16777215)",
};

// repair_free: the jobs that no living owner holds. is_whole: their inputs are proven and as many
// as targets_total says.
static const char sql_free[] =
    "create temp table repair_free (job integer primary key, is_whole integer not null);\n"
    "insert into temp.repair_free\n"
    "select key, 0 from main.job\n"
    "where not ((" LIVE " or finished_at is null) and is_held(owner))";

static const char sql_surplus[] =
    "delete from outcome\n"
    "where exists (\n"
    "  select 1 from job j join temp.repair_free r on r.job = j.key\n"
    "  where j.key = outcome.job and r.is_whole\n"
    "    and (outcome.idx < 0 or outcome.idx >= j.targets_total))\n"
    "returning format('job %s: the outcome with idx %d is gone, which is no target''s',\n"
    "  (select id from job where key = outcome.job), idx)";

// Of free jobs whose outcomes have no gap and can be told apart.
static const char sql_fact[] =
    "create temp table repair_fact as\n"
    "select r.job, r.is_whole, count(o.seq) as n_done, count(o.error) as n_failed,\n"
    "  coalesce(sum(length(o.content)), 0)\n"
    "    + coalesce(sum(length(cast(o.meta as blob))), 0) as n_bytes,\n"
    "  min(o.started_at) as began_at, max(o.finished_at) as ended_at\n"
    "from temp.repair_free r\n"
    "left join main.outcome o on o.job = r.job\n"
    "group by r.job\n"
    "having count(o.seq) = coalesce(max(o.idx) + 1, 0) and coalesce(min(o.idx), 0) = 0\n"
    "  and count(o.error) + count(o.content) = count(o.seq)\n"
    "  and coalesce(sum(o.seq is not null and (o.error is null) = (o.content is null)), 0) = 0;\n"
    "create unique index temp.repair_fact_job on repair_fact (job)";

// One after the other: each sees what those before it have mended.
static const char *const sql_steps[] = {
    // A job that has ended well without all of its outcomes has lost some: nothing tells of them.
    "update job\n"
    "set targets_done = f.n_done, targets_failed = f.n_failed, bytes = f.n_bytes\n"
    "from temp.repair_fact f\n"
    "where f.job = key and f.n_done <= targets_total\n"
    "  and (targets_done <> f.n_done or targets_failed <> f.n_failed or bytes <> f.n_bytes)\n"
    "  and not (status in ('done', 'partial', 'failed') and error is null\n"
    "    and f.n_done < targets_total)\n"
    "returning format('job %s: targets_done is %d now, targets_failed %d, bytes %d', id,\n"
    "  targets_done, targets_failed, bytes)",

    // All outcomes are there. With an error it was failed before the last of them came.
    "update job\n"
    "set status = " ENDING ", error = null, finished_at = coalesce(finished_at, f.ended_at)\n"
    "from temp.repair_fact f\n"
    "where f.job = key and f.is_whole and f.n_done = targets_total\n"
    "  and status <> 'cancelled'\n"
    "  and not (status = 'failed' and error is not null and finished_at is not null)\n"
    "  and (status <> " ENDING " or finished_at is null or error is not null)\n"
    "returning format('job %s: it is %s now, as all of its outcomes say', id, status)",

    // Three columns tell of an end: two of them against one.
    "update job\n"
    "set status = case\n"
    "    when error is not null then 'failed'\n"
    "    when finished_at is not null then 'cancelled'\n"
    "    else 'queued'\n"
    "  end,\n"
    "  finished_at = iif(error is null, finished_at,\n"
    "    coalesce(finished_at, f.ended_at, started_at, created_at))\n"
    "from temp.repair_fact f\n"
    "where f.job = key and not " KNOWN " and f.n_done < targets_total\n"
    "returning format('job %s: it is %s now', id, status)",
    "update job\n"
    "set status = 'failed'\n"
    "from temp.repair_fact f\n"
    "where f.job = key and " LIVE " and error is not null and finished_at is not null\n"
    "returning format('job %s: it is failed now, as its error says', id)",
    "update job\n"
    "set error = null\n"
    "from temp.repair_fact f\n"
    "where f.job = key and error is not null\n"
    "  and (status = 'cancelled' or (" LIVE " and finished_at is null))\n"
    "returning format('job %s: its error is gone, for it is %s', id, status)",
    "update job\n"
    "set finished_at = coalesce(f.ended_at, started_at, created_at)\n"
    "from temp.repair_fact f\n"
    "where f.job = key and finished_at is null\n"
    "  and (status = 'cancelled' or (status = 'failed' and error is not null))\n"
    "returning format('job %s: it has a finished_at now', id)",
    "update job\n"
    "set finished_at = null\n"
    "from temp.repair_fact f\n"
    "where f.job = key and " LIVE " and error is null and finished_at is not null\n"
    "returning format('job %s: it has no finished_at any more, for it is %s', id, status)",

    // Whose turn it is.
    "update job\n"
    "set owner = null, status = 'queued'\n"
    "from temp.repair_free r\n"
    "where r.job = key and " LIVE " and owner not in (select id from owner)\n"
    "returning format('job %s: it is everybody''s, for its owner is unknown', id)",
    "update job\n"
    "set status = 'queued'\n"
    "from temp.repair_free r\n"
    "where r.job = key and status = 'running' and owner is null\n"
    "returning format('job %s: it is queued now, for nobody has it', id)",
    "update job\n"
    "set started_at = coalesce(f.began_at, created_at)\n"
    "from temp.repair_fact f\n"
    "where f.job = key and status = 'running' and started_at is null\n"
    "returning format('job %s: it has a started_at now', id)",
    "update job\n"
    "set attempts = max(attempts, 0), busy_ms = max(busy_ms, 0), deaths = max(deaths, 0)\n"
    "from temp.repair_free r\n"
    "where r.job = key and (attempts < 0 or busy_ms < 0 or deaths < 0)\n"
    "returning format('job %s: attempts, busy_ms and deaths are not below 0 any more', id)",

    "insert or replace into gauge (id, live_jobs, finished_bytes)\n"
    "select 1, n_live, n_bytes from (\n"
    "  select (select count(*) from job where " LIVE ") as n_live,\n"
    "    (select coalesce(sum(bytes), 0) from job where finished_at is not null) as n_bytes)\n"
    "where not exists (\n"
    "  select 1 from gauge where live_jobs = n_live and finished_bytes = n_bytes)\n"
    "returning format('the gauge counts %d live jobs and %d bytes of finished jobs now',\n"
    "  live_jobs, finished_bytes)",
};

static const char sql_end[] = "drop table temp.repair_fact; drop table temp.repair_free";

// A repair on its way.
struct mending {
    struct sqlite *sqlite;
    struct report mended;
    struct report left;
    bool is_damaged;  // the file itself
};

static int execute(struct sqlite *sqlite, const char *sql) {
    int code = sqlite3_exec(sqlite->db, sql, NULL, NULL, NULL);
    return code ? sqlite_fail(sqlite, code, "mend the store") : STATUS_OK;
}

// --- the file ---

static void note_fault(void *context, const char *text) {
    bool *has_fault = context;
    (void)text;
    *has_fault = true;
}

static int look_at_file(struct sqlite *sqlite, bool *out_has_fault) {
    struct report report = {note_fault, out_has_fault};
    *out_has_fault = false;
    return check_file(sqlite, &report);
}

// Indexes can be made again from their tables; pages cannot.
static int mend_file(struct mending *mending) {
    struct sqlite *sqlite = mending->sqlite;
    int status = look_at_file(sqlite, &mending->is_damaged);
    if (status || !mending->is_damaged)
        return status;
    if (sqlite3_exec(sqlite->db, "reindex", NULL, NULL, NULL))
        return STATUS_OK;
    status = look_at_file(sqlite, &mending->is_damaged);
    if (!status && !mending->is_damaged)
        check_say(&mending->mended, "the indexes are made anew");
    return status;
}

// Without success it is among what is left.
static int make_index(void *context, const char *type, const char *name, const char *sql) {
    struct mending *mending = context;
    bool is_made = type[0] == 'i' && !sqlite3_exec(mending->sqlite->db, sql, NULL, NULL, NULL);
    if (is_made)
        check_say(&mending->mended, "the index %s is there again", name);
    return STATUS_OK;
}

// --- the rows ---

static int set_number(struct mending *mending, const char *format, int64_t number, int64_t key) {
    char sql[192];
    sqlite3_snprintf(sizeof sql, sql, format, number, key);
    return check_tell(mending->sqlite, sql, &mending->mended);
}

// The number of targets follows from inputs that are proven to be those that were submitted.
static int see_inputs(void *context, const struct inputs_found *inputs) {
    struct mending *mending = context;
    if (!inputs->is_proven)
        return STATUS_OK;
    int status = set_number(mending, "update temp.repair_free set is_whole = %lld where job = %lld",
                            1, inputs->job_key);
    if (status || inputs->n_targets == inputs->targets_total)
        return status;
    return set_number(mending,
                      "update job set targets_total = %lld\n"
                      "where key = %lld and key in (select job from temp.repair_free)\n"
                      "returning format('job %%s: targets_total is %%d now', id, targets_total)",
                      inputs->n_targets, inputs->job_key);
}

static void say_nothing(void *context, const char *text) {
    (void)context;
    (void)text;
}

static int tell_each(struct mending *mending, const char *const *sql, size_t count) {
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < count; i++)
        status = check_tell(mending->sqlite, sql[i], &mending->mended);
    return status;
}

static int mend_rows(struct mending *mending) {
    struct sqlite *sqlite = mending->sqlite;
    struct report silent = {say_nothing, NULL};
    int status = sqlite_find_missing(sqlite, make_index, mending);
    if (!status)
        status = tell_each(mending, sql_strays, sizeof sql_strays / sizeof *sql_strays);
    if (!status)
        status = execute(sqlite, sql_free);
    if (!status)
        status = check_inputs(sqlite, &silent, see_inputs, mending);
    if (!status)
        status = check_tell(sqlite, sql_surplus, &mending->mended);
    if (!status)
        status = execute(sqlite, sql_fact);
    if (!status)
        status = tell_each(mending, sql_steps, sizeof sql_steps / sizeof *sql_steps);
    return status ? status : execute(sqlite, sql_end);
}

// A damaged file is no ground to mend anything on.
int sqlite_repair(struct store *store, const struct repair *repair) {
    struct sqlite *sqlite = (struct sqlite *)store;
    struct mending mending = {.sqlite = sqlite,
                              .mended = {repair->mended, repair->context},
                              .left = {repair->left, repair->context}};
    int code = sqlite3_create_function(sqlite->db, "is_held", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                       (void *)(uintptr_t)repair, is_held, NULL, NULL);
    int status = code ? sqlite_fail(sqlite, code, "mend the store") : mend_file(&mending);
    if (!status && !mending.is_damaged)
        status = mend_rows(&mending);
    if (!status)
        status = check_rows(sqlite, &mending.left);
    if (!status && mending.is_damaged)
        status = check_file(sqlite, &mending.left);
    sqlite3_create_function(sqlite->db, "is_held", 1, SQLITE_UTF8, NULL, NULL, NULL, NULL);
    return status;
}
