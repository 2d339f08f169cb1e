// SPDX-License-Identifier: MIT
//
// The bounds of the histograms.

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

void histogram_add(struct histogram *histogram, double value) {
    const struct histogram_bounds *bounds = histogram->bounds;
    size_t bucket = 0;
    while (bucket < bounds->count && value > bounds->at_most[bucket])
        bucket++;
    histogram->buckets[bucket]++;
    histogram->count++;
    histogram->sum += value;
}
