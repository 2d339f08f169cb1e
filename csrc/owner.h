// SPDX-License-Identifier: MIT
//
// The owners file beside a store: who lives, who may set the store up, and what each process has in
// flight and goes by. Liveness is an OFD lock on one byte for each owner: it is gone with its
// process, kill -9 included, and nobody guesses with time-outs. The in-flight registers are shared
// memory, so that a target on its way costs no write. Knows no SQL; the owners' numbers and slots
// come from the store.

#ifndef BATCH_OWNER_H
#define BATCH_OWNER_H

#include "caps.h"
#include "figures.h"
#include "place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One register fills four pages; targets in flight beyond it run, but their deaths are not counted.
enum { OWNER_MAX_IN_FLIGHT = 1024 };

struct owners;

struct in_flight {
    int64_t job_key;  // 0: empty
    int64_t idx;
};

// What an owner shows to others for as long as it lives.
struct owner_card {
    int64_t pid;
    struct caps caps;
};

// Opens (and makes) the owners file of a place. Returns 0, STATUS_STORE or STATUS_NO_MEMORY.
int owners_open(const struct place *place, struct owners **out_owners, struct fault *fault);

// Gives up what is held. In a forked child, only forgets.
void owners_close(struct owners *owners);

// Holds the right to set the store up, waiting at most patience_ms (then STATUS_LOCKED).
int owners_begin_setup(struct owners *owners, int64_t patience_ms, struct fault *fault);
void owners_end_setup(struct owners *owners);

// Becomes that owner: locks its byte and maps its register. Called once, during set-up.
int owners_hold(struct owners *owners, int64_t id, int64_t slot, struct fault *fault);

// Whether the owner with that number lives, in this process or another one.
bool owners_is_alive(struct owners *owners, int64_t id);

// Writes one place of the own register; job_key 0 empties it. Safe from any thread.
void owners_note(struct owners *owners, size_t place, int64_t job_key, int64_t idx);

// Copies the targets that stand in the register of a slot. Returns how many.
size_t owners_read(struct owners *owners, int64_t slot, struct in_flight *out, size_t capacity);

// Shows the card of the owner that is held: once, soon after.
void owners_show(struct owners *owners, const struct owner_card *card);

// Reads the card of the owner that has the slot. False when it has shown none, or another one has
// the slot by now.
bool owners_see(struct owners *owners, int64_t id, int64_t slot, struct owner_card *out_card);

// What the owner that is held has counted since it was made, for others to see. One call at a time.
void owners_count(struct owners *owners, const struct figures *figures);

// Puts what the owner of a slot has counted to what those that ended have left, where it stays.
// Called before the slot is given up, by whoever has the store's write lock; may be called again.
void owners_inherit(struct owners *owners, int64_t slot);

// Adds up what all owners since the file was made have counted, the living ones included. Numbers
// of one owner may be an instant apart. Returns 0 or STATUS_STORE.
int owners_sum(struct owners *owners, struct figures *out_sum);

// A number that all processes on the store share: moved after each commit that ends a job from
// outside of its owner, so that an owner need not ask the store before it hands out a target.
void owners_announce(struct owners *owners);
uint64_t owners_announced(const struct owners *owners);

// A bell that all processes on the store hear: rung after a commit that leaves something for others
// to do at once. owners_wait sleeps until it has been rung since it was heard so many times; it may
// return before that.
void owners_ring(struct owners *owners);
uint32_t owners_n_rings(const struct owners *owners);
void owners_wait(struct owners *owners, uint32_t n_rings);

// Says that so many hands of this owner have nothing to do; 0 takes it back. Holds for a while
// only, so that nobody who died or stopped is thought to wait.
void owners_be_hungry(struct owners *owners, unsigned n_hands);

// How many hands of other owners have nothing to do, about: of owners whose numbers differ by a
// multiple of 32 one alone is seen.
unsigned owners_hungry_others(const struct owners *owners);

// How many forks lie between this process and the first one that opened an owners file.
unsigned owners_fork_generation(void);

#endif
