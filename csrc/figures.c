// SPDX-License-Identifier: MIT
//
// The bounds of the histograms, and the figures as words.

#include "figures.h"

#include <string.h>

// A commit takes 20 µs without fsync and up to seconds on a slow disk; a target from microseconds
// to its time-out of minutes; a job up to hours.
static const struct histogram_bounds commit_bounds = {
    11, {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 1, 10}};
static const struct histogram_bounds target_bounds = {
    14, {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 300}};
static const struct histogram_bounds job_bounds = {
    12, {0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200, 36000}};
static const struct histogram_bounds byte_bounds = {
    10, {100, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}};
static const struct histogram_bounds group_bounds = {9, {1, 2, 4, 8, 16, 32, 64, 256, 1024}};

void figures_init(struct figures *figures) {
    memset(figures, 0, sizeof *figures);
    figures->job_seconds.bounds = &job_bounds;
    figures->target_seconds.bounds = &target_bounds;
    figures->result_bytes.bounds = &byte_bounds;
    figures->commit_seconds.bounds = &commit_bounds;
    figures->commit_targets.bounds = &group_bounds;
}

static const size_t counters[FIGURES_COUNTERS] = {
    offsetof(struct figures, jobs_done),      offsetof(struct figures, jobs_partial),
    offsetof(struct figures, jobs_failed),    offsetof(struct figures, jobs_cancelled),
    offsetof(struct figures, jobs_restart),   offsetof(struct figures, targets_done),
    offsetof(struct figures, targets_failed), offsetof(struct figures, retries),
    offsetof(struct figures, evicted_jobs),   offsetof(struct figures, abandoned_threads),
};

static const size_t histograms[FIGURES_HISTOGRAMS] = {
    offsetof(struct figures, job_seconds),    offsetof(struct figures, target_seconds),
    offsetof(struct figures, result_bytes),   offsetof(struct figures, commit_seconds),
    offsetof(struct figures, commit_targets),
};

void figures_pack(const struct figures *figures, uint64_t out_words[FIGURES_WORDS]) {
    const char *start = (const char *)figures;
    uint64_t *word = out_words;
    for (int i = 0; i < FIGURES_COUNTERS; i++)
        *word++ = *(const uint64_t *)(start + counters[i]);
    for (int i = 0; i < FIGURES_HISTOGRAMS; i++) {
        const struct histogram *histogram = (const void *)(start + histograms[i]);
        memcpy(word++, &histogram->sum, sizeof *word);
        memcpy(word, histogram->buckets, sizeof histogram->buckets);
        word += HISTOGRAM_MAX_BOUNDS + 1;
    }
}

// The counts are taken from the buckets, so that they agree even if the words were read while their
// owner wrote them.
static const uint64_t *add_to_histogram(struct histogram *histogram, const uint64_t *word) {
    double sum;
    memcpy(&sum, word++, sizeof sum);
    histogram->sum += sum;
    for (int i = 0; i <= HISTOGRAM_MAX_BOUNDS; i++, word++) {
        histogram->buckets[i] += *word;
        histogram->count += *word;
    }
    return word;
}

void figures_add(struct figures *figures, const uint64_t words[FIGURES_WORDS]) {
    char *start = (char *)figures;
    const uint64_t *word = words;
    for (int i = 0; i < FIGURES_COUNTERS; i++)
        *(uint64_t *)(start + counters[i]) += *word++;
    for (int i = 0; i < FIGURES_HISTOGRAMS; i++)
        word = add_to_histogram((void *)(start + histograms[i]), word);
}

void histogram_add(struct histogram *histogram, double value) {
    const struct histogram_bounds *bounds = histogram->bounds;
    size_t bucket = 0;
    while (bucket < bounds->count && value > bounds->at_most[bucket])
        bucket++;
    histogram->buckets[bucket]++;
    histogram->count++;
    histogram->sum += value;
}
