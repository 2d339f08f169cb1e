// SPDX-License-Identifier: MIT
//
// OFD locks and shared registers. Byte 0 of the file is the set-up lock, byte n the lock of owner
// n; the content, which the locks do not touch, is one page with what all share and then a slot for
// each owner: its register, and a page with its card. A descriptor never sees its own lock, so
// there are two: one locks, one looks.
//
// A fork's child would keep its parent's locks alive through the inherited descriptors: the list of
// all open owners exists for the atfork handler that closes them, and for nothing else. A mapping
// keeps alive what it was made through, too, so the slots are mapped through the one that looks.

#include "owner.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE_SIZE = 4096,
    HEADER_SIZE = PAGE_SIZE,
    REGISTER_SIZE = OWNER_MAX_IN_FLIGHT * (int)sizeof(struct in_flight),
    SLOT_SIZE = REGISTER_SIZE + PAGE_SIZE,
    SUM_TRIES = 1000,  // of microseconds each
};

enum { HUNGRY_PLACES = 32, HUNGRY_FOR_MS = 100, HUNGRY_BITS = 16 };

struct shared_figures {
    _Atomic uint64_t words[FIGURES_WORDS];
};

struct shared_header {
    _Atomic uint64_t n_announced;
    _Atomic uint32_t n_rings;  // a futex
    // By owner: until when, in milliseconds of the monotonic clock, above the number of hands.
    _Atomic uint64_t hungry[HUNGRY_PLACES];
    _Atomic uint64_t n_inherited;     // odd: figures are being moved
    struct shared_figures inherited;  // of owners that ended
};

struct shared_in_flight {
    _Atomic int64_t job_key;
    _Atomic int64_t idx;
};

struct shared_card {
    _Atomic int64_t id;  // whose it is; 0: nobody's
    _Atomic int64_t pid;
    _Atomic int64_t targets_per_job;
    _Atomic int64_t jobs_per_caller;
    _Atomic int64_t jobs_total;
};

// What is in a slot that an owner has had, behind its register. An older layout has something else
// there.
static const uint64_t known_layout = 0x6261746368203231;

struct shared_slot {
    struct shared_in_flight in_flight[OWNER_MAX_IN_FLIGHT];
    struct shared_card card;
    _Atomic uint64_t layout;
    struct shared_figures figures;
};

_Static_assert(sizeof(struct shared_header) <= HEADER_SIZE, "what all share is one page");
_Static_assert(sizeof(struct shared_slot) <= SLOT_SIZE, "a slot has one page beside its register");

struct owners {
    int lock_fd;
    int look_fd;
    int64_t id;  // 0: no owner is held
    struct shared_header *header;
    struct shared_slot *slot;  // NULL: no owner is held
    unsigned generation;
    struct owners *next;
    struct owners *prev;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t list_once = PTHREAD_ONCE_INIT;
static struct owners *list;
static _Atomic unsigned fork_generation;

static void before_fork(void) {
    pthread_mutex_lock(&list_lock);
}

static void after_fork_in_parent(void) {
    pthread_mutex_unlock(&list_lock);
}

static void after_fork_in_child(void) {
    atomic_fetch_add(&fork_generation, 1);
    for (struct owners *owners = list; owners; owners = owners->next) {
        close(owners->lock_fd);
        close(owners->look_fd);
    }
    list = NULL;
    pthread_mutex_unlock(&list_lock);
}

static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void enlist(struct owners *owners) {
    pthread_once(&list_once, watch_forks);
    pthread_mutex_lock(&list_lock);
    owners->generation = fork_generation;
    owners->next = list;
    if (list)
        list->prev = owners;
    list = owners;
    pthread_mutex_unlock(&list_lock);
}

static void delist(struct owners *owners) {
    pthread_mutex_lock(&list_lock);
    if (owners->prev)
        owners->prev->next = owners->next;
    else if (list == owners)
        list = owners->next;
    if (owners->next)
        owners->next->prev = owners->prev;
    pthread_mutex_unlock(&list_lock);
}

static int set_lock(int fd, int command, short type, int64_t byte) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int result;
    do
        result = fcntl(fd, command, &lock);
    while (result < 0 && errno == EINTR);
    return result;
}

// Reserves the blocks: writing to a mapped page that the disk has no room for would kill the
// process.
static void *map_shared(int fd, off_t offset, size_t size, int *out_errno) {
    *out_errno = posix_fallocate(fd, offset, (off_t)size);
    if (*out_errno)
        return NULL;
    void *address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    *out_errno = address == MAP_FAILED ? errno : 0;
    return address == MAP_FAILED ? NULL : address;
}

int owners_open(const struct place *place, struct owners **out_owners, struct fault *fault) {
    *out_owners = NULL;
    struct owners *owners = calloc(1, sizeof *owners);
    if (!owners)
        return fault_set(fault, STATUS_NO_MEMORY, "out of memory");
    int flags = O_RDWR | O_CLOEXEC | (place->is_memory ? 0 : O_CREAT);
    owners->lock_fd = open(place->owners, flags, 0600);
    int error = owners->lock_fd < 0 ? errno : 0;
    owners->look_fd = open(place->owners, O_RDWR | O_CLOEXEC);
    error = error ? error : owners->look_fd < 0 ? errno : 0;
    if (!error)
        owners->header = map_shared(owners->look_fd, 0, HEADER_SIZE, &error);
    enlist(owners);
    if (error) {
        owners_close(owners);
        return fault_set(fault, STATUS_STORE, "cannot open the store %s: %s: %s", place->path,
                         place->owners, strerror(error));
    }
    *out_owners = owners;
    return STATUS_OK;
}

void owners_close(struct owners *owners) {
    if (!owners)
        return;
    if (owners->slot)
        munmap(owners->slot, SLOT_SIZE);
    if (owners->header)
        munmap(owners->header, HEADER_SIZE);
    if (owners->generation == fork_generation) {
        delist(owners);
        if (owners->id && owners->lock_fd >= 0)
            set_lock(owners->lock_fd, F_OFD_SETLK, F_UNLCK, owners->id);
        if (owners->lock_fd >= 0)
            close(owners->lock_fd);
        if (owners->look_fd >= 0)
            close(owners->look_fd);
    }
    free(owners);
}

int owners_begin_setup(struct owners *owners, int64_t patience_ms, struct fault *fault) {
    struct timespec nap = {0, 1000000};
    for (int64_t waited = 0; set_lock(owners->lock_fd, F_OFD_SETLK, F_WRLCK, 0) < 0; waited++) {
        if (errno != EAGAIN && errno != EACCES)
            return fault_set(fault, STATUS_STORE, "cannot lock the store: %s", strerror(errno));
        if (waited >= patience_ms)
            return fault_set(fault, STATUS_LOCKED, "the store is being set up by another process");
        nanosleep(&nap, NULL);
    }
    return STATUS_OK;
}

void owners_end_setup(struct owners *owners) {
    set_lock(owners->lock_fd, F_OFD_SETLK, F_UNLCK, 0);
}

static off_t slot_offset(int64_t slot) {
    return HEADER_SIZE + (off_t)slot * SLOT_SIZE;
}

int owners_hold(struct owners *owners, int64_t id, int64_t slot, struct fault *fault) {
    if (set_lock(owners->lock_fd, F_OFD_SETLK, F_WRLCK, id) < 0)
        return fault_set(fault, STATUS_STORE, "cannot lock the store: %s", strerror(errno));
    owners->id = id;
    int error;
    owners->slot = map_shared(owners->look_fd, slot_offset(slot), SLOT_SIZE, &error);
    if (!owners->slot)
        return fault_set(fault, STATUS_STORE, "cannot map the owners file: %s", strerror(error));
    memset(owners->slot, 0, sizeof *owners->slot);
    owners->slot->layout = known_layout;
    return STATUS_OK;
}

bool owners_is_alive(struct owners *owners, int64_t id) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = id, .l_len = 1};
    // An owner that cannot be asked about is taken for alive: robbing is worse than waiting.
    return fcntl(owners->look_fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

void owners_note(struct owners *owners, size_t place, int64_t job_key, int64_t idx) {
    if (place >= OWNER_MAX_IN_FLIGHT || !owners->slot)
        return;
    struct shared_in_flight *entry = &owners->slot->in_flight[place];
    atomic_store_explicit(&entry->job_key, 0, memory_order_release);
    atomic_store_explicit(&entry->idx, idx, memory_order_release);
    atomic_store_explicit(&entry->job_key, job_key, memory_order_release);
}

size_t owners_read(struct owners *owners, int64_t slot, struct in_flight *out, size_t capacity) {
    struct in_flight entries[64];
    off_t offset = slot_offset(slot), end = offset + REGISTER_SIZE;
    size_t n_found = 0;
    for (; offset < end; offset += (off_t)sizeof entries) {
        ssize_t n_read = pread(owners->look_fd, entries, sizeof entries, offset);
        if (n_read <= 0)
            break;
        for (size_t i = 0; i < (size_t)n_read / sizeof *entries; i++)
            if (entries[i].job_key && n_found < capacity)
                out[n_found++] = entries[i];
    }
    return n_found;
}

void owners_show(struct owners *owners, const struct owner_card *card) {
    struct shared_card *shared = &owners->slot->card;
    atomic_store(&shared->pid, card->pid);
    atomic_store(&shared->targets_per_job, card->caps.targets_per_job);
    atomic_store(&shared->jobs_per_caller, card->caps.jobs_per_caller);
    atomic_store(&shared->jobs_total, card->caps.jobs_total);
    atomic_store(&shared->id, owners->id);
}

bool owners_see(struct owners *owners, int64_t id, int64_t slot, struct owner_card *out_card) {
    struct {
        int64_t id, pid, targets_per_job, jobs_per_caller, jobs_total;
    } seen;
    _Static_assert(sizeof seen == sizeof(struct shared_card), "one is read as the other");
    off_t offset = slot_offset(slot) + (off_t)offsetof(struct shared_slot, card);
    ssize_t n_read = pread(owners->look_fd, &seen, sizeof seen, offset);
    if (n_read != (ssize_t)sizeof seen || seen.id != id)
        return false;
    out_card->pid = seen.pid;
    out_card->caps = (struct caps){seen.targets_per_job, seen.jobs_per_caller, seen.jobs_total};
    return true;
}

// --- figures ---

static void write_words(struct shared_figures *figures, const uint64_t words[FIGURES_WORDS]) {
    for (int i = 0; i < FIGURES_WORDS; i++)
        atomic_store_explicit(&figures->words[i], words[i], memory_order_release);
}

static void add_shared(struct figures *sum, const struct shared_figures *figures) {
    uint64_t words[FIGURES_WORDS];
    for (int i = 0; i < FIGURES_WORDS; i++)
        words[i] = atomic_load_explicit(&figures->words[i], memory_order_acquire);
    figures_add(sum, words);
}

void owners_count(struct owners *owners, const struct figures *figures) {
    uint64_t words[FIGURES_WORDS];
    if (!owners->slot)
        return;
    figures_pack(figures, words);
    write_words(&owners->slot->figures, words);
}

// Whoever reads sees by n_inherited that figures are between a slot and the header: it is odd
// meanwhile. One that died there has left it odd.
static void move_figures(struct shared_header *header, struct shared_figures *from) {
    uint64_t words[FIGURES_WORDS], nothing[FIGURES_WORDS] = {0};
    struct figures sum;
    figures_init(&sum);
    add_shared(&sum, &header->inherited);
    add_shared(&sum, from);
    figures_pack(&sum, words);
    uint64_t n = atomic_load(&header->n_inherited) | 1;
    atomic_store(&header->n_inherited, n);
    write_words(&header->inherited, words);
    write_words(from, nothing);
    atomic_store(&header->n_inherited, n + 1);
}

void owners_inherit(struct owners *owners, int64_t slot) {
    int error;
    struct shared_slot *shared = map_shared(owners->look_fd, slot_offset(slot), SLOT_SIZE, &error);
    if (!shared)
        return;
    if (shared->layout == known_layout)
        move_figures(owners->header, &shared->figures);
    munmap(shared, SLOT_SIZE);
}

static void sum_once(const struct shared_header *header, size_t size, struct figures *out_sum) {
    figures_init(out_sum);
    add_shared(out_sum, &header->inherited);
    for (size_t end = HEADER_SIZE + SLOT_SIZE; end <= size; end += SLOT_SIZE) {
        const struct shared_slot *slot = (const void *)((const char *)header + end - SLOT_SIZE);
        if (slot->layout == known_layout)
            add_shared(out_sum, &slot->figures);
    }
}

int owners_sum(struct owners *owners, struct figures *out_sum) {
    struct stat info;
    figures_init(out_sum);
    if (fstat(owners->look_fd, &info))
        return STATUS_STORE;
    size_t size = (size_t)info.st_size;
    struct shared_header *header = mmap(NULL, size, PROT_READ, MAP_SHARED, owners->look_fd, 0);
    if (header == MAP_FAILED)
        return STATUS_STORE;
    // Not for ever: see move_figures.
    for (int n_tries = 0; n_tries < SUM_TRIES; n_tries++) {
        uint64_t before = atomic_load(&header->n_inherited);
        sum_once(header, size, out_sum);
        if (before % 2 == 0 && atomic_load(&header->n_inherited) == before)
            break;
        sched_yield();
    }
    munmap(header, size);
    return STATUS_OK;
}

void owners_announce(struct owners *owners) {
    atomic_fetch_add(&owners->header->n_announced, 1);
}

uint64_t owners_announced(const struct owners *owners) {
    return atomic_load_explicit(&owners->header->n_announced, memory_order_acquire);
}

// Not of the private kind: those who wait are in other processes.
void owners_ring(struct owners *owners) {
    atomic_fetch_add(&owners->header->n_rings, 1);
    syscall(SYS_futex, &owners->header->n_rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t owners_n_rings(const struct owners *owners) {
    return atomic_load(&owners->header->n_rings);
}

void owners_wait(struct owners *owners, uint32_t n_rings) {
    syscall(SYS_futex, &owners->header->n_rings, FUTEX_WAIT, n_rings, NULL, NULL, 0);
}

void owners_be_hungry(struct owners *owners, unsigned n_hands) {
    uint64_t until_ms = (uint64_t)(clock_mono_us(NULL) / 1000 + HUNGRY_FOR_MS);
    uint64_t hungry = n_hands ? until_ms << HUNGRY_BITS | n_hands : 0;
    atomic_store_explicit(&owners->header->hungry[owners->id % HUNGRY_PLACES], hungry,
                          memory_order_release);
}

unsigned owners_hungry_others(const struct owners *owners) {
    uint64_t now_ms = (uint64_t)(clock_mono_us(NULL) / 1000);
    unsigned n_hands = 0;
    for (int place = 0; place < HUNGRY_PLACES; place++) {
        uint64_t hungry =
            atomic_load_explicit(&owners->header->hungry[place], memory_order_acquire);
        uint64_t until_ms = hungry >> HUNGRY_BITS;
        // What lies far ahead was written before the machine was started again.
        if (place != owners->id % HUNGRY_PLACES && until_ms > now_ms &&
            until_ms <= now_ms + HUNGRY_FOR_MS)
            n_hands += (unsigned)(hungry & ((1 << HUNGRY_BITS) - 1));
    }
    return n_hands;
}

unsigned owners_fork_generation(void) {
    return fork_generation;
}
