/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_choice.c
 * Two processes that have a core each: areas or messages?
 *
 * No constant can tell. That depends on how far the cores are from each other, on their caches, and on what a copy by the kernel costs: of
 * two machines, areas were twice as fast on the one, and half as fast on the other. So both ways are tried, for each kind of collective
 * and each class of lengths, and timed. Both processes call the same collectives, so both are at the same try. After the tries the two add
 * up their times, and both take the way that took less. Now and then the ways are tried again. The two ways alternate, so that a program
 * that warms up, or goes on to other lengths of the class, does so for both. (dn_choice.h has choices of one process, which needs to agree
 * with none.)
 *
 * The time of a try is that of both processes, since the first may only leave its data for the second. Of the times of one process the
 * longer half does not count: it waited for the other process to call, or did not have its core.
 */
#include "dn_config.h"

#include "coll_llcm.h"

/** Tries: BLOCK by areas, BLOCK by messages, and so on, PAIRS times. Of each block the first half is not timed: it brings data into the
 * caches. */
enum { BLOCK = 8, PAIRS = 4, TRIES = 2 * PAIRS * BLOCK, TIMED = PAIRS * BLOCK / 2 };
/** Calls of a round: tries, then calls by the way that was faster. */
enum { ROUND = 4096 };

/** Classes of length, by powers of 2: from SHORTEST bytes on, and to the longest. */
enum { SHORTEST_SHIFT = 12, CLASSES = 12 };
_Static_assert(COLL_LLCM_MEASURED_LEAST == 1 << SHORTEST_SHIFT, "the first class begins there");

static int class_of(size_t bytes)
{
    int which = 0;

    for (bytes >>= SHORTEST_SHIFT; 1 < bytes && which < CLASSES - 1; bytes >>= 1) {
        which++;
    }
    return which;
}

/** A kind of collective, in a class of lengths. */
typedef struct coll_llcm_trial {
    uint32_t calls;        /**< in this round */
    uint32_t ns[2][TIMED]; /**< of the tries that were timed last: by areas, by messages */
    bool messages;         /**< they are faster */
} coll_llcm_trial_t;

struct coll_llcm_choice {
    coll_llcm_trial_t trial[COLL_LLCM_MEASURED][CLASSES];
    uint32_t *timed; /**< where the time of the call under way goes; NULL: it is not timed */
    uint64_t began_ns;
};

coll_llcm_choice_t *coll_llcm_choice_make(void)
{
    return calloc(1, sizeof(coll_llcm_choice_t));
}

static int compare_ns(const void *a, const void *b)
{
    const uint32_t one = *(const uint32_t *) a, other = *(const uint32_t *) b;

    return one < other ? -1 : one > other;
}

static void add_ns(const dn_tree_reduction_t *reduction, const void *in, void *inout, size_t count)
{
    (void) reduction;
    for (size_t i = 0; i < count; i++) {
        ((uint64_t *) inout)[i] += ((const uint64_t *) in)[i];
    }
}

/** Add up the times of both processes. A process that learns nothing here is told of a loss by its next call. */
static void add_up_times(coll_llcm_module_t *module, coll_llcm_trial_t *trial)
{
    static const dn_tree_reduction_t sum = {.fold = add_ns, .size = sizeof(uint64_t)};
    uint64_t ns[2] = {0};

    for (int way = 0; way < 2; way++) {
        qsort(trial->ns[way], TIMED, sizeof(trial->ns[way][0]), compare_ns);
        for (int i = 0; i < TIMED / 2; i++) {
            ns[way] += trial->ns[way][i];
        }
    }
    if (OMPI_SUCCESS == coll_llcm_long_allreduce(module, ns, ns, 2, &sum)) {
        trial->messages = ns[1] < ns[0];
    }
}

bool coll_llcm_choose_messages(coll_llcm_module_t *module, coll_llcm_measured_t kind, size_t bytes)
{
    coll_llcm_choice_t *choice = module->choice;
    coll_llcm_trial_t *trial = &choice->trial[kind][class_of(bytes)];
    const uint32_t call = trial->calls;

    trial->calls = ROUND - 1 == call ? 0 : call + 1;
    if (TRIES > call) {
        const unsigned way = call / BLOCK % 2;
        const unsigned at = call % BLOCK;
        if (BLOCK / 2 <= at && NULL == choice->timed) {
            choice->timed = &trial->ns[way][call / (2 * BLOCK) * (BLOCK / 2) + at - BLOCK / 2];
            choice->began_ns = dn_ompi_clock_ns();
        }
        return 0 != way;
    }
    if (TRIES == call) {
        add_up_times(module, trial);
    }
    return trial->messages;
}

void coll_llcm_choice_timed(coll_llcm_choice_t *choice)
{
    if (NULL != choice->timed) {
        const uint64_t ns = dn_ompi_clock_ns() - choice->began_ns;
        *choice->timed = UINT32_MAX < ns ? UINT32_MAX : (uint32_t) ns;
        choice->timed = NULL;
    }
}
