// SPDX-License-Identifier: MIT
//
// The canonical form of a list of targets, and its hash: what makes two submits the same. Knows
// which options come first and which of their values count as absent; nothing of where a list
// comes from.
//
// The options of one target are written with a struct json:
//     mark = json_begin_object(&json);
//     rank = canonical_rank(key, len);
//     … json_key(&json, rank, key, len) and a value, unless the option is absent
//     json_end_object(&json, mark);

#ifndef BATCH_CANONICAL_H
#define BATCH_CANONICAL_H

#include "buffer.h"
#include "targets.h"

#include <stddef.h>

enum {
    CANONICAL_KEY_BYTES = 32,
    CANONICAL_KEY_HEX = 2 * CANONICAL_KEY_BYTES + 1,  // with its NUL
};

// Where an option stands. The texts, then the flags, then all further ones, sorted by their keys.
enum canonical_rank {
    CANONICAL_MODE,
    CANONICAL_QUESTION,
    CANONICAL_PAGES,
    CANONICAL_GREP,
    CANONICAL_JQ,
    CANONICAL_CONTEXT,
    CANONICAL_RECOVER,
    CANONICAL_FURTHER,
};

// What an option's value has to be. An empty text and a false flag are as if absent.
enum canonical_kind { CANONICAL_TEXT, CANONICAL_FLAG, CANONICAL_ANY };

enum canonical_rank canonical_rank(const char *key, size_t len);
enum canonical_kind canonical_kind(enum canonical_rank rank);

// Appends the canonical form of a list that has no file. Memory shortage is remembered in
// out->is_broken.
void canonical_write(const struct targets *targets, struct buffer *out);

// The SHA-256 of the caller's name, a NUL and the canonical form, which never lies in memory as a
// whole. Returns 0, STATUS_NO_MEMORY, or STATUS_STORE when the list cannot be read back.
int canonical_key(const char *caller, size_t caller_len, const struct targets *targets,
                  unsigned char out_key[CANONICAL_KEY_BYTES]);

// The same target by target, for a list that does not lie in memory either. new gives NULL when
// memory is short, later shortage is end's STATUS_NO_MEMORY.
struct canonical_hash;
struct canonical_hash *canonical_hash_new(const char *caller, size_t caller_len);
void canonical_hash_add(struct canonical_hash *hash, const struct target *target);
int canonical_hash_end(struct canonical_hash *hash, unsigned char out_key[CANONICAL_KEY_BYTES]);
void canonical_hash_free(struct canonical_hash *hash);

// A key as users see it: lower-case hex.
void canonical_key_hex(const unsigned char key[CANONICAL_KEY_BYTES],
                       char out_hex[CANONICAL_KEY_HEX]);

// Keeps libcrypto whole while the process exits: threads may be at work then, and its clean-up
// would pull it away from them. Without effect where the host has begun to use libcrypto before.
void canonical_init(void);

#endif
