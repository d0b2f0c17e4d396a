/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Memory that changes by itself: a target computes for a second, and calls nothing of the library, while another process adds to its
 * word, PUSHes to its segments, PULLs from them, also by programs, and stores to its LLCM. Then additions while the target polls, and while
 * it computes again; at last nothing comes, and nothing of the target runs.
 *
 *   memory_between                       both processes here, over loopback, by each device that was built
 *   memory_between serve FOLDER DEVICE   the target; its address goes to a file of FOLDER
 *   memory_between ask FOLDER DEVICE     the other, which reads it there
 */
#include "dn_config.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../dn_test.h"
#include "dn_atomic.h"
#include "dn_clock.h"
#include "dn_prog.h"

enum { ADDS = 10000, BYTES = 1 << 20, SECONDS = 180, PIECES = 800000, BLANK = 0x55, KEY = 9 };

/** What the target tells of itself. */
typedef struct offer {
    uint64_t address_len;
    uint8_t address[DN_ADDRESS_MAX];
    dn_key_t word, memory, pieces;
    uint64_t off; /**< in its LLCM: phase words of the other */
} offer_t;

/** What the other stores into the LLCM of the target when a phase is over. */
enum { ENDS = 2 };

static void need(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "memory_between: wrong: %s\n", what);
        exit(1);
    }
}

static dn_port_t *open_port(const char *device, uint32_t pid)
{
    const dn_job_t job = {.key = {"a key of 16 byte"}, .pid = pid, .size = 2};
    dn_port_t *port = NULL;

    const dn_status_t status = dn_open(device, &job, NULL, &port);
    if (DN_ERR_UNSUPPORTED == status) {
        exit(DN_TEST_SKIP);
    }
    need(DN_OK == status, "a port is opened");
    return port;
}

static void write_offer(const char *folder, const offer_t *offer)
{
    char path[512], other[512];

    snprintf(path, sizeof(path), "%s/offer.new", folder);
    snprintf(other, sizeof(other), "%s/offer", folder);
    FILE *file = fopen(path, "we");
    need(NULL != file && 1 == fwrite(offer, sizeof(*offer), 1, file) && 0 == fclose(file),
         "the offer is written");
    need(0 == rename(path, other), "the offer is published");
}

static void read_offer(const char *folder, offer_t *offer)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    char path[512];
    FILE *file = NULL;

    snprintf(path, sizeof(path), "%s/offer", folder);
    while (NULL == (file = fopen(path, "re"))) {
        /* A file of another process, perhaps of another host: there is no event. */
        (void) nanosleep(&pause, NULL);
    }
    need(1 == fread(offer, sizeof(*offer), 1, file) && 0 == fclose(file), "the offer is read");
}

/* Programs */

/** Blocks in a part of the segment for pieces, short or long. */
typedef struct layout {
    uint64_t roff, len, count;
    int64_t step; /**< negative: the last block is first */
    unsigned odd; /**< not 0: the distance differs from block to block */
} layout_t;

static const layout_t layouts[] = {
    {0, 8, 1500, 16, 5},
    {500000, 24, 1000, -64, 0},
    {600000, 4096, 10, -5000, 0},
};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

/** Where a block lies from the start of its part. */
static int64_t place(const layout_t *layout, uint64_t i)
{
    return 0 > layout->step ? -layout->step * (int64_t) (layout->count - 1 - i)
                            : layout->step * (int64_t) i + (int64_t) (0 == layout->odd ? 0 : i % layout->odd);
}

static dn_prog_t *make(const layout_t *layout)
{
    dn_prog_op_t *op = calloc(layout->count, sizeof(*op));
    dn_prog_t *prog = NULL;

    need(NULL != op, "there is memory");
    for (uint64_t i = 0; i < layout->count; i++) {
        op[i] = (dn_prog_op_t){DN_PROG_RUN, 0, place(layout, i), layout->len, 1, 0};
    }
    need(DN_OK == dn_prog_create(op, layout->count, &prog), "a program is made");
    free(op);
    return prog;
}

/** Has memory the pattern where the blocks lie, and nowhere else? */
static int is_pieced(const uint8_t *memory)
{
    static uint8_t wanted[PIECES];

    memset(wanted, BLANK, PIECES);
    for (size_t k = 0; k < LAYOUTS; k++) {
        for (uint64_t i = 0; i < layouts[k].count; i++) {
            const uint64_t at = layouts[k].roff + (uint64_t) place(&layouts[k], i);
            for (uint64_t n = at; n < at + layouts[k].len; n++) {
                wanted[n] = dn_test_byte(KEY, n);
            }
        }
    }
    return 0 == memcmp(memory, wanted, PIECES);
}

/** @return seconds of CPU time of all threads while the process sleeps for 0.3 s. */
static double used_asleep(void)
{
    const struct timespec pause = {.tv_nsec = 300000000};
    struct timespec before, after;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    /* What is measured is a time: there is no event. */
    (void) nanosleep(&pause, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    return (double) (after.tv_sec - before.tv_sec) + (double) (after.tv_nsec - before.tv_nsec) / 1e9;
}

/** Nothing comes, and the process sleeps: so do the threads of the library. A virtual machine may count time that it did not have, so the
 * best of some tries tells. */
static void rest(void)
{
    double least = used_asleep();

    for (int again = 0; again < 5 && 0.1 <= least; again++) {
        const double used = used_asleep();
        least = used < least ? used : least;
    }
    need(least < 0.1, "threads sleep while nothing comes");
}

static void serve(const char *folder, const char *device)
{
    static uint64_t word[2]; /* that is added to, and phases that this process has begun or checked */
    static uint8_t memory[BYTES], pieces[PIECES];
    dn_segment_t *segment[3];
    offer_t offer = {.address_len = sizeof(offer.address)};
    void *llcm = NULL;
    uint64_t sum = 0;

    dn_port_t *port = open_port(device, 0);
    need(DN_OK == dn_segment_register(port, word, sizeof(word), &segment[0]), "a segment is registered");
    need(DN_OK == dn_segment_register(port, memory, sizeof(memory), &segment[1]), "a segment is registered");
    memset(pieces, BLANK, sizeof(pieces));
    need(DN_OK == dn_segment_register(port, pieces, sizeof(pieces), &segment[2]), "a segment is registered");
    need(DN_OK == dn_llcm_alloc(port, 64, &offer.off, &llcm), "LLCM is had");
    dn_segment_key(segment[0], &offer.word);
    dn_segment_key(segment[1], &offer.memory);
    dn_segment_key(segment[2], &offer.pieces);
    size_t len = sizeof(offer.address);
    need(DN_OK == dn_address(port, offer.address, &len), "there is an address");
    offer.address_len = len;
    const uint64_t *phase = llcm;
    write_offer(folder, &offer);
    /* Nothing of the library is called until the first phase is over, nor for a second. */
    const uint64_t until = dn_clock_ns() + UINT64_C(1000000000);
    while (ENDS != dn_load_acquire(&phase[0]) || dn_clock_ns() < until) {
        sum += sum * 3 + dn_load_relaxed(&word[0]);
    }
    need(ADDS == dn_load_acquire(&word[0]), "each addition is done once while the target computes");
    need(BYTES == dn_test_mismatch(memory, sizeof(memory), 7),
         "what was PUSHed is there while the target computes");
    need(is_pieced(pieces), "what was PUSHed by programs is there while the target computes");
    dn_store_release(&word[1], 1);
    while (ENDS != dn_load_acquire(&phase[1])) {
        dn_progress(port);
    }
    need(2 * ADDS == dn_load_acquire(&word[0]), "each addition is done once while the target polls");
    dn_store_release(&word[1], 2);
    while (ENDS != dn_load_acquire(&phase[2])) {
        sum += sum * 3 + dn_load_relaxed(&word[0]);
    }
    need(3 * ADDS == dn_load_acquire(&word[0]), "each addition is done once while the target computes again");
    rest();
    dn_close(port);
    /* So that it was computed. */
    fprintf(stderr, "%s", 1 == sum ? " " : "");
}

static dn_status_t ended;

static void end(dn_comp_t *comp, dn_status_t status)
{
    (void) comp;
    ended = status;
}

static dn_comp_t comp = {end};

/** Wait for what was started. */
static void finish(dn_port_t *port, dn_status_t status)
{
    while (DN_INPROGRESS == status && DN_INPROGRESS == ended) {
        dn_progress(port);
    }
    need(DN_OK == (DN_INPROGRESS == status ? ended : status), "an operation ends well");
    ended = DN_INPROGRESS;
}

/** Add to one of the two words. @return what was there. */
static uint64_t add_once(dn_port_t *port, dn_peer_t *peer, const offer_t *offer, uint64_t roff,
                         uint64_t value)
{
    uint64_t old = UINT64_MAX;
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_fetch_add(peer, &offer->word, roff, 8, value, &old, &comp))) {
        dn_progress(port);
    }
    finish(port, status);
    return old;
}

/** Wait until the target says that it has come so far: it looks at the other word before more is added. */
static void meet(dn_port_t *port, dn_peer_t *peer, const offer_t *offer, uint64_t phase)
{
    while (phase != add_once(port, peer, offer, 8, 0)) {
    }
}

/** @return nanoseconds that one addition took. */
static double add(dn_port_t *port, dn_peer_t *peer, const offer_t *offer, uint64_t before)
{
    const uint64_t start = dn_clock_ns();

    for (uint64_t i = 0; i < ADDS; i++) {
        const uint64_t old = add_once(port, peer, offer, 0, 1);
        need(before + i == old, "an addition finds what the one before has left");
    }
    return (double) (dn_clock_ns() - start) / ADDS;
}

static void store(dn_port_t *port, dn_peer_t *peer, uint64_t off, uint64_t value)
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_aotf(peer, off, value, 8))) {
        dn_progress(port);
    }
    need(DN_OK == status, "a store is taken");
    while (DN_INPROGRESS == (status = dn_flush(peer))) {
    }
    /* At the last one the target closes. */
    need(DN_OK == status || DN_ERR_UNREACH == status, "a store is done");
}

static void transfer(dn_port_t *port, dn_peer_t *peer, const dn_xfer_t *xfer,
                     dn_status_t (*way)(dn_peer_t *, const dn_xfer_t *))
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = way(peer, xfer))) {
        dn_progress(port);
    }
    finish(port, status);
}

static void move(dn_port_t *port, dn_peer_t *peer, const offer_t *offer)
{
    static uint8_t data[BYTES];
    const dn_xfer_t xfer = {.local = data, .key = &offer->memory, .len = sizeof(data), .comp = &comp};

    dn_test_fill(data, sizeof(data), 7);
    transfer(port, peer, &xfer, dn_push);
    memset(data, 0, sizeof(data));
    transfer(port, peer, &xfer, dn_pull);
    need(BYTES == dn_test_mismatch(data, sizeof(data), 7), "what was PUSHed is PULLed");
}

/** As move(), by programs at both sides. */
static void move_pieces(dn_port_t *port, dn_peer_t *peer, const offer_t *offer)
{
    static uint8_t data[PIECES];
    dn_prog_t *prog[LAYOUTS];

    dn_test_fill(data, sizeof(data), KEY);
    for (size_t k = 0; k < LAYOUTS; k++) {
        prog[k] = make(&layouts[k]);
    }
    for (size_t turn = 0; turn < 2 * LAYOUTS; turn++) {
        const size_t k = turn % LAYOUTS;
        const dn_prog_use_t use = {prog[k], 1, 0};
        const dn_sg_t sg = {.use = &use};
        const dn_xfer_t xfer = {.local = data + layouts[k].roff,
                                .local_sg = &sg,
                                .key = &offer->pieces,
                                .roff = layouts[k].roff,
                                .remote_sg = &sg,
                                .len = layouts[k].len * layouts[k].count,
                                .comp = &comp};
        if (LAYOUTS == turn) {
            memset(data, BLANK, sizeof(data));
        }
        transfer(port, peer, &xfer, LAYOUTS > turn ? dn_push : dn_pull);
    }
    need(is_pieced(data), "what was PUSHed by programs is PULLed");
    for (size_t k = 0; k < LAYOUTS; k++) {
        dn_prog_free(prog[k]);
    }
}

static void ask(const char *folder, const char *device)
{
    offer_t offer;
    dn_peer_t *peer = NULL;

    read_offer(folder, &offer);
    dn_port_t *port = open_port(device, 1);
    need(DN_OK == dn_connect(port, offer.address, offer.address_len, &peer), "the target is reached");
    ended = DN_INPROGRESS;
    const double computing = add(port, peer, &offer, 0);
    move(port, peer, &offer);
    move_pieces(port, peer, &offer);
    store(port, peer, offer.off, ENDS);
    meet(port, peer, &offer, 1);
    const double polling = add(port, peer, &offer, ADDS);
    store(port, peer, offer.off + 8, ENDS);
    meet(port, peer, &offer, 2);
    (void) add(port, peer, &offer, 2 * ADDS);
    store(port, peer, offer.off + 16, ENDS);
    printf("a fetch-and-add takes %.1f us while the target computes, %.1f us while it polls: %.2f\n",
           computing / 1000, polling / 1000, computing / polling);
    dn_close(port);
}

/** Both here, over one device. */
static int run_both(const char *device)
{
    char folder[] = "/tmp/memory_between.XXXXXX", path[512];
    int status[2] = {1, 1};
    pid_t pid[2];

    need(NULL != mkdtemp(folder), "there is a folder");
    for (int i = 0; i < 2; i++) {
        pid[i] = fork();
        if (0 == pid[i]) {
            alarm(SECONDS);
            (0 == i ? serve : ask)(folder, device);
            exit(0);
        }
        need(0 < pid[i], "a process is made");
    }
    for (int i = 0; i < 2; i++) {
        int other = 0;
        const pid_t which = wait(&other);
        status[which == pid[1]] = WIFEXITED(other) ? WEXITSTATUS(other) : 1;
        if (0 != other) {
            /* The other one waits in vain. */
            kill(pid[which == pid[0]], SIGKILL);
        }
    }
    snprintf(path, sizeof(path), "%s/offer", folder);
    unlink(path);
    rmdir(folder);
    return DN_TEST_SKIP == status[0] ? DN_TEST_SKIP : 0 != status[0] || 0 != status[1];
}

/** Both here, over each device. */
static int run_here(void)
{
    static const char *const device[] = {
#ifdef HAVE_IPNUMA
        "ipnuma:lo",
#endif
#ifdef HAVE_OFI
        "ofi:@lo",
#endif
        NULL,
    };
    int result = DN_TEST_SKIP;

    for (size_t i = 0; NULL != device[i]; i++) {
        const int one = run_both(device[i]);
        if (0 != one && DN_TEST_SKIP != one) {
            fprintf(stderr, "memory_between: over %s it failed\n", device[i]);
            return one;
        }
        result = DN_TEST_SKIP == one ? result : 0;
    }
    return result;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (1 == argc) {
        return run_here();
    }
    if (4 != argc) {
        fprintf(stderr, "usage: memory_between [serve|ask FOLDER DEVICE]\n");
        return 99;
    }
    alarm(SECONDS);
    (0 == strcmp(argv[1], "serve") ? serve : ask)(argv[2], argv[3]);
    return 0;
}
