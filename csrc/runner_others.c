// SPDX-License-Identifier: MIT
//
// The other owners on the store, as a runner sees them: their caps, and what they have counted.

#include "runner_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add_cap(struct buffer *text, const char *name, int64_t here, int64_t there) {
    char part[128];
    if (here == there)
        return;
    int len = snprintf(part, sizeof part, "%s%s is %" PRId64 " here and %" PRId64 " there",
                       text->len ? ", " : "", name, here, there);
    buffer_add(text, part, (size_t)len);
}

static void warn_of_caps(struct runner *runner, const struct owner_card *there) {
    const struct caps *ours = &runner->config.caps, *theirs = &there->caps;
    struct buffer text = {0};
    char tail[256];
    add_cap(&text, "targets_per_job", ours->targets_per_job, theirs->targets_per_job);
    add_cap(&text, "jobs_per_caller", ours->jobs_per_caller, theirs->jobs_per_caller);
    add_cap(&text, "jobs_total", ours->jobs_total, theirs->jobs_total);
    int len = snprintf(tail, sizeof tail,
                       "; here is process %" PRId64 ", there process %" PRId64
                       "; each holds the jobs that are submitted to it to its own caps",
                       runner->pid, there->pid);
    buffer_add(&text, tail, (size_t)len + 1);
    if (!text.is_broken)
        runner_log(runner, LOG_WARN, "another process on this store has other caps", NULL,
                   text.bytes);
    buffer_fini(&text);
}

static bool is_same(const struct caps *one, const struct caps *other) {
    return one->targets_per_job == other->targets_per_job &&
           one->jobs_per_caller == other->jobs_per_caller && one->jobs_total == other->jobs_total;
}

// Of several that have the same caps, one after the other, the first is named.
void runner_compare_caps(struct runner *runner, struct store *store) {
    struct owner_card ours = {.pid = runner->pid, .caps = runner->config.caps};
    struct owner_row owner = {0};
    struct caps told = ours.caps;
    owners_show(runner->owners, &ours);
    while (store->ops->next_owner(store, owner.id, &owner) == STATUS_OK) {
        struct owner_card there;
        if (owner.id == runner->owner.id || !owners_is_alive(runner->owners, owner.id) ||
            !owners_see(runner->owners, owner.id, owner.slot, &there))
            continue;
        if (!is_same(&there.caps, &ours.caps) && !is_same(&there.caps, &told))
            warn_of_caps(runner, &there);
        told = there.caps;
    }
}

// --- figures ---

void runner_show_figures_locked(struct runner *runner) {
    if (!runner->has_bequeathed)
        owners_count(runner->owners, &runner->figures);
}

void runner_bequeath(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    runner_show_figures_locked(runner);
    runner->has_bequeathed = true;
    pthread_mutex_unlock(&runner->lock);
    owners_inherit(runner->owners, runner->owner.slot);
}

int runner_figures_of_all(struct runner *runner, struct figures *out_figures) {
    uint64_t ours[FIGURES_WORDS];
    pthread_mutex_lock(&runner->lock);
    runner_show_figures_locked(runner);
    figures_pack(&runner->figures, ours);
    pthread_mutex_unlock(&runner->lock);
    int status = owners_sum(runner->owners, out_figures);
    if (!runner->owner.id)  // a client has no slot to show them in
        figures_add(out_figures, ours);
    return status;
}
