/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_explore_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
    THREADS = DN_EXPLORE_THREADS,
    WORDS = 96,
    STORES = 64,
    CHOICES = 512,
    STACK = 64 << 10,
};

/** What a thread knows: how far the others have come, and the oldest value of each word that it may still read. */
typedef struct view {
    uint32_t clock[THREADS];
    uint8_t oldest[WORDS];
} view_t;

typedef struct store {
    uint64_t value;
    int releases; /**< not 0: who acquires it takes `view` over */
    view_t view;
} store_t;

typedef struct word {
    uint8_t *at;
    size_t size;
    const char *name;
    unsigned stores;
    int plain; /**< the last store is a plain write whose value is in memory as soon as its thread goes on */
    store_t store[STORES];
} word_t;

typedef enum state {
    RUNS,
    POSTPONES, /**< a load that has to read a later value than those that there are */
    WAITS,     /**< for a later value of a word that was loaded in vain */
    DONE,
} state_t;

typedef struct thread {
    ucontext_t context;
    state_t state;
    view_t view;
    int on;                 /**< word of a postponed load */
    uint8_t after;          /**< values of it that there were */
    uint8_t watched[WORDS]; /**< words loaded in a try */
    uint8_t stack[STACK] __attribute__((aligned(16)));
} thread_t;

/** Who has touched a byte, when, by the clock of each thread; 0: nobody. */
typedef struct shadow {
    uint64_t run; /**< of this execution, else all are 0 */
    uint32_t write[THREADS], read[THREADS], atomic_write[THREADS], atomic_read[THREADS];
} shadow_t;

uint8_t dn_explore_memory[DN_EXPLORE_BYTES] __attribute__((aligned(1 << 15)));

static shadow_t shadow[DN_EXPLORE_BYTES];
static int16_t word_at[DN_EXPLORE_BYTES / 4];
static word_t word[WORDS];
static unsigned words;
static thread_t thread[THREADS];
static ucontext_t explorer;
static int running; /**< a thread, -1: setup */
static uint64_t run;
static const dn_explore_case_t *here;
static const dn_explore_weak_t *weakened;
static const char *error;
static char error_text[160];
/** What was touched, to be zeros again. */
static size_t touched_first, touched_end;

/** @name Choices */
/** @{ */
static struct {
    uint16_t taken, ways;
} choice[CHOICES];
static unsigned choices, depth;

static __attribute__((noreturn)) void end_run(void)
{
    setcontext(&explorer);
    abort();
}

static __attribute__((noreturn)) void fail(const char *what, const char *where)
{
    snprintf(error_text, sizeof(error_text), "%s%s%s", what, NULL == where ? "" : ": ",
             NULL == where ? "" : where);
    error = error_text;
    if (0 > running) {
        fprintf(stderr, "setup: %s\n", error);
        abort();
    }
    end_run();
}

/** One of so many ways, each in an execution of its own. */
static unsigned choose(unsigned ways)
{
    if (1 >= ways) {
        return 0;
    }
    if (depth == choices) {
        if (CHOICES == choices) {
            fail("the case has too many choices", NULL);
        }
        choice[choices].taken = 0;
        choice[choices++].ways = (uint16_t) ways;
    }
    return choice[depth++].taken;
}

/** @return 0: all ways were taken. */
static int next_way(void)
{
    while (0 < choices && choice[choices - 1].taken + 1 == choice[choices - 1].ways) {
        choices--;
    }
    if (0 < choices) {
        choice[choices - 1].taken++;
    }
    return 0 < choices;
}
/** @} */

/** @name Plain accesses */
/** @{ */
static shadow_t *shadow_of(size_t at)
{
    shadow_t *of = &shadow[at];

    if (run != of->run) {
        memset(of, 0, sizeof(*of));
        of->run = run;
    }
    return of;
}

static int is_ordered(const uint32_t *when)
{
    for (int other = 0; other < THREADS; other++) {
        if (other != running && when[other] > thread[running].view.clock[other]) {
            return 0;
        }
    }
    return 1;
}

static const char *name_of(size_t at)
{
    return DN_EXPLORE_NO_WORD == word_at[at / 4] ? "bytes" : word[word_at[at / 4]].name;
}

int dn_explore_is_shared(const void *address)
{
    return (uintptr_t) address - (uintptr_t) dn_explore_memory < DN_EXPLORE_BYTES;
}

/** A plain write is the newest value of the words it touches: no other thread reads it without a data race. */
static void overwrite(size_t at, size_t len)
{
    int last = DN_EXPLORE_NO_WORD;

    for (size_t byte = at & ~(size_t) 3; byte < at + len; byte += 4) {
        const int index = word_at[byte / 4];
        if (DN_EXPLORE_NO_WORD == index || last == index) {
            continue;
        }
        last = index;
        word_t *of = &word[index];
        if (!of->plain) {
            if (STORES == of->stores) {
                fail("the case has too many stores", of->name);
            }
            of->store[of->stores++].releases = 0;
            of->plain = 1;
        }
        thread[running].view.oldest[index] = (uint8_t) (of->stores - 1);
    }
}

void dn_explore_access(const void *address, size_t len, int writes)
{
    if (!dn_explore_is_shared(address) || 0 == len) {
        return;
    }
    const size_t first = (size_t) ((const uint8_t *) address - dn_explore_memory);
    touched_first = first < touched_first ? first : touched_first;
    touched_end = first + len > touched_end ? first + len : touched_end;
    if (0 > running) {
        return;
    }
    const uint32_t now = thread[running].view.clock[running];
    for (size_t at = first; at < first + len; at++) {
        shadow_t *of = shadow_of(at);
        if (!is_ordered(of->write) || !is_ordered(of->atomic_write)) {
            fail(writes ? "data race: two writes" : "data race: a read of what is being written",
                 name_of(at));
        }
        if (writes && (!is_ordered(of->read) || !is_ordered(of->atomic_read))) {
            fail("data race: a write of what is being read", name_of(at));
        }
        (writes ? of->write : of->read)[running] = now;
    }
    if (writes) {
        overwrite(first, len);
    }
}
/** @} */

/** @name Atomic words */
/** @{ */
static uint64_t in_memory(const word_t *of)
{
    uint64_t value = 0;

    memcpy(&value, of->at, of->size);
    return value;
}

/** Plain writes have been done since their thread announced them. */
static void settle(void)
{
    for (unsigned i = 0; i < words; i++) {
        if (word[i].plain) {
            word[i].store[word[i].stores - 1].value = in_memory(&word[i]);
            word[i].plain = 0;
        }
    }
}

void dn_explore_word(const void *address, size_t size, const char *name)
{
    const size_t at = (size_t) ((const uint8_t *) address - dn_explore_memory);
    word_t *of = &word[words];

    if (WORDS == words) {
        fail("the case has too many words", name);
    }
    *of = (word_t){.at = dn_explore_memory + at, .size = size, .name = name, .stores = 1};
    of->store[0].value = in_memory(of);
    for (size_t byte = 0; byte < size; byte += 4) {
        word_at[(at + byte) / 4] = (int16_t) words;
    }
    words++;
}

/** The word of an atomic operation. */
int dn_explore_find(const volatile void *address, size_t size)
{
    settle();
    if (0 > running || !dn_explore_is_shared((const void *) address)) {
        return DN_EXPLORE_NO_WORD;
    }
    const size_t first = (size_t) ((const volatile uint8_t *) address - dn_explore_memory);
    const int index = word_at[first / 4];
    if (DN_EXPLORE_NO_WORD == index || word[index].at != dn_explore_memory + first
        || word[index].size != size) {
        fail("an atomic operation on a word that was not declared", NULL);
    }
    return index;
}

/** Look for plain accesses beside an atomic one. */
static void access_word(int index, int writes)
{
    const size_t first = (size_t) (word[index].at - dn_explore_memory);
    const size_t end = first + word[index].size;

    for (size_t at = first; at < end; at++) {
        shadow_t *of = shadow_of(at);
        if (!is_ordered(of->write) || (writes && !is_ordered(of->read))) {
            fail("data race: a plain and an atomic access", word[index].name);
        }
        (writes ? of->atomic_write : of->atomic_read)[running] = thread[running].view.clock[running];
    }
    touched_first = first < touched_first ? first : touched_first;
    touched_end = end > touched_end ? end : touched_end;
}

static int is_weakened(int index, int stores)
{
    return NULL != weakened && stores == weakened->stores && 0 == strcmp(weakened->word, word[index].name);
}

static void take_over(view_t *to, const view_t *from)
{
    for (int i = 0; i < THREADS; i++) {
        to->clock[i] = from->clock[i] > to->clock[i] ? from->clock[i] : to->clock[i];
    }
    for (unsigned i = 0; i < words; i++) {
        to->oldest[i] = from->oldest[i] > to->oldest[i] ? from->oldest[i] : to->oldest[i];
    }
}

static void schedule(void);

static int may_run(const thread_t *of);

/** May the running thread leave a load to later? Only another that can run now makes another value. */
static int others_run(void)
{
    for (int i = 0; i < THREADS; i++) {
        if (i != running && may_run(&thread[i])) {
            return 1;
        }
    }
    return 0;
}

uint64_t dn_explore_load(int index, int order)
{
    thread_t *self = &thread[running];
    unsigned which;

    for (;;) {
        const unsigned oldest = self->view.oldest[index];
        const unsigned ways = word[index].stores - oldest;
        /* The newest first: executions without stale values are those that are easiest to read. */
        which = choose(ways + (unsigned) others_run());
        if (which < ways) {
            which = word[index].stores - 1 - which;
            break;
        }
        self->state = POSTPONES;
        self->on = index;
        self->after = (uint8_t) word[index].stores;
        schedule();
        self->view.oldest[index] = self->after;
    }
    access_word(index, 0);
    const store_t *from = &word[index].store[which];
    self->view.oldest[index] = (uint8_t) which;
    self->watched[index] = 1;
    if (from->releases
        && (__ATOMIC_ACQUIRE == order || __ATOMIC_ACQ_REL == order || __ATOMIC_SEQ_CST == order)
        && !is_weakened(index, 0)) {
        take_over(&self->view, &from->view);
    }
    return from->value;
}

void dn_explore_store(int index, uint64_t value, int order)
{
    thread_t *self = &thread[running];
    word_t *of = &word[index];

    access_word(index, 1);
    if (STORES == of->stores) {
        fail("the case has too many stores", of->name);
    }
    self->view.oldest[index] = (uint8_t) of->stores;
    store_t *to = &of->store[of->stores++];
    to->value = value;
    to->releases = (__ATOMIC_RELEASE == order || __ATOMIC_ACQ_REL == order || __ATOMIC_SEQ_CST == order)
                   && !is_weakened(index, 1);
    to->view = self->view;
    self->view.clock[running]++;
    memcpy(of->at, &value, of->size);
}
/** @} */

/** @name Threads */
/** @{ */
void dn_explore_try(void)
{
    memset(thread[running].watched, 0, sizeof(thread[running].watched));
}

/** Has a word another value than this thread has read last? */
static int has_news(const thread_t *of, unsigned index)
{
    return of->watched[index] && of->view.oldest[index] + 1u < word[index].stores;
}

static int may_run(const thread_t *of)
{
    if (POSTPONES == of->state) {
        return word[of->on].stores > of->after;
    }
    for (unsigned i = 0; WAITS == of->state && i < words; i++) {
        if (has_news(of, i)) {
            return 1;
        }
    }
    return RUNS == of->state;
}

void dn_explore_wait(void)
{
    thread_t *self = &thread[running];
    unsigned news[WORDS];
    unsigned count = 0;

    settle();
    for (unsigned i = 0; i < words; i++) {
        if (has_news(self, i)) {
            /* It has read an old value, and done nothing for it: the same as if it had not tried before it read a newer one. */
            end_run();
        }
    }
    self->state = WAITS;
    schedule();
    for (unsigned i = 0; i < words; i++) {
        if (has_news(self, i)) {
            news[count++] = i;
        }
    }
    /* At least one of them is read anew: to read the same values again would be the same try. */
    self->view.oldest[news[choose(count)]]++;
    dn_explore_try();
}

/** Let another thread run, or, if it can, this one. Comes back when it is this one's turn again. */
static void schedule(void)
{
    const int before = running;
    int able[THREADS];
    unsigned count = 0;
    int postponed = 0;
    int waiting = 0;

    for (int i = 0; i < THREADS; i++) {
        if (may_run(&thread[i])) {
            able[count++] = i;
        }
        postponed += POSTPONES == thread[i].state;
        waiting += WAITS == thread[i].state;
    }
    if (0 == count) {
        if (0 == postponed && 0 != waiting) {
            fail("all threads wait", NULL);
        }
        /* All are done, or a load was postponed for a value that never comes: that way is none. */
        end_run();
    }
    running = able[choose(count)];
    thread[running].state = RUNS;
    if (running != before) {
        swapcontext(&thread[before].context, &thread[running].context);
    }
}

void dn_explore_check(int ok, const char *what)
{
    if (!ok) {
        fail(what, NULL);
    }
}

static void run_thread(void)
{
    here->body[running]();
    settle();
    thread[running].state = DONE;
    schedule();
    abort();
}

static void start(void)
{
    memset(dn_explore_memory + touched_first, 0,
           touched_end > touched_first ? touched_end - touched_first : 0);
    touched_first = DN_EXPLORE_BYTES;
    touched_end = 0;
    memset(word_at, 0xff, sizeof(word_at));
    words = 0;
    running = -1;
    run++;
    depth = 0;
    here->setup();
    for (int i = 0; i < THREADS; i++) {
        thread_t *of = &thread[i];
        memset(&of->view, 0, sizeof(of->view));
        of->view.clock[i] = 1;
        of->state = NULL == here->body[i] ? DONE : RUNS;
        getcontext(&of->context);
        of->context.uc_stack.ss_sp = of->stack;
        of->context.uc_stack.ss_size = STACK;
        of->context.uc_link = NULL;
        makecontext(&of->context, run_thread, 0);
    }
    running = 0;
}

uint64_t dn_explore(const dn_explore_case_t *which, const dn_explore_weak_t *weak, const char **error_p)
{
    static volatile int ended;
    static uint64_t runs;

    here = which;
    weakened = weak;
    error = NULL;
    choices = 0;
    touched_first = 0;
    touched_end = DN_EXPLORE_BYTES;
    runs = 0;
    do {
        runs++;
        ended = 0;
        getcontext(&explorer);
        if (!ended) {
            ended = 1;
            start();
            setcontext(&thread[0].context);
        }
    } while (NULL == error && next_way());
    *error_p = error;
    return runs;
}
/** @} */
