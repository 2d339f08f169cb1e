// SPDX-License-Identifier: MIT
//
// The list as JSON, target by target: whole into a buffer, or piece by piece into a hash.

#include "canonical.h"

#include "json.h"
#include "status.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Enough that a call of the hash costs nothing beside what it hashes.
enum { PIECE_BYTES = 16 * 1024 };

static const struct {
    const char *name;
    size_t len;
} known_options[CANONICAL_FURTHER] = {
    [CANONICAL_MODE] = {"mode", 4},       [CANONICAL_QUESTION] = {"question", 8},
    [CANONICAL_PAGES] = {"pages", 5},     [CANONICAL_GREP] = {"grep", 4},
    [CANONICAL_JQ] = {"jq", 2},           [CANONICAL_CONTEXT] = {"context", 7},
    [CANONICAL_RECOVER] = {"recover", 7},
};

static void add_text(struct buffer *out, const char *text) {
    buffer_add(out, text, strlen(text));
}

static void add_target(struct buffer *out, const struct target *target, bool is_first) {
    add_text(out, is_first ? "{\"url\":" : ",{\"url\":");
    json_string(out, target->url, target->url_len);
    add_text(out, ",\"options\":");
    buffer_add(out, target->options, target->options_len);
    buffer_add_byte(out, '}');
}

struct canonical_hash {
    EVP_MD_CTX *digest;
    struct buffer piece;  // gathered, to be hashed at once
    bool has_target;
    bool is_broken;  // memory ran out
};

enum canonical_rank canonical_rank(const char *key, size_t len) {
    for (int rank = 0; rank < CANONICAL_FURTHER; rank++)
        if (len == known_options[rank].len && memcmp(key, known_options[rank].name, len) == 0)
            return (enum canonical_rank)rank;
    return CANONICAL_FURTHER;
}

enum canonical_kind canonical_kind(enum canonical_rank rank) {
    if (rank == CANONICAL_FURTHER)
        return CANONICAL_ANY;
    return rank >= CANONICAL_CONTEXT ? CANONICAL_FLAG : CANONICAL_TEXT;
}

void canonical_write(const struct targets *targets, struct buffer *out) {
    struct target target;
    size_t offset = 0;
    buffer_add_byte(out, '[');
    for (bool is_first = true; targets_next(targets, &offset, &target) == STATUS_OK;
         is_first = false)
        add_target(out, &target, is_first);
    buffer_add_byte(out, ']');
}

// Hashes what has gathered and makes room for more.
static void hash_piece(struct canonical_hash *hash) {
    struct buffer *piece = &hash->piece;
    if (piece->is_broken || !EVP_DigestUpdate(hash->digest, piece->bytes, piece->len))
        hash->is_broken = true;
    piece->len = 0;
}

struct canonical_hash *canonical_hash_new(const char *caller, size_t caller_len) {
    struct canonical_hash *hash = calloc(1, sizeof *hash);
    if (!hash)
        return NULL;
    buffer_init(&hash->piece);
    hash->digest = EVP_MD_CTX_new();
    if (!hash->digest || !EVP_DigestInit_ex(hash->digest, EVP_sha256(), NULL)) {
        canonical_hash_free(hash);
        return NULL;
    }
    buffer_add(&hash->piece, caller, caller_len);
    buffer_add_byte(&hash->piece, '\0');
    buffer_add_byte(&hash->piece, '[');
    return hash;
}

void canonical_hash_add(struct canonical_hash *hash, const struct target *target) {
    add_target(&hash->piece, target, !hash->has_target);
    hash->has_target = true;
    if (hash->piece.len >= PIECE_BYTES)
        hash_piece(hash);
}

int canonical_hash_end(struct canonical_hash *hash, unsigned char out_key[CANONICAL_KEY_BYTES]) {
    buffer_add_byte(&hash->piece, ']');
    hash_piece(hash);
    memset(out_key, 0, CANONICAL_KEY_BYTES);
    if (hash->is_broken || !EVP_DigestFinal_ex(hash->digest, out_key, NULL))
        return STATUS_NO_MEMORY;
    return STATUS_OK;
}

void canonical_hash_free(struct canonical_hash *hash) {
    if (!hash)
        return;
    EVP_MD_CTX_free(hash->digest);
    buffer_fini(&hash->piece);
    free(hash);
}

int canonical_key(const char *caller, size_t caller_len, const struct targets *targets,
                  unsigned char out_key[CANONICAL_KEY_BYTES]) {
    struct target target;
    size_t offset = 0;
    struct canonical_hash *hash = canonical_hash_new(caller, caller_len);
    memset(out_key, 0, CANONICAL_KEY_BYTES);
    if (!hash)
        return STATUS_NO_MEMORY;
    int status;
    while (!(status = targets_next(targets, &offset, &target)))
        canonical_hash_add(hash, &target);
    if (status == STATUS_NOTHING)
        status = canonical_hash_end(hash, out_key);
    canonical_hash_free(hash);
    return status;
}

void canonical_key_hex(const unsigned char key[CANONICAL_KEY_BYTES],
                       char out_hex[CANONICAL_KEY_HEX]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < CANONICAL_KEY_BYTES; i++) {
        out_hex[2 * i] = digits[key[i] >> 4];
        out_hex[2 * i + 1] = digits[key[i] & 15];
    }
    out_hex[CANONICAL_KEY_HEX - 1] = '\0';
}

void canonical_init(void) {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}
