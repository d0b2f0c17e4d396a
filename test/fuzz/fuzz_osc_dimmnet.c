/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Any messages to a process of two windows, one with memory of its own, one dynamic, from another process of these. No byte
 * beside the windows changes, and nothing that is asked is left over. The component is linked in; of MPI there is what a
 * process alone has.
 */
#include "dn_config.h"

#include "dn_fuzz_port.h"

#include <string.h>

#include "../dn_test.h"
#include "osc_dimmnet_message.h"

enum { WINDOW = 1024, GUARD = 512, BLANK = 0x5a, WINDOWS = 2, HEAD = 4, TURNS = 100 };

static dn_port_t *port;
static dn_peer_t *self;
static osc_module_t module[WINDOWS];
static ompi_win_t win[WINDOWS];
static uint8_t memory[WINDOWS][GUARD + WINDOW + GUARD];

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
    DN_FUZZ_CHECK(DN_OK == dn_open("shm", &job, &config, &port));
    self = dn_fuzz_connect_self(port);
    dn_log_set(dn_fuzz_say_nothing, NULL);
    mca_osc_dimmnet_component.port = port;
    dn_pieces_open(&mca_osc_dimmnet_component.pieces, port);
}

/** A window of two processes, of which this one is the first and the sender of all messages the second. */
static void open_window(int i)
{
    osc_module_t *m = &module[i];
    const size_t bytes =
        sizeof(osc_control_t) + 2 * sizeof(osc_notes_t) + (size_t) ompi_osc_dimmnet_regions_bytes();

    m->size = 2;
    m->flavor = 0 == i ? MPI_WIN_FLAVOR_CREATE : MPI_WIN_FLAVOR_DYNAMIC;
    m->target = calloc(2, sizeof(*m->target));
    m->far = calloc(2, sizeof(*m->far));
    m->control = calloc(1, bytes);
    DN_FUZZ_CHECK(NULL != m->target && NULL != m->far && NULL != m->control);
    m->target[0] = (osc_target_t){.base = 0 == i ? memory[0] + GUARD : NULL,
                                  .size = 0 == i ? WINDOW : 0,
                                  .unit = 1,
                                  .control = m->control};
    m->far[1].peer = self;
    m->win = &win[i];
    OBJ_CONSTRUCT(&m->lock, opal_mutex_t);
    win[i].w_osc_module = &m->super;
    DN_FUZZ_CHECK(ompi_osc_dimmnet_messages_join(m));
    if (0 != i) {
        m->regions = ompi_osc_dimmnet_regions_open();
        DN_FUZZ_CHECK(NULL != m->regions);
        DN_FUZZ_CHECK(OMPI_SUCCESS == ompi_osc_dimmnet_attach(&win[i], memory[i] + GUARD, WINDOW / 2));
        DN_FUZZ_CHECK(OMPI_SUCCESS
                      == ompi_osc_dimmnet_attach(&win[i], memory[i] + GUARD + WINDOW / 2, WINDOW / 2));
    }
}

static void open_all(void)
{
    static char *arguments[] = {(char *) (uintptr_t) "fuzz", NULL};
    char **argv = arguments;
    int argc = 1;

    /* A process alone, on which no hook lies. */
    setenv("OMPI_MCA_memory", "^patcher", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_osc", "^ucx", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    DN_FUZZ_CHECK(MPI_SUCCESS == MPI_Init(&argc, &argv));
    open_port();
    OBJ_CONSTRUCT(&mca_osc_dimmnet_component.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&mca_osc_dimmnet_component.open_lock, opal_mutex_t);
    DN_FUZZ_CHECK(OMPI_SUCCESS == ompi_osc_dimmnet_messages_open());
    memset(memory, BLANK, sizeof(memory));
    open_window(0);
    open_window(1);
}

/** What one input has left behind is not there for the next. */
static void settle(void)
{
    for (unsigned turn = 0; turn < TURNS && 0 != dn_progress(port) + ompi_osc_dimmnet_grant_waiting();
         turn++) {
    }
    for (int i = 0; i < WINDOWS; i++) {
        osc_module_t *m = &module[i];
        ompi_osc_dimmnet_forget_waiting(m);
        DN_FUZZ_CHECK(0 == m->holders);
        dn_prog_free(m->far[1].its_prog);
        free(m->far[1].its_bytes);
        memset(&m->far[1], 0, sizeof(m->far[1]));
        m->far[1].peer = self;
        memset(m->control, 0, sizeof(*m->control) + 2 * sizeof(osc_notes_t));
        for (size_t k = 0; k < GUARD; k++) {
            DN_FUZZ_CHECK(BLANK == memory[i][k] && BLANK == memory[i][GUARD + WINDOW + k]);
        }
    }
}

/** Numbers that change from run to run are zeros in an input, and so are addresses in the dynamic window. */
static void make_right(uint8_t *bytes, size_t len, int i)
{
    osc_head_t head;

    if (sizeof(head) > len) {
        return;
    }
    memcpy(&head, bytes, sizeof(head));
    head.window ^= module[i].handle;
    head.rank ^= 1;
    head.at += 0 == i ? 0 : (uintptr_t) memory[i] + GUARD;
    memcpy(bytes, &head, sizeof(head));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (NULL == port) {
        open_all();
    }
    while (HEAD <= len) {
        const size_t wanted = data[2] | (size_t) data[3] << 8;
        const size_t n = wanted < len - HEAD ? wanted : len - HEAD;
        uint8_t *exact = malloc(n + (0 == n));
        DN_FUZZ_CHECK(NULL != exact);
        memcpy(exact, data + HEAD, n);
        make_right(exact, n, data[1] % WINDOWS);
        ompi_osc_dimmnet_receive(self, data[0], exact, n, NULL);
        free(exact);
        data += HEAD + n;
        len -= HEAD + n;
    }
    settle();
    return 0;
}

/* ---- seeds ---- */

/** A number that fits, or one at an edge. */
static uint64_t perhaps(uint64_t *random, uint64_t fits)
{
    static const uint64_t edge[] = {0,          1,          WINDOW - 1, WINDOW,
                                    WINDOW + 1, UINT32_MAX, UINT64_MAX, (uint64_t) 1 << 63};

    return 0 != dn_test_below(random, 12) ? fits
                                          : edge[dn_test_below(random, sizeof(edge) / sizeof(edge[0]))];
}

static size_t write_message(uint8_t *to, size_t room, unsigned tag, unsigned which, const osc_head_t *head,
                            const uint8_t *body, size_t n)
{
    if (HEAD + sizeof(*head) + n > room) {
        return 0;
    }
    to[0] = (uint8_t) tag;
    to[1] = (uint8_t) which;
    to[2] = (uint8_t) (sizeof(*head) + n);
    to[3] = (uint8_t) ((sizeof(*head) + n) >> 8);
    memcpy(to + HEAD, head, sizeof(*head));
    if (0 != n) {
        memcpy(to + HEAD + sizeof(*head), body, n);
    }
    return HEAD + sizeof(*head) + n;
}

static size_t write_accumulate(uint64_t *random, uint8_t *to, size_t room, unsigned which)
{
    static const MPI_Datatype type[] = {MPI_CHAR,       MPI_INT,   MPI_DOUBLE, MPI_LONG,
                                        MPI_DOUBLE_INT, MPI_SHORT, MPI_C_BOOL};
    static const uint8_t body[256];
    const MPI_Datatype used = type[dn_test_below(random, sizeof(type) / sizeof(type[0]))];
    const dn_element_t element = osc_element(osc_basic(used));
    const uint64_t elements = 1 + dn_test_below(random, 8);
    const unsigned compares = 0 == dn_test_below(random, 4) ? OSC_COMPARES | OSC_FETCHES : 0;
    osc_head_t head = {.at = perhaps(random, 8 * dn_test_below(random, 100)),
                       .flags = compares | (uint32_t) dn_test_below(random, 4),
                       .extent = (int64_t) perhaps(random, dn_test_below(random, 64)),
                       .type = MPI_Type_c2f(used),
                       .op = (uint32_t) dn_test_below(random, DN_ACC_OPS + 1)};

    head.len = perhaps(random, 0 != compares ? element.size : elements * element.size);
    head.count = perhaps(random, head.len);
    head.skip = perhaps(random, 0);
    const uint64_t n = 0 != compares ? 2 * (uint64_t) element.size : DN_ACC_NO_OP == head.op ? 0 : head.len;
    return write_message(to, room, OSC_ACCUMULATE, which, &head, body,
                         n < sizeof(body) ? (size_t) n : sizeof(body));
}

static size_t write_program(uint64_t *random, uint8_t *to, size_t room, unsigned which)
{
    uint8_t encoded[512];
    dn_prog_t *prog = NULL;
    size_t n = sizeof(encoded);
    dn_prog_op_t op[4];
    const size_t ops = 1 + dn_test_below(random, 4);

    for (size_t i = 0; i < ops; i++) {
        op[i] = (dn_prog_op_t){DN_PROG_RUN, 0, (int64_t) (i * 32), 1 + dn_test_below(random, 16), 1, 0};
    }
    if (DN_OK != dn_prog_create(op, ops, &prog) || DN_OK != dn_prog_encode(prog, encoded, &n)) {
        n = 0;
    }
    dn_prog_free(prog);
    const osc_head_t head = {.count = perhaps(random, n), .skip = perhaps(random, 0)};
    return write_message(to, room, OSC_PROGRAM, which, &head, encoded, n);
}

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    size_t used = 0;

    if (NULL == port) {
        open_all();
    }
    for (uint64_t n = 1 + dn_test_below(random, 8); 0 != n; n--) {
        const unsigned which = (unsigned) dn_test_below(random, WINDOWS);
        const uint64_t kind = dn_test_below(random, 6);
        uint8_t *to = data + used;
        if (3 > kind) {
            used += write_accumulate(random, to, DN_FUZZ_MAX - used, which);
        } else if (3 == kind) {
            used += write_program(random, to, DN_FUZZ_MAX - used, which);
        } else {
            const osc_head_t head = {.flags = (uint32_t) dn_test_below(random, 16),
                                     .at = perhaps(random, dn_test_below(random, WINDOW)),
                                     .len = perhaps(random, 8)};
            used += write_message(to, DN_FUZZ_MAX - used, 1 + (unsigned) dn_test_below(random, OSC_FIND + 1),
                                  which, &head, NULL, 0);
        }
    }
    return used;
}
