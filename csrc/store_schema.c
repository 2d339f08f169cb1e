// SPDX-License-Identifier: MIT
//
// Makes a new store, migrates an older one, and refuses what is neither. Called under the lock of
// the owners file: creating a WAL database from several processes at once fails now and then.

#include "store_sqlite.h"

enum { APPLICATION_ID = 0x62746368 };  // "btch"

static int pragma_number(struct sqlite *sqlite, const char *sql, int64_t *out_number) {
    sqlite3_stmt *statement = NULL;
    *out_number = 0;
    int code = sqlite3_prepare_v2(sqlite->db, sql, -1, &statement, NULL);
    if (!code && sqlite3_step(statement) == SQLITE_ROW)
        *out_number = sqlite3_column_int64(statement, 0);
    int finalized = sqlite3_finalize(statement);
    code = code ? code : finalized;
    return code ? sqlite_fail(sqlite, code, "open the store") : STATUS_OK;
}

static int execute(struct sqlite *sqlite, const char *sql) {
    int code = sqlite3_exec(sqlite->db, sql, NULL, NULL, NULL);
    return code ? sqlite_fail(sqlite, code, "make the store") : STATUS_OK;
}

// What SQL cannot do of a step; follows its script.
static int (*const conversions[SQL_SCHEMA_VERSION])(struct sqlite *sqlite) = {
    [2] = sqlite_pack_inputs,
};

static int take_step(struct sqlite *sqlite, int64_t version) {
    int status = execute(sqlite, sql_migrations[version]);
    return status || !conversions[version] ? status : conversions[version](sqlite);
}

static int migrate_from(struct sqlite *sqlite, int64_t version) {
    int status = execute(sqlite, "begin immediate");
    for (int64_t v = version; !status && v < SQL_SCHEMA_VERSION; v++)
        status = take_step(sqlite, v);
    if (!status) {
        char stamp[96];
        sqlite3_snprintf(sizeof stamp, stamp,
                         "pragma application_id = %d; pragma user_version = %d", APPLICATION_ID,
                         SQL_SCHEMA_VERSION);
        status = execute(sqlite, stamp);
    }
    if (!status)
        status = sqlite_ops.commit(&sqlite->store);
    if (status)
        sqlite_ops.rollback(&sqlite->store);
    return status;
}

// Whether the file may be used: an empty database, or a store of this version or an older one.
static int inspect(struct sqlite *sqlite, int64_t *out_version) {
    int64_t n_objects, application;
    int status = pragma_number(sqlite, "select count(*) from sqlite_schema", &n_objects);
    if (!status)
        status = pragma_number(sqlite, "pragma application_id", &application);
    if (!status)
        status = pragma_number(sqlite, "pragma user_version", out_version);
    if (status)
        return status;
    if (application != APPLICATION_ID && (n_objects > 0 || application != 0))
        return fault_set(&sqlite->store.fault, STATUS_STORE,
                         "a database of another program, not a batch store");
    if (*out_version > SQL_SCHEMA_VERSION)
        return fault_set(&sqlite->store.fault, STATUS_STORE,
                         "a store of version %lld, newer than the %d that this batch knows",
                         (long long)*out_version, SQL_SCHEMA_VERSION);
    return STATUS_OK;
}

int sqlite_migrate(struct sqlite *sqlite) {
    int64_t version;
    int status = inspect(sqlite, &version);
    // The vacuum mode can only be chosen while the file is empty.
    if (!status && version == 0)
        status = execute(sqlite, "pragma auto_vacuum = incremental");
    // Each time, because a backup is no WAL file. Nor is a store in memory, where the answer is not
    // "wal", which is no failure.
    if (!status)
        status = execute(sqlite, "pragma journal_mode = wal");
    if (status || version == SQL_SCHEMA_VERSION)
        return status;
    return migrate_from(sqlite, version);
}

// --- what is missing ---

// A store without a row, as it is made.
static int make_model(struct sqlite *sqlite, sqlite3 **out_model) {
    int code =
        sqlite3_open_v2(":memory:", out_model, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    for (int version = 0; !code && version < SQL_SCHEMA_VERSION; version++)
        code = sqlite3_exec(*out_model, sql_migrations[version], NULL, NULL, NULL);
    if (!code)
        code = sqlite3_exec(*out_model, "drop table target", NULL, NULL, NULL);
    return code ? sqlite_fail(sqlite, code, "look at the schema") : STATUS_OK;
}

static int is_there(struct sqlite *sqlite, sqlite3_stmt *part, sqlite3_stmt *look, bool *out_is) {
    sqlite3_reset(look);
    for (int i = 0; i < 2; i++)
        sqlite3_bind_text(look, i + 1, (const char *)sqlite3_column_text(part, i), -1,
                          SQLITE_STATIC);
    int code = sqlite3_step(look);
    *out_is = code == SQLITE_ROW;
    return *out_is || code == SQLITE_DONE ? STATUS_OK
                                          : sqlite_fail(sqlite, code, "look at the schema");
}

static int find_missing(struct sqlite *sqlite, sqlite3_stmt *part, sqlite3_stmt *look,
                        sqlite_missing *missing, void *context) {
    int status = STATUS_OK;
    while (!status && sqlite3_step(part) == SQLITE_ROW) {
        bool is;
        status = is_there(sqlite, part, look, &is);
        if (!status && !is)
            status = missing(context, (const char *)sqlite3_column_text(part, 0),
                             (const char *)sqlite3_column_text(part, 1),
                             (const char *)sqlite3_column_text(part, 2));
    }
    return status;
}

int sqlite_find_missing(struct sqlite *sqlite, sqlite_missing *missing, void *context) {
    sqlite3 *model = NULL;
    sqlite3_stmt *part = NULL, *look = NULL;
    int status = make_model(sqlite, &model);
    int code = status ? SQLITE_OK
                      : sqlite3_prepare_v2(model,
                                           "select type, name, sql from sqlite_schema\n"
                                           "where sql is not null and name not like 'sqlite%'",
                                           -1, &part, NULL);
    if (!status && !code)
        code = sqlite3_prepare_v2(sqlite->db,
                                  "select 1 from sqlite_schema where type = ?1 and name = ?2", -1,
                                  &look, NULL);
    if (code)
        status = sqlite_fail(sqlite, code, "look at the schema");
    if (!status)
        status = find_missing(sqlite, part, look, missing, context);
    sqlite3_finalize(part);
    sqlite3_finalize(look);
    sqlite3_close(model);
    return status;
}
