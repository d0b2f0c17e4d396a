/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * The greeting of dimmnet_perf: each side checks what the other side sends.
 */
#include "dn_config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dn_net.h"
#include "dn_perf_tool.h"

#define TOKEN_MAX 4096

static const char magic[8] = "dnperf2";

static const char *const verdicts[] = {
    [DN_GREET_SERVED] = "served",
    [DN_GREET_STRANGER] = "someone connected who does not speak as " PROGRAM " does; refused",
    [DN_GREET_VERSION] = "the other side is of another version or machine; install the same on both",
    [DN_GREET_NO_TOKEN] = "a client has no token, and this server wants one; give both the same by --token",
    [DN_GREET_NO_ASK] = "a client has a token, and this server has none; give both the same by --token",
    [DN_GREET_BAD_TOKEN] = "a client has another token than this server; refused",
    [DN_GREET_BAD_DEVICE] = "a client asks for a device that is not here, or by a path; refused",
};

#define VERDICTS (sizeof(verdicts) / sizeof(verdicts[0]))

/* Start libsodium. Hashes and random numbers need it. */
static void start_sodium(void)
{
    if (0 > sodium_init()) {
        fprintf(stderr, PROGRAM ": libsodium cannot start here; allow getrandom in the sandbox\n");
        exit(1);
    }
}

/* ---- token ---- */

/* Take a token, unless it is easy to guess. An attacker who has recorded a greeting can try tokens without asking a server. */
static int parse_token(const char *text, size_t len, const char *origin, dn_token_t *token)
{
    bool seen[256] = {false};
    int distinct = 0;

    while (0 != len && isspace((unsigned char) text[len - 1])) {
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        distinct += !seen[(unsigned char) text[i]];
        seen[(unsigned char) text[i]] = true;
    }
    if (DN_TOKEN_MIN > len || DN_TOKEN_DISTINCT > distinct) {
        fprintf(stderr,
                PROGRAM ": the token of %s is too easy to guess; make one of %d or more random characters\n",
                origin, DN_TOKEN_MIN);
        return -1;
    }
    token->given = 1;
    return crypto_generichash(token->key, sizeof(token->key), (const unsigned char *) text, len, NULL, 0);
}

static const char *wrong_file(const struct stat *info)
{
    if (!S_ISREG(info->st_mode)) {
        return "is not a file";
    }
    if (geteuid() != info->st_uid && 0 != info->st_uid) {
        return "belongs to somebody else";
    }
    return 0 != (info->st_mode & (S_IRWXG | S_IRWXO)) ? "may be read by others; chmod 600 it" : NULL;
}

static int read_token_file(const char *file, dn_token_t *token)
{
    char text[TOKEN_MAX];
    struct stat info;
    /* O_NONBLOCK: open() does not wait if the file is a FIFO, which is refused below. */
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t len = -1;
    const char *wrong = NULL;

    if (0 <= fd && 0 == fstat(fd, &info)) {
        wrong = wrong_file(&info);
        len = NULL == wrong ? read(fd, text, sizeof(text)) : 0;
    }
    if (0 > len) {
        fprintf(stderr, PROGRAM ": the file %s of the token cannot be read: %s\n", file, strerror(errno));
    } else if (NULL != wrong) {
        fprintf(stderr, PROGRAM ": the file %s of the token %s\n", file, wrong);
    }
    if (0 <= fd) {
        close(fd);
    }
    int status = 0 > len || NULL != wrong ? -1 : parse_token(text, (size_t) len, file, token);
    sodium_memzero(text, sizeof(text));
    return status;
}

int dn_token_read(const char *file, dn_token_t *token)
{
    const char *text = getenv("DIMMNET_PERF_TOKEN");

    memset(token, 0, sizeof(*token));
    start_sodium();
    if (NULL != file) {
        return read_token_file(file, token);
    }
    return NULL == text ? 0 : parse_token(text, strlen(text), "DIMMNET_PERF_TOKEN", token);
}

/* ---- what may be asked for ---- */

static bool is_device(const char *name, size_t len)
{
    for (size_t i = 0; NULL != dn_device_name(i); i++) {
        if (strlen(dn_device_name(i)) == len && 0 == memcmp(dn_device_name(i), name, len)) {
            return true;
        }
    }
    return false;
}

/* Is this the name of a profile? Its characters make no path, so the name cannot lead out of the folder of profiles. */
static bool is_profile(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char) name[i]) && '-' != name[i] && '_' != name[i]) {
            return false;
        }
    }
    return 0 < len;
}

bool dn_greet_devices(const char *devices)
{
    for (const char *at = devices;; at++) {
        const size_t len = strcspn(at, ",");
        const size_t name = strcspn(at, ":,");
        const bool argument = name < len;
        if (!is_device(at, name)
            || (argument && (strlen("emulate") != name || 0 != memcmp(at, "emulate", name)))
            || (argument && !is_profile(at + name + 1, len - name - 1))) {
            return false;
        }
        at += len;
        if ('\0' == *at) {
            return true;
        }
    }
}

dn_greet_t dn_greet_judge(const dn_hello_t *hello, const dn_token_t *token, const char *own_devices)
{
    if (0 != memcmp(hello->magic, magic, sizeof(magic))) {
        return DN_GREET_STRANGER;
    }
    if (DN_WIRE_VERSION != hello->wire || sizeof(dn_plan_t) != hello->bytes) {
        return DN_GREET_VERSION;
    }
    if ((0 != hello->token) != token->given) {
        return token->given ? DN_GREET_NO_TOKEN : DN_GREET_NO_ASK;
    }
    if (NULL == own_devices
        && (NULL == memchr(hello->devices, '\0', sizeof(hello->devices))
            || !dn_greet_devices(hello->devices))) {
        return DN_GREET_BAD_DEVICE;
    }
    return DN_GREET_SERVED;
}

bool dn_plan_check(const dn_plan_t *plan)
{
    bool text = NULL != memchr(plan->test, '\0', sizeof(plan->test));
    bool sizes = (SIZE_MAX == plan->max_size || DN_PLAN_MEMORY >= plan->max_size)
                 && (SIZE_MAX == plan->min_size || plan->min_size <= plan->max_size);
    bool counts = 0 <= plan->iterations && -1 <= plan->warmup && 1 <= plan->batches
                  && PERF_MAX_BATCHES >= plan->batches && 0 <= plan->window && 65536 >= plan->window;
    return text && sizes && counts && 1 <= plan->mem_limit && DN_PLAN_MEMORY >= plan->mem_limit
           && NULL != perf_find(plan->test);
}

/* ---- the greeting ---- */

/* Hash the first words of both sides with the token: only a side that has the token can do this. Each purpose gives another hash, so that
 * one hash cannot stand for another. */
static void prove(const dn_token_t *token, const char *purpose, const dn_hello_t *hello,
                  const dn_hello_t *challenge, unsigned char *out, size_t len)
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, token->key, sizeof(token->key), len);
    crypto_generichash_update(&state, (const unsigned char *) purpose, strlen(purpose) + 1);
    crypto_generichash_update(&state, (const unsigned char *) hello, sizeof(*hello));
    crypto_generichash_update(&state, (const unsigned char *) challenge, sizeof(*challenge));
    crypto_generichash_final(&state, out, len);
}

/* Make the key of the process group. Both sides make it; it is never sent. */
static void make_group(const dn_token_t *token, const dn_hello_t *hello, const dn_hello_t *challenge,
                       dn_group_key_t *key_p)
{
    _Static_assert(crypto_generichash_BYTES_MIN <= sizeof(key_p->byte), "a hash can be a key of a group");
    prove(token, "group", hello, challenge, key_p->byte, sizeof(key_p->byte));
}

static void introduce(dn_hello_t *hello, const dn_token_t *token, const char *devices)
{
    start_sodium();
    memset(hello, 0, sizeof(*hello));
    memcpy(hello->magic, magic, sizeof(magic));
    hello->wire = DN_WIRE_VERSION;
    hello->bytes = sizeof(dn_plan_t);
    hello->token = token->given;
    randombytes_buf(hello->nonce, sizeof(hello->nonce));
    snprintf(hello->devices, sizeof(hello->devices), "%s", devices);
}

int dn_greet_client(int socket, const dn_token_t *token, const char *devices, char *devices_p,
                    dn_group_key_t *key_p)
{
    dn_hello_t hello;
    dn_hello_t challenge;
    dn_proof_t proof;
    dn_proof_t expected;
    dn_verdict_t answer = {.verdict = DN_GREET_STRANGER};

    introduce(&challenge, token, "");
    if (0 == dn_net_receive(socket, &hello, sizeof(hello))) {
        answer.verdict = dn_greet_judge(&hello, token, devices);
    }
    if (DN_GREET_STRANGER != answer.verdict
        && (0 != dn_net_send(socket, &challenge, sizeof(challenge))
            || 0 != dn_net_receive(socket, &proof, sizeof(proof)))) {
        answer.verdict = DN_GREET_VERSION == answer.verdict ? DN_GREET_VERSION : DN_GREET_STRANGER;
    } else if (DN_GREET_SERVED == answer.verdict) {
        prove(token, "client", &hello, &challenge, expected.mac, sizeof(expected.mac));
        if (0 != sodium_memcmp(proof.mac, expected.mac, sizeof(proof.mac))) {
            answer.verdict = DN_GREET_BAD_TOKEN;
        } else {
            prove(token, "server", &hello, &challenge, answer.proof.mac, sizeof(answer.proof.mac));
        }
    }
    if (DN_GREET_STRANGER != answer.verdict && 0 != dn_net_send(socket, &answer, sizeof(answer))) {
        answer.verdict = DN_GREET_STRANGER;
    }
    if (DN_GREET_SERVED != answer.verdict) {
        fprintf(stderr, PROGRAM ": %s\n", verdicts[answer.verdict]);
        return -1;
    }
    make_group(token, &hello, &challenge, key_p);
    snprintf(devices_p, DN_GREET_DEVICES, "%s", NULL != devices ? devices : hello.devices);
    return 0;
}

int dn_greet_server(int socket, const char *server, const dn_token_t *token, const char *devices,
                    dn_group_key_t *key_p)
{
    dn_hello_t hello;
    dn_hello_t challenge;
    dn_proof_t proof;
    dn_verdict_t answer;

    introduce(&hello, token, devices);
    if (0 != dn_net_send(socket, &hello, sizeof(hello))
        || 0 != dn_net_receive(socket, &challenge, sizeof(challenge))
        || 0 != memcmp(challenge.magic, magic, sizeof(magic))) {
        fprintf(stderr, PROGRAM ": what answers at %s is not " PROGRAM ", or will not speak with us\n",
                server);
        return -1;
    }
    if (DN_WIRE_VERSION != challenge.wire || sizeof(dn_plan_t) != challenge.bytes) {
        fprintf(stderr, PROGRAM ": %s\n", verdicts[DN_GREET_VERSION]);
        return -1;
    }
    prove(token, "client", &hello, &challenge, proof.mac, sizeof(proof.mac));
    if (0 != dn_net_send(socket, &proof, sizeof(proof))
        || 0 != dn_net_receive(socket, &answer, sizeof(answer))) {
        fprintf(stderr, PROGRAM ": the server at %s has ended\n", server);
        return -1;
    }
    if (DN_GREET_SERVED != answer.verdict) {
        fprintf(stderr, PROGRAM ": the server at %s refuses: %s\n", server,
                verdicts[VERDICTS > answer.verdict ? answer.verdict : DN_GREET_STRANGER]);
        return -1;
    }
    prove(token, "server", &hello, &challenge, proof.mac, sizeof(proof.mac));
    if (0 != sodium_memcmp(proof.mac, answer.proof.mac, sizeof(proof.mac))) {
        fprintf(stderr, PROGRAM ": what answers at %s does not have the token; it is not our server\n",
                server);
        return -1;
    }
    make_group(token, &hello, &challenge, key_p);
    return 0;
}
