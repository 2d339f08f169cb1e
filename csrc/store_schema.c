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
