// SPDX-License-Identifier: MIT
//
// One allocation for a job, chained buckets for the map.

#include "job_live.h"

#include "status.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 16, PRIMED_BYTES = 4096 };

int live_map_init(struct live_map *map) {
    *map = (struct live_map){.n_buckets = FIRST_BUCKETS};
    map->buckets = calloc(map->n_buckets, sizeof(struct live *));
    if (map->buckets)
        return STATUS_OK;
    map->n_buckets = 0;
    return STATUS_NO_MEMORY;
}

void live_map_fini(struct live_map *map) {
    for (size_t i = 0; i < map->n_buckets; i++) {
        while (map->buckets[i]) {
            struct live *live = map->buckets[i];
            map->buckets[i] = live->next;
            live_free(live);
        }
    }
    free(map->buckets);
    memset(map, 0, sizeof *map);
}

static const char *put(char **place, struct bytes text) {
    char *start = *place;
    memcpy(start, text.start, text.len);
    start[text.len] = '\0';
    *place += text.len + 1;
    return start;
}

struct live *live_new(const struct job_row *job) {
    struct live *live = malloc(sizeof *live + job->caller.len + job->class_name.len + 2);
    if (!live)
        return NULL;
    memset(live, 0, sizeof *live);
    char *place = (char *)(live + 1);
    turn_init(&live->turn);
    targets_init(&live->window);
    memcpy(live->id, job->id, JOB_ID_SIZE);
    live->caller = (struct bytes){put(&place, job->caller), job->caller.len};
    live->class_name = (struct bytes){put(&place, job->class_name), job->class_name.len};
    live->key = job->key;
    live->targets_total = job->targets_total;
    live->next_idx = job->targets_done;
    live->created_at = job->created_at;
    live->attempts = job->attempts;
    live->busy_ms = job->busy_ms;
    live->deaths = job->deaths;
    return live;
}

void live_free(struct live *live) {
    targets_fini(&live->window);
    free(live);
}

static struct live **bucket_of(const struct live_map *map, int64_t key) {
    uint64_t hash = (uint64_t)key * 0x9e3779b97f4a7c15u;
    return &map->buckets[(hash >> 32) & (map->n_buckets - 1)];
}

// A map that cannot grow for want of memory stays right, only slower.
static void grow(struct live_map *map) {
    struct live_map larger = {.n_buckets = 2 * map->n_buckets};
    larger.buckets = calloc(larger.n_buckets, sizeof(struct live *));
    if (!larger.buckets)
        return;
    for (size_t i = 0; i < map->n_buckets; i++) {
        while (map->buckets[i]) {
            struct live *live = map->buckets[i];
            map->buckets[i] = live->next;
            live_map_add(&larger, live);
        }
    }
    free(map->buckets);
    *map = larger;
}

void live_map_add(struct live_map *map, struct live *live) {
    if (map->count >= map->n_buckets)
        grow(map);
    struct live **bucket = bucket_of(map, live->key);
    live->next = *bucket;
    *bucket = live;
    map->count++;
}

struct live *live_map_find(const struct live_map *map, int64_t key) {
    struct live *live = *bucket_of(map, key);
    while (live && live->key != key)
        live = live->next;
    return live;
}

void live_map_remove(struct live_map *map, struct live *live) {
    struct live **link = bucket_of(map, live->key);
    while (*link != live)
        link = &(*link)->next;
    *link = live->next;
    map->count--;
}

void live_map_each(const struct live_map *map, void (*visit)(struct live *live, void *context),
                   void *context) {
    for (size_t i = 0; i < map->n_buckets; i++)
        for (struct live *live = map->buckets[i]; live; live = live->next)
            visit(live, context);
}

int live_input(const struct live *live, struct target *out_target) {
    size_t offset = live->window_offset;
    return targets_next(&live->window, &offset, out_target);
}

void live_prime(struct live *live, const struct targets *targets) {
    struct target target;
    size_t offset = 0;
    // What is large is left in the store: this runs under the runner's lock.
    if (targets->file)
        return;
    while (targets_next(targets, &offset, &target) == STATUS_OK && offset < PRIMED_BYTES)
        targets_add(&live->window, &target);
    if (live->window.packed.is_broken)
        targets_fini(&live->window);
}

void live_advance(struct live *live) {
    struct target target;
    targets_next(&live->window, &live->window_offset, &target);
    if (live->window_offset >= live->window.packed.len) {
        targets_fini(&live->window);
        live->window_offset = 0;
    }
    live->next_idx++;
    live->attempts = 0;
    live->busy_ms = 0;
    live->deaths = 0;
    live->busy_since_us = 0;
}
