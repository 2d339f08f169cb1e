// SPDX-License-Identifier: MIT
//
// The tables of what is not public, after the IANA registries of special-purpose addresses. IPv6
// begins from the other end: nothing but global unicast and NAT64 is public at all.

#include "guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define IPV4_BITS 96

struct address {
    uint8_t bytes[16];
    bool is_ipv4;
};

struct range {
    uint8_t bytes[16];
    unsigned bits;
};

#define IPV4(a, b, c, d, length)                                                                   \
    { {[10] = 0xff, 0xff, a, b, c, d}, IPV4_BITS + (length) }

static const struct range special_ipv4[] = {
    IPV4(0, 0, 0, 0, 8),        // this network, unspecified
    IPV4(10, 0, 0, 0, 8),       // private
    IPV4(100, 64, 0, 0, 10),    // shared by carriers
    IPV4(127, 0, 0, 0, 8),      // loopback
    IPV4(169, 254, 0, 0, 16),   // link-local, where clouds keep their metadata
    IPV4(172, 16, 0, 0, 12),    // private
    IPV4(192, 0, 0, 0, 24),     // protocol assignments
    IPV4(192, 0, 2, 0, 24),     // documentation
    IPV4(192, 88, 99, 0, 24),   // relays of 6to4
    IPV4(192, 168, 0, 0, 16),   // private
    IPV4(198, 18, 0, 0, 15),    // benchmarks
    IPV4(198, 51, 100, 0, 24),  // documentation
    IPV4(203, 0, 113, 0, 24),   // documentation
    IPV4(224, 0, 0, 0, 4),      // multicast
    IPV4(240, 0, 0, 0, 4),      // reserved, broadcast
};

static const struct range public_ipv6[] = {
    {{0x20}, 3},                     // global unicast
    {{0x00, 0x64, 0xff, 0x9b}, 96},  // NAT64: as public as the address inside
};

static const struct range special_ipv6[] = {
    {{0x20, 0x01}, 23},              // protocol assignments, Teredo among them
    {{0x20, 0x01, 0x0d, 0xb8}, 32},  // documentation
    {{0x3f, 0xff}, 20},              // documentation
};

// Where an IPv6 address carries the IPv4 address that its packets end at.
static const struct {
    struct range range;
    size_t offset;
} translations[] = {
    {{{0x00, 0x64, 0xff, 0x9b}, 96}, 12},  // NAT64
    {{{0x20, 0x02}, 16}, 2},               // 6to4
};

static bool has_prefix(const uint8_t *bytes, const uint8_t *prefix, unsigned bits) {
    unsigned whole = bits / 8;
    unsigned rest = bits % 8;
    if (memcmp(bytes, prefix, whole) != 0)
        return false;
    return rest == 0 || ((bytes[whole] ^ prefix[whole]) >> (8 - rest)) == 0;
}

static bool lies_in(const struct address *address, const struct range *ranges, size_t n_ranges) {
    for (size_t i = 0; i < n_ranges; i++)
        if (has_prefix(address->bytes, ranges[i].bytes, ranges[i].bits))
            return true;
    return false;
}

#define LIES_IN(address, ranges) lies_in(address, ranges, sizeof(ranges) / sizeof *(ranges))

static void set_ipv4(struct address *address, const void *four_bytes) {
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    memcpy(address->bytes, mapped, sizeof mapped);
    memcpy(address->bytes + sizeof mapped, four_bytes, 4);
    address->is_ipv4 = true;
}

// An IPv4-mapped address is that IPv4 address: the kernel connects to the same place.
static void set_ipv6(struct address *address, const void *sixteen_bytes) {
    static const struct range mapped = IPV4(0, 0, 0, 0, 0);
    memcpy(address->bytes, sixteen_bytes, 16);
    address->is_ipv4 = has_prefix(address->bytes, mapped.bytes, mapped.bits);
}

static bool unwrap(const struct address *address, struct address *out_inner) {
    for (size_t i = 0; i < sizeof translations / sizeof *translations; i++) {
        const struct range *range = &translations[i].range;
        if (address->is_ipv4 || !has_prefix(address->bytes, range->bytes, range->bits))
            continue;
        set_ipv4(out_inner, address->bytes + translations[i].offset);
        return true;
    }
    return false;
}

static bool is_public(const struct address *address) {
    if (address->is_ipv4)
        return !LIES_IN(address, special_ipv4);
    return LIES_IN(address, public_ipv6) && !LIES_IN(address, special_ipv6);
}

static bool is_listed(const struct guard *guard, bool is_allow, const struct address *address) {
    for (size_t i = 0; i < guard->n_networks; i++) {
        const struct network *network = &guard->networks[i];
        if (network->is_allow == is_allow && network->is_ipv4 == address->is_ipv4 &&
            has_prefix(address->bytes, network->bytes, network->bits))
            return true;
    }
    return false;
}

static bool parse_address(const char *text, struct address *out_address) {
    uint8_t bytes[16];
    if (inet_pton(AF_INET, text, bytes) == 1)
        set_ipv4(out_address, bytes);
    else if (inet_pton(AF_INET6, text, bytes) == 1)
        set_ipv6(out_address, bytes);
    else
        return false;
    return true;
}

// Digits only, and no leading zero: what strtoul lets pass besides is nobody's prefix.
static bool parse_bits(const char *text, unsigned max, unsigned *out_bits) {
    unsigned bits = 0;
    size_t len = strspn(text, "0123456789");
    if (len == 0 || len > 3 || text[len] != '\0' || (len > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < len; i++)
        bits = bits * 10 + (unsigned)(text[i] - '0');
    *out_bits = bits;
    return bits <= max;
}

static bool has_host_bits(const struct network *network) {
    for (unsigned bit = network->bits; bit < 128; bit++)
        if (network->bytes[bit / 8] & (0x80 >> bit % 8))
            return true;
    return false;
}

static int parse_network(const char *text, struct network *out_network, struct fault *fault) {
    char address_text[INET6_ADDRSTRLEN];
    struct address address;
    size_t len = strcspn(text, "/");
    bool fits = len < sizeof address_text;
    memcpy(address_text, text, fits ? len : 0);
    address_text[fits ? len : 0] = '\0';
    if (!parse_address(address_text, &address))
        return fault_set(fault, STATUS_INVALID,
                         "\"%.100s\" is no network such as \"10.0.0.0/8\" or \"fd00::/8\"", text);
    bool is_dotted = !strchr(address_text, ':');
    unsigned max = is_dotted ? 32 : 128;
    unsigned bits = max;
    if (text[len] == '/' && !parse_bits(text + len + 1, max, &bits))
        return fault_set(fault, STATUS_INVALID,
                         "\"%.100s\" is no network: its prefix must be from 0 to %u", text, max);
    memcpy(out_network->bytes, address.bytes, sizeof address.bytes);
    out_network->bits = is_dotted ? bits + IPV4_BITS : bits;
    out_network->is_ipv4 = address.is_ipv4 && out_network->bits >= IPV4_BITS;
    if (has_host_bits(out_network))
        return fault_set(fault, STATUS_INVALID,
                         "\"%.100s\" is no network: its address has bits behind the prefix", text);
    return STATUS_OK;
}

void guard_init(struct guard *guard) {
    memset(guard, 0, sizeof *guard);
}

void guard_fini(struct guard *guard) {
    free(guard->networks);
    guard_init(guard);
}

int guard_add(struct guard *guard, bool is_allow, const char *text, struct fault *fault) {
    struct network network = {.is_allow = is_allow};
    int status = parse_network(text, &network, fault);
    if (status != STATUS_OK)
        return status;
    struct network *grown =
        realloc(guard->networks, (guard->n_networks + 1) * sizeof *guard->networks);
    if (!grown)
        return fault_set(fault, STATUS_NO_MEMORY, "%s", status_message(STATUS_NO_MEMORY));
    grown[guard->n_networks++] = network;
    guard->networks = grown;
    return STATUS_OK;
}

bool guard_admits(const struct guard *guard, const struct sockaddr *sockaddr) {
    struct address address;
    struct address inner;
    if (sockaddr->sa_family == AF_INET)
        set_ipv4(&address, &((const struct sockaddr_in *)(const void *)sockaddr)->sin_addr);
    else if (sockaddr->sa_family == AF_INET6)
        set_ipv6(&address, &((const struct sockaddr_in6 *)(const void *)sockaddr)->sin6_addr);
    else
        return false;
    bool is_wrapped = unwrap(&address, &inner);
    if (is_listed(guard, false, &address) || (is_wrapped && is_listed(guard, false, &inner)))
        return false;
    // Letting an IPv4 network through says nothing of detours to it over a translator.
    if (is_listed(guard, true, &address))
        return true;
    return is_public(&address) && (!is_wrapped || is_public(&inner));
}
