/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Two processes send each other messages, stores and PUSHes without a pause, and somebody cuts the path between them for longer than
 * timeout_s. Each says in one sentence that it has given up the other, and all that it has begun ends. When the path is back they connect
 * again, and nothing of the first connection comes by the second.
 *
 *   ipnuma_return FOLDER RANK DEVICE     one of the two
 *
 * In the folder each writes offer.RANK, traffic.RANK when the other is heard, lost.RANK when the other is given up, and done.RANK. Somebody
 * writes the file back when the path is back.
 */
#include "dn_config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../dn_test.h"
#include "dn_atomic.h"
#include "dn_clock.h"

enum { BYTES = 64 << 10, FIRST = 100, LAST = 1000, TIMEOUT_S = 4, SECONDS = 150 };
/** Limit of a wait. */
#define LIMIT_NS UINT64_C(60000000000)

/** What each tells of itself. */
typedef struct offer {
    uint64_t address_len;
    uint8_t address[DN_ADDRESS_MAX];
    dn_key_t memory;
    uint64_t off; /**< in its LLCM: a word for the other */
} offer_t;

/** A message; a store is its two numbers in one word. */
typedef struct text {
    uint32_t connection; /**< 1 or 2 */
    uint32_t number;     /**< of the message in the connection, from 1 on */
} text_t;

static const char *folder;
static int rank;
static dn_port_t *port;
static dn_peer_t *peer;
static offer_t other;
static text_t said, heard;
static unsigned sentences;
static char sentence[512]; /**< the last one */
static uint8_t local[BYTES], memory[BYTES];
static const uint64_t *word; /**< where the other stores */
static uint64_t stored;      /**< what was seen there last */
static int pushes;           /**< not 0: a PUSH has not ended */
static dn_status_t ended;    /**< status of the last PUSH that has */

static void need(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "ipnuma_return: rank %d: wrong: %s; last sentence: %s\n", rank, what, sentence);
        exit(1);
    }
}

static void note(const char *text, void *arg)
{
    (void) arg;
    sentences++;
    snprintf(sentence, sizeof(sentence), "%s", text);
}

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    text_t text;

    (void) src;
    (void) tag;
    (void) arg;
    need(sizeof(text) == len, "a message has its length");
    memcpy(&text, data, sizeof(text));
    const int next = heard.connection == text.connection && heard.number + 1 == text.number;
    const int first = heard.connection + 1 == text.connection && 1 == text.number;
    need(next || first,
         "messages come once, in their order, and none of the first connection behind one of the second");
    heard = text;
}

static void end(dn_comp_t *comp, dn_status_t status)
{
    (void) comp;
    pushes = 0;
    ended = status;
}

static dn_comp_t comp = {end};

static void write_file(const char *name, int of, const void *bytes, size_t len)
{
    char path[512], part[512];

    snprintf(path, sizeof(path), "%s/%s.%d", folder, name, of);
    snprintf(part, sizeof(part), "%s/part.%d", folder, of);
    FILE *file = fopen(part, "we");
    need(NULL != file && len == fwrite(bytes, 1, len, file) && 0 == fclose(file), "a file is written");
    need(0 == rename(part, path), "a file is published");
}

static int is_there(const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return 0 == access(path, F_OK);
}

/** Look at the network until there is a file. */
static void await_file(const char *name)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    while (!is_there(name)) {
        dn_progress(port);
        /* A file of another host: there is no event. alarm() ends a hang. */
        (void) nanosleep(&pause, NULL);
    }
}

static void read_offer(void)
{
    char name[32], path[512];

    snprintf(name, sizeof(name), "offer.%d", !rank);
    await_file(name);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    need(NULL != file && 1 == fread(&other, sizeof(other), 1, file) && 0 == fclose(file),
         "the offer is read");
}

static void open_port(const char *device)
{
    const dn_job_t job = {.key = {"a key of 16 byte"}, .pid = (uint32_t) rank, .size = 2};
    offer_t mine = {.address_len = sizeof(mine.address)};
    dn_segment_t *segment = NULL;
    dn_config_t config;
    void *llcm = NULL;

    dn_config_init(&config);
    config.timeout_s = TIMEOUT_S;
    dn_log_set(note, NULL);
    need(DN_OK == dn_open(device, &job, &config, &port), "a port is opened");
    need(DN_OK == dn_handler_set(port, DN_CHAN_USER, hear, NULL), "a handler is set");
    need(DN_OK == dn_segment_register(port, memory, sizeof(memory), &segment), "a segment is registered");
    need(DN_OK == dn_llcm_alloc(port, sizeof(*word), &mine.off, &llcm), "LLCM is had");
    word = llcm;
    dn_segment_key(segment, &mine.memory);
    size_t len = sizeof(mine.address);
    need(DN_OK == dn_address(port, mine.address, &len), "there is an address");
    mine.address_len = len;
    write_file("offer", rank, &mine, sizeof(mine));
    read_offer();
}

/** Connect to the other. After a loss the port may still have to forget its peer. */
static void connect_to_other(void)
{
    const uint64_t until = dn_clock_ns() + LIMIT_NS;
    dn_status_t status;

    while (DN_ERR_UNREACH == (status = dn_connect(port, other.address, other.address_len, &peer))
           && dn_clock_ns() < until) {
        dn_progress(port);
    }
    need(DN_OK == status, "the other is connected to");
    said = (text_t){said.connection + 1, 0};
    ended = DN_OK;
}

/** The word that goes with a message. */
static uint64_t word_of(const text_t *text)
{
    return (uint64_t) text->connection << 32 | text->number;
}

/** Does a call say that the other is lost? */
static int is_lost(dn_status_t status)
{
    need(DN_OK == status || DN_INPROGRESS == status || DN_ERR_AGAIN == status || DN_ERR_UNREACH == status,
         "an operation is taken, has to wait, or is told of the loss");
    return DN_ERR_UNREACH == status;
}

/** Send a message, a store, and a PUSH if the last one has ended. Look at what the other stores. @return 0: the other is lost. */
static int speak(void)
{
    const text_t next = {said.connection, said.number + 1};
    const dn_xfer_t xfer = {.local = local, .key = &other.memory, .len = sizeof(local), .comp = &comp};

    dn_status_t status = dn_botf(peer, DN_CHAN_USER, 0, NULL, 0, &next, sizeof(next));
    said = DN_OK == status ? next : said;
    int lost = is_lost(status) || is_lost(dn_aotf(peer, other.off, word_of(&said), sizeof(*word)));
    if (!lost && !pushes) {
        need(DN_OK == ended, "a PUSH ends well");
        dn_test_fill(local, sizeof(local), said.connection);
        pushes = 1;
        status = dn_push(peer, &xfer);
        pushes = DN_INPROGRESS == status;
        lost = is_lost(status);
    }
    dn_progress(port);
    const uint64_t now = dn_load_acquire(word);
    need(now >= stored, "no store of the first connection comes behind one of the second");
    stored = now;
    return !lost;
}

/** Speak until the path is cut, and for as long as the loss takes. */
static void lose(void)
{
    int told = 0;

    while (speak()) {
        if (!told && FIRST <= heard.number) {
            told = 1;
            write_file("traffic", rank, NULL, 0);
        }
    }
    const uint64_t until = dn_clock_ns() + LIMIT_NS;
    while (pushes && dn_clock_ns() < until) {
        dn_progress(port);
    }
    need(!pushes, "what was begun ends");
    need(DN_ERR_UNREACH == dn_peer_check(peer), "the other is lost");
    /* Where packets came after the last that was new, what was sent is found untaken first. */
    need(1 == sentences
             && (NULL != strstr(sentence, "nothing was heard from PID")
                 || NULL != strstr(sentence, "nothing of what was sent was taken by PID")),
         "one sentence tells of the loss");
    dn_disconnect(peer);
    write_file("lost", rank, NULL, 0);
}

/** Speak by the second connection, and hear the other. */
static void go_on(void)
{
    const uint64_t until = dn_clock_ns() + LIMIT_NS;
    char name[32];

    while (LAST > said.number && dn_clock_ns() < until) {
        need(speak(), "the other stays");
    }
    dn_status_t status;
    while (DN_ERR_AGAIN == (status = dn_aotf(peer, other.off, word_of(&said), sizeof(*word)))
           && dn_clock_ns() < until) {
        dn_progress(port);
    }
    need(DN_OK == status, "the last store is taken");
    while (DN_INPROGRESS == (status = dn_flush(peer)) && dn_clock_ns() < until) {
    }
    need(DN_OK == status && !pushes && LAST <= said.number, "all that was sent is done");
    write_file("done", rank, &said, sizeof(said));
    snprintf(name, sizeof(name), "done.%d", !rank);
    await_file(name);
    while (LAST > heard.number && dn_clock_ns() < until) {
        dn_progress(port);
    }
    need(2 == heard.connection && LAST == heard.number, "all messages of the second connection come");
    need(word_of(&heard) == dn_load_acquire(word), "the last store is the last that was sent");
    need(BYTES == dn_test_mismatch(memory, sizeof(memory), 2),
         "memory is as the second connection has PUSHed it");
    need(1 == sentences, "nothing more was said");
}

int main(int argc, char **argv)
{
    if (4 != argc) {
        fprintf(stderr, "usage: ipnuma_return FOLDER RANK DEVICE\n");
        return 99;
    }
    alarm(SECONDS);
    folder = argv[1];
    rank = atoi(argv[2]);
    open_port(argv[3]);
    connect_to_other();
    lose();
    const uint32_t before = heard.number;
    await_file("back");
    connect_to_other();
    go_on();
    dn_close(port);
    printf("%u messages came by the first connection: %s\n", before, sentence);
    return 0;
}
