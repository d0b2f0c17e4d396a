/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file torture_plan.c
 * Drawing a plan: which messages there are, who begins when and how, and after that which tags and wildcards
 * let every message still find its receive.
 */
#include "dn_config.h"

#include "torture.h"

#include <string.h>

/* A position is a slot of the round, and within it an order that only one message has. */
#define ORDERS     4096
#define MOST_SLOTS 60

/* How far ahead of the slot where it meets a message is begun at most. */
#define MOST_LEAD 30

/* Labels: a few that many messages have, then one for each message and each group. */
#define COMMON_LABELS 4
#define LABEL_MESSAGE COMMON_LABELS
#define LABEL_GROUP   (LABEL_MESSAGE + MOST_MESSAGES)
#define LABEL_NEVER   (LABEL_GROUP + MOST_GROUPS)
#define LABELS        (LABEL_NEVER + 1)

/* Series of messages by the same persistent requests: open at a time, and messages of one. */
#define MOST_SERIES    6
#define MOST_IN_SERIES 4

#define MOST_BURST 60

/* Without torture_t::ask_all only messages to others up to this size are truncated. */
#define TRUNCATED_SIZE 1000

/* Buffered messages are not longer than this. */
#define BUFFERED_SIZE 70000

typedef struct {
    plan_t *plan;
    const torture_t *t;
    verify_rng_t rng;
    uint64_t slot;
    uint64_t order;          /* the last one given away */
    int series[MOST_SERIES]; /* last message of each open series, or -1 */
    size_t buffered[MOST_RANKS];
    bool open_taken[MOST_RANKS]; /* targets that have a group on SPACE_OPEN */
} draft_t;

static bool chance(draft_t *d, unsigned percent)
{
    return verify_below(&d->rng, 100) < percent;
}

static uint64_t position(uint64_t slot, uint64_t order)
{
    return slot * ORDERS + order;
}

static uint64_t slot_of(uint64_t position)
{
    return position / ORDERS;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A slot before this one, and not before @p floor. */
static uint64_t early_slot(draft_t *d, uint64_t floor)
{
    uint64_t lead = 1 + verify_below(&d->rng, MOST_LEAD);

    return later(d->slot > lead ? d->slot - lead : 0, floor);
}

/* Around the sizes where transports change their way, small ones more often. */
static size_t draw_size(draft_t *d)
{
    static const size_t sizes[] = {0,    0,    1,   3,    8,     24,    40,    40,      56,     56,     64,
                                   64,   130,  256, 1024, 1024,  2048,  4096,  4096,    8192,   12288,  12288,
                                   1024, 4096, 8,   0,    32768, 65536, 65536, 1048576, 200000, 1048576};
    size_t size = sizes[verify_below(&d->rng, sizeof(sizes) / sizeof(sizes[0]))];
    size_t skew = chance(d, 50) ? verify_below(&d->rng, 17) : 8;

    size = size + skew > 8 ? size + skew - 8 : 0;
    if (size >= 100000 && chance(d, 60)) {
        size = verify_below(&d->rng, 200);
    }
    return size < d->t->largest ? size : d->t->largest;
}

static unsigned draw_unit(draft_t *d)
{
    static const unsigned units[] = {1, 1, 1, 1, 4, 8};

    return units[verify_below(&d->rng, sizeof(units) / sizeof(units[0]))];
}

/* A new message with its size and key, from and to nobody yet, begun by both at this slot. */
static message_t *add_message(draft_t *d, int space, int source, int target, unsigned unit, size_t units)
{
    plan_t *plan = d->plan;
    message_t *m = &plan->messages[plan->count];

    d->order++;
    *m = (message_t){.index = plan->count,
                     .space = space,
                     .source = source,
                     .target = target,
                     .label = -1,
                     .bytes = units * unit,
                     .key = verify_random(&d->rng),
                     .group = -1,
                     .leader = plan->count,
                     .next = -1};
    m->out = shape_exact(&d->rng, unit, units);
    bool fits = d->t->ask_all || (m->bytes <= TRUNCATED_SIZE && source != target);
    bool truncated = units > 0 && fits && chance(d, 8);
    m->in = truncated ? shape_short(&d->rng, unit, units) : shape_room(&d->rng, unit, units);
    m->send_at = m->recv_at = position(d->slot, d->order);
    plan->count++;
    return m;
}

/* Room for @p count more messages. */
static bool has_room(const draft_t *d, int count)
{
    return d->plan->count + count <= MOST_MESSAGES && d->order + (uint64_t) count < ORDERS;
}

/* A communicator and two ranks that it connects. */
static void draw_pair(draft_t *d, int *space, int *source, int *target)
{
    do {
        *space = (int) verify_below(&d->rng, SPACE_OPEN);
        *source = (int) verify_below(&d->rng, (uint64_t) d->t->ranks);
        *target = (int) verify_below(&d->rng, (uint64_t) d->t->ranks);
    } while (!space_connects(&d->t->spaces[*space], *source, *target));
}

/* Behind both beginnings: from here on each half may be waited for. */
static void settle(message_t *m)
{
    m->send_due = m->recv_due = later(later(m->send_at, m->recv_at), m->take_at);
}

static const message_t *leader_of(const draft_t *d, const message_t *m)
{
    return &d->plan->messages[m->leader];
}

/* A message that is not the first of its series, and whose half of the given way uses the same request. */
static bool follows(const draft_t *d, const message_t *m, bool sending)
{
    const message_t *leader = leader_of(d, m);

    return leader != m && WAY_PERSISTENT == (sending ? leader->send_way : leader->recv_way);
}

static bool take_budget(draft_t *d, const message_t *m)
{
    size_t cost = m->bytes + MPI_BSEND_OVERHEAD;
    bool fits = m->bytes <= BUFFERED_SIZE && d->buffered[m->source] + cost <= BUFFERED_MOST;

    d->buffered[m->source] += fits ? cost : 0;
    return fits;
}

static send_mode_t draw_mode(draft_t *d, const message_t *m)
{
    uint64_t dice = verify_below(&d->rng, 100);

    if (dice < 30 && m->recv_at < m->send_at && m->group < 0) {
        return MODE_READY;
    }
    if (dice < 50) {
        return MODE_SYNCHRONOUS;
    }
    if (dice < 70 && take_budget(d, m)) {
        return MODE_BUFFERED;
    }
    return MODE_STANDARD;
}

/* How the sender sends. A call that may block must not begin before all it waits for is begun; when a message
 * to oneself has one position for both halves, the send comes first. */
static void draw_send(draft_t *d, message_t *m)
{
    bool blocks = m->send_due <= m->send_at && m->source != m->target;

    if (follows(d, m, true)) {
        m->mode = leader_of(d, m)->mode;
        m->send_way = WAY_PERSISTENT;
        m->out = leader_of(d, m)->out;
        return;
    }
    blocks = blocks || (m->send_due <= m->send_at && m->recv_at < m->send_at && m->group < 0);
    m->send_way = m->leader == m->index && chance(d, 20) ? WAY_PERSISTENT : WAY_NONBLOCKING;
    m->mode = draw_mode(d, m);
    if (WAY_NONBLOCKING == m->send_way && (blocks || MODE_BUFFERED == m->mode) && chance(d, 60)) {
        m->send_way = WAY_BLOCKING;
    }
}

/* How the receiver receives. @p sent: when it begins, a message for it is on its way. */
static void draw_receive(draft_t *d, message_t *m, bool sent)
{
    static const way_t ways[] = {WAY_BLOCKING, WAY_BLOCKING, WAY_PROBE, WAY_MATCHED, WAY_CANCEL};

    if (follows(d, m, false)) {
        m->recv_way = WAY_PERSISTENT;
        m->in = leader_of(d, m)->in;
        return;
    }
    m->recv_way = m->leader == m->index && chance(d, 20) ? WAY_PERSISTENT : WAY_NONBLOCKING;
    if (0 != m->take_at) {
        m->recv_way = WAY_MATCHED;
    } else if (sent && chance(d, 75)) {
        m->recv_way = ways[verify_below(&d->rng, sizeof(ways) / sizeof(ways[0]))];
    }
    /* Open MPI 4.1 frees a persistent request that ends with an error, so those never meet truncation. */
    if (WAY_PERSISTENT == m->recv_way) {
        m->in = shape_room(&d->rng, m->in.unit, m->bytes / m->in.unit);
    }
}

/* Choose the ways of a message whose positions are known. */
static void draw_ways(draft_t *d, message_t *m)
{
    settle(m);
    draw_send(d, m);
    draw_receive(d, m, m->send_at <= m->recv_at);
    m->held = MODE_SYNCHRONOUS == m->mode && m->send_at < m->recv_at && 0 == m->take_at && chance(d, 50);
}

/* Let the message meet in this slot; one of both may begin earlier, but not before slot @p floor. */
static void arrange(draft_t *d, message_t *m, uint64_t floor)
{
    bool ready = follows(d, m, true) && MODE_READY == leader_of(d, m)->mode;
    bool whole = follows(d, m, false);
    uint64_t dice = verify_below(&d->rng, 100);

    if (ready || dice < 40) {
        m->recv_at = position(early_slot(d, floor), d->order);
    } else if (dice < 80 || m->source == m->target) {
        m->send_at = position(early_slot(d, floor), d->order);
    } else if (dice < 88 && !whole) {
        m->send_at = position(early_slot(d, floor), d->order);
        m->recv_at = position(early_slot(d, slot_of(m->send_at)), d->order);
        m->take_at = position(d->slot, d->order);
    }
    draw_ways(d, m);
}

static size_t draw_units(draft_t *d, unsigned *unit)
{
    *unit = draw_unit(d);
    return draw_size(d) / *unit;
}

static void add_single(draft_t *d)
{
    int space;
    int source;
    int target;
    unsigned unit;
    size_t units = draw_units(d, &unit);
    message_t *m;

    draw_pair(d, &space, &source, &target);
    m = add_message(d, space, source, target, unit, units);
    arrange(d, m, 0);
    /* Open MPI 4.1 sends the first data again when a persistent buffered send is started a second time. */
    bool again = WAY_PERSISTENT == m->send_way ? MODE_BUFFERED != m->mode : WAY_PERSISTENT == m->recv_way;
    for (int i = 0; i < MOST_SERIES && again; i++) {
        if (d->series[i] < 0) {
            d->series[i] = m->index;
            break;
        }
    }
}

/* One message more by the persistent requests of a series. The half that has none may change its way. */
static void continue_series(draft_t *d, int *last)
{
    message_t *before = &d->plan->messages[*last];
    const message_t *leader = leader_of(d, before);
    unsigned unit = leader->out.unit;
    message_t *m = add_message(d, leader->space, leader->source, leader->target, unit, leader->bytes / unit);

    m->leader = leader->index;
    arrange(d, m, slot_of(before->send_due));
    before->next = m->index;
    *last = m->index;
}

static void continue_some_series(draft_t *d)
{
    for (int i = 0; i < MOST_SERIES; i++) {
        if (d->series[i] >= 0 && chance(d, 30) && has_room(d, 1)) {
            const message_t *last = &d->plan->messages[d->series[i]];
            int length = 2;
            for (int j = last->leader; j != last->index; j = d->plan->messages[j].next) {
                length++;
            }
            continue_series(d, &d->series[i]);
            if (length == MOST_IN_SERIES || chance(d, 20)) {
                d->series[i] = -1;
            }
        }
    }
}

/* The ranks that make up a ring around @p first, in a random order; of an intercommunicator two. */
static int draw_ring(draft_t *d, const space_t *space, int first, int other, int *ring)
{
    int order[MOST_RANKS];
    int count = 0;

    if (space->inter) {
        ring[0] = first;
        ring[1] = other;
        return 2;
    }
    verify_shuffle(&d->rng, order, d->t->ranks);
    for (int i = 0; i < d->t->ranks; i++) {
        if (space->side[order[i]] == space->side[first]) {
            ring[count++] = order[i];
        }
    }
    return 1 + (int) verify_below(&d->rng, (uint64_t) count);
}

/* Sendrecv around a ring, or along a chain whose ends have MPI_PROC_NULL for a neighbour. */
static void add_ring(draft_t *d)
{
    int space;
    int ring[MOST_RANKS];
    int ends[2];
    unsigned unit;
    size_t units = draw_units(d, &unit);
    uint64_t at = position(d->slot, d->order + 1);

    draw_pair(d, &space, &ends[0], &ends[1]);
    int count = draw_ring(d, &d->t->spaces[space], ends[0], ends[1], ring);
    int links = chance(d, 25) ? count - 1 : count;
    int first = d->plan->count;
    for (int i = 0; i < links; i++) {
        message_t *m = add_message(d, space, ring[i], ring[(i + 1) % count], unit, units);
        m->send_at = m->recv_at = at;
        m->send_way = m->recv_way = WAY_EXCHANGE;
        m->sender_gets = i > 0 ? first + i - 1 : links == count ? first + links - 1 : -1;
        m->target_gives = i + 1 < links ? first + i + 1 : links == count ? first : -1;
        settle(m);
    }
    for (int i = first; i < first + links; i++) {
        message_t *out = &d->plan->messages[i];
        if (chance(d, 40) && out->sender_gets >= 0) {
            message_t *in = &d->plan->messages[out->sender_gets];
            out->send_way = in->recv_way = WAY_REPLACE;
            in->in = out->out;
        }
    }
}

static int draw_source(draft_t *d, int space, int target)
{
    int source;

    do {
        source = (int) verify_below(&d->rng, (uint64_t) d->t->ranks);
    } while (!space_connects(&d->t->spaces[space], source, target));
    return source;
}

/* Sort a group both ways and tell who has to wait for what. */
static void settle_group(draft_t *d, group_t *group)
{
    message_t *messages = d->plan->messages;

    for (int i = 1; i < group->count; i++) {
        for (int j = i; j > 0; j--) {
            int *send = &group->by_send[j];
            int *recv = &group->by_recv[j];
            if (messages[send[-1]].send_at > messages[*send].send_at) {
                int swap = *send;
                *send = send[-1];
                send[-1] = swap;
            }
            if (messages[recv[-1]].recv_at > messages[*recv].recv_at) {
                int swap = *recv;
                *recv = recv[-1];
                recv[-1] = swap;
            }
        }
    }
    /* Any message may be the last to find a receive. The first j receives are filled by any j messages. */
    uint64_t last_posted = messages[group->by_recv[group->count - 1]].recv_at;
    for (int j = 0; j < group->count; j++) {
        message_t *send = &messages[group->by_send[j]];
        message_t *recv = &messages[group->by_recv[j]];
        send->send_due = later(send->send_at, last_posted);
        recv->recv_due = later(recv->recv_at, send->send_at);
    }
}

/*
 * Many to one, with receives from any source. Before those a few are posted that name a source; they take the
 * first of its messages, although the tag is the same.
 */
static void add_gather(draft_t *d)
{
    plan_t *plan = d->plan;
    group_t *group = &plan->groups[plan->group_count];
    int label = LABEL_GROUP + plan->group_count;
    uint64_t low = early_slot(d, 0);
    size_t largest = 0;
    int space;
    int source;
    int target;

    draw_pair(d, &space, &source, &target);
    bool open = plan->fenced && chance(d, 40) && !d->open_taken[target];
    int named = open ? 0 : (int) verify_below(&d->rng, 4);
    if (open) {
        d->open_taken[target] = true;
        space = SPACE_OPEN;
    }
    for (int i = 0; i < named; i++) {
        message_t *m = add_message(d, space, draw_source(d, space, target), target, 1, draw_size(d));
        m->label = label;
        m->send_at = m->recv_at = position(low, d->order);
        draw_ways(d, m);
    }
    group->count = 2 + (int) verify_below(&d->rng, MOST_MEMBERS - 1);
    for (int i = 0; i < group->count; i++) {
        message_t *m = add_message(d, space, draw_source(d, space, target), target, 1, draw_size(d));
        m->label = open ? (int) verify_below(&d->rng, COMMON_LABELS) : label;
        m->group = plan->group_count;
        m->any_source = true;
        m->any_tag = open;
        m->send_at = position(low + verify_below(&d->rng, d->slot - low + 1), d->order);
        m->recv_at = position(low + verify_below(&d->rng, d->slot - low + 1), d->order);
        group->by_send[i] = group->by_recv[i] = m->index;
        largest = m->bytes > largest ? m->bytes : largest;
    }
    settle_group(d, group);
    for (int i = 0; i < group->count; i++) {
        message_t *m = &plan->messages[group->by_recv[i]];
        m->in = shape_room(&d->rng, 1, largest);
        draw_send(d, m);
        draw_receive(d, m, m->recv_due <= m->recv_at);
        if (WAY_PERSISTENT == m->recv_way) {
            m->in = shape_room(&d->rng, 1, largest);
        }
    }
    plan->group_count++;
}

/* Many small messages at once, taken much later and in another order. */
static void add_burst(draft_t *d)
{
    int order[MOST_BURST];
    int count = 10 + (int) verify_below(&d->rng, MOST_BURST - 9);
    uint64_t early = early_slot(d, 0);
    uint64_t first = d->order + 1;
    size_t largest = chance(d, 70) ? 200 : 9000;
    bool backwards = chance(d, 40);
    int space;
    int source;
    int target;

    draw_pair(d, &space, &source, &target);
    verify_shuffle(&d->rng, order, count);
    for (int i = 0; i < count; i++) {
        message_t *m = add_message(d, space, source, target, 1, verify_below(&d->rng, largest));
        uint64_t place = (uint64_t) (backwards ? count - 1 - i : order[i]);
        m->send_at = position(early, d->order);
        m->recv_at = position(d->slot, first + place);
        draw_ways(d, m);
    }
}

/* Persistent requests of one rank with several others, to be started at once. */
static void add_volley(draft_t *d)
{
    int order[MOST_RANKS];
    uint64_t early = early_slot(d, 0);
    bool sends = chance(d, 50);
    int space;
    int root;
    int other;

    draw_pair(d, &space, &root, &other);
    verify_shuffle(&d->rng, order, d->t->ranks);
    for (int i = 0; i < d->t->ranks; i++) {
        unsigned unit;
        size_t units = draw_units(d, &unit);
        if (!space_connects(&d->t->spaces[space], root, order[i])) {
            continue;
        }
        message_t *m = add_message(d, space, sends ? root : order[i], sends ? order[i] : root, unit, units);
        *(sends ? &m->send_at : &m->recv_at) = position(early, d->order);
        draw_ways(d, m);
        if (sends) {
            m->send_way = WAY_PERSISTENT;
        } else {
            m->recv_way = WAY_PERSISTENT;
            m->in = shape_room(&d->rng, unit, units);
        }
    }
}

/* Sent in one order and taken in another. */
static bool inverted(const message_t *a, const message_t *b)
{
    return a->space == b->space && a->source == b->source && a->target == b->target
           && (a->send_at < b->send_at) != (a->recv_at < b->recv_at);
}

/* Whether every message of a series could have this label. */
static bool label_fits(const plan_t *plan, const message_t *leader, int label)
{
    for (int i = leader->index; i >= 0; i = plan->messages[i].next) {
        for (int j = 0; j < plan->count; j++) {
            if (label == plan->messages[j].label && inverted(&plan->messages[i], &plan->messages[j])) {
                return false;
            }
        }
    }
    return true;
}

static void draw_labels(draft_t *d)
{
    plan_t *plan = d->plan;

    for (int i = 0; i < plan->count; i++) {
        message_t *m = &plan->messages[i];
        if (m->leader != i || m->label >= 0) {
            continue;
        }
        int label = (int) verify_below(&d->rng, COMMON_LABELS);
        if (!label_fits(plan, m, label)) {
            label = LABEL_MESSAGE + i;
        }
        for (int j = i; j >= 0; j = plan->messages[j].next) {
            plan->messages[j].label = label;
        }
    }
}

/* Whether the receive of m, with such wildcards, could get x: when x fits, finds no receive of its own posted
 * before, and is not bound to come after m. */
static bool steals(const plan_t *plan, const message_t *m, bool any_source, bool any_tag, const message_t *x)
{
    uint64_t posted = x->recv_at;

    if (m == x || m->space != x->space || m->target != x->target || (!any_source && m->source != x->source)
        || (!any_tag && m->label != x->label)) {
        return false;
    }
    if (x->group >= 0) {
        const group_t *group = &plan->groups[x->group];
        posted = plan->messages[group->by_recv[group->count - 1]].recv_at;
    }
    return posted > m->recv_at && !(m->source == x->source && x->send_at > m->send_at);
}

static bool wildcards_fit(const draft_t *d, const message_t *leader, bool any_source, bool any_tag)
{
    const plan_t *plan = d->plan;

    if ((any_tag && SPACE_SHARED == leader->space)
        || (any_tag && any_source && !plan->fenced && SPACE_SHORT != leader->space)) {
        return false;
    }
    for (int i = leader->index; i >= 0; i = plan->messages[i].next) {
        for (int j = 0; j < plan->count; j++) {
            if (steals(plan, &plan->messages[i], any_source, any_tag, &plan->messages[j])) {
                return false;
            }
        }
    }
    return true;
}

static void draw_wildcards(draft_t *d)
{
    plan_t *plan = d->plan;

    for (int i = 0; i < plan->count; i++) {
        message_t *m = &plan->messages[i];
        if (m->leader != i || m->group >= 0) {
            continue;
        }
        bool any_source = chance(d, 40) && wildcards_fit(d, m, true, false);
        bool any_tag = chance(d, 40) && wildcards_fit(d, m, any_source, true);
        for (int j = i; j >= 0; j = plan->messages[j].next) {
            plan->messages[j].any_source = any_source;
            plan->messages[j].any_tag = any_tag;
        }
    }
}

int plan_windows(int tag_top, int threads)
{
    int fit = tag_top / 2 / (LABELS * threads);

    return fit > 16 ? 16 : fit;
}

/* Tags from both ends of the range. */
static int tag_of(const torture_t *t, int label)
{
    int window = (int) (t->round % (uint64_t) t->windows);
    int number = (window * LABELS + label) * t->threads + t->thread;

    return 0 == number % 2 ? number : t->tag_top - number;
}

void plan_make(plan_t *plan, const torture_t *t)
{
    draft_t d = {
        .plan = plan, .t = t, .rng = {.state = verify_key(t->seed, t->round, (uint64_t) t->thread, 1)}};

    plan->count = 0;
    plan->group_count = 0;
    plan->fenced = chance(&d, 60) || 0 == (t->round + 1) % (uint64_t) t->windows;
    plan->never_tag = tag_of(t, LABEL_NEVER);
    memset(d.series, -1, sizeof(d.series));
    uint64_t slots = 10 + verify_below(&d.rng, MOST_SLOTS - 9);
    for (d.slot = 1; d.slot <= slots && has_room(&d, MOST_BURST + MOST_SERIES); d.slot++) {
        uint64_t dice = verify_below(&d.rng, 100);
        continue_some_series(&d);
        if (dice < 12) {
            add_ring(&d);
        } else if (dice < 22 && plan->group_count < MOST_GROUPS) {
            add_gather(&d);
        } else if (dice < 27) {
            add_burst(&d);
        } else if (dice < 35) {
            add_volley(&d);
        } else {
            add_single(&d);
        }
    }
    draw_labels(&d);
    draw_wildcards(&d);
    for (int i = 0; i < plan->count; i++) {
        plan->messages[i].tag = tag_of(t, plan->messages[i].label);
    }
}
