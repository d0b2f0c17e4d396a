/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "conformance.h"

#include "dn_tree.h"

enum { LINES = 8, PUTS = 5000 };

static void put_line(dn_world_t *world, dn_peer_t *peer, uint64_t off, const void *data, size_t len,
                     uint64_t flag)
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_aotf_line(peer, off, data, len, flag))) {
        dn_world_progress(world);
    }
    dn_check_equal(status, DN_OK);
}

/** Who sees the flag of a line sees its data; a word comes back for each line taken. */
void lines_show_their_data_with_their_flag(dn_world_t *world)
{
    uint8_t data[DN_AOTF_LINE_MAX];
    void *mem = NULL;

    dn_world_start(world);
    dn_check_equal(dn_llcm_alloc(world->port, (LINES + 1) * 64, &world->me->off[0], &mem), DN_OK);
    dn_world_barrier(world);
    dn_peer_t *peer = world->peer[1 - world->rank];
    const uint64_t off = world->board->seat[1 - world->rank].off[0];
    const uint8_t *lines = mem;
    uint64_t random = 1;
    for (uint64_t i = 1; i <= PUTS; i++) {
        const uint64_t at = i % LINES * 64;
        const size_t len = dn_test_below(&random, DN_AOTF_LINE_MAX + 1);
        if (0 == world->rank) {
            while (i > LINES && dn_load_acquire((const uint64_t *) (lines + LINES * 64)) < i - LINES) {
                dn_world_progress(world);
            }
            dn_test_fill(data, len, i);
            put_line(world, peer, off + at, data, len, i);
        } else {
            while (i != dn_load_acquire((const uint64_t *) (lines + at + DN_AOTF_LINE_MAX))) {
                dn_world_progress(world);
            }
            dn_check_bytes(lines + at, len, i);
            dn_world_aotf(world, peer, off + LINES * 64, i, 8);
        }
    }
    dn_world_stop(world);
}

static void line_refused(dn_world_t *world, dn_peer_t *peer, uint64_t off, size_t len)
{
    static const uint8_t data[256];
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_aotf_line(peer, off, data, len, 1))) {
        dn_world_progress(world);
    }
    dn_check_equal(status, DN_ERR_RANGE);
}

void lines_out_of_place_are_refused(dn_world_t *world)
{
    dn_peer_attr_t attr;

    dn_world_start(world);
    dn_peer_t *peer = world->peer[1 - world->rank];
    dn_peer_attr(peer, &attr);
    line_refused(world, peer, attr.llcm_len, 0);
    line_refused(world, peer, UINT64_MAX - 63, 8);
    line_refused(world, peer, UINT64_MAX, 8);
    line_refused(world, peer, 8, 8);
    line_refused(world, peer, 0, DN_AOTF_LINE_MAX + 1);
    line_refused(world, peer, 0, SIZE_MAX);
    put_line(world, peer, attr.llcm_len - 64, "", 0, 1);
    dn_world_stop(world);
}

/** A tree of all processes of the world, its cards by way of the board. The ranks are dealt out to so many hosts, or what
 * the tree takes for such. */
static dn_tree_t *plant(dn_world_t *world, uint32_t radix, uint32_t depth, uint32_t hosts)
{
    dn_tree_card_t card[DN_WORLD_MAX];
    dn_tree_place_t place[DN_WORLD_MAX] = {{{0}}};
    dn_tree_t *tree = NULL;
    const dn_tree_config_t config = {.ranks = (uint32_t) world->size,
                                     .rank = (uint32_t) world->rank,
                                     .radix = radix,
                                     .depth = depth,
                                     .place = place};

    _Static_assert(sizeof(dn_tree_card_t) <= sizeof(world->me->key), "a card goes where keys do");
    for (uint32_t i = 0; i < config.ranks; i++) {
        place[i].key[0] = i % hosts;
    }
    dn_check_equal(dn_tree_create(world->port, &config, &card[0], &tree), DN_OK);
    memcpy(world->me->key, &card[0], sizeof(card[0]));
    dn_world_barrier(world);
    for (int i = 0; i < world->size; i++) {
        memcpy(&card[i], world->board->seat[i].key, sizeof(card[i]));
    }
    dn_tree_connect(tree, card, world->peer);
    dn_world_barrier(world);
    return tree;
}

static void fell(dn_world_t *world, dn_tree_t *tree)
{
    while (DN_INPROGRESS == dn_tree_free(tree)) {
        dn_world_progress(world);
    }
}

static void complete(dn_world_t *world, dn_tree_t *tree, dn_status_t status)
{
    while (DN_INPROGRESS == status) {
        dn_world_progress(world);
        status = dn_tree_test(tree);
    }
    dn_check_equal(status, DN_OK);
}

/** Words of 64 bits, digits of which tell which rank stood where: 31 a + b does not commute. */
static void fold_digits(const dn_tree_reduction_t *reduction, const void *left, void *right, size_t count)
{
    (void) reduction;
    for (size_t i = 0; i < count; i++) {
        const uint32_t *l = (const uint32_t *) left + 2 * i;
        uint32_t *r = (uint32_t *) right + 2 * i;
        const uint32_t b = l[0] * r[1] + l[1];
        r[0] = l[0] * r[0];
        r[1] = b;
    }
}

static void digits_of(uint32_t *words, uint64_t key, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++) {
        words[2 * i] = (uint32_t) (key + i * 2) | 1;
        words[2 * i + 1] = (uint32_t) (key >> 32) + 1000 * (uint32_t) rank + (uint32_t) i;
    }
}

static void digits_of_all(uint32_t *words, uint64_t key, size_t count, int ranks, int ordered)
{
    uint32_t one[2 * 112];

    digits_of(words, key, count, ordered ? ranks - 1 : 0);
    for (int rank = ranks - 2; 0 <= rank; rank--) {
        digits_of(one, key, count, ordered ? rank : 0);
        fold_digits(NULL, one, words, count);
    }
}

static void reduce_once(dn_world_t *world, dn_tree_t *tree, uint64_t *random)
{
    static const dn_tree_reduction_t reduction = {.fold = fold_digits, .size = 8};
    uint32_t in[2 * 112], out[2 * 112], wanted[2 * 112];
    const uint64_t key = dn_test_random(random);
    const uint32_t root = (uint32_t) dn_test_below(random, (uint64_t) world->size);
    const size_t count = 1 + dn_test_below(random, 112);

    /* Where the order is another one operands that are all the same must do. */
    const int ordered = 0 != dn_tree_ordered(tree);
    digits_of(in, key, count, ordered ? world->rank : 0);
    digits_of_all(wanted, key, count, world->size, ordered);
    if (0 == key % 2) {
        complete(world, tree, dn_tree_allreduce(tree, in, out, count, &reduction));
    } else {
        complete(world, tree, dn_tree_reduce(tree, root, in, out, count, &reduction));
    }
    if (0 == key % 2 || (uint32_t) world->rank == root) {
        dn_check(0 == memcmp(out, wanted, count * 8));
    }
}

/** A scan of any kind, where the tree is for them: in flat trees, of one group in the order of the ranks. */
static void scan_once(dn_world_t *world, dn_tree_t *tree, uint64_t *random)
{
    static const dn_tree_reduction_t reduction = {.fold = fold_digits, .size = 8};
    uint32_t in[2 * 112], out[2 * 112] = {0}, wanted[2 * 112] = {0};
    const uint64_t key = dn_test_random(random);
    const size_t most = dn_tree_scan_max(tree, 8) / 8;
    const int exclusive = 0 == key % 2;
    const int ranks = world->rank + !exclusive;

    if (0 == most) {
        return;
    }
    dn_check(112 >= most);
    const size_t count = 1 + dn_test_below(random, most);
    digits_of(in, key, count, world->rank);
    if (0 < ranks) {
        digits_of_all(wanted, key, count, ranks, 1);
    }
    complete(world, tree,
             exclusive ? dn_tree_exscan(tree, in, out, count, &reduction)
                       : dn_tree_scan(tree, in, out, count, &reduction));
    dn_check(0 == memcmp(out, wanted, count * 8));
}

static void bcast_some(dn_world_t *world, dn_tree_t *tree, uint64_t *random)
{
    uint8_t bytes[DN_AOTF_LINE_MAX * DN_TREE_LINES];
    const uint32_t root = (uint32_t) dn_test_below(random, (uint64_t) world->size);

    for (uint64_t n = dn_test_below(random, 20); 0 < n; n--) {
        const uint64_t key = dn_test_random(random);
        const size_t len = dn_test_length(random, sizeof(bytes));
        dn_test_fill(bytes, len, (uint32_t) world->rank == root ? key : ~key);
        complete(world, tree, dn_tree_bcast(tree, root, bytes, len));
        dn_check_bytes(bytes, len, key);
    }
}

static void exchange_some(dn_world_t *world, dn_tree_t *tree, uint64_t *random)
{
    uint8_t in[DN_WORLD_MAX * DN_AOTF_LINE_MAX * DN_TREE_LINES];
    uint8_t out[sizeof(in)];
    const uint64_t key = dn_test_random(random);
    const int gathers = 0 == key % 2;
    const size_t len =
        dn_test_length(random, gathers ? dn_tree_allgather_max(tree) : dn_tree_alltoall_max(tree));

    for (int to = 0; to < (gathers ? 1 : world->size); to++) {
        dn_test_fill(in + (size_t) to * len, len, key + (uint64_t) (100 * world->rank + to));
    }
    complete(world, tree,
             gathers ? dn_tree_allgather(tree, in, out, len) : dn_tree_alltoall(tree, in, out, len));
    for (int from = 0; from < world->size; from++) {
        dn_check_bytes(out + (size_t) from * len, len,
                       key + (uint64_t) (100 * from + (gathers ? 0 : world->rank)));
    }
}

/** Nobody is through a barrier before all have come to it, however late some are. */
static void barrier_once(dn_world_t *world, dn_tree_t *tree, uint64_t number, uint64_t *own)
{
    for (uint64_t n = 0 == dn_test_below(own, 4) ? dn_test_below(own, 20) : 0; 0 < n; n--) {
        dn_world_progress(world);
    }
    dn_world_post(world, 0, number);
    complete(world, tree, dn_tree_barrier(tree));
    for (int i = 0; i < world->size; i++) {
        dn_check(number <= dn_load_acquire(&world->board->seat[i].word[0]));
    }
}

static void grow(dn_world_t *world, uint32_t radix, uint32_t depth, uint32_t hosts, int rounds)
{
    uint64_t random = 17;
    uint64_t own = world->random;

    dn_world_start(world);
    dn_tree_t *tree = plant(world, radix, depth, hosts);
    dn_check(1 != hosts || (int) radix < world->size || 0 != dn_tree_scan_max(tree, 8));
    for (int i = 1; i <= rounds; i++) {
        barrier_once(world, tree, (uint64_t) i, &own);
        reduce_once(world, tree, &random);
        scan_once(world, tree, &random);
        bcast_some(world, tree, &random);
        exchange_some(world, tree, &random);
    }
    fell(world, tree);
    dn_world_stop(world);
}

void a_tree_of_two_agrees(dn_world_t *world)
{
    grow(world, 8, 8, 2, 300);
}

void a_flat_tree_agrees(dn_world_t *world)
{
    grow(world, 8, 4, 1, 60);
}

void a_deep_tree_agrees(dn_world_t *world)
{
    grow(world, 3, 4, 1, 30);
}

void a_tree_of_hosts_agrees(dn_world_t *world)
{
    grow(world, 8, 4, 2, 60);
}

/** One half does not come to a barrier; of the other half, who waits for who waits for it is told. */
void who_waits_for_a_tree_given_up_is_told(dn_world_t *world)
{
    dn_world_start(world);
    dn_tree_t *tree = plant(world, 2, 4, 1);
    complete(world, tree, dn_tree_barrier(tree));
    for (int i = 0; i < 2 && 2 <= world->rank; i++) {
        dn_status_t status = dn_tree_barrier(tree);
        if (2 == world->rank) {
            dn_tree_give_up(tree);
        }
        while (DN_INPROGRESS == status) {
            dn_world_progress(world);
            (void) dn_tree_heed(tree);
            status = dn_tree_test(tree);
        }
        dn_check_equal(status, DN_ERR_UNREACH);
    }
    if (2 <= world->rank) {
        dn_check_equal(dn_tree_free(tree), DN_INPROGRESS);
    }
    dn_tree_abandon(tree);
    dn_world_stop(world);
}
