// SPDX-License-Identifier: MIT
//
// Counters and histograms of one runner since it was made, or of several together. Plain numbers;
// whoever owns them guards them.

#ifndef BATCH_FIGURES_H
#define BATCH_FIGURES_H

#include <stddef.h>
#include <stdint.h>

enum {
    HISTOGRAM_MAX_BOUNDS = 16,
    FIGURES_COUNTERS = 10,
    FIGURES_HISTOGRAMS = 5,
    // As a row of words: the counters, then of each histogram the sum and the buckets.
    FIGURES_WORDS = FIGURES_COUNTERS + FIGURES_HISTOGRAMS * (1 + HISTOGRAM_MAX_BOUNDS + 1),
};

// Upper bounds of the buckets, ascending; a last bucket takes what lies above.
struct histogram_bounds {
    size_t count;
    double at_most[HISTOGRAM_MAX_BOUNDS];
};

struct histogram {
    const struct histogram_bounds *bounds;
    uint64_t count;
    double sum;
    uint64_t buckets[HISTOGRAM_MAX_BOUNDS + 1];  // each alone, not cumulated
};

struct figures {
    // Jobs of this runner that ended, by how.
    uint64_t jobs_done;
    uint64_t jobs_partial;
    uint64_t jobs_failed;
    uint64_t jobs_cancelled;
    uint64_t jobs_restart;
    uint64_t targets_done;
    uint64_t targets_failed;
    uint64_t retries;
    uint64_t evicted_jobs;
    uint64_t abandoned_threads;
    struct histogram job_seconds;
    struct histogram target_seconds;
    struct histogram result_bytes;
    struct histogram commit_seconds;
    struct histogram commit_targets;
};

void figures_init(struct figures *figures);

// Makes words of the figures, for memory that processes share.
void figures_pack(const struct figures *figures, uint64_t out_words[FIGURES_WORDS]);

// Adds what was packed to other figures.
void figures_add(struct figures *figures, const uint64_t words[FIGURES_WORDS]);

void histogram_add(struct histogram *histogram, double value);

#endif
