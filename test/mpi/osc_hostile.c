/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_hostile.c
 * What a rank sends to another's windows that no origin would: the target refuses it, changes nothing, and goes on.
 *
 *   osc_hostile [-s SEED] [-n MESSAGES] [-t TABLES]
 *
 * Rank 1 changes the tables of dynamic windows that it maps, and writes messages by hand: first each kind of wrong one, of
 * which not a byte of the window may change, then random ones, of which those that are right by chance may change the window,
 * but nothing beside it. Afterwards the window works. With TABLES 0 processes map nothing of each other, so no tables.
 */
#include "dn_config.h"

#include "letter.h"
#include "dn_atomic.h"
#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    WORDS = 512,
    BYTES = 8 * WORDS,
    PAGE = 4096,
    WAITING_MAX = 1024,
    CROWD = 3 * WAITING_MAX,
    CROWDED = 101,
    NUMBERS = 120
};

static uint64_t seed = 1;
static uint64_t messages = 20000;
static uint64_t tables = 1;
static int rank;
static MPI_Win win, dynamic;
static int64_t *memory;
static dn_port_t *port;
static dn_peer_t *victim;

static int64_t secret[8]; /**< of the victim, in no window */

/** An entry of a dynamic window's table: dn_rma_region_t of dn_rma.h. */
typedef struct entry {
    uint64_t base;
    uint64_t len;
    uint64_t roff;
    dn_key_t key;
} entry_t;

static void send_letter(unsigned tag, const letter_t *letter, size_t body)
{
    letter_send(victim, tag, letter, sizeof(letter->head) + body);
}

static void send_changed(const letter_t *letter, size_t body)
{
    send_letter(ACCUMULATE, letter, body);
}

/** Numbers that do not fit the window, each other, or anything. */
static void wrong_numbers(void)
{
    static const uint64_t huge[] = {BYTES - 15,        BYTES,          UINT32_MAX, INT64_MAX,
                                    UINT64_C(1) << 63, UINT64_MAX - 7, UINT64_MAX};
    const size_t n = sizeof(huge) / sizeof(huge[0]);
    letter_t letter;

    for (size_t i = 0; i < n; i++) {
        letter = letter_right();
        letter.head.at = huge[i];
        send_changed(&letter, 16);
        letter = letter_right();
        letter.head.skip = huge[i];
        send_changed(&letter, 16);
        letter = letter_right();
        letter.head.count = huge[i];
        letter.head.skip = huge[i] - 8;
        send_changed(&letter, 16);
        letter = letter_right();
        letter.head.len = huge[i];
        send_changed(&letter, 16);
        letter = letter_right();
        letter.head.type = (int32_t) huge[i];
        send_changed(&letter, 16);
        letter = letter_right();
        letter.head.op = OPS + (uint32_t) i * 1000;
        send_changed(&letter, 16);
        letter = letter_right();
        letter.head.rank = (int32_t) huge[i];
        send_changed(&letter, 16);
        letter = letter_right();
        letter.head.window = 2 + (uint32_t) huge[i];
        send_changed(&letter, 16);
        letter = letter_right();
        letter.head.generation = 2 + (uint32_t) huge[i] % 1000;
        send_changed(&letter, 16);
    }
    letter = letter_right();
    letter.head.rank = VICTIM;
    send_changed(&letter, 16);
}

/** Operations that the elements do not have, and lengths that are not theirs. */
static void wrong_elements(void)
{
    static const struct {
        MPI_Datatype type;
        uint32_t op;
        uint64_t len;
        size_t body;
        uint32_t flags;
    } wrong[] = {
        {MPI_DOUBLE, BAND, 16, 16, 0},
        {MPI_DOUBLE, MAXLOC, 16, 16, FETCHES},
        {MPI_INT64_T, MAXLOC, 16, 16, 0},
        {MPI_FLOAT, BAND, 16, 16, FETCHES},
        {MPI_DOUBLE_INT, SUM, 12, 12, 0},
        {MPI_INT64_T, SUM, 12, 12, 0},
        {MPI_INT64_T, SUM, 16, 8, 0},
        {MPI_INT64_T, SUM, 16, 24, 0},
        {MPI_INT64_T, SUM, 16, 0, FETCHES},
        {MPI_INT64_T, NO_OP, 16, 16, FETCHES},
        {MPI_INT64_T, REPLACE, 16, 32, FETCHES | COMPARES},
        {MPI_INT64_T, REPLACE, 8, 16, COMPARES},
        {MPI_INT64_T, REPLACE, 8, 8, FETCHES | COMPARES},
        {MPI_DOUBLE, REPLACE, 8, 16, FETCHES | COMPARES},
        {MPI_DATATYPE_NULL, SUM, 16, 16, 0},
        {MPI_INT64_T, SUM, 16, 16, BY_PROGRAM},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        letter_t letter = letter_right();

        letter.head.type = MPI_Type_c2f(wrong[i].type);
        letter.head.op = wrong[i].op;
        letter.head.len = wrong[i].len;
        letter.head.flags = wrong[i].flags;
        send_changed(&letter, wrong[i].body);
    }
}

/** Every number that a datatype may have, and some that none has, at a place that is not in the window. */
static void wrong_types(void)
{
    for (int32_t type = -1; type < NUMBERS; type++) {
        for (uint32_t op = 0; op <= OPS; op++) {
            letter_t letter = letter_right();

            letter.head.at = BYTES;
            letter.head.type = type;
            letter.head.op = op;
            send_changed(&letter, 16);
        }
    }
}

/** Messages that are too short, of no kind, or that answer nothing. */
static void wrong_messages(void)
{
    letter_t letter = letter_right();

    for (unsigned tag = 0; tag < TAGS + 3; tag++) {
        for (size_t len = 0; len < sizeof(letter.head); len += 7) {
            letter_send(victim, tag, &letter, len);
        }
    }
    send_letter(TAGS, &letter, 16);
    send_letter(255, &letter, BODY);
    for (uint64_t task = 0; task < 4; task++) {
        letter.head.window = (uint32_t) task;
        letter_send(victim, ANSWER, &letter, sizeof(letter));
    }
}

/** Layouts that are none, do not come in order, or do not end; and uses of them. */
static void wrong_layouts(void)
{
    static const uint32_t total[] = {0, 1, 100, BODY, 1 << 20, (1 << 20) + 1, UINT32_MAX};

    for (uint32_t i = 0; i < sizeof(total) / sizeof(total[0]); i++) {
        static const uint32_t from[] = {0, 1, 100, UINT32_MAX};

        for (size_t k = 0; k < sizeof(from) / sizeof(from[0]); k++) {
            const piece_t piece = {.layout = 7, .slot = 9 * i, .len = total[i], .at = from[k]};
            letter_t letter = letter_right();

            memcpy(letter.body, &piece, sizeof(piece));
            send_letter(LAYOUT, &letter, total[i] < BODY ? total[i] : BODY);
        }
        letter_t use = letter_right();
        use.head.flags = BY_PROGRAM;
        use.head.count = 2;
        use.head.layout = 7;
        use.head.slot = 9 * i;
        send_changed(&use, 16);
    }
}

/** Blocks that are not in the window, or not in the message. */
static void wrong_blocks(void)
{
    static const uint64_t number[] = {
        0, 2, 8, BYTES - 15, BYTES, UINT32_MAX, INT64_MAX, UINT64_MAX - 7, UINT64_MAX};

    for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
        for (int k = 0; k < 3; k++) {
            uint64_t block[2] = {BYTES / 2, 16};
            letter_t letter = letter_right();

            letter.head.flags = BY_BLOCKS;
            letter.head.at = 0;
            letter.head.count = 1;
            *(0 == k ? &letter.head.count : 1 == k ? &block[0] : &block[1]) = number[i];
            if (1 == k && BYTES - 15 > number[i]) {
                continue; /* it would be right */
            }
            memcpy(letter.body, block, sizeof(block));
            send_changed(&letter, sizeof(block) + 16);
        }
    }
}

/** Locks that nobody has, or has twice; regions where there are none. */
static void wrong_locks(void)
{
    letter_t letter = letter_right();

    for (int i = 0; i < 3; i++) {
        send_letter(LOOK, &letter, 0);
    }
    send_letter(FIND, &letter, 0);
}

/** @name Tables of dynamic windows, in the memory that all map */
/** @{ */

/** Find the entry of a region in the shared memory between two addresses: near the beginning of a page. */
static entry_t *find_between(uint8_t *from, const uint8_t *to, MPI_Aint base, uint64_t len)
{
    for (; from < to; from += PAGE) {
        for (size_t at = 0; at < PAGE / 2; at += sizeof(uint64_t)) {
            const uint64_t *word = (const uint64_t *) (const void *) (from + at);

            if ((uint64_t) base == word[0] && len == word[1]) {
                return (entry_t *) (void *) (from + at);
            }
        }
    }
    return NULL;
}

/** Put another entry where there is the one of a region, in whatever table of this process or of others that has it. */
static void forge(MPI_Aint base, uint64_t len, void (*change)(entry_t *entry))
{
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");

    verify_that(NULL != maps, "the mappings of this process cannot be read");
    while (NULL != fgets(line, sizeof(line), maps)) {
        uintptr_t from, to;
        char rights[8];

        if (3 != sscanf(line, "%lx-%lx %7s", &from, &to, rights) || 0 != strcmp("rw-s", rights)
            || NULL == strstr(line, "dimmnet")) {
            continue;
        }
        entry_t *entry = find_between((uint8_t *) from, (const uint8_t *) to, base, len);
        if (NULL != entry) {
            change(entry);
            found++;
        }
    }
    fclose(maps);
    verify_that(0 != found, "the table of a dynamic window was not found");
}

static MPI_Aint hidden; /**< address of the secret */

static void name_the_secret(entry_t *entry)
{
    *entry = (entry_t){.base = (uint64_t) hidden, .len = sizeof(secret), .key = {.len = UINT64_MAX}};
}

static void go_beyond(entry_t *entry)
{
    entry->roff = UINT64_C(1) << 40;
    entry->key.len = UINT64_C(1) << 41;
}

/** @name More requests than may wait, while the guard of the dynamic window is the attacker's */
/** @{ */

/** Of a dynamic window's block: control part, two lines of notes for each of two processes, head of the table. */
enum { GUARD_AT = 64, TABLE_AT = 3 * 64 + 2 * 128 + 64 };

static uint32_t *guards[8];
static int num_guards;

static void take_guard(entry_t *entry)
{
    guards[num_guards] = (uint32_t *) (void *) ((uint8_t *) entry - TABLE_AT + GUARD_AT);
    dn_store_seq_cst(guards[num_guards++], ATTACKER + 1);
}

static void give_guards(void)
{
    while (0 != num_guards) {
        dn_store_seq_cst(guards[--num_guards], 0);
    }
}

/** The attacker: all that it has sent before has been handled, and seen to by the victim, when this returns. */
static void await_victim(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, VICTIM, DONE_TAG, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, VICTIM, DONE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void await_attacker(void)
{
    MPI_Recv(NULL, 0, MPI_BYTE, ATTACKER, DONE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void release_attacker(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, ATTACKER, DONE_TAG, MPI_COMM_WORLD);
}

/** A crowd that no origin sends: no more of it waits than may. */
static void crowd(MPI_Aint region)
{
    letter_t letter = letter_right();

    forge(region, BYTES, take_guard);
    letter.head.window = 1;
    letter.head.generation = 1;
    letter.head.at = (uint64_t) region + 8 * CROWDED;
    for (int i = 0; i < CROWD; i++) {
        send_changed(&letter, 16);
    }
    await_victim();
    give_guards();
    await_victim();
}

/** The same calls as MPI makes them: the origin waits, and none is lost. */
static void crowd_in_order(MPI_Aint region)
{
    const int64_t ones[] = {1, 1};
    pid_t child;

    forge(region, BYTES, take_guard);
    child = fork();
    verify_that(0 <= child, "there is no process to give the guard back");
    if (0 == child) {
        const struct timespec while_it_waits = {.tv_nsec = 300000000};

        (void) nanosleep(&while_it_waits, NULL);
        give_guards();
        _exit(0);
    }
    MPI_Win_lock_all(0, dynamic);
    for (int i = 0; i < CROWD; i++) {
        MPI_Accumulate(ones, 2, MPI_INT64_T, VICTIM, region + 8 * CROWDED, 2, MPI_INT64_T, MPI_SUM, dynamic);
    }
    MPI_Win_unlock_all(dynamic);
    num_guards = 0;
    (void) waitpid(child, NULL, 0);
    await_victim();
}

static void outlive_crowds(void)
{
    const volatile int64_t *word = &memory[CROWDED];
    int flag;

    await_attacker();
    verify_that(0 == *word, "an accumulate did not wait for the guard");
    release_attacker();
    await_attacker();
    while (WAITING_MAX > *word) {
        (void) MPI_Iprobe(ATTACKER, DONE_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 1000; i++) {
        (void) MPI_Iprobe(ATTACKER, DONE_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    verify_that(WAITING_MAX == *word, "more accumulates waited than may");
    release_attacker();
    await_attacker();
    verify_that(WAITING_MAX + CROWD == *word, "an accumulate of a crowd was lost");
    memory[CROWDED] = memory[CROWDED + 1] = 0;
    release_attacker();
}
/** @} */

/** Have the victim serve memory that it has not attached, by its own table. */
static void wrong_table(MPI_Aint region)
{
    letter_t letter = letter_right();

    forge(region, BYTES, name_the_secret);
    letter.head.window = 1;
    letter.head.generation = 1;
    letter.head.at = (uint64_t) hidden;
    send_changed(&letter, 16);
    letter.head.flags = FETCHES;
    send_changed(&letter, 16);
}

/** Have the victim write behind the memory that it maps, by the attacker's own table. Afterwards its epoch tells of an error. */
static void wrong_own_table(void)
{
    MPI_Aint piece = 0;
    int64_t *mapped = NULL;
    int64_t one = 1;

    if (ATTACKER == rank) {
        MPI_Alloc_mem(BYTES / 2, MPI_INFO_NULL, &mapped);
        MPI_Win_attach(dynamic, mapped, BYTES / 2);
        MPI_Get_address(mapped, &piece);
    }
    MPI_Bcast(&piece, 1, MPI_AINT, ATTACKER, MPI_COMM_WORLD);
    MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, dynamic);
    for (int i = 0; i < 2; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (VICTIM == rank) {
            int rc = MPI_Put(&one, 1, MPI_INT64_T, ATTACKER, piece, 1, MPI_INT64_T, dynamic);

            rc = MPI_SUCCESS == rc ? MPI_Win_flush(ATTACKER, dynamic) : rc;
            verify_that(0 != i || MPI_SUCCESS == rc, "a right put to a dynamic window failed");
            verify_that(0 == i || MPI_SUCCESS != rc, "a put beyond a segment went somewhere");
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (ATTACKER == rank && 0 == i) {
            forge(piece, BYTES / 2, go_beyond);
        }
    }
    MPI_Win_unlock_all(dynamic);
    MPI_Win_set_errhandler(dynamic, MPI_ERRORS_ARE_FATAL);
    if (ATTACKER == rank) {
        MPI_Win_detach(dynamic, mapped);
        MPI_Free_mem(mapped);
    }
}
/** @} */

/** A number that fits, or at times any, or one at an edge. */
static uint64_t perhaps(verify_rng_t *random, uint64_t fits)
{
    static const uint64_t edge[] = {0, 1, 7, 8, BYTES - 8, BYTES, UINT32_MAX, INT64_MAX, UINT64_MAX};
    const uint64_t kind = verify_below(random, 24);

    return 0 == kind   ? verify_random(random)
           : 1 == kind ? edge[verify_below(random, sizeof(edge) / sizeof(edge[0]))]
                       : fits;
}

static void random_letter(verify_rng_t *random, MPI_Aint region)
{
    static const uint8_t tags[] = {ACCUMULATE, ACCUMULATE, ACCUMULATE, LAYOUT, ANSWER, PUT,
                                   GET,        GOT,        LOOK,       FIND,   77};
    const MPI_Datatype types[] = {MPI_INT64_T, MPI_DOUBLE, MPI_INT,        MPI_BYTE,
                                  MPI_SHORT,   MPI_FLOAT,  MPI_DOUBLE_INT, MPI_C_DOUBLE_COMPLEX};
    const uint32_t window = (uint32_t) verify_below(random, 2);
    const uint64_t len = 8 * verify_below(random, 20);
    const uint64_t at = (0 == window ? 0 : (uint64_t) region) + 4 * verify_below(random, BYTES / 4);
    letter_t letter = {.head = {.window = (uint32_t) perhaps(random, window),
                                .generation = (uint32_t) perhaps(random, 1),
                                .rank = (int32_t) perhaps(random, ATTACKER),
                                .flags = (uint32_t) verify_below(random, 64),
                                .task = perhaps(random, 0),
                                .at = perhaps(random, at),
                                .count = perhaps(random, len),
                                .extent = (int64_t) perhaps(random, 64),
                                .skip = perhaps(random, 0),
                                .len = perhaps(random, len),
                                .op = (uint32_t) perhaps(random, verify_below(random, OPS))}};

    letter.head.type = (int32_t) perhaps(
        random, (uint64_t) MPI_Type_c2f(types[verify_below(random, sizeof(types) / sizeof(types[0]))]));
    for (size_t i = 0; i < BODY; i++) {
        letter.body[i] = (uint8_t) verify_random(random);
    }
    const uint64_t body = perhaps(random, letter.head.len);
    send_letter(tags[verify_below(random, sizeof(tags))], &letter, body < BODY ? body : BODY);
}

/** The attacker gets the lock, by which it knows that all was handled; and lets it go. */
static void lock_and_unlock(MPI_Win of)
{
    int64_t word = 1, old;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, VICTIM, 0, of);
    if (of == win) {
        MPI_Fetch_and_op(&word, &old, MPI_INT64_T, VICTIM, 0, MPI_SUM, of);
    }
    MPI_Win_unlock(VICTIM, of);
}

static void attack(void)
{
    verify_rng_t random = {seed};
    MPI_Aint region;

    victim = letter_connect(port);
    MPI_Recv(&region, 1, MPI_AINT, VICTIM, ADDRESS_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&hidden, 1, MPI_AINT, VICTIM, ADDRESS_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* A right one gets through, or the others would prove nothing. */
    const letter_t right = letter_right();
    send_letter(ACCUMULATE, &right, 16);
    if (0 != tables) {
        crowd(region);
        crowd_in_order(region);
        wrong_table(region);
    }
    wrong_numbers();
    wrong_elements();
    wrong_types();
    wrong_messages();
    wrong_layouts();
    wrong_blocks();
    wrong_locks();
    lock_and_unlock(win);
    MPI_Send(NULL, 0, MPI_BYTE, VICTIM, DONE_TAG, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, VICTIM, DONE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (uint64_t n = 0; n < messages; n++) {
        random_letter(&random, region);
    }
    lock_and_unlock(win);
    lock_and_unlock(dynamic);
    MPI_Send(NULL, 0, MPI_BYTE, VICTIM, DONE_TAG, MPI_COMM_WORLD);
    dn_disconnect(victim);
}

static void endure(void)
{
    MPI_Aint region;

    letter_invite(port);
    MPI_Get_address(memory, &region);
    MPI_Send(&region, 1, MPI_AINT, ATTACKER, ADDRESS_TAG, MPI_COMM_WORLD);
    MPI_Get_address(secret, &hidden);
    MPI_Send(&hidden, 1, MPI_AINT, ATTACKER, ADDRESS_TAG, MPI_COMM_WORLD);
    if (0 != tables) {
        outlive_crowds();
    }
    MPI_Recv(NULL, 0, MPI_BYTE, ATTACKER, DONE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    verify_that(1 == memory[0], "a word of the window is not what fetch_and_op made of it");
    verify_that(1 == memory[1] && 1 == memory[2], "an accumulate that was right is not here");
    for (int i = 3; i < WORDS; i++) {
        verify_that(0 == memory[i], "a wrong message has changed the window");
    }
    for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++) {
        verify_that(0 == secret[i], "memory that was not attached was changed by a forged table");
    }
    MPI_Send(NULL, 0, MPI_BYTE, ATTACKER, DONE_TAG, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, ATTACKER, DONE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    verify_guard_check(memory, BYTES, 0, "memory of a window");
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'s', "SEED", &seed, 0}, {'n', "MESSAGES", &messages, 1}, {'t', "TABLES", &tables, 0}, {0}};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    verify_options(argc, argv, options);
    memory = verify_guard_alloc(BYTES, 0);
    memset(memory, 0, BYTES);
    MPI_Win_create(memory, BYTES, sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    MPI_Win_attach(dynamic, memory, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 != tables) {
        wrong_own_table();
    }
    verify_that(0 == dn_ompi_open(DN_OMPI_AFTER_MODEX, &port), "there is no port");
    if (ATTACKER == rank) {
        attack();
    } else if (VICTIM == rank) {
        endure();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(dynamic, memory);
    MPI_Win_free(&dynamic);
    MPI_Win_free(&win);
    verify_guard_free(memory, BYTES, 0, "memory of a window");
    dn_ompi_close();
    if (VICTIM == rank) {
        printf("osc_hostile: every wrong message refused, then %llu random ones of seed %llu\n",
               (unsigned long long) messages, (unsigned long long) seed);
    }
    MPI_Finalize();
    return 0;
}
