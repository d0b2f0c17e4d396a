/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_PERF_TOOL_H
#define DN_PERF_TOOL_H

/*
 * What the parts of dimmnet_perf share: the words that server and client exchange before a test, and the server.
 *
 *   client                     server
 *     hello    ---------------->          who it is, 32 random bytes, the devices that it wants
 *              <----------------  challenge   who it is, 32 random bytes
 *     proof    ---------------->          keyed hash of both
 *              <----------------  verdict     served or why not, another keyed hash of both
 *     plan     ---------------->          one for each test; then the tests talk by themselves
 *
 * The key of the hashes is made of the token, which never crosses the connection. Both sides prove that they have it.
 * Without a token the key is zeros: then the hashes prove nothing, and the server is one that only this host reaches.
 */

#include "dn_perf.h"

#define PROGRAM "dimmnet_perf"

/** Bytes of a list of devices, its end included. */
#define DN_GREET_DEVICES 128

/** Bytes that a client may make the server take for one window. */
#define DN_PLAN_MEMORY ((size_t) 1 << 30)

/** Shortest token, in characters, and how many of them have to differ. */
#define DN_TOKEN_MIN      16
#define DN_TOKEN_DISTINCT 8

/** The secret that both sides have. */
typedef struct {
    uint32_t given; /**< 0: none, and the key is zeros */
    unsigned char key[32];
} dn_token_t;

/** First words of both sides. */
typedef struct {
    char magic[8];
    uint32_t wire;  /**< DN_WIRE_VERSION */
    uint32_t bytes; /**< of dn_plan_t */
    uint32_t token; /**< not 0: the sender has one */
    uint32_t pad;
    unsigned char nonce[32];
    char devices[DN_GREET_DEVICES]; /**< of a client: names separated by commas; of a server: zeros */
} dn_hello_t;

typedef enum {
    DN_GREET_SERVED = 0,
    DN_GREET_STRANGER,   /**< not one of these programs */
    DN_GREET_VERSION,    /**< of another version or machine */
    DN_GREET_NO_TOKEN,   /**< the client has none, the server has */
    DN_GREET_NO_ASK,     /**< the client has one, the server has none */
    DN_GREET_BAD_TOKEN,  /**< not the same */
    DN_GREET_BAD_DEVICE, /**< one that a client may not ask for */
} dn_greet_t;

typedef struct {
    unsigned char mac[32];
} dn_proof_t;

typedef struct {
    uint32_t verdict; /**< dn_greet_t */
    dn_proof_t proof;
} dn_verdict_t;

/** One test, as the client asks for it. */
typedef struct {
    char test[16]; /**< empty: that was all */
    uint64_t min_size;
    uint64_t max_size;
    uint64_t mem_limit;
    int32_t iterations;
    int32_t warmup;
    int32_t batches;
    int32_t window;
    uint32_t check;
    uint32_t pad;
} dn_plan_t;

/** @name dn_perf_greet.c: who may ask, and for what */
/** @{ */

/**
 * Read the token: of a file, else of the environment variable DIMMNET_PERF_TOKEN, else there is none.
 *
 * @param[in]  file  Its path, or NULL. Only its owner may be able to read it, and that is this user or root.
 *
 * @return 0, or -1 when a token is named and is no good; a sentence is on stderr then.
 */
int dn_token_read(const char *file, dn_token_t *token);

/**
 * May a client ask for these devices? Names of this build, each without an argument, as an argument may be a path;
 * of the emulation a profile by its name.
 */
bool dn_greet_devices(const char *devices);

/** Can what a client says first be served? @return DN_GREET_SERVED, or why not. */
dn_greet_t dn_greet_judge(const dn_hello_t *hello, const dn_token_t *token, const char *own_devices);

/** Can a client have this test? */
bool dn_plan_check(const dn_plan_t *plan);

/**
 * Greet a client that has connected, as the server.
 *
 * @param[in]  devices    The server's own list, or NULL: the client's is taken.
 * @param[out] devices_p  Of DN_GREET_DEVICES bytes: the list to open.
 *
 * @return 0: it is served. -1: it is not, and a sentence is on stderr.
 */
int dn_greet_client(int socket, const dn_token_t *token, const char *devices, char *devices_p,
                    dn_group_key_t *key_p);

/** Greet a server. @return 0, or -1: a sentence is on stderr. */
int dn_greet_server(int socket, const char *server, const dn_token_t *token, const char *devices,
                    dn_group_key_t *key_p);
/** @} */

/** @name dn_perf_serve.c: the server */
/** @{ */

/** Run one test with the other side. */
void dn_plan_run(const dn_plan_t *plan, const dn_bench_options_t *options, perf_t *perf,
                 perf_result_t *result);

/** Serve one client, in a process that has nothing else to do. @return its exit status. */
int dn_serve(int socket, const dn_token_t *token, const dn_bench_options_t *options);

/** Wait for clients and serve them. @return the exit status. */
int dn_serve_all(const dn_token_t *token, const dn_bench_options_t *options);
/** @} */

#endif
