/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Any messages to an engine that sends and receives, of each kind, short and long, announced and not, of memory that lies
 * together or does not. Beside what is true, the engine hears of requests that it has or has not, of lengths that do not fit, in
 * any order. No byte changes beside the memory of receives, no request completes twice, and what is kept is counted. The other
 * process is this one, so that what it sends goes on as it should.
 */
#include "dn_config.h"

#include "dn_fuzz_port.h"

#include <string.h>

#include "../dn_test.h"
#include "dn_tag_int.h"

enum {
    REQUESTS = 12,
    MOST = 4096, /**< bytes of a message of ours */
    STEP = 2,    /**< bytes of memory for each byte of a message that walks */
    GUARD = 64,
    BLANK = 0x5a,
    ANY = 0xa5, /**< what a request holds before it is started */
    EAGER = 256,
    ANNOUNCE = 1024,
    KEPT = 16 << 10,
    CONTEXTS = 3, /**< the last one has a name */
    TURNS = 300
};

/** What an input consists of: a byte says which, more follow. */
enum step { FORGE, RECEIVE, SEND, PROGRESS, CANCEL, PROBE, MATCHED_RECEIVE, FORGET, STEP_KINDS };

/** How the memory of a request lies. */
enum shape { TOGETHER, WALKS, CALLBACKS, SHAPES };

/** A request, and who waits for it. */
typedef struct slot {
    dn_tag_req_t req;
    int used;
    int done;
    int sends;
    enum shape shape;
    size_t len;    /**< bytes that may be sent, or may change */
    size_t passed; /**< of these, by callbacks */
    uint8_t memory[GUARD + STEP * MOST + GUARD];
} slot_t;

static dn_port_t *port;
static dn_peer_t *self;
static dn_prog_t *byte;
static dn_tag_t *tag;
static dn_tag_peer_t *peer;
static uint32_t with_name;
static slot_t slot[REQUESTS];

/** @name What the engine asks of its owner */
/** @{ */
static size_t pack(void *layout, void *to, size_t len)
{
    slot_t *at = layout;

    DN_FUZZ_CHECK(at->used && !at->done && at->sends && len <= at->len - at->passed);
    memcpy(to, at->memory + GUARD + at->passed, len);
    at->passed += len;
    return len;
}

static void unpack(void *layout, const void *from, size_t len)
{
    slot_t *at = layout;

    DN_FUZZ_CHECK(at->used && !at->done && !at->sends && len <= at->len - at->passed);
    memcpy(at->memory + GUARD + at->passed, from, len);
    at->passed += len;
}

static void drive(void *arg)
{
    (void) arg;
    (void) dn_progress(port);
}

static void lose(dn_tag_peer_t *lost, int matters, void *arg)
{
    (void) arg;
    DN_FUZZ_CHECK(lost == peer && matters);
}

static void have_no_memory(void *arg)
{
    (void) arg;
    DN_FUZZ_CHECK(!"memory ran out");
}
/** @} */

static void open_port(void)
{
    const dn_prog_op_t op = {.kind = DN_PROG_RUN, .len = 1, .count = 1};
    const dn_job_t job = {.nlocal = 1};
    dn_config_t config;

    dn_fuzz_config(&config);
    config.ring_lines = 128;
    /* What a forged key names is looked for among segments, and not by its address in this process. */
    config.cma = 0;
    DN_FUZZ_CHECK(DN_OK == dn_open(dn_device_name(0), &job, &config, &port));
    self = dn_fuzz_connect_self(port);
    DN_FUZZ_CHECK(DN_OK == dn_prog_create(&op, 1, &byte));
    dn_log_set(dn_fuzz_say_nothing, NULL);
}

/** Nothing has been sent, posted or kept, but for the name of a context. */
static void begin_anew(void)
{
    static const uint64_t name[2] = {1};
    static const dn_tag_config_t config = {.limit = {.eager_limit = EAGER,
                                                     .unexpected_limit = KEPT,
                                                     .announce = DN_TAG_ANNOUNCES_ALL,
                                                     .announce_min = ANNOUNCE,
                                                     .stream = DN_PACE_STREAM_AUTO,
                                                     .spin_polls = 1},
                                           .pack = pack,
                                           .unpack = unpack,
                                           .progress = drive,
                                           .lost = lose,
                                           .no_memory = have_no_memory};

    DN_FUZZ_CHECK(DN_OK == dn_tag_open(port, DN_CHAN_USER, &config, &tag));
    peer = dn_tag_join(tag, dn_fuzz_connect_self(port), slot);
    DN_FUZZ_CHECK(NULL != peer && peer->peer == self);
    DN_FUZZ_CHECK(DN_OK == dn_tag_name(tag, name, &with_name));
    DN_FUZZ_CHECK(DN_OK == dn_tag_introduce(peer, name, with_name));
    memset(slot, 0, sizeof(slot));
}

/** What a peer has sent and nobody has received is bounded: it is told so. */
static void look_at_kept(void)
{
    DN_FUZZ_CHECK(KEPT >= peer->kept_bytes || peer->our_wish.hold);
    DN_FUZZ_CHECK((0 == peer->kept_bytes) == (0 == dn_match_kept_count(&tag->match)));
}

static void progress(unsigned turns)
{
    for (unsigned turn = 0; turn < turns && 0 != dn_progress(port) + dn_tag_progress(tag); turn++) {
        look_at_kept();
    }
}

/** Does a request wait for the end of a transfer? */
static int transfers(void)
{
    int any = 0;

    for (int i = 0; i < REQUESTS; i++) {
        any = any
              || (slot[i].used && !slot[i].done
                  && (DN_TAG_PULLS == slot[i].req.state || DN_TAG_PUSHES == slot[i].req.state));
    }
    return any;
}

/** Is memory of a request still registered? Of a receive it is until its message has come, if it was announced. */
static int has_segment(const slot_t *at)
{
    const dn_tag_req_t *req = &at->req;
    const int announced =
        DN_HANDLE_NONE != req->handle && (DN_TAG_POSTED == req->state || DN_TAG_IS_PUSHED == req->state);

    return at->used && !at->done && (at->sends ? NULL != req->segment : announced);
}

/** Forget all that is under way. */
static void settle(void)
{
    progress(TURNS);
    /* What waits for room is not to leave any more, nor what answers would send. */
    peer->waits.first = NULL;
    tag->busy.first = NULL;
    while (transfers() || 0 != dn_progress(port)) {
        (void) dn_progress(port);
    }
    tag->busy.first = NULL;
    dn_tag_forget_kept(tag, NULL, NULL, false);
    look_at_kept();
    dn_tag_close(tag);
    for (int i = 0; i < REQUESTS; i++) {
        if (has_segment(&slot[i])) {
            dn_segment_free(slot[i].req.segment);
        }
    }
}

/** May the byte change at this place? */
static int may_change(const slot_t *at, size_t place)
{
    const size_t step = WALKS == at->shape ? STEP : 1;

    return !at->sends && GUARD <= place && 0 == (place - GUARD) % step && (place - GUARD) / step < at->len;
}

/** Has a byte changed that no message may change? */
static void look(const slot_t *at)
{
    for (size_t i = 0; i < sizeof(at->memory); i++) {
        DN_FUZZ_CHECK(BLANK == at->memory[i] || may_change(at, i));
    }
}

static void complete(dn_tag_req_t *req)
{
    slot_t *at = (slot_t *) req;

    DN_FUZZ_CHECK(at->used && !at->done && DN_TAG_COMPLETE == req->state);
    at->done = 1;
    look(at);
}

/** Lengths on either side of each limit. */
static size_t draw_length(dn_fuzz_input_t *input)
{
    static const size_t length[] = {0, 8, 40, EAGER, EAGER + 1, ANNOUNCE, ANNOUNCE + 1, MOST};

    return length[dn_fuzz_draw(input, 1) % (sizeof(length) / sizeof(length[0]))];
}

/** A request with memory; NULL: there are too many. */
static slot_t *new_request(dn_fuzz_input_t *input, unsigned how, int sends)
{
    slot_t *at = slot;

    while (at < slot + REQUESTS && at->used && !at->done) {
        at++;
    }
    if (slot + REQUESTS == at) {
        return NULL;
    }
    memset(&at->req, ANY, sizeof(at->req));
    memset(at->memory, BLANK, sizeof(at->memory));
    at->used = 1;
    at->done = 0;
    at->passed = 0;
    at->sends = sends;
    at->shape = how % SHAPES;
    at->len = draw_length(input);
    at->req.complete = complete;
    if (TOGETHER == at->shape) {
        dn_tag_memory(&at->req, at->memory + GUARD, at->len);
        return at;
    }
    dn_tag_layout(&at->req, at, at->len);
    if (WALKS == at->shape) {
        const dn_prog_use_t use = {byte, at->len, STEP};

        dn_prog_start(&at->req.cursor, &use, (uint64_t) (uintptr_t) (at->memory + GUARD));
        at->req.walks = true;
    }
    return at;
}

static uint32_t context_of(unsigned number)
{
    return CONTEXTS - 1 == number % CONTEXTS ? with_name : number % CONTEXTS;
}

/** What a receive or a probe takes, as a number says. */
static dn_tag_want_t want_of(unsigned how)
{
    return (dn_tag_want_t){.context = context_of(how / 8),
                           .source = 0 == how / 4 % 2 ? DN_MATCH_ANY_SOURCE : 0,
                           .tag = how % 4,
                           .ignore = 0 == how % 4 ? DN_MATCH_ANY_TAG_IGNORE : 0};
}

static void receive_one(dn_fuzz_input_t *input)
{
    const unsigned how = (unsigned) dn_fuzz_draw(input, 1);
    const dn_tag_want_t want = want_of(how);
    slot_t *at = new_request(input, how / 16, 0);

    if (NULL != at) {
        dn_tag_wants(&at->req, want);
        dn_tag_recv(tag, &at->req, DN_MATCH_ANY_SOURCE == want.source ? NULL : peer, 0);
    }
}

static void send_one(dn_fuzz_input_t *input)
{
    const unsigned how = (unsigned) dn_fuzz_draw(input, 1);
    const uint32_t context = context_of(how / 8);
    const dn_tag_head_t head = {.context = with_name == context ? dn_tag_abroad(context) : context,
                                .tag = 1 + how % 3};
    slot_t *at = new_request(input, how / 16, 1);

    if (NULL != at) {
        DN_FUZZ_CHECK(DN_OK == dn_tag_send(&at->req, peer, &head, 0 != how / 4 % 2));
    }
}

static void cancel(dn_fuzz_input_t *input)
{
    slot_t *at = &slot[dn_fuzz_draw(input, 1) % REQUESTS];

    if (at->used && !at->done && !at->sends) {
        dn_tag_cancel(&at->req);
    }
}

static void probe(dn_fuzz_input_t *input)
{
    const dn_tag_want_t want = want_of((unsigned) dn_fuzz_draw(input, 1));
    dn_tag_found_t found;

    if (dn_tag_probe(tag, &want, &found)) {
        DN_FUZZ_CHECK(want.context == found.head.context);
    }
}

static void receive_matched(dn_fuzz_input_t *input)
{
    const unsigned how = (unsigned) dn_fuzz_draw(input, 1);
    const dn_tag_want_t want = want_of(how);
    slot_t *at = new_request(input, how / 16, 0);
    dn_tag_found_t found;

    if (NULL == at) {
        return;
    }
    dn_tag_msg_t *msg = dn_tag_mprobe(tag, &want, &found);
    if (NULL == msg) {
        at->used = 0;
        return;
    }
    dn_tag_mrecv(tag, &at->req, msg);
    DN_FUZZ_CHECK(!at->done || found.size == at->req.size);
}

static void forge(dn_fuzz_input_t *input)
{
    const unsigned kind = (unsigned) dn_fuzz_draw(input, 1);
    const size_t wanted = dn_fuzz_draw(input, 2);
    const size_t n = wanted < input->len ? wanted : input->len;
    uint8_t *exact = malloc(n + (0 == n));

    DN_FUZZ_CHECK(NULL != exact);
    memcpy(exact, input->data, n);
    input->data += n;
    input->len -= n;
    dn_tag_receive(self, kind, exact, n, tag);
    free(exact);
    look_at_kept();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    dn_fuzz_input_t input = {data, len};

    if (NULL == port) {
        open_port();
    }
    begin_anew();
    while (0 != input.len) {
        switch ((enum step)(dn_fuzz_draw(&input, 1) % STEP_KINDS)) {
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
        case PROBE:
            probe(&input);
            break;
        case MATCHED_RECEIVE:
            receive_matched(&input);
            break;
        case FORGET:
            dn_tag_forget(tag, context_of((unsigned) dn_fuzz_draw(&input, 1)));
            break;
        default:
            progress(1 + (unsigned) dn_fuzz_draw(&input, 1) % 8);
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
    const uint64_t length[] = {0, 8, EAGER, EAGER + 1, MOST, UINT64_MAX};
    const uint64_t len = length[dn_test_below(random, 6)];
    const uint32_t named = 0 == dn_test_below(random, 4) ? DN_TAG_NAMED | DN_TAG_ABROAD : 0;
    const dn_tag_head_t head = {.context = named | (uint32_t) dn_test_below(random, CONTEXTS),
                                .tag = dn_test_below(random, 4)};
    const dn_tag_cross_t cross = {(uint32_t) dn_test_below(random, 3), (uint32_t) dn_test_below(random, 3)};
    union {
        uint8_t bytes[512];
        dn_tag_head_t head;
        dn_tag_rts_t rts;
        dn_tag_cts_t cts;
        dn_tag_frag_t frag;
        dn_tag_flow_t flow;
        dn_tag_announce_t announce;
        dn_tag_takes_t takes;
        dn_tag_pushed_t pushed;
        dn_tag_wish_t wish;
        dn_tag_named_t named;
        uint64_t handle;
    } m = {.bytes = {0}};
    const unsigned kind = 1 + (unsigned) dn_test_below(random, DN_TAG_SO_FAR);
    size_t n = sizeof(m.head) + dn_test_below(random, 300);

    m.head = head;
    if (DN_TAG_RTS == kind || DN_TAG_RTS_PACKED == kind) {
        m.rts =
            (dn_tag_rts_t){.head = head,
                           .request = other,
                           .len = len,
                           .left = other,
                           .cross = cross,
                           .key = {.sid = (uint32_t) dn_test_below(random, 3), .generation = 1, .len = len}};
        n = sizeof(m.rts);
    } else if (DN_TAG_CTS == kind) {
        m.cts = (dn_tag_cts_t){handle, other, len};
        n = sizeof(m.cts);
    } else if (DN_TAG_FRAG == kind) {
        m.frag.receiver = 0 == dn_test_below(random, 2) ? handle : DN_HANDLE_NONE;
        n = sizeof(m.frag) + dn_test_below(random, 400);
    } else if (DN_TAG_FLOW == kind) {
        m.flow = (dn_tag_flow_t){.head = head, .len = len, .left = dn_test_below(random, 2), .cross = cross};
        n = sizeof(m.flow) + dn_test_below(random, 400);
    } else if (DN_TAG_ANNOUNCE == kind) {
        m.announce = (dn_tag_announce_t){
            .context = head.context, .tag = head.tag, .number = 1, .request = other, .len = MOST};
        m.announce.claims.len = 8 * dn_test_below(random, 4);
        n = sizeof(m.announce);
    } else if (DN_TAG_TAKES == kind) {
        m.takes = (dn_tag_takes_t){handle, other, len, other};
        n = sizeof(m.takes);
    } else if (DN_TAG_PUSHED == kind) {
        m.pushed = (dn_tag_pushed_t){handle, dn_test_below(random, 2)};
        n = sizeof(m.pushed);
    } else if (DN_TAG_WISH == kind) {
        m.wish = (dn_tag_wish_t){(uint32_t) dn_test_below(random, 4), (uint32_t) dn_test_below(random, 9)};
        n = sizeof(m.wish);
    } else if (DN_TAG_NAME == kind) {
        m.named = (dn_tag_named_t){.head = head, .word = {dn_test_below(random, 3)}};
        n = sizeof(m.named);
    } else if (DN_TAG_DONE == kind || DN_TAG_HOW_FAR <= kind) {
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

/** The steps of ours, as often as a seed has them; those with a length come first. */
static const uint8_t seed_step[] = {RECEIVE,  RECEIVE,  SEND,   SEND,  MATCHED_RECEIVE,
                                    PROGRESS, PROGRESS, CANCEL, PROBE, FORGET};
enum { SEED_STEPS = sizeof(seed_step), SEED_LENGTHS = 5 };

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    size_t used = 0;

    for (uint64_t steps = 1 + dn_test_below(random, 20); 0 != steps && used < DN_FUZZ_MAX - 600; steps--) {
        const uint64_t kind = dn_test_below(random, 7 + SEED_STEPS);
        if (SEED_STEPS <= kind) {
            used += write_forged(random, data + used);
            continue;
        }
        data[used++] = seed_step[kind];
        data[used++] = (uint8_t) dn_test_below(random, 48);
        if (SEED_LENGTHS > kind) {
            data[used++] = (uint8_t) dn_test_below(random, 8);
        }
    }
    return used;
}
