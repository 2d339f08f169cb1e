// SPDX-License-Identifier: MIT
//
// Names for every statement of the SQLite maker; the texts are in store_sql.c.

#ifndef BATCH_STORE_SQL_H
#define BATCH_STORE_SQL_H

enum sql {
    SQL_BEGIN,
    SQL_BEGIN_READ,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_DATA_VERSION,
    SQL_FIND_JOB,
    SQL_READ_JOB,
    SQL_COUNT_LIVE_OF_CALLER,
    SQL_COUNT_LIVE,
    SQL_INSERT_JOB,
    SQL_INSERT_INPUTS,
    SQL_GAUGE_ADD_JOB,
    SQL_START_JOB,
    SQL_CANCEL_JOB,
    SQL_TOUCH_JOB,
    SQL_SET_BUSY,
    SQL_PROGRESS_JOB,
    SQL_END_JOB,
    SQL_LATE_OUTCOME,
    SQL_INSERT_OUTCOME,
    SQL_GAUGE_END_JOB,
    SQL_GAUGE_ADD_BYTES,
    SQL_READ_INPUTS,
    SQL_FIND_INPUT,
    SQL_LIST_JOBS,
    SQL_LIST_JOBS_OF_CALLER,
    SQL_LIST_ENDED,
    SQL_LIST_ENDED_OF_CALLER,
    SQL_LIST_LIVE,
    SQL_LIST_LIVE_OF_CALLER,
    SQL_LIST_OUTCOMES,
    SQL_LIST_CHANGES,
    SQL_INSERT_OWNER,
    SQL_DELETE_OWNER,
    SQL_NEXT_OWNER,
    SQL_FIRST_UNOWNED,
    SQL_CLAIM_JOB,
    SQL_RELEASE_JOB,
    SQL_RELEASE_JOBS,
    SQL_FAIL_JOBS,
    SQL_GAUGE_FAIL_JOBS,
    SQL_NOTE_DEATH,
    SQL_FINISHED_BYTES,
    SQL_LIVE_BYTES,
    SQL_FIRST_EXPIRED,
    SQL_OLDEST_FINISHED,
    SQL_NEWEST_FINISHED,
    SQL_DROP_JOB,
    SQL_GAUGE_DROP_JOB,
    SQL_DELETE_JOB,
    SQL_FIRST_DROPPED,
    SQL_CLEAR_OUTCOMES,
    SQL_CLEAR_INPUTS,
    SQL_DELETE_DROPPED,
    SQL_COUNT_PAGES,
    SQL_COUNT_FREE_PAGES,
    SQL_SHRINK,
    SQL_CHECK_JOBS,
    SQL_CHECK_INPUTS,
    SQL_CHECK_GAUGE,
    SQL_CHECK_ORPHANS,
    SQL_CHECK_OUTCOMES,
    SQL_CHECK_TURNS,
    SQL_CHECK_MARKS,
    SQL_N_STATEMENTS,
};

extern const char *const sql_texts[SQL_N_STATEMENTS];

// The key of a row of input: above so many bits the job's key, in them the idx of its first target.
enum { STORE_IDX_BITS = 24 };

// The schema, a script for each version: scripts[n] leads from version n to n + 1.
enum { SQL_SCHEMA_VERSION = 3 };
extern const char *const sql_migrations[SQL_SCHEMA_VERSION];

#endif
