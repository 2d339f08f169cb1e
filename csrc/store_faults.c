// SPDX-License-Identifier: MIT
//
// The fault points below SQLite: a file system (VFS) that stands before the default one, and an
// allocator that stands before SQLite's own. Neither is there until somebody asks for it.

#include "fault_point.h"
#include "store_sqlite.h"

#include <stdatomic.h>
#include <string.h>

#define VFS_NAME "batch-faults"

// The default system's file lies behind it in memory.
struct file {
    sqlite3_file base;
    sqlite3_file *real;
};

static sqlite3_vfs vfs;
static sqlite3_vfs *real_vfs;
static sqlite3_mem_methods real_memory;
static _Atomic bool is_wanted, is_registered;

int sqlite_fault_code(int answer) {
    static const int codes[] = {
        [FAULT_GO_ON] = SQLITE_OK,  [FAULT_FAIL] = SQLITE_IOERR,  [FAULT_BUSY] = SQLITE_BUSY,
        [FAULT_FULL] = SQLITE_FULL, [FAULT_IOERR] = SQLITE_IOERR, [FAULT_CORRUPT] = SQLITE_CORRUPT,
    };
    if (answer == FAULT_TEAR)
        fault_point_die();
    return codes[answer];
}

// The kind of step is FAULT_AT_IO for one that has no point of its own.
static int pass(enum fault_at kind) {
    int code = sqlite_fault_code((int)fault_point_pass(FAULT_AT_IO));
    return code || kind == FAULT_AT_IO ? code : sqlite_fault_code((int)fault_point_pass(kind));
}

static sqlite3_file *real_of(sqlite3_file *base) {
    return ((struct file *)base)->real;
}

// --- files ---

static int file_close(sqlite3_file *base) {
    return real_of(base)->pMethods->xClose(real_of(base));
}

static int file_read(sqlite3_file *base, void *bytes, int len, sqlite3_int64 offset) {
    int code = pass(FAULT_AT_READ);
    return code ? code : real_of(base)->pMethods->xRead(real_of(base), bytes, len, offset);
}

static int file_write(sqlite3_file *base, const void *bytes, int len, sqlite3_int64 offset) {
    sqlite3_file *real = real_of(base);
    enum fault_answer answer = fault_point_pass(FAULT_AT_IO);
    if (!answer)
        answer = fault_point_pass(FAULT_AT_WRITE);
    if (answer == FAULT_TEAR)
        real->pMethods->xWrite(real, bytes, len / 2, offset);
    int code = sqlite_fault_code((int)answer);
    return code ? code : real->pMethods->xWrite(real, bytes, len, offset);
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size) {
    int code = pass(FAULT_AT_WRITE);
    return code ? code : real_of(base)->pMethods->xTruncate(real_of(base), size);
}

static int file_sync(sqlite3_file *base, int flags) {
    int code = pass(FAULT_AT_SYNC);
    return code ? code : real_of(base)->pMethods->xSync(real_of(base), flags);
}

static int file_size(sqlite3_file *base, sqlite3_int64 *out_size) {
    int code = pass(FAULT_AT_READ);
    return code ? code : real_of(base)->pMethods->xFileSize(real_of(base), out_size);
}

static int file_lock(sqlite3_file *base, int level) {
    int code = pass(FAULT_AT_LOCK);
    return code ? code : real_of(base)->pMethods->xLock(real_of(base), level);
}

// To let go of a lock never fails, here as anywhere.
static int file_unlock(sqlite3_file *base, int level) {
    return real_of(base)->pMethods->xUnlock(real_of(base), level);
}

static int file_check_reserved(sqlite3_file *base, int *out_is_reserved) {
    return real_of(base)->pMethods->xCheckReservedLock(real_of(base), out_is_reserved);
}

static int file_control(sqlite3_file *base, int operation, void *argument) {
    return real_of(base)->pMethods->xFileControl(real_of(base), operation, argument);
}

static int file_sector_size(sqlite3_file *base) {
    return real_of(base)->pMethods->xSectorSize(real_of(base));
}

static int file_characteristics(sqlite3_file *base) {
    return real_of(base)->pMethods->xDeviceCharacteristics(real_of(base));
}

static int file_shm_map(sqlite3_file *base, int region, int size, int extends,
                        void volatile **out_address) {
    int code = pass(FAULT_AT_IO);
    *out_address = NULL;
    return code ? code
                : real_of(base)->pMethods->xShmMap(real_of(base), region, size, extends,
                                                   out_address);
}

static int file_shm_lock(sqlite3_file *base, int offset, int n, int flags) {
    int code = flags & SQLITE_SHM_UNLOCK ? SQLITE_OK : pass(FAULT_AT_LOCK);
    return code ? code : real_of(base)->pMethods->xShmLock(real_of(base), offset, n, flags);
}

static void file_shm_barrier(sqlite3_file *base) {
    real_of(base)->pMethods->xShmBarrier(real_of(base));
}

static int file_shm_unmap(sqlite3_file *base, int deletes) {
    return real_of(base)->pMethods->xShmUnmap(real_of(base), deletes);
}

// Version 2: without xFetch, so that no page is read but by xRead.
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

// --- the file system ---

static int vfs_open(sqlite3_vfs *self, const char *name, sqlite3_file *base, int flags,
                    int *out_flags) {
    struct file *file = (struct file *)base;
    (void)self;
    file->base.pMethods = NULL;
    file->real = (sqlite3_file *)(file + 1);
    int code = pass(FAULT_AT_IO);
    if (!code)
        code = real_vfs->xOpen(real_vfs, name, file->real, flags, out_flags);
    if (!code)
        file->base.pMethods = &methods;
    return code;
}

static int vfs_delete(sqlite3_vfs *self, const char *name, int syncs) {
    (void)self;
    int code = pass(FAULT_AT_WRITE);
    return code ? code : real_vfs->xDelete(real_vfs, name, syncs);
}

static int vfs_access(sqlite3_vfs *self, const char *name, int flags, int *out_answer) {
    (void)self;
    int code = pass(FAULT_AT_IO);
    return code ? code : real_vfs->xAccess(real_vfs, name, flags, out_answer);
}

static void register_vfs(void) {
    real_vfs = sqlite3_vfs_find(NULL);
    if (!real_vfs)
        return;
    vfs = *real_vfs;  // the other functions do not look at what they are called with
    vfs.zName = VFS_NAME;
    vfs.szOsFile += (int)sizeof(struct file);
    vfs.xOpen = vfs_open;
    vfs.xDelete = vfs_delete;
    vfs.xAccess = vfs_access;
    atomic_store(&is_registered, sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
}

const char *sqlite_vfs_name(void) {
    return atomic_load(&is_registered) ? VFS_NAME : NULL;
}

// --- memory ---

static void *allocate(int size) {
    return fault_point_pass(FAULT_AT_STORE_ALLOCATION) ? NULL : real_memory.xMalloc(size);
}

static void *resize(void *bytes, int size) {
    return fault_point_pass(FAULT_AT_STORE_ALLOCATION) ? NULL : real_memory.xRealloc(bytes, size);
}

// Only a SQLite that has not been used yet can be told.
static void wrap_memory(void) {
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory))
        return;
    sqlite3_mem_methods memory = real_memory;
    memory.xMalloc = allocate;
    memory.xRealloc = resize;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
}

void store_use_faults(void) {
    if (atomic_exchange(&is_wanted, true))
        return;
    wrap_memory();
    register_vfs();
}
