// SPDX-License-Identifier: MIT
//
// Figures as words: what is packed and added comes out as it went in.

#include "figures.h"

#include "check.h"

static void fill(struct figures *figures) {
    struct histogram *histograms[] = {&figures->job_seconds, &figures->target_seconds,
                                      &figures->result_bytes, &figures->commit_seconds,
                                      &figures->commit_targets};
    figures_init(figures);
    figures->jobs_done = 1;
    figures->jobs_partial = 2;
    figures->jobs_failed = 3;
    figures->jobs_cancelled = 4;
    figures->jobs_restart = 5;
    figures->targets_done = 6;
    figures->targets_failed = 7;
    figures->retries = 8;
    figures->evicted_jobs = 9;
    figures->abandoned_threads = 10;
    for (int i = 0; i < 5; i++) {
        histogram_add(histograms[i], i + 0.25);
        histogram_add(histograms[i], 1e12);
    }
}

static bool is_doubled(const struct histogram *twice, const struct histogram *once) {
    bool is = twice->bounds == once->bounds && twice->count == 2 * once->count &&
              twice->sum == 2 * once->sum;
    for (int i = 0; i <= HISTOGRAM_MAX_BOUNDS; i++)
        is = is && twice->buckets[i] == 2 * once->buckets[i];
    return is;
}

static void test_add(void) {
    struct figures once, twice;
    uint64_t words[FIGURES_WORDS];
    fill(&once);
    figures_pack(&once, words);
    figures_init(&twice);
    figures_add(&twice, words);
    figures_add(&twice, words);
    CHECK("jobs", twice.jobs_done == 2 && twice.jobs_partial == 4 && twice.jobs_failed == 6 &&
                      twice.jobs_cancelled == 8 && twice.jobs_restart == 10);
    CHECK("targets", twice.targets_done == 12 && twice.targets_failed == 14);
    CHECK("the rest",
          twice.retries == 16 && twice.evicted_jobs == 18 && twice.abandoned_threads == 20);
    CHECK("seconds of jobs", is_doubled(&twice.job_seconds, &once.job_seconds));
    CHECK("seconds of targets", is_doubled(&twice.target_seconds, &once.target_seconds));
    CHECK("bytes", is_doubled(&twice.result_bytes, &once.result_bytes));
    CHECK("seconds of commits", is_doubled(&twice.commit_seconds, &once.commit_seconds));
    CHECK("targets of commits", is_doubled(&twice.commit_targets, &once.commit_targets));
}

int main(void) {
    test_add();
    return check_report();
}
