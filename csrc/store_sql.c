// SPDX-License-Identifier: MIT
//
// Every statement of the SQLite maker but those of a repair. What stands out:
// - outcomes are appended under seq; a job is serial, so its targets_done is both a counter and the
//   idx of its next target;
// - inputs are appended in chunks of many targets, under a key that holds both the job and the idx
//   of the first of them: a job of 32 is one row in one B-tree;
// - the statement on the way of each target, SQL_PROGRESS_JOB, changes no column that an
//   index holds while the job is live: only submit, claim and the job's end touch indexes;
// - stored bytes are gauge.finished_bytes plus the bytes of the live jobs, so that a target's
//   commit writes no row but its own and its job's.

#include "store_sql.h"

#define LIVE "status in ('queued', 'running')"

// No job ends before one that ended earlier, even if the clock was set back meanwhile: what goes
// first when results no longer fit is told by these moments.
#define LAST_END "coalesce((select max(finished_at) from job where finished_at is not null), 0)"

#define JOB_COLUMNS                                                                                \
    " key, id, status, error, caller, class, owner, targets_total, targets_done, targets_failed,"  \
    " bytes, created_at, started_at, finished_at, expires_at, attempts, busy_ms, deaths "

// Where a page of jobs goes on. A job that was dropped since the last page still has its place in
// time, which its id tells: behind the next older one. A look at one neighbour, not at all that are
// newer: of those, one made while the clock was wrong could have any key.
#define KEY_OF_BEFORE                                                                              \
    "coalesce((select key from job where id = ?3),\n"                                              \
    "    (select key + 1 from job where id < ?3 order by id desc limit 1), 0)"

// A page of jobs. Each condition has an index that gives its jobs newest first; one statement for
// all, "?2 is null or status = ?2", would have none, and walk over all jobs to find a rare status.
// Live jobs are few beside those that have ended, and are sorted.
#define LIST_JOBS(from, condition)                                                                 \
    "select" JOB_COLUMNS "from " from "\n"                                                         \
    "where " condition "\n"                                                                        \
    "  and key < iif(?3 is null, 9223372036854775807, " KEY_OF_BEFORE ")\n"                        \
    "order by key desc\n"                                                                          \
    "limit ?4"

// What the index of idempotency keys holds. They are hashes, of the caller too, so that submits
// fall anywhere into it, and the slimmer it is, the fewer of its pages are written; eight bytes are
// more than anybody finds two lists for. The + keeps the planner from the index on callers.
#define IDEM_START " substr(idem_key, 1, 8) "

// Of a row of input: 2^24, by STORE_IDX_BITS, is above the cap of targets in a job.
#define KEY_OF(job, idx) "(" job " << 24 | " idx ")"
#define JOB_OF(key) "(" key " >> 24)"
#define LAST_IDX "16777215"

// The chunk in which the target with that key lies, or one of an earlier job. Its first row is what
// is wanted: a limit takes time of its own.
#define CHUNK_OF_TARGET                                                                            \
    "select key, packed from input\n"                                                              \
    "where key <= ?1\n"                                                                            \
    "order by key desc"

#define OUTCOME_COLUMNS " o.meta, o.error, o.hint, o.attempts, o.started_at, o.finished_at "

const char *const sql_migrations[SQL_SCHEMA_VERSION] = {
    "create table owner (\n"
    "  id integer primary key autoincrement,\n"
    "  slot integer not null unique,\n"
    "  pid integer not null,\n"
    "  opened_at integer not null\n"
    ") strict;\n"
    "create table job (\n"
    "  key integer primary key autoincrement,\n"
    "  id text not null unique,\n"
    "  caller text not null,\n"
    "  class text not null,\n"
    "  idem_key blob not null,\n"
    "  status text not null,\n"
    "  error text,\n"
    "  owner integer,\n"
    "  targets_total integer not null,\n"
    "  targets_done integer not null default 0,\n"
    "  targets_failed integer not null default 0,\n"
    "  bytes integer not null default 0,\n"
    "  created_at integer not null,\n"
    "  started_at integer,\n"
    "  finished_at integer,\n"
    "  expires_at integer not null,\n"
    "  attempts integer not null default 0,\n"
    "  busy_ms integer not null default 0,\n"
    "  deaths integer not null default 0\n"
    ") strict;\n"
    "create index job_idem on job (caller, idem_key);\n"
    "create index job_caller on job (caller);\n"
    "create index job_live on job (caller, owner) where " LIVE ";\n"
    "create index job_unowned on job (key) where owner is null and " LIVE ";\n"
    "create index job_finished on job (finished_at) where finished_at is not null;\n"
    "create index job_lapsing on job (expires_at) where finished_at is not null;\n"
    "create table target (\n"
    "  job integer not null,\n"
    "  idx integer not null,\n"
    "  url text not null,\n"
    "  options text,\n"
    "  primary key (job, idx)\n"
    ") strict, without rowid;\n"
    "create table outcome (\n"
    "  seq integer primary key,\n"
    "  job integer not null,\n"
    "  idx integer not null,\n"
    "  content blob,\n"
    "  meta text,\n"
    "  error text,\n"
    "  hint text,\n"
    "  attempts integer not null,\n"
    "  started_at integer not null,\n"
    "  finished_at integer not null\n"
    ") strict;\n"
    "create unique index outcome_target on outcome (job, idx);\n"
    "create table dropped (\n"
    "  job integer primary key\n"
    ") strict;\n"
    "create table gauge (\n"
    "  id integer primary key check (id = 1),\n"
    "  live_jobs integer not null,\n"
    "  finished_bytes integer not null\n"
    ") strict;\n"
    "insert into gauge values (1, 0, 0);\n",
    "create index job_ended on job (status) where finished_at is not null;\n"
    "create index job_caller_ended on job (caller, status)\n"
    "  where finished_at is not null;\n",

    // Filled and the table target dropped by sqlite_pack_inputs.
    "create table input (\n"
    "  key integer primary key,\n"  // KEY_OF(job, idx of the first target)
    "  packed blob not null\n"
    ") strict;\n"
    "drop index job_idem;\n"
    "create index job_idem on job (" IDEM_START ");\n",
};

const char *const sql_texts[SQL_N_STATEMENTS] = {
    [SQL_BEGIN] = "begin immediate",
    [SQL_BEGIN_READ] = "begin",
    [SQL_COMMIT] = "commit",
    [SQL_ROLLBACK] = "rollback",
    [SQL_DATA_VERSION] = "pragma data_version",

    [SQL_FIND_JOB] = "select" JOB_COLUMNS "from job\n"
                     "where " IDEM_START "= substr(?2, 1, 8) and idem_key = ?2\n"
                     "  and +caller = ?1 and expires_at > ?3\n"
                     "order by key desc\n"
                     "limit 1",
    [SQL_READ_JOB] = "select" JOB_COLUMNS "from job\n"
                     "where id = ?1",
    [SQL_COUNT_LIVE_OF_CALLER] = "select count(*) from job\n"
                                 "where caller = ?1 and " LIVE,
    [SQL_COUNT_LIVE] = "select live_jobs from gauge",
    [SQL_INSERT_JOB] = "insert into job (id, caller, class, idem_key, status, owner,\n"
                       "  targets_total, created_at, expires_at)\n"
                       "values (?1, ?2, ?3, ?4, 'queued', nullif(?5, 0), ?6, ?7, ?8)",
    [SQL_INSERT_INPUTS] = "insert into input (key, packed)\n"
                          "values (?1, ?2)",
    [SQL_GAUGE_ADD_JOB] = "update gauge\n"
                          "set live_jobs = live_jobs + 1",
    [SQL_START_JOB] = "update job\n"
                      "set status = 'running', started_at = coalesce(started_at, ?2)\n"
                      "where key = ?1 and status = 'queued'",
    [SQL_CANCEL_JOB] = "update job\n"
                       "set status = 'cancelled', finished_at = max(?2, " LAST_END ")\n"
                       "where id = ?1 and " LIVE "\n"
                       "returning" JOB_COLUMNS,
    [SQL_TOUCH_JOB] = "update job\n"
                      "set expires_at = max(expires_at, ?3)\n"
                      "where id = ?1 and expires_at > ?2",
    [SQL_SET_BUSY] = "update job\n"
                     "set attempts = ?3, busy_ms = ?4\n"
                     "where key = ?1 and targets_done = ?2",

    [SQL_PROGRESS_JOB] = "update job\n"
                         "set targets_done = targets_done + 1,\n"
                         "  targets_failed = targets_failed + ?3,\n"
                         "  bytes = bytes + ?4,\n"
                         "  expires_at = max(expires_at, ?5),\n"
                         "  attempts = 0, busy_ms = 0, deaths = 0\n"
                         "where key = ?1 and targets_done = ?2 and " LIVE,
    [SQL_END_JOB] = "update job\n"
                    "set targets_done = targets_done + 1,\n"
                    "  targets_failed = targets_failed + ?3,\n"
                    "  bytes = bytes + ?4,\n"
                    "  expires_at = max(expires_at, ?5),\n"
                    "  attempts = 0, busy_ms = 0, deaths = 0,\n"
                    "  finished_at = max(?6, " LAST_END "),\n"
                    "  status = case targets_failed + ?3\n"
                    "    when 0 then 'done'\n"
                    "    when targets_total then 'failed'\n"
                    "    else 'partial'\n"
                    "  end\n"
                    "where key = ?1 and targets_done = ?2 and " LIVE "\n"
                    "returning status",
    [SQL_LATE_OUTCOME] = "update job\n"
                         "set targets_done = targets_done + 1,\n"
                         "  targets_failed = targets_failed + ?3,\n"
                         "  bytes = bytes + ?4,\n"
                         "  expires_at = max(expires_at, ?5),\n"
                         "  attempts = 0, busy_ms = 0, deaths = 0\n"
                         "where key = ?1 and targets_done = ?2 and finished_at is not null\n"
                         "  and targets_done < targets_total\n"
                         "returning status",
    [SQL_INSERT_OUTCOME] = "insert into outcome (job, idx, content, meta, error, hint, attempts,\n"
                           "  started_at, finished_at)\n"
                           "values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [SQL_GAUGE_END_JOB] = "update gauge\n"
                          "set live_jobs = live_jobs - 1,\n"
                          "  finished_bytes = finished_bytes\n"
                          "    + (select bytes from job where key = ?1)",
    [SQL_GAUGE_ADD_BYTES] = "update gauge\n"
                            "set finished_bytes = finished_bytes + ?1",

    [SQL_READ_INPUTS] = CHUNK_OF_TARGET,
    [SQL_FIND_INPUT] = CHUNK_OF_TARGET,
    [SQL_LIST_JOBS] = LIST_JOBS("job", "true"),
    [SQL_LIST_JOBS_OF_CALLER] = LIST_JOBS("job", "caller = ?1"),
    [SQL_LIST_ENDED] = LIST_JOBS("job", "finished_at is not null and status = ?2"),
    [SQL_LIST_ENDED_OF_CALLER] =
        LIST_JOBS("job", "finished_at is not null and caller = ?1 and status = ?2"),
    [SQL_LIST_LIVE] = LIST_JOBS("job indexed by job_live", LIVE " and status = ?2"),
    [SQL_LIST_LIVE_OF_CALLER] =
        LIST_JOBS("job indexed by job_live", LIVE " and caller = ?1 and status = ?2"),
    [SQL_LIST_OUTCOMES] = "select o.seq, o.job, o.idx, case when ?4 then o.content end,\n"
                          " " OUTCOME_COLUMNS ", null\n"
                          "from outcome o\n"
                          "where o.job = ?1 and o.idx >= ?2\n"
                          "order by o.idx\n"
                          "limit ?3",
    [SQL_LIST_CHANGES] = "select o.seq, o.job, o.idx, o.content,\n"
                         " " OUTCOME_COLUMNS ", j.id\n"
                         "from outcome o\n"
                         "cross join job j on j.key = o.job\n"
                         "where o.seq > ?1\n"
                         "order by o.seq\n"
                         "limit ?2",

    [SQL_INSERT_OWNER] = "insert into owner (slot, pid, opened_at)\n"
                         "select coalesce(min(s.slot), 0), ?1, ?2\n"
                         "from (select 0 as slot union all select slot + 1 from owner) s\n"
                         "where s.slot not in (select slot from owner)\n"
                         "returning id, slot",
    [SQL_DELETE_OWNER] = "delete from owner\n"
                         "where id = ?1 and not exists (\n"
                         "  select 1 from job where owner = ?1 and " LIVE ")",
    [SQL_NEXT_OWNER] = "select id, slot from owner\n"
                       "where id > ?1\n"
                       "order by id\n"
                       "limit 1",
    [SQL_FIRST_UNOWNED] = "select min(key) from job\n"
                          "where owner is null and " LIVE,
    [SQL_CLAIM_JOB] = "update job\n"
                      "set owner = ?2\n"
                      "where key = ?1 and owner is null and " LIVE "\n"
                      "returning" JOB_COLUMNS,
    [SQL_RELEASE_JOB] = "update job\n"
                        "set owner = null, status = 'queued'\n"
                        "where key = ?1 and owner = ?2 and " LIVE,
    [SQL_RELEASE_JOBS] = "update job\n"
                         "set owner = null, status = 'queued'\n"
                         "where owner = ?1 and " LIVE,
    [SQL_FAIL_JOBS] = "update job\n"
                      "set status = 'failed', error = ?2,\n"
                      "  finished_at = max(?3, " LAST_END ")\n"
                      "where key in (\n"
                      "  select key from job\n"
                      "  where owner is nullif(?1, 0) and " LIVE "\n"
                      "  limit ?4)\n"
                      "returning" JOB_COLUMNS,
    [SQL_GAUGE_FAIL_JOBS] = "update gauge\n"
                            "set live_jobs = live_jobs - ?1,\n"
                            "  finished_bytes = finished_bytes + ?2",
    [SQL_NOTE_DEATH] = "update job\n"
                       "set deaths = deaths + 1\n"
                       "where key = ?1 and targets_done = ?2 and " LIVE "\n"
                       "returning" JOB_COLUMNS,

    [SQL_FINISHED_BYTES] = "select finished_bytes from gauge",
    [SQL_LIVE_BYTES] = "select count(*), coalesce(sum(bytes), 0), min(created_at) from job\n"
                       "where " LIVE,
    [SQL_FIRST_EXPIRED] = "select key from job\n"
                          "where finished_at is not null and expires_at <= ?1\n"
                          "order by expires_at\n"
                          "limit 1",
    [SQL_OLDEST_FINISHED] = "select key from job\n"
                            "where finished_at is not null\n"
                            "order by finished_at, key\n"
                            "limit 1",
    [SQL_NEWEST_FINISHED] = "select key from job\n"
                            "where finished_at is not null\n"
                            "order by finished_at desc, key desc\n"
                            "limit 1",
    [SQL_DROP_JOB] = "insert into dropped (job)\n"
                     "values (?1)",
    [SQL_GAUGE_DROP_JOB] = "update gauge\n"
                           "set finished_bytes = finished_bytes\n"
                           "  - (select bytes from job where key = ?1)",
    [SQL_DELETE_JOB] = "delete from job\n"
                       "where key = ?1",
    [SQL_FIRST_DROPPED] = "select min(job) from dropped",
    [SQL_CLEAR_OUTCOMES] = "delete from outcome\n"
                           "where seq in (\n"
                           "  select seq from outcome where job = ?1 order by idx limit ?2)",
    [SQL_CLEAR_INPUTS] =
        "delete from input\n"
        "where key in (\n"
        "  select key from input\n"
        "  where key between " KEY_OF("?1", "0") " and " KEY_OF("?1", LAST_IDX) "\n"
                                                                                "  order by key\n"
                                                                                "  limit ?2)",
    [SQL_DELETE_DROPPED] = "delete from dropped\n"
                           "where job = ?1",
    [SQL_COUNT_PAGES] = "pragma page_count",
    [SQL_COUNT_FREE_PAGES] = "pragma freelist_count",
    [SQL_SHRINK] = "pragma incremental_vacuum(1000)",

    [SQL_CHECK_JOBS] = "select j.id, j.status, j.error, j.targets_total, j.targets_done,\n"
                       "  j.targets_failed, j.bytes, j.finished_at,\n"
                       "  count(o.seq), coalesce(max(o.idx) + 1, 0), count(o.error),\n"
                       "  coalesce(sum(length(o.content)), 0)\n"
                       "    + coalesce(sum(octet_length_of_meta), 0)\n"
                       "from job j\n"
                       "left join (\n"
                       "  select seq, job, idx, error, content,\n"
                       "    length(cast(meta as blob)) as octet_length_of_meta\n"
                       "  from outcome) o on o.job = j.key\n"
                       "group by j.key",
    [SQL_CHECK_INPUTS] =
        "select j.key, j.id, j.targets_total, j.caller, j.idem_key, i.key & " LAST_IDX ",\n"
        "  i.packed\n"
        "from job j\n"
        "left join input i\n"
        "  on i.key between " KEY_OF("j.key", "0") " and " KEY_OF("j.key",
                                                                  LAST_IDX) "\n"
                                                                            "order by j.key, i.key",
    [SQL_CHECK_GAUGE] =
        "select live_jobs, finished_bytes,\n"
        "  (select count(*) from job where " LIVE "),\n"
        "  (select coalesce(sum(bytes), 0) from job where finished_at is not null)\n"
        "from gauge",
    [SQL_CHECK_ORPHANS] =
        "select count(*) from (\n"
        "  select job from outcome\n"
        "  union all select " JOB_OF("key") " from input)\n"
                                            "where job not in (select key from job)\n"
                                            "  and job not in (select job from dropped)",
    // The rest give sentences. Of an outcome, no more than one.
    [SQL_CHECK_OUTCOMES] =
        "select format('job %s: the outcome with idx %d %s', id, idx, what) from (\n"
        "  select j.id, o.idx, case\n"
        "    when o.idx < 0 then 'is no target''s'\n"
        "    when o.idx >= j.targets_total then 'lies beyond targets_total'\n"
        "    when has_content and has_error then 'has both content and an error'\n"
        "    when not has_content and not has_error then 'has neither content nor an error'\n"
        "    when has_meta and has_error then 'has both meta and an error'\n"
        "    when has_hint and has_content then 'has both content and a hint'\n"
        "    when o.attempts < 1 then 'has ' || o.attempts || ' attempts'\n"
        "    when o.seq < o.earlier then 'was stored before that of the target before it'\n"
        "    end as what\n"
        "  from (\n"
        "    select seq, job, idx, attempts, lag(seq) over (partition by job order by idx) as "
        "earlier,\n"
        "      content is not null as has_content, error is not null as has_error,\n"
        "      meta is not null as has_meta, hint is not null as has_hint\n"
        "    from outcome) o\n"
        "  join job j on j.key = o.job)\n"
        "where what is not null",
    [SQL_CHECK_TURNS] =
        "select format('job %s: %s', id, what) from (\n"
        "  select id, case\n"
        "    when targets_total < 1 then 'it has no targets'\n"
        "    when attempts < 0 or busy_ms < 0 or deaths < 0\n"
        "      then 'attempts, busy_ms or deaths are below 0'\n"
        "    when status = 'running' and started_at is null\n"
        "      then 'it is running without started_at'\n"
        "    when status = 'running' and owner is null then 'it is running without an owner'\n"
        "    when " LIVE " and owner is not null and owner not in (select id from owner)\n"
        "      then 'its owner ' || owner || ' is unknown'\n"
        "    end as what\n"
        "  from job)\n"
        "where what is not null",
    [SQL_CHECK_MARKS] = "select format('job %s: it is marked as dropped', id) from job\n"
                        "where key in (select job from dropped)",
};
