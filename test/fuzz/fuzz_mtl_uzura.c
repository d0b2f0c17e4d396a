/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Any messages to a process that sends and receives, of each kind, short and long, announced and not. Beside what is
 * true, the process hears of requests that it has or has not, of lengths that do not fit, in any order. No byte changes
 * beside the buffers of receives, and no request completes twice. The component is linked in; the other process is this
 * one, so that what it sends goes on as it should.
 */
#include "dn_config.h"

#include "dn_fuzz_port.h"

#include <string.h>

#include "../dn_test.h"
#include "mtl_uzura.h"

enum { REQUESTS = 12, BUFFER = 4096, GUARD = 64, BLANK = 0x5a, EAGER = 256, ANNOUNCE = 1024, TURNS = 300 };

/** What an input consists of: a byte says which, more follow. */
enum step { FORGE, RECEIVE, SEND, PROGRESS, CANCEL, STEP_KINDS };

/** A request, and who waits for it. */
typedef struct slot {
    uzura_request_t request;
    ompi_request_t mpi;
    int used;
    int done;
    int sends;
    size_t room; /**< bytes of the buffer that may change */
    uint8_t buffer[GUARD + BUFFER + GUARD];
} slot_t;

static dn_port_t *port;
static dn_peer_t *self;
static slot_t slot[REQUESTS];

/* MPI keeps some memory to the end, and knows nothing of sanitizers. */
DN_API const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static void open_port(void)
{
    const dn_job_t job = {.nlocal = 1};
    dn_config_t config;

    dn_fuzz_config(&config);
    config.ring_lines = 128;
    /* What a forged key names is looked for among segments, and not by its address in this process. */
    config.cma = 0;
    DN_FUZZ_CHECK(DN_OK == dn_open("shm", &job, &config, &port));
    self = dn_fuzz_connect_self(port);
    dn_log_set(dn_fuzz_say_nothing, NULL);
}

static void open_all(void)
{
    static char *arguments[] = {(char *) (uintptr_t) "fuzz", NULL};
    char **argv = arguments;
    int argc = 1;

    setenv("OMPI_MCA_memory", "^patcher", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    DN_FUZZ_CHECK(MPI_SUCCESS == MPI_Init(&argc, &argv));
    open_port();
    DN_FUZZ_CHECK(OPAL_SUCCESS == mca_mtl_uzura_component.mtl_version.mca_open_component());
    for (int i = 0; i < MTL_UZURA_NUMBERS; i++) {
        mtl_uzura_number[i].value = mtl_uzura_number[i].standard;
    }
    mtl_uzura_number[MTL_UZURA_EAGER_LIMIT].value = EAGER;
    mtl_uzura_number[MTL_UZURA_ANNOUNCE_MIN].value = ANNOUNCE;
    mtl_uzura_number[MTL_UZURA_KEPT_LIMIT].value = 16 << 10;
    mtl_uzura.port = port;
    DN_FUZZ_CHECK(DN_OK == dn_handler_set(port, DN_CHAN_MTL, mtl_uzura_receive, NULL));
}

/** As after MPI_Init: nothing has been sent, posted or kept. */
static void begin_anew(void)
{
    DN_FUZZ_CHECK(0 == dn_match_init(&mtl_uzura.match));
    uzura_endpoint_t *endpoint = mtl_uzura_endpoint_of(self);
    DN_FUZZ_CHECK(NULL != endpoint);
    ompi_comm_peer_lookup(MPI_COMM_SELF, 0)->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = endpoint;
    memset(slot, 0, sizeof(slot));
}

static void progress(unsigned turns)
{
    for (unsigned turn = 0; turn < turns && 0 != mtl_uzura_progress(); turn++) {
    }
}

/** Is memory of a request still registered? Of a receive it is until its message has come, if it was announced. */
static int has_segment(const slot_t *at)
{
    const uzura_request_t *request = &at->request;
    const int announced =
        0 != request->handle && (UZURA_POSTED == request->state || UZURA_IS_PUSHED == request->state);

    return at->used && !at->done && NULL != request->segment && (at->sends || announced);
}

/** Forget all that is under way. */
static void settle(void)
{
    uzura_endpoint_t *endpoint = mtl_uzura_endpoint_of(self);

    progress(TURNS);
    mtl_uzura_forget_sender(endpoint);
    dn_match_fini(&mtl_uzura.match);
    mtl_uzura_claims_close();
    mtl_uzura.claims = (uzura_claims_t){0};
    free(mtl_uzura.handles.slot);
    mtl_uzura.handles = (uzura_handles_t){0};
    mtl_uzura.busy = NULL;
    mtl_uzura.queued = false;
    mtl_uzura.endpoints = NULL;
    dn_peer_set_user(self, DN_CHAN_MTL, NULL);
    free(endpoint);
    for (int i = 0; i < REQUESTS; i++) {
        if (has_segment(&slot[i])) {
            dn_segment_free(slot[i].request.segment);
        }
    }
    while (0 != dn_progress(port)) {
    }
}

/** Has a byte changed that no message may change? */
static void look(const slot_t *at)
{
    for (size_t i = 0; i < GUARD; i++) {
        DN_FUZZ_CHECK(BLANK == at->buffer[i]);
    }
    for (size_t i = GUARD + at->room; i < sizeof(at->buffer); i++) {
        DN_FUZZ_CHECK(BLANK == at->buffer[i]);
    }
}

static void complete(struct mca_mtl_request_t *request)
{
    slot_t *at = (slot_t *) request;

    DN_FUZZ_CHECK(at->used && !at->done);
    at->done = 1;
    look(at);
}

static slot_t *free_slot(void)
{
    for (int i = 0; i < REQUESTS; i++) {
        if (!slot[i].used || slot[i].done) {
            memset(&slot[i], 0, sizeof(slot[i]));
            memset(slot[i].buffer, BLANK, sizeof(slot[i].buffer));
            slot[i].used = 1;
            slot[i].request.super.ompi_req = &slot[i].mpi;
            slot[i].request.super.completion_callback = complete;
            return &slot[i];
        }
    }
    return NULL;
}

/** Lengths on either side of each limit. */
static size_t take_length(dn_fuzz_input_t *input)
{
    static const size_t length[] = {0, 8, 40, EAGER, EAGER + 1, ANNOUNCE, ANNOUNCE + 1, BUFFER};

    return length[dn_fuzz_take(input, 1) % (sizeof(length) / sizeof(length[0]))];
}

static void receive_one(dn_fuzz_input_t *input)
{
    slot_t *at = free_slot();
    const unsigned how = (unsigned) dn_fuzz_take(input, 1);
    const int tag = 0 == how % 4 ? MPI_ANY_TAG : (int) (how % 4);

    if (NULL != at) {
        at->room = take_length(input);
        (void) mtl_uzura_start_receive(&at->request, MPI_COMM_SELF, 0 == how / 4 % 2 ? MPI_ANY_SOURCE : 0,
                                       tag, at->buffer + GUARD, at->room, false);
    }
}

static void send_one(dn_fuzz_input_t *input)
{
    slot_t *at = free_slot();
    const unsigned how = (unsigned) dn_fuzz_take(input, 1);

    if (NULL != at) {
        at->sends = 1;
        (void) mtl_uzura_start_send(&at->request, MPI_COMM_SELF, 0, (int) (1 + how % 3), at->buffer + GUARD,
                                    take_length(input), 0 != how / 4 % 2);
    }
}

static void cancel(dn_fuzz_input_t *input)
{
    slot_t *at = &slot[dn_fuzz_take(input, 1) % REQUESTS];

    if (at->used && !at->done && UZURA_POSTED == at->request.state) {
        (void) mtl_uzura_cancel(&mtl_uzura.super, &at->request.super, 0);
    }
}

static void forge(dn_fuzz_input_t *input)
{
    const unsigned tag = (unsigned) dn_fuzz_take(input, 1);
    const size_t wanted = dn_fuzz_take(input, 2);
    const size_t n = wanted < input->len ? wanted : input->len;
    uint8_t *exact = malloc(n + (0 == n));

    DN_FUZZ_CHECK(NULL != exact);
    memcpy(exact, input->data, n);
    input->data += n;
    input->len -= n;
    mtl_uzura_receive(self, tag, exact, n, NULL);
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    dn_fuzz_input_t input = {data, len};

    if (NULL == port) {
        open_all();
    }
    begin_anew();
    while (0 != input.len) {
        switch ((enum step)(dn_fuzz_take(&input, 1) % STEP_KINDS)) {
        case FORGE:
            forge(&input);
            break;
        case RECEIVE:
            receive_one(&input);
            break;
        case SEND:
            send_one(&input);
            break;
        case CANCEL:
            cancel(&input);
            break;
        default:
            progress(1 + (unsigned) dn_fuzz_take(&input, 1) % 8);
            break;
        }
    }
    settle();
    for (int i = 0; i < REQUESTS; i++) {
        if (slot[i].used) {
            look(&slot[i]);
        }
    }
    return 0;
}

/* ---- seeds ---- */

static size_t write_forged(uint64_t *random, uint8_t *to)
{
    /* A handle is a generation, which begins at 1, above an index. */
    const uint64_t handle = (uint64_t) (1 + dn_test_below(random, 2)) << 32 | dn_test_below(random, 4);
    const uint64_t other = (uint64_t) 1 << 32 | dn_test_below(random, 4);
    const uint64_t length[] = {0, 8, EAGER, EAGER + 1, BUFFER, UINT64_MAX};
    const uint64_t len = length[dn_test_below(random, 6)];
    const uzura_head_t head = {.context = (uint32_t) MPI_COMM_SELF->c_contextid,
                               .tag = dn_test_below(random, 4)};
    union {
        uint8_t bytes[512];
        uzura_head_t head;
        uzura_rts_t rts;
        uzura_cts_t cts;
        uzura_frag_t frag;
        uzura_announce_t announce;
        uzura_takes_t takes;
        uzura_pushed_t pushed;
        uint64_t handle;
    } m = {.bytes = {0}};
    const unsigned kind = 1 + (unsigned) dn_test_below(random, UZURA_RELEASE);
    size_t n = sizeof(m.head) + dn_test_below(random, 300);

    m.head = head;
    if (UZURA_RTS == kind || UZURA_RTS_PACKED == kind) {
        m.rts = (uzura_rts_t){
            head, other, len, {.sid = (uint32_t) dn_test_below(random, 3), .generation = 1, .len = len}};
        n = sizeof(m.rts);
    } else if (UZURA_CTS == kind) {
        m.cts = (uzura_cts_t){handle, other, len};
        n = sizeof(m.cts);
    } else if (UZURA_FRAG == kind) {
        m.frag.receiver = handle;
        n = sizeof(m.frag) + dn_test_below(random, 400);
    } else if (UZURA_ANNOUNCE == kind) {
        m.announce = (uzura_announce_t){
            .context = head.context, .tag = (int32_t) head.tag, .number = 1, .request = other, .len = BUFFER};
        m.announce.claims.len = 8 * dn_test_below(random, 4);
        n = sizeof(m.announce);
    } else if (UZURA_TAKES == kind) {
        m.takes = (uzura_takes_t){handle, other, len};
        n = sizeof(m.takes);
    } else if (UZURA_PUSHED == kind) {
        m.pushed = (uzura_pushed_t){handle, dn_test_below(random, 2)};
        n = sizeof(m.pushed);
    } else if (UZURA_DONE == kind) {
        m.handle = handle;
        n = sizeof(m.handle);
    }
    to[0] = FORGE;
    to[1] = (uint8_t) kind;
    to[2] = (uint8_t) n;
    to[3] = (uint8_t) (n >> 8);
    memcpy(to + 4, m.bytes, n);
    return 4 + n;
}

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    size_t used = 0;

    if (NULL == port) {
        open_all();
    }
    for (uint64_t steps = 1 + dn_test_below(random, 20); 0 != steps && used < DN_FUZZ_MAX - 600; steps--) {
        const uint64_t kind = dn_test_below(random, 10);
        if (4 > kind) {
            used += write_forged(random, data + used);
            continue;
        }
        data[used++] = (uint8_t) (6 > kind ? RECEIVE : 8 > kind ? SEND : 8 == kind ? PROGRESS : CANCEL);
        data[used++] = (uint8_t) dn_test_below(random, 16);
        if (8 > kind) {
            data[used++] = (uint8_t) dn_test_below(random, 8);
        }
    }
    return used;
}
