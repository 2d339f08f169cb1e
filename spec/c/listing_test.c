// SPDX-License-Identifier: MIT
//
// How SQLite goes about the lists of jobs: by an index that has them in order, however large the
// store is.

#include "store_sql.h"

#include "check.h"
#include "status.h"
#include "store.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/batch-listing-XXXXXX";

static sqlite3 *open_database(void) {
    char path[64];
    struct place place;
    struct store *store;
    struct fault fault;
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/batch.db", folder);
    place_open(path, &place, &fault);
    if (CHECK("a store opens", !store_open(&place, DURABILITY_NORMAL, true, &store, &fault)))
        store->ops->close(store);
    place_close(&place);
    CHECK("so does its database", sqlite3_open(path, &db) == SQLITE_OK);
    return db;
}

// The plan's steps, one a line.
static void read_plan(sqlite3 *db, enum sql sql, char *out_plan, size_t size) {
    char text[2048];
    sqlite3_stmt *statement;
    size_t len = 0;
    out_plan[0] = '\0';
    snprintf(text, sizeof text, "explain query plan %s", sql_texts[sql]);
    if (!CHECK("a statement is sound", !sqlite3_prepare_v2(db, text, -1, &statement, NULL)))
        return;
    while (sqlite3_step(statement) == SQLITE_ROW && len < size)
        len += (size_t)snprintf(out_plan + len, size - len, "%s\n",
                                (const char *)sqlite3_column_text(statement, 3));
    sqlite3_finalize(statement);
}

static void test_plan(sqlite3 *db, enum sql sql, const char *first) {
    char plan[2048];
    read_plan(db, sql, plan, sizeof plan);
    bool is_expected = strncmp(plan, first, strlen(first)) == 0;
    bool is_live = strstr(first, "job_live") != NULL;
    if (!CHECK("a list has its index", is_expected) ||
        !CHECK("nothing is walked through but live jobs", is_live || !strstr(plan, "SCAN job")) ||
        !CHECK("nor sorted", is_live || !strstr(plan, "TEMP B-TREE")) ||
        !CHECK("the last page's end is found", strstr(plan, "(id<?)") != NULL))
        puts(plan);
}

int main(void) {
    char command[64];
    if (!mkdtemp(folder))
        return 1;
    sqlite3 *db = open_database();
    test_plan(db, SQL_LIST_JOBS, "SEARCH job USING INTEGER PRIMARY KEY (rowid<?)\n");
    test_plan(db, SQL_LIST_JOBS_OF_CALLER,
              "SEARCH job USING INDEX job_caller (caller=? AND rowid<?)\n");
    test_plan(db, SQL_LIST_ENDED, "SEARCH job USING INDEX job_ended (status=? AND rowid<?)\n");
    test_plan(db, SQL_LIST_ENDED_OF_CALLER,
              "SEARCH job USING INDEX job_caller_ended (caller=? AND status=? AND rowid<?)\n");
    test_plan(db, SQL_LIST_LIVE, "SCAN job USING INDEX job_live\n");
    test_plan(db, SQL_LIST_LIVE_OF_CALLER, "SEARCH job USING INDEX job_live (caller=?)\n");
    sqlite3_close(db);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return check_report() | (system(command) != 0);
}
