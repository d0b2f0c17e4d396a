/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The matching engine answers every call as two plain lists would, whatever is posted, kept, cancelled and taken,
 * and goes on doing so with many entries and without memory.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_match.h"

enum { MANY = 100000 };

/** @name Memory: linked with --wrap, so that it can be refused, and what is not given back is seen */
/** @{ */
static long blocks;      /**< in use */
static uint64_t refused; /**< bit k: the engine's request k from now on gets nothing */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void __real_free(void *block);
void __wrap_free(void *block);

static void *granted(size_t n, size_t size)
{
    void *block = __real_calloc(n, size);

    assert_non_null(block);
    blocks++;
    return block;
}

void *__wrap_calloc(size_t n, size_t size)
{
    const uint64_t now = refused & 1;

    refused >>= 1;
    return 0 != now ? NULL : granted(n, size);
}

void __wrap_free(void *block)
{
    blocks -= NULL != block;
    __real_free(block);
}

/** Whatever another test has left behind. */
static void init(dn_match_t *m)
{
    blocks = 0;
    refused = 0;
    assert_int_equal(dn_match_init(m), 0);
}
/** @} */

/** @name The model: entries by age, one by one */
/** @{ */
typedef struct values {
    uint32_t context;
    int32_t source;
    uint64_t tag;
    uint64_t ignore; /**< a message's: 0 */
} values_t;

/** MPI's values of a receive for any tag. */
#define ANY_TAG 0, DN_MATCH_ANY_TAG_IGNORE

/** A tag of MPI. */
#define MPI(tag) ((uint64_t) (uint32_t) (tag))

typedef struct model_entry {
    values_t values;
    void *entry;
} model_entry_t;

typedef struct model_list {
    model_entry_t at[1000];
    size_t count;
} model_list_t;

/** The rule, bit by bit. */
static bool matches(const values_t *recv, const values_t *msg)
{
    if (recv->context != msg->context) {
        return false;
    }
    if (DN_MATCH_ANY_SOURCE != recv->source && recv->source != msg->source) {
        return false;
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        if (0 == (recv->ignore >> bit & 1) && (recv->tag >> bit & 1) != (msg->tag >> bit & 1)) {
            return false;
        }
    }
    return true;
}

static void model_remove(model_list_t *list, size_t i)
{
    list->count--;
    memmove(&list->at[i], &list->at[i + 1], (list->count - i) * sizeof(list->at[0]));
}

/** Place of an entry, count: it is not in. */
static size_t model_place(const model_list_t *list, const void *entry)
{
    size_t i = 0;
    while (i < list->count && entry != list->at[i].entry) {
        i++;
    }
    return i;
}

static size_t model_first_recv(const model_list_t *posted, const values_t *msg)
{
    size_t i = 0;
    while (i < posted->count && !matches(&posted->at[i].values, msg)) {
        i++;
    }
    return i;
}

static size_t model_first_msg(const model_list_t *kept, const values_t *recv)
{
    size_t i = 0;
    while (i < kept->count && !matches(recv, &kept->at[i].values)) {
        i++;
    }
    return i;
}
/** @} */

/** An engine, its model, and what random traffic is made of. */
typedef struct world {
    dn_match_t match;
    model_list_t posted, kept;
    uint64_t seed, random;
    unsigned step;
    size_t depth;    /**< about so many entries of each sort */
    uint64_t values; /**< sources and tags in use: few, so that much matches, or many */
    unsigned masks;  /**< in use: of mask[] */
    bool lawful;     /**< a receive looks for a message first, a message for a receive */
} world_t;

static world_t world;

/** What receives ignore: MPI's two masks come first. */
static const uint64_t mask[] = {0,          DN_MATCH_ANY_TAG_IGNORE, UINT64_MAX,        0xffff, 1,
                                UINT32_MAX, UINT64_C(0xffff) << 48,  (uint64_t) 1 << 63};
enum { MPI_MASKS = 2, MASKS = sizeof(mask) / sizeof(mask[0]) };

static void must(const world_t *w, bool right, const char *what)
{
    if (!right) {
        fail_msg("%s: seed %llu, step %u, %zu posted, %zu kept", what, (unsigned long long) w->seed, w->step,
                 w->posted.count, w->kept.count);
    }
}

static uint64_t below(world_t *w, uint64_t bound)
{
    return dn_test_below(&w->random, bound);
}

static void begin(world_t *w, uint64_t seed)
{
    static const size_t depth[] = {2, DN_MATCH_NEAR, DN_MATCH_NEAR + 2, 40, 400};
    static const uint64_t values[] = {1, 3, 1000};

    init(&w->match);
    w->posted.count = w->kept.count = 0;
    w->seed = w->random = seed;
    w->step = 0;
    w->depth = depth[below(w, sizeof(depth) / sizeof(depth[0]))];
    w->values = values[below(w, sizeof(values) / sizeof(values[0]))];
    w->masks = 0 == below(w, 2) ? MPI_MASKS : MASKS;
    w->lawful = 0 == below(w, 2);
}

static values_t any_message(world_t *w)
{
    uint64_t tag = below(w, w->values);

    if (0 == below(w, 4)) {
        tag = MPI(-10 - (int32_t) tag);
    } else if (MPI_MASKS < w->masks && 0 == below(w, 2)) {
        tag = tag << 48 | below(w, w->values) << 16 | below(w, 2);
    }

    return (values_t){.context = 0 == below(w, 8) ? UINT32_MAX : (uint32_t) below(w, 3),
                      .source = (int32_t) below(w, w->values),
                      .tag = tag};
}

static values_t any_receive(world_t *w)
{
    values_t v = any_message(w);

    if (0 == below(w, 3)) {
        v.source = DN_MATCH_ANY_SOURCE;
    }
    if (0 == below(w, 2)) {
        v.ignore = mask[below(w, w->masks)];
        v.tag = 0 == below(w, 2) ? v.tag & ~v.ignore : v.tag ^ (w->random & v.ignore);
    }
    return v;
}

/** @name Calls, made on both sides */
/** @{ */
static void post(world_t *w, values_t v)
{
    dn_match_recv_t *recv = granted(1, sizeof(*recv));

    memset(recv, 0xee, sizeof(*recv));
    recv->context = v.context;
    recv->source = v.source;
    recv->tag = v.tag;
    recv->ignore = v.ignore;
    dn_match_post(&w->match, recv);
    w->posted.at[w->posted.count++] = (model_entry_t){v, recv};
}

static void keep(world_t *w, values_t v)
{
    dn_match_msg_t *msg = granted(1, sizeof(*msg));

    memset(msg, 0xee, sizeof(*msg));
    msg->context = v.context;
    msg->source = v.source;
    msg->tag = v.tag;
    dn_match_keep(&w->match, msg);
    w->kept.at[w->kept.count++] = (model_entry_t){v, msg};
}

/** @return whether a receive took it */
static bool arrive(world_t *w, values_t v)
{
    dn_match_recv_t *recv = dn_match_arrive(&w->match, v.context, v.source, v.tag);
    const size_t i = model_first_recv(&w->posted, &v);

    must(w, recv == (i < w->posted.count ? w->posted.at[i].entry : NULL), "not the receive of this message");
    if (NULL == recv) {
        return false;
    }
    model_remove(&w->posted, i);
    free(recv);
    return true;
}

static void take(world_t *w, size_t i)
{
    dn_match_take(&w->match, w->kept.at[i].entry);
    free(w->kept.at[i].entry);
    model_remove(&w->kept, i);
}

static void cancel(world_t *w, size_t i)
{
    dn_match_cancel(&w->match, w->posted.at[i].entry);
    free(w->posted.at[i].entry);
    model_remove(&w->posted, i);
}

/** @return whether there is a message for this receive; with @p taken it is taken */
static bool find(world_t *w, values_t v, bool taken)
{
    dn_match_msg_t *msg = dn_match_find(&w->match, v.context, v.source, v.tag, v.ignore);
    const size_t i = model_first_msg(&w->kept, &v);

    must(w, msg == (i < w->kept.count ? w->kept.at[i].entry : NULL), "not the message of this receive");
    if (NULL != msg && taken) {
        take(w, i);
    }
    return NULL != msg;
}

/** Entries that match nothing, so that those behind them are found through the index when these are DN_MATCH_NEAR. */
static void put_others_in_front(world_t *w, unsigned others)
{
    for (unsigned i = 0; i < others; i++) {
        post(w, (values_t){UINT32_MAX, 1, 7, 0});
        keep(w, (values_t){UINT32_MAX, 1, 7, 0});
    }
}

/** What is in is what should be, in its order. */
static void compare(const world_t *w, const uint32_t *context)
{
    const dn_match_recv_t *recv = NULL;
    const dn_match_msg_t *msg = NULL;

    must(w, dn_match_posted_count(&w->match) == w->posted.count, "wrong count of receives");
    must(w, dn_match_kept_count(&w->match) == w->kept.count, "wrong count of messages");
    for (size_t i = 0; i < w->posted.count; i++) {
        if (NULL == context || *context == w->posted.at[i].values.context) {
            recv = dn_match_next_posted(&w->match, context, recv);
            must(w, recv == w->posted.at[i].entry, "another receive is next");
        }
    }
    must(w, NULL == dn_match_next_posted(&w->match, context, recv), "a receive too many");
    for (size_t i = 0; i < w->kept.count; i++) {
        if (NULL == context || *context == w->kept.at[i].values.context) {
            msg = dn_match_next_kept(&w->match, context, msg);
            must(w, msg == w->kept.at[i].entry, "another message is next");
        }
    }
    must(w, NULL == dn_match_next_kept(&w->match, context, msg), "a message too many");
}

/** A communicator is freed, its context id may come again; or all are. */
static void forget(world_t *w, const uint32_t *context)
{
    dn_match_recv_t *recv = dn_match_next_posted(&w->match, context, NULL);
    dn_match_msg_t *msg = dn_match_next_kept(&w->match, context, NULL);

    compare(w, context);
    while (NULL != recv) {
        dn_match_recv_t *next = dn_match_next_posted(&w->match, context, recv);
        cancel(w, model_place(&w->posted, recv));
        recv = next;
    }
    while (NULL != msg) {
        dn_match_msg_t *next = dn_match_next_kept(&w->match, context, msg);
        take(w, model_place(&w->kept, msg));
        msg = next;
    }
    must(w, NULL == dn_match_next_posted(&w->match, context, NULL), "a receive remains");
    must(w, NULL == dn_match_next_kept(&w->match, context, NULL), "a message remains");
}
/** @} */

static void end(world_t *w)
{
    forget(w, NULL);
    must(w, 0 == dn_match_posted_count(&w->match) && 0 == dn_match_kept_count(&w->match), "not empty");
    dn_match_fini(&w->match);
    must(w, 0 == blocks, "memory is not given back");
}

static void one_step(world_t *w)
{
    uint32_t context;

    switch (below(w, 8)) {
    case 0:
    case 1:
        if (w->depth > w->posted.count) {
            const values_t v = any_receive(w);
            if (!w->lawful || !find(w, v, true)) {
                post(w, v);
            }
            break;
        }
        /* fall through */
    case 2:
        (void) arrive(w, any_message(w));
        break;
    case 3:
    case 4:
        if (w->depth > w->kept.count) {
            const values_t v = any_message(w);
            if (!w->lawful || !arrive(w, v)) {
                keep(w, v);
            }
            break;
        }
        /* fall through */
    case 5:
        (void) find(w, any_receive(w), 0 != below(w, 4));
        break;
    case 6:
        if (0 < w->posted.count && 0 == below(w, 2)) {
            cancel(w, below(w, w->posted.count));
        }
        if (0 < w->kept.count && 0 == below(w, 2)) {
            take(w, below(w, w->kept.count));
        }
        break;
    default:
        if (0 == below(w, 100)) {
            context = (uint32_t) below(w, 3);
            forget(w, &context);
        }
        if (0 == below(w, 500)) {
            forget(w, NULL);
        }
        break;
    }
    must(w, dn_match_posted_count(&w->match) == w->posted.count, "wrong count of receives");
    must(w, dn_match_kept_count(&w->match) == w->kept.count, "wrong count of messages");
}

static void random_traffic(uint64_t seed, uint64_t refusals)
{
    begin(&world, seed);
    refused = refusals;
    for (world.step = 0; world.step < 3000; world.step++) {
        one_step(&world);
    }
    refused = 0;
    end(&world);
}

static void any_traffic_is_matched_as_by_plain_lists(void **state)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        random_traffic(seed, 0);
    }
}

static void so_it_is_when_memory_is_refused_now_and_then(void **state)
{
    for (uint64_t seed = 201; seed <= 260; seed++) {
        uint64_t random = seed;
        random_traffic(seed, dn_test_random(&random));
    }
}

/** A receive of each kind for message 7 of source 1: those of MPI, and odd ones. */
enum { KINDS = 6 };
static const values_t recv[KINDS] = {{3, 1, 7, 0},     {3, -1, 7, 0},          {3, 1, ANY_TAG},
                                     {3, -1, ANY_TAG}, {3, 1, 0xff00, 0xffff}, {3, -1, 1, UINT64_MAX}};

static void receives_and_messages_of_one_kind_go_first_in_first_out(void **state)
{
    const values_t msg = {3, 1, 7, 0};

    for (unsigned kind = 0; kind < KINDS; kind++) {
        for (unsigned n = 1; n <= 3 * DN_MATCH_NEAR; n++) {
            begin(&world, n);
            for (unsigned i = 0; i < n; i++) {
                post(&world, recv[kind]);
                keep(&world, msg);
            }
            for (unsigned i = 0; i < n; i++) {
                void *const oldest_recv = world.posted.at[0].entry;
                void *const oldest_msg = world.kept.at[0].entry;
                assert_ptr_equal(dn_match_arrive(&world.match, 3, 1, 7), oldest_recv);
                free(oldest_recv);
                model_remove(&world.posted, 0);
                assert_ptr_equal(
                    dn_match_find(&world.match, 3, recv[kind].source, recv[kind].tag, recv[kind].ignore),
                    oldest_msg);
                take(&world, 0);
            }
            assert_null(dn_match_arrive(&world.match, 3, 1, 7));
            assert_null(dn_match_find(&world.match, 3, recv[kind].source, recv[kind].tag, recv[kind].ignore));
            end(&world);
        }
    }
}

/** All orders of four receives of any kind. */
static void the_earliest_posted_receive_wins_whatever_is_wild(void **state)
{
    for (unsigned others = 0; others <= DN_MATCH_NEAR; others++) {
        for (unsigned code = 0; code < KINDS * KINDS * KINDS * KINDS; code++) {
            begin(&world, code);
            put_others_in_front(&world, others);
            for (unsigned i = 0, rest = code; i < 4; i++, rest /= KINDS) {
                post(&world, recv[rest % KINDS]);
            }
            for (unsigned i = 0; i < 4; i++) {
                assert_true(arrive(&world, (values_t){3, 1, 7, 0}));
            }
            assert_false(arrive(&world, (values_t){3, 1, 7, 0}));
            end(&world);
        }
    }
}

static void any_tag_leaves_negative_tags_alone(void **state)
{
    for (unsigned others = 0; others <= DN_MATCH_NEAR; others++) {
        begin(&world, others);
        put_others_in_front(&world, others);
        post(&world, (values_t){3, 1, ANY_TAG});
        post(&world, (values_t){3, DN_MATCH_ANY_SOURCE, ANY_TAG});
        post(&world, (values_t){3, DN_MATCH_ANY_SOURCE, MPI(-12), 0});
        assert_true(arrive(&world, (values_t){3, 1, MPI(-12), 0}));
        assert_false(arrive(&world, (values_t){3, 1, MPI(-12), 0}));
        keep(&world, (values_t){3, 1, MPI(-12), 0});
        assert_false(find(&world, (values_t){3, 1, ANY_TAG}, false));
        assert_false(find(&world, (values_t){3, DN_MATCH_ANY_SOURCE, ANY_TAG}, false));
        assert_true(find(&world, (values_t){3, DN_MATCH_ANY_SOURCE, MPI(-12), 0}, false));
        assert_true(find(&world, (values_t){3, 1, MPI(-12), 0}, true));
        assert_int_equal(dn_match_posted_count(&world.match), others + 2);
        end(&world);
    }
}

/** The longest chain of an index says what a look costs at most. */
static size_t longest_chain(const dn_match_index_t *index)
{
    size_t longest = 0, queues = 0;

    for (size_t i = 0; i < (size_t) 1 << index->bits; i++) {
        size_t len = 0;
        for (const dn_match_link_t *first = index->bucket[i]; NULL != first; first = first->chain) {
            len++;
        }
        queues += len;
        longest = len > longest ? len : longest;
    }
    assert_int_equal(queues, index->queues);
    return longest;
}

/** What programs number their messages by, and what is wild in the receives for them. */
typedef struct numbering {
    values_t values; /**< the first of... */
    uint32_t contexts;
    uint32_t sources;
    uint32_t tags;
    int64_t stride; /**< of tags */
    unsigned wild;
} numbering_t;

static values_t numbered(const numbering_t *n, uint32_t i)
{
    return (values_t){n->values.context + i % n->contexts,
                      n->values.source + (int32_t) (i / n->contexts % n->sources),
                      n->values.tag + (uint64_t) n->stride * (i / n->contexts / n->sources % n->tags), 0};
}

/** Make a message's values those of a receive. */
static values_t wild(values_t v, unsigned wild)
{
    return (values_t){v.context, 0 != (wild & DN_MATCH_WILD_SOURCE) ? DN_MATCH_ANY_SOURCE : v.source,
                      0 != (wild & DN_MATCH_WILD_TAG) ? 0 : v.tag,
                      0 != (wild & DN_MATCH_WILD_TAG) ? DN_MATCH_ANY_TAG_IGNORE : 0};
}

static dn_match_recv_t many_recv[MANY];
static dn_match_msg_t many_msg[MANY];

static void post_and_keep_many(dn_match_t *m, const numbering_t *n, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const values_t msg = numbered(n, i), recv = wild(msg, n->wild);
        many_recv[i].context = recv.context;
        many_recv[i].source = recv.source;
        many_recv[i].tag = recv.tag;
        many_recv[i].ignore = recv.ignore;
        dn_match_post(m, &many_recv[i]);
        many_msg[i].context = msg.context;
        many_msg[i].source = msg.source;
        many_msg[i].tag = msg.tag;
        dn_match_keep(m, &many_msg[i]);
    }
    assert_int_equal(dn_match_posted_count(m), count);
    assert_int_equal(dn_match_kept_count(m), count);
}

/** Receive entry i, once from a posted receive and once from a kept message. */
static void match_one_of_many(dn_match_t *m, const numbering_t *n, uint32_t i)
{
    const values_t msg = numbered(n, i), recv = wild(msg, n->wild);

    assert_ptr_equal(dn_match_arrive(m, msg.context, msg.source, msg.tag), &many_recv[i]);
    assert_ptr_equal(dn_match_find(m, recv.context, recv.source, recv.tag, recv.ignore), &many_msg[i]);
    dn_match_take(m, &many_msg[i]);
}

static void nothing_is_left(dn_match_t *m)
{
    assert_int_equal(dn_match_posted_count(m), 0);
    assert_int_equal(dn_match_kept_count(m), 0);
    assert_int_equal(longest_chain(&m->posted_index), 0);
    assert_int_equal(longest_chain(&m->kept_index), 0);
    dn_match_fini(m);
    assert_int_equal(blocks, 0);
}

/** Through the index each is found in a few looks, and the oldest in one. */
static void a_hundred_thousand_entries_are_found_in_a_few_looks(void **state)
{
    static const numbering_t way[] = {
        {{0, 1, 0, 0}, 1, 1, MANY, 1, 0},
        {{0, 1, MPI(-10), 0}, 1, 1, MANY, -1, 0},
        {{0, 1, 0, 0}, 1, 1, MANY, (int64_t) 1 << 32, 0},
        {{0, 1, 0, 0}, 1, 1, MANY, (int64_t) 1 << 47, 0},
        {{0, 1, 0, 0}, 1, 1, MANY, 4096, 0},
        {{0, 0, 5, 0}, 1, MANY, 1, 1, 0},
        {{7, 1, 5, 0}, MANY, 1, 1, 1, 0},
        {{0, 0, 0, 0}, 1, 400, 250, 1, 0},
        {{0, 0, 0, 0}, 10, 100, 100, 1 << 20, 0},
        {{0, 1, 0, 0}, 1, 1, MANY, 1, DN_MATCH_WILD_SOURCE},
        {{0, 0, 5, 0}, 1, MANY, 1, 1, DN_MATCH_WILD_TAG},
        {{7, 1, 5, 0}, MANY, 1, 1, 1, DN_MATCH_WILD_SOURCE | DN_MATCH_WILD_TAG},
    };
    dn_match_t m;

    for (size_t w = 0; w < sizeof(way) / sizeof(way[0]); w++) {
        init(&m);
        post_and_keep_many(&m, &way[w], MANY);
        /* From both ends in turn. */
        for (uint32_t i = 0; i < MANY; i++) {
            match_one_of_many(&m, &way[w], 0 == i % 2 ? MANY - 1 - i / 2 : i / 2);
            if (0 == i) {
                assert_in_range(longest_chain(&m.posted_index), 1, 12);
                assert_in_range(longest_chain(&m.kept_index), 1, 12);
            }
        }
        nothing_is_left(&m);
    }
}

static void a_hundred_thousand_entries_of_one_kind_are_one_queue(void **state)
{
    dn_match_t m;

    for (unsigned kind = 0; kind < DN_MATCH_KINDS; kind++) {
        const numbering_t same = {{3, 1, 7, 0}, 1, 1, 1, 0, kind};
        dn_match_recv_t last_recv = {.context = 4, .source = 1, .tag = 7};
        dn_match_msg_t last_msg = {.context = 4, .source = 1, .tag = 7};

        init(&m);
        post_and_keep_many(&m, &same, MANY);
        dn_match_post(&m, &last_recv);
        dn_match_keep(&m, &last_msg);
        assert_ptr_equal(dn_match_find(&m, 4, 1, 7, 0), &last_msg);
        assert_int_equal(m.posted_index.queues, 0);
        assert_int_equal(m.kept_index.queues, 2);
        assert_ptr_equal(dn_match_arrive(&m, 4, 1, 7), &last_recv);
        assert_int_equal(m.posted_index.queues, 1);
        dn_match_take(&m, &last_msg);
        for (uint32_t i = 0; i < MANY; i++) {
            match_one_of_many(&m, &same, i);
        }
        nothing_is_left(&m);
    }
}

static void an_index_that_cannot_grow_does_no_harm(void **state)
{
    static const numbering_t tags = {{0, 1, 0, 0}, 1, 1, MANY, 1, 0};
    enum { COUNT = 3000 };
    dn_match_t m;

    for (uint64_t refusals = 0; refusals <= 8; refusals++) {
        init(&m);
        refused = (UINT64_C(1) << refusals) - 1;
        post_and_keep_many(&m, &tags, COUNT);
        assert_null(dn_match_arrive(&m, 1, 1, COUNT));
        if (6 > refusals) {
            /* Refused at 64 queues and each power of 2 from there on, it has grown at the first that was not. */
            assert_int_equal(refused, 0);
            assert_in_range(longest_chain(&m.posted_index), 1, 10);
        } else {
            assert_in_range(longest_chain(&m.posted_index), COUNT / 64, COUNT);
        }
        for (uint32_t i = COUNT; 0 < i; i--) {
            match_one_of_many(&m, &tags, i - 1);
        }
        refused = 0;
        nothing_is_left(&m);
    }
}

static void without_memory_init_fails_and_leaves_nothing(void **state)
{
    dn_match_t m;

    for (uint64_t request = 0; request < 2; request++) {
        blocks = 0;
        memset(&m, 0xee, sizeof(m));
        refused = UINT64_C(1) << request;
        assert_int_equal(dn_match_init(&m), -1);
        assert_int_equal(refused, 0);
        dn_match_fini(&m);
        assert_int_equal(blocks, 0);
    }
}

/** Values that no message has, from a peer that lies: what they match is open, the entries stay in order. */
static void wild_values_in_messages_do_no_harm(void **state)
{
    /* With a new index for every context, so that some queues share a bucket that must not. */
    for (uint32_t context = 0; context < 1000; context++) {
        begin(&world, context);
        put_others_in_front(&world, DN_MATCH_NEAR);
        for (unsigned i = 0; i < 16; i++) {
            const values_t v = wild((values_t){context, 1, 7, 0}, i % DN_MATCH_KINDS);
            post(&world, v);
            keep(&world, v);
            (void) dn_match_find(&world.match, context, v.source, v.tag, v.ignore);
        }
        for (unsigned i = 0; i < 16; i++) {
            const values_t v = wild((values_t){context, 1, 7, 0}, i % DN_MATCH_KINDS);
            const dn_match_recv_t *recv = dn_match_arrive(&world.match, context, v.source, v.tag);
            if (NULL != recv) {
                const size_t at = model_place(&world.posted, recv);
                must(&world, at < world.posted.count, "a receive that was not posted");
                free(world.posted.at[at].entry);
                model_remove(&world.posted, at);
            }
            const dn_match_msg_t *msg = dn_match_find(&world.match, context, v.source, v.tag, v.ignore);
            if (NULL != msg) {
                const size_t at = model_place(&world.kept, msg);
                must(&world, at < world.kept.count, "a message that was not kept");
                take(&world, at);
            }
            compare(&world, NULL);
        }
        end(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_traffic_is_matched_as_by_plain_lists),
        cmocka_unit_test(so_it_is_when_memory_is_refused_now_and_then),
        cmocka_unit_test(receives_and_messages_of_one_kind_go_first_in_first_out),
        cmocka_unit_test(the_earliest_posted_receive_wins_whatever_is_wild),
        cmocka_unit_test(any_tag_leaves_negative_tags_alone),
        cmocka_unit_test(a_hundred_thousand_entries_are_found_in_a_few_looks),
        cmocka_unit_test(a_hundred_thousand_entries_of_one_kind_are_one_queue),
        cmocka_unit_test(an_index_that_cannot_grow_does_no_harm),
        cmocka_unit_test(without_memory_init_fails_and_leaves_nothing),
        cmocka_unit_test(wild_values_in_messages_do_no_harm),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
