/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What the ofi device gives away: of all bytes that two processes send each other, none are those of a secret. The calls by
 * which a provider sends are this program's, which keeps what they send. That it sees all is shown by what is known to
 * be there: nothing is encrypted, so the data are. Nor does a secret stay in memory when its port is closed.
 *
 *   ofi_secrets [TEST]
 */
#include "dn_config.h"

#include "ofi_world.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* What is sent */

enum { FDS = 1024 };

/** Of each socket by itself: what one call sends goes on where the one before it ended. */
static struct capture {
    uint8_t *byte;
    size_t len, room;
} captured[FDS];
static pthread_mutex_t capture_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep(int fd, const void *bytes, size_t len)
{
    struct capture *capture = &captured[fd % FDS];

    if (capture->len + len > capture->room) {
        capture->room = 2 * (capture->len + len);
        capture->byte = realloc(capture->byte, capture->room);
        if (NULL == capture->byte) {
            abort();
        }
    }
    memcpy(capture->byte + capture->len, bytes, len);
    capture->len += len;
}

/** A call has sent this, or as much of it as it says. */
static ssize_t sent(int fd, const struct iovec *part, size_t parts, ssize_t ret)
{
    int type;
    socklen_t len = sizeof(type);
    size_t left = 0 < ret ? (size_t) ret : 0;

    if (0 != left && 0 == getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len)) {
        pthread_mutex_lock(&capture_lock);
        for (size_t i = 0; i < parts && 0 != left; i++) {
            const size_t n = part[i].iov_len < left ? part[i].iov_len : left;
            keep(fd, part[i].iov_base, n);
            left -= n;
        }
        pthread_mutex_unlock(&capture_lock);
    }
    return ret;
}

/** The function that this program's stands before. */
static void *next(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (NULL == function) {
        abort();
    }
    return function;
}

static ssize_t sent_one(int fd, const void *bytes, size_t len, ssize_t ret)
{
    const struct iovec part = {(void *) (uintptr_t) bytes, len};
    return sent(fd, &part, 1, ret);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    ssize_t (*call)(int, const void *, size_t) = next("write");
    return sent_one(fd, bytes, len, call(fd, bytes, len));
}

ssize_t writev(int fd, const struct iovec *part, int parts)
{
    ssize_t (*call)(int, const struct iovec *, int) = next("writev");
    return sent(fd, part, (size_t) parts, call(fd, part, parts));
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    ssize_t (*call)(int, const void *, size_t, int) = next("send");
    return sent_one(fd, bytes, len, call(fd, bytes, len, flags));
}

ssize_t sendto(int fd, const void *bytes, size_t len, int flags, const struct sockaddr *to, socklen_t to_len)
{
    ssize_t (*call)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) = next("sendto");
    return sent_one(fd, bytes, len, call(fd, bytes, len, flags, to, to_len));
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t (*call)(int, const struct msghdr *, int) = next("sendmsg");
    return sent(fd, message->msg_iov, message->msg_iovlen, call(fd, message, flags));
}

/** Was this sent on one of the sockets? */
static int was_sent(const void *bytes, size_t len)
{
    int found = 0;

    pthread_mutex_lock(&capture_lock);
    for (int fd = 0; fd < FDS && !found; fd++) {
        found = NULL != captured[fd].byte && NULL != memmem(captured[fd].byte, captured[fd].len, bytes, len);
    }
    pthread_mutex_unlock(&capture_lock);
    return found;
}

/* What is not to be */

/** So many bytes of a secret, from wherever, are not sent: by chance they never are. */
enum { PIECE = 8, DATA = 3000 };

static void check_kept(const void *secret, size_t len)
{
    for (size_t at = 0; at + PIECE <= len; at++) {
        dn_check(!was_sent((const uint8_t *) secret + at, PIECE));
    }
}

/** The key as bytes, and as launchers hand it on: two words in hex; both in either order of bytes. */
static void check_key_kept(const dn_group_key_t *key)
{
    static const char *const format[] = {"%016llx", "%016llX"};
    char text[17];

    check_kept(key->byte, sizeof(key->byte));
    for (size_t half = 0; half < sizeof(key->byte); half += sizeof(uint64_t)) {
        unsigned long long word;
        memcpy(&word, key->byte + half, sizeof(word));
        for (int i = 0; i < 4; i++) {
            snprintf(text, sizeof(text), format[i % 2], i < 2 ? word : __builtin_bswap64(word));
            check_kept(text, strlen(text));
        }
    }
}

/** @param word_is_sent  Each message of this direction carries its word. */
static void check_pair_kept(const dn_auth_pair_t *pair, int word_is_sent, dn_auth_role_t sender)
{
    check_kept(pair->base, sizeof(pair->base));
    for (int role = 0; role < 2; role++) {
        check_kept(pair->way[role].key, sizeof(pair->way[role].key));
        dn_check_equal(was_sent(&pair->way[role].word, sizeof(pair->way[role].word)),
                       word_is_sent && role == (int) sender);
    }
}

static void check_secrets_kept(dn_world_t *world)
{
    const dn_auth_group_t *group = dn_port_group(world->port);
    dn_ofi_t *ofi = ofi_device(world);
    const dn_ofi_peer_t *peer = (const dn_ofi_peer_t *) world->peer[1 - world->rank];
    const int hello = DN_AUTH_HELLO == world->config.auth;

    check_key_kept(&world->job.key);
    check_kept(group->root, sizeof(group->root));
    check_kept(group->secret, sizeof(group->secret));
    dn_ofi_lock(ofi);
    check_pair_kept(&peer->tx->pair, hello, DN_AUTH_OPENER);
    check_pair_kept(&peer->rx.pair, hello, DN_AUTH_ACCEPTOR);
    dn_ofi_unlock(ofi);
    /* What is public is sent: a secret would be found. */
    dn_check(was_sent(group->exchange, sizeof(group->exchange)));
    dn_check(was_sent(&peer->tx->token, sizeof(peer->tx->token)));
}

static void fill(dn_world_t *world, uint8_t *data, uint64_t of)
{
    dn_test_fill(data, DATA, of + (uint64_t) world->rank);
}

/** Say and PUSH something both ways, so that all kinds of messages go; then look at what this process has sent. */
static void look_at_all_that_is_sent(dn_world_t *world, dn_auth_mode_t auth)
{
    enum { MESSAGES = 600 };
    static uint8_t said[DATA], pushed[DATA];
    dn_segment_t *segment;
    const int other = 1 - world->rank;

    fill(world, said, 10);
    fill(world, pushed, 20);
    world->config.auth = auth;
    dn_world_listen(world, dn_world_hear);
    dn_check_equal(dn_segment_alloc(world->port, DATA, &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    dn_world_connect(world);
    for (unsigned tag = 0; tag < MESSAGES; tag++) {
        dn_world_send(world, world->peer[other], DN_WORLD_CHAN, tag % 256, said,
                      0 == tag % 100 ? DATA : tag % 64);
    }
    const dn_xfer_t xfer = {.local = pushed, .key = &world->board->seat[other].key[0], .len = DATA};
    dn_check_equal(dn_world_push(world, world->peer[other], &xfer), DN_OK);
    dn_world_hear_until(world, MESSAGES);
    dn_world_fence(world, world->peer[other]);
    dn_check(was_sent(said, DATA));
    dn_check(was_sent(pushed, DATA));
    check_secrets_kept(world);
    dn_world_barrier(world);
    dn_segment_free(segment);
    dn_world_stop(world);
}

static void no_secret_is_sent_without_auth(dn_world_t *world)
{
    look_at_all_that_is_sent(world, DN_AUTH_NONE);
}

static void no_secret_but_the_word_is_sent_with_hello(dn_world_t *world)
{
    look_at_all_that_is_sent(world, DN_AUTH_HELLO);
}

static void no_secret_is_sent_with_full(dn_world_t *world)
{
    look_at_all_that_is_sent(world, DN_AUTH_FULL);
}

/* What stays */

/** Secrets that this process had, each byte changed: it does not have them by having these. */
static uint8_t had[400];
static size_t had_len;
enum { CHANGED = 0x5a };

static void remember(const void *secret, size_t len)
{
    dn_check(sizeof(had) - had_len >= len);
    for (size_t i = 0; i < len; i++) {
        had[had_len++] = ((const uint8_t *) secret)[i] ^ CHANGED;
    }
}

static void remember_pair(const dn_auth_pair_t *pair)
{
    remember(pair->base, sizeof(pair->base));
    for (int role = 0; role < 2; role++) {
        remember(pair->way[role].key, sizeof(pair->way[role].key));
        remember(&pair->way[role].word, sizeof(pair->way[role].word));
    }
}

/** How many of the places in what was remembered are found in the memory that malloc() gives. */
static int places_left(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[256];
    uintptr_t from = 0, to = 0;
    int found = 0;

    dn_check(NULL != maps);
    while (NULL != fgets(line, sizeof(line), maps)
           && (NULL == strstr(line, "[heap]") || 2 != sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to))) {
    }
    fclose(maps);
    dn_check(from < to);
    for (size_t at = 0; at + PIECE <= had_len; at++) {
        uint8_t piece[PIECE];
        for (size_t i = 0; i < PIECE; i++) {
            piece[i] = had[at + i] ^ CHANGED;
        }
        found += NULL != memmem((const void *) from, to - from, piece, PIECE);
    }
    return found;
}

static void no_secret_stays_when_the_port_is_closed(dn_world_t *world)
{
    world->config.auth = DN_AUTH_FULL;
    dn_world_listen(world, dn_world_hear);
    dn_world_connect(world);
    dn_world_send(world, world->peer[1 - world->rank], DN_WORLD_CHAN, 0, NULL, 0);
    dn_world_hear_until(world, 1);
    dn_world_fence(world, world->peer[1 - world->rank]);
    const dn_auth_group_t *group = dn_port_group(world->port);
    const dn_ofi_peer_t *peer = (const dn_ofi_peer_t *) world->peer[1 - world->rank];
    remember(world->job.key.byte, sizeof(world->job.key.byte));
    remember(group->root, sizeof(group->root));
    remember(group->secret, sizeof(group->secret));
    remember_pair(&peer->tx->pair);
    remember_pair(&peer->rx.pair);
    dn_check(0 != places_left());
    dn_world_stop(world);
    dn_check_equal(places_left(), 0);
}

static const dn_world_test_t tests[] = {
    {"no_secret_is_sent_without_auth", 2, no_secret_is_sent_without_auth},
    {"no_secret_but_the_word_is_sent_with_hello", 2, no_secret_but_the_word_is_sent_with_hello},
    {"no_secret_is_sent_with_full", 2, no_secret_is_sent_with_full},
    {"no_secret_stays_when_the_port_is_closed", 2, no_secret_stays_when_the_port_is_closed},
};

int main(int argc, char **argv)
{
    return ofi_run_tests(tests, sizeof(tests) / sizeof(tests[0]), "ofi_secrets", argv[1]);
}
