/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The emulation beside the model: the same code runs as two nodes of the model and as two processes over
 * emulate:PROFILE. For each pattern a line says what the profile gives, what this machine kept of it, and the deviation.
 *
 * usage: dn_emulated [-s SECONDS] [PROFILE...]
 *
 * Here a figure is the median over batches, so that what else the machine does counts little; two cores have to be free.
 * Exit status: 77 where there is no emulation.
 */
#include "dn_config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dn_atomic.h"
#include "dn_paper_world.h"
#include "dn_tree.h"

enum { BATCH = 64, BATCHES_MAX = 4096, MODEL_ROUNDS = 512, AREA = 4096, MEMORY = 65536, SKIP = 77 };

typedef enum what { STORE, MESSAGE, BARRIER, PUSH, PULL } what_t;

static const struct {
    const char *name;
    what_t what;
    size_t len;
} patterns[] = {
    {"store of 8 B, round trip", STORE, 8},
    {"message of 8 B, round trip", MESSAGE, 8},
    {"message of 464 B, round trip", MESSAGE, 464},
    {"message of 4096 B, round trip", MESSAGE, 4096},
    {"barrier of two", BARRIER, 0},
    {"PUSH of 4 KiB", PUSH, 4096},
    {"PUSH of 64 KiB", PUSH, MEMORY},
    {"PULL of 4 KiB", PULL, 4096},
    {"PULL of 64 KiB", PULL, MEMORY},
};

enum { PATTERNS = sizeof(patterns) / sizeof(patterns[0]) };

/** One of two. */
typedef struct half {
    uint32_t rank;
    dn_port_t *port;
    dn_peer_t *peer;
    uint8_t *area;
    uint64_t far; /**< offset of the other's area */
    dn_tree_t *tree;
    dn_segment_t *segment;
    dn_comp_t comp;
    uint64_t heard; /**< messages, or ends of transfers */
} half_t;

/** What both see: of two processes, or of two nodes. */
typedef struct board {
    uint8_t address[2][DN_ADDRESS_MAX];
    size_t address_len[2];
    uint64_t off[2];
    dn_tree_card_t card[2];
    dn_key_t key[2];
    uint32_t arrived;
    double ns[PATTERNS];
} board_t;

static board_t *board;
static double seconds = 0.3;

static uint64_t now_ps(void)
{
    struct timespec now;

    if (UINT32_MAX != dn_model_node()) {
        return dn_model_now();
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec) * 1000;
}

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) tag;
    (void) data;
    (void) len;
    ((half_t *) arg)->heard++;
}

static void send_one(half_t *self, what_t what, size_t len, uint64_t number)
{
    static uint8_t data[4096];
    dn_status_t status = DN_ERR_AGAIN;

    while (DN_ERR_AGAIN == status) {
        status = STORE == what ? dn_aotf(self->peer, self->far, number, len)
                               : dn_botf(self->peer, DN_CHAN_USER, 0, data, len, NULL, 0);
        if (DN_ERR_AGAIN == status) {
            dn_progress(self->port);
        }
    }
    dn_paper_need(status, "sending");
}

/** Progress; and where both processes run on one core, the other one's turn. */
static void turn(half_t *self)
{
    if (0 == dn_progress(self->port) && dn_oversubscribed(self->port)) {
        sched_yield();
    }
}

static void await_one(half_t *self, what_t what, uint64_t number)
{
    const volatile uint64_t *word = (const volatile uint64_t *) self->area;

    while (number != (STORE == what ? *word : self->heard)) {
        turn(self);
    }
}

static void barrier(half_t *self)
{
    dn_status_t status = dn_tree_barrier(self->tree);

    while (DN_INPROGRESS == status) {
        turn(self);
        status = dn_tree_test(self->tree);
    }
    dn_paper_need(status, "dn_tree_barrier");
}

static void ended(dn_comp_t *comp, dn_status_t status)
{
    half_t *self = (half_t *) ((char *) comp - offsetof(half_t, comp));

    dn_paper_need(status, "a transfer");
    self->heard++;
}

/** The other half makes progress meanwhile, until the last one is told by a store. */
static void transfer(half_t *self, what_t what, size_t len, uint64_t number)
{
    const dn_xfer_t xfer = {
        .local = dn_segment_base(self->segment), .key = &board->key[1], .len = len, .comp = &self->comp};
    const dn_status_t status = PUSH == what ? dn_push(self->peer, &xfer) : dn_pull(self->peer, &xfer);

    if (DN_INPROGRESS != status) {
        dn_paper_need(status, "dn_push or dn_pull");
        self->heard++;
    }
    await_one(self, what, number);
}

/** One round; both count the same numbers. */
static void round_of(half_t *self, what_t what, size_t len, uint64_t number)
{
    if (BARRIER == what) {
        barrier(self);
    } else if (PUSH == what || PULL == what) {
        transfer(self, what, len, number);
    } else if (0 == self->rank) {
        send_one(self, what, len, number);
        await_one(self, what, number);
    } else {
        await_one(self, what, number);
        send_one(self, what, len, number);
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

/** So many batches of one pattern, after one that does not count. @return the median time of a round in ns. */
static double measure(half_t *self, size_t pattern, unsigned batches, unsigned rounds)
{
    static double ns[BATCHES_MAX];
    const what_t what = patterns[pattern].what;
    const int alone = PUSH == what || PULL == what;
    uint64_t number = 0;

    self->heard = 0;
    if (alone && 0 != self->rank) {
        await_one(self, STORE, 1);
        return 0;
    }
    for (unsigned b = 0; b <= batches; b++) {
        const uint64_t from = now_ps();
        for (unsigned i = 0; i < rounds; i++) {
            round_of(self, what, patterns[pattern].len, ++number);
        }
        if (0 != b) {
            ns[b - 1] = (double) (now_ps() - from) / (1e3 * rounds);
        }
    }
    if (alone) {
        send_one(self, STORE, sizeof(number), 1);
    }
    qsort(ns, batches, sizeof(ns[0]), by_value);
    return ns[batches / 2];
}

/** All that is told apart before it is put on the board: which of the nodes or processes waits, and how. */
static void meet(half_t *self)
{
    const uint32_t wanted = (dn_fetch_add_acq_rel(&board->arrived, 1) / 2 + 1) * 2;

    while (dn_load_acquire(&board->arrived) < wanted) {
        dn_progress(self->port);
        dn_model_yield();
    }
}

static void open_half(half_t *self, const char *spec)
{
    const dn_job_t job = {.pid = self->rank, .nlocal = 2};
    const dn_tree_config_t tree = {.ranks = 2, .rank = self->rank, .radix = 8, .depth = 4};
    dn_peer_t *peers[2];
    dn_config_t config;
    void *area;

    dn_config_init(&config);
    config.llcm_bytes = DN_MODEL_LLCM_BYTES;
    config.ring_lines = 256;
    config.llcm_bytes = 2 * AREA;
    const dn_status_t status = dn_open(spec, &job, &config, &self->port);
    if (DN_ERR_UNSUPPORTED == status) {
        exit(SKIP);
    }
    dn_paper_need(status, spec);
    dn_paper_need(dn_llcm_alloc(self->port, AREA, &board->off[self->rank], &area), "dn_llcm_alloc");
    self->area = area;
    self->comp.fn = ended;
    dn_paper_need(dn_segment_alloc(self->port, MEMORY, &self->segment), "dn_segment_alloc");
    dn_segment_key(self->segment, &board->key[self->rank]);
    dn_paper_need(dn_tree_create(self->port, &tree, &board->card[self->rank], &self->tree), "dn_tree_create");
    dn_paper_need(dn_handler_set(self->port, DN_CHAN_USER, hear, self), "dn_handler_set");
    board->address_len[self->rank] = DN_ADDRESS_MAX;
    dn_paper_need(dn_address(self->port, board->address[self->rank], &board->address_len[self->rank]),
                  "dn_address");
    meet(self);
    const uint32_t other = 1 - self->rank;
    dn_paper_need(dn_connect(self->port, board->address[other], board->address_len[other], &self->peer),
                  "dn_connect");
    self->far = board->off[other];
    peers[0] = peers[1] = self->peer;
    dn_tree_connect(self->tree, board->card, peers);
    meet(self);
}

/** By the model, without @p batches, or as many of each pattern here. */
static void run_half(uint32_t rank, const char *spec, const unsigned *batches)
{
    half_t self = {.rank = rank};

    open_half(&self, spec);
    for (size_t p = 0; p < PATTERNS; p++) {
        memset(self.area, 0, AREA);
        meet(&self);
        const double ns =
            NULL == batches ? measure(&self, p, 1, MODEL_ROUNDS) : measure(&self, p, batches[p], BATCH);
        if (0 == rank) {
            board->ns[p] = ns;
        }
        meet(&self);
    }
    while (DN_INPROGRESS == dn_tree_free(self.tree)) {
        dn_progress(self.port);
    }
    meet(&self);
    dn_close(self.port);
}

static void node(uint32_t rank, void *arg)
{
    (void) arg;
    run_half(rank, "model", NULL);
}

/** What the profile gives. */
static void run_model(const char *profile, double *ns)
{
    dn_model_config_t config;

    dn_model_config_init(&config);
    config.profile = profile;
    config.seed = 1;
    memset(board, 0, sizeof(*board));
    dn_paper_need(dn_model_run(&config, node, NULL, NULL), profile);
    memcpy(ns, board->ns, sizeof(board->ns));
}

static void say(const char *sentence, void *arg)
{
    (void) arg;
    printf("  %s\n", sentence);
}

/** What this machine keeps of it. @return the status of the processes. */
static int run_here(const char *profile, const double *model_ns)
{
    char spec[256];
    unsigned batches[PATTERNS];
    int status = 0, worst = 0;

    for (size_t p = 0; p < PATTERNS; p++) {
        const double most = seconds * 1e9 / (model_ns[p] * BATCH * PATTERNS);
        batches[p] = most < 8 ? 8 : most > BATCHES_MAX ? BATCHES_MAX : (unsigned) most;
    }

    snprintf(spec, sizeof(spec), "emulate:%s", profile);
    memset(board, 0, sizeof(*board));
    fflush(stdout);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const pid_t pid = fork();
        if (0 == pid) {
            dn_log_answers_set(0 == rank ? say : NULL, NULL);
            run_half(rank, spec, batches);
            exit(0);
        }
        worst = 0 > pid ? 1 : worst;
    }
    while (0 < wait(&status)) {
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        worst = code > worst ? code : worst;
    }
    return worst;
}

static int compare(const char *profile)
{
    double ns[PATTERNS];

    run_model(profile, ns);
    printf("%s\n", profile);
    const int status = run_here(profile, ns);
    for (size_t p = 0; 0 == status && p < PATTERNS; p++) {
        printf("  %-30s profile %10.1f ns  here %10.1f ns  %+6.1f %%\n", patterns[p].name, ns[p],
               board->ns[p], 100 * (board->ns[p] / ns[p] - 1));
    }
    return status;
}

int main(int argc, char **argv)
{
    static char *every[] = {"dimmnet1-d", "rhinet2-pci", "ipnuma-10g", "uzura"};
    int option, status = 0;

    while (-1 != (option = getopt(argc, argv, "s:"))) {
        seconds = 's' == option ? atof(optarg) : 0;
        if (!(0 < seconds && 100 >= seconds)) {
            fprintf(stderr, "usage: dn_emulated [-s SECONDS] [PROFILE...], SECONDS from 0.01 to 100\n");
            return 2;
        }
    }
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == board) {
        fprintf(stderr, "dn_emulated: no memory\n");
        return 1;
    }
    char **profile = optind < argc ? argv + optind : every;
    const size_t count = optind < argc ? (size_t) (argc - optind) : sizeof(every) / sizeof(every[0]);
    for (size_t i = 0; i < count && 0 == status; i++) {
        status = compare(profile[i]);
    }
    return status;
}
