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
 *     hello    ---------------->          the program and its version, 32 random bytes, the devices that it wants
 *              <----------------  challenge   the program and its version, 32 random bytes
 *     proof    ---------------->          keyed hash of hello and challenge
 *              <----------------  verdict     served or why not, another keyed hash of both
 *     plan     ---------------->          one for each test; the test then exchanges its own messages
 *
 * The key of the hashes is made from the token. The token itself is never sent. By the hashes both sides prove that they have it.
 * Without a token the key is zeros, and the hashes prove nothing. Then the server can be reached only from its own host.
 */

#include "dn_perf.h"

#define PROGRAM "dimmnet_perf"

/** The most bytes of a list of devices, with the 0 byte at its end. */
#define DN_GREET_DEVICES 128

/** The most bytes that a client may make the server allocate for one window. */
#define DN_PLAN_MEMORY ((size_t) 1 << 30)

/** The least number of characters of a token, and of different characters in it. */
#define DN_TOKEN_MIN      16
#define DN_TOKEN_DISTINCT 8

/** The secret that both sides have. */
typedef struct {
    uint32_t given;        /**< 0: there is no token, and the key is zeros */
    unsigned char key[32]; /**< hash of the token */
} dn_token_t;

/** The first words of each side. */
typedef struct {
    char magic[8];                  /**< names this program */
    uint32_t wire;                  /**< DN_WIRE_VERSION */
    uint32_t bytes;                 /**< bytes of a dn_plan_t */
    uint32_t token;                 /**< not 0: the sender has a token */
    uint32_t pad;                   /**< 0 */
    unsigned char nonce[32];        /**< random */
    char devices[DN_GREET_DEVICES]; /**< of a client: names separated by commas; of a server: zeros */
} dn_hello_t;

/** Is a client served, or why not? */
typedef enum {
    DN_GREET_SERVED = 0,
    DN_GREET_STRANGER,   /**< the other side is another program */
    DN_GREET_VERSION,    /**< the other side has another version, or is another machine */
    DN_GREET_NO_TOKEN,   /**< the client has no token, and the server has one */
    DN_GREET_NO_ASK,     /**< the client has a token, and the server has none */
    DN_GREET_BAD_TOKEN,  /**< the tokens differ */
    DN_GREET_BAD_DEVICE, /**< the client asks for a device for which it may not ask */
} dn_greet_t;

typedef struct {
    unsigned char mac[32];
} dn_proof_t;

typedef struct {
    uint32_t verdict; /**< dn_greet_t */
    dn_proof_t proof;
} dn_verdict_t;

/** One test, as the client asks for it. The members but `test` are those of dn_bench_options_t. */
typedef struct {
    char test[16];      /**< name of the test; empty: there are no more tests */
    uint64_t min_size;  /**< bytes */
    uint64_t max_size;  /**< bytes */
    uint64_t mem_limit; /**< bytes */
    int32_t iterations;
    int32_t warmup;
    int32_t batches;
    int32_t window;
    uint32_t check;
    uint32_t pad;
} dn_plan_t;

/** @name dn_perf_greet.c: which clients are served, and what they may ask for */
/** @{ */

/**
 * Read the token from a file; without a file, from the environment variable DIMMNET_PERF_TOKEN. Without both there is no token.
 *
 * @param[in]  file  Path of the file, or NULL. The file belongs to this user or to root, and no other user can read it.
 *
 * @return 0; or -1: the token, or its file, cannot be used, and a sentence is on stderr.
 */
int dn_token_read(const char *file, dn_token_t *token);

/**
 * May a client ask for these devices? It may name devices of this build without an argument, since an argument may be a path.
 * Only the emulation may have an argument: the name of a profile.
 */
bool dn_greet_devices(const char *devices);

/** Judge the first words of a client. @return DN_GREET_SERVED, or why the client is not served. */
dn_greet_t dn_greet_judge(const dn_hello_t *hello, const dn_token_t *token, const char *own_devices);

/** May a client have this test? */
bool dn_plan_check(const dn_plan_t *plan);

/**
 * Greet a client that has connected, as the server.
 *
 * @param[in]  devices    The server's list of devices; NULL: the list of the client is taken.
 * @param[out] devices_p  Room for DN_GREET_DEVICES bytes: the list to open.
 *
 * @return 0: the client is served. -1: it is not served, and a sentence is on stderr.
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

/** End this process after so many seconds, whatever it does then. 0: no longer. @param[in] sentence  With a newline, for stderr; kept. */
void dn_end_after(unsigned seconds, const char *sentence);

/** Serve one client, in a process that does nothing else. @return the exit status of the process. */
int dn_serve(int socket, const dn_token_t *token, const dn_bench_options_t *options);

/** Wait for clients, and serve them. @return the exit status of the program. */
int dn_serve_all(const dn_token_t *token, const dn_bench_options_t *options);
/** @} */

#endif
