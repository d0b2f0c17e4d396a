/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The service thread, which does the work of the card. It works on what comes while the program computes, keeps the timers, and looks
 * after processes that fall silent. While the program looks at the network itself, the thread naps until the program stops doing so
 * (dn_lull_t), or goes to sleep (dn_ipnuma_hand_on()). The thread runs no handler and no completion.
 */
#include "dn_config.h"

#include "dn_ipnuma_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"
#include "dn_thread.h"

/** The thread looks after silent processes so many times in one time limit. */
#define DN_IPNUMA_LOOKS 8u
/** Time between two looks of closing whether the processes that it waits for still run. */
#define DN_IPNUMA_LINGER_LOOK_NS UINT64_C(500000)
/** Longest sleep of the thread. */
#define DN_IPNUMA_SLEEP_NS UINT64_C(1000000000)
/** Most batches of datagrams that one turn takes. */
#define DN_IPNUMA_BATCHES 4
/** Most messages of one peer that are handled before the next peer has its turn. */
#define DN_IPNUMA_MESSAGES 32

/** Arrows of the drawing in dn_ipnuma_int.h. */
const uint32_t dn_ipnuma_service_turns[] = {
    [DN_IPNUMA_NO_THREAD] = DN_TURN_TO(DN_IPNUMA_LISTENS),
    [DN_IPNUMA_LISTENS] = DN_TURN_TO(DN_IPNUMA_NAPS) | DN_TURN_TO(DN_IPNUMA_NO_THREAD),
    [DN_IPNUMA_NAPS] = DN_TURN_TO(DN_IPNUMA_LISTENS),
};

static void dn_ipnuma_service_turn(dn_ipnuma_t *ipnuma, enum dn_ipnuma_service_state to)
{
    dn_turn_check("the thread of ipnuma", dn_ipnuma_service_turns, ipnuma->service.state, to);
    ipnuma->service.state = to;
}

/** A look at the network is a call of the kernel. While nothing comes and nothing is on its way, so many calls of progress are left out
 * between two looks. */
#define DN_IPNUMA_REST 15u
/** Calls are left out after so many looks in vain. */
#define DN_IPNUMA_VAIN 64u
/** Calls are left out only where turns follow each other within this time: the program does nothing but wait. */
#define DN_IPNUMA_FAST_NS UINT64_C(8000)

/* Turns */

/**
 * Does a stream gather on in this turn? In a turn of the program nothing does. While packets are on their way, an acknowledgement or a
 * loss timer has the thread take a turn. Where all are acknowledged, so soon that the program has added nothing yet, the thread sets itself
 * a time. Without that, a program that shares its core with the thread would send each TLP alone: the acknowledgement comes before the next TLP.
 */
static int dn_ipnuma_goes_on(dn_ipnuma_pc_t *pc, uint64_t now)
{
    const int over = now - pc->stream.since > DN_IPNUMA_STREAM_NS * (pc->stream.gathered + DN_IPNUMA_FEW);
    pc->stream.hasty = over ? 0 : pc->stream.hasty;
    if (!pc->ipnuma->service.reads || DN_IPNUMA_FEW > pc->stream.hasty) {
        pc->stream.until = 0;
        return 0;
    }
    if (0 != pc->link.loss.count) {
        pc->stream.until = 0;
        return 1;
    }
    if (now < pc->stream.until) {
        return 1;
    }
    const int none = NULL == pc->link.waits, set = 0 != pc->stream.until;
    pc->stream.hasty = none && set ? 0 : pc->stream.hasty;
    pc->stream.until = none && !set ? now + DN_IPNUMA_HOLD_NS : 0;
    return 0 != pc->stream.until;
}

/** Do all work that is due on a connection. @param[in] quiet  Not 0: the program does not answer in this turn. */
static void dn_ipnuma_attend(dn_ipnuma_pc_t *pc, int quiet, uint64_t now)
{
    if (0 != pc->greet.at || DN_IPNUMA_GREETS == pc->state) {
        pc->ipnuma->busy = 1;
        dn_ipnuma_greet(pc, now);
    }
    if (DN_IPNUMA_OPEN != pc->state) {
        return;
    }
    if (NULL != pc->sending.first) {
        dn_ipnuma_advance(pc);
    }
    if (pc->replied != pc->replies) {
        dn_ipnuma_reply(pc);
    }
    dn_ipnuma_link_t *link = &pc->link;
    const int gathers = dn_ipnuma_goes_on(pc, now);
    if (NULL == link->waits && NULL == link->again && 0 == link->owed && 0 == link->loss.count
        && 0 == link->starved_at) {
        return;
    }
    pc->ipnuma->busy = 1;
    /* An answer of the program could take the acknowledgement along. In a quiet turn no answer comes soon, so the acknowledgement goes
     * alone. */
    link->urgent |= quiet && 0 != link->owed;
    dn_ipnuma_link_tick(link, gathers, now);
    if (gathers && 0 == link->loss.count && 0 == pc->stream.until) {
        /* The last packet on its way counts as lost, and is not sent again: nothing else has the thread take a turn. */
        dn_ipnuma_link_send(link, now);
    }
    dn_ipnuma_pc_count(pc);
}

void dn_ipnuma_attend_all(dn_ipnuma_t *ipnuma, int quiet, uint64_t now)
{
    ipnuma->busy = 0;
    for (dn_ipnuma_pc_t *pc = ipnuma->pcs; NULL != pc; pc = pc->next) {
        dn_ipnuma_attend(pc, quiet, now);
    }
}

int dn_ipnuma_turn(dn_ipnuma_t *ipnuma)
{
    int n = 0, got = (int) DN_IPNUMA_BATCH;

    for (int batch = 0; batch < DN_IPNUMA_BATCHES && got == (int) DN_IPNUMA_BATCH; batch++) {
        got = dn_ipnuma_socket_receive(ipnuma);
        n += got;
    }
    const uint64_t now = dn_clock_ns();
    if (0 != ipnuma->npcs) {
        ipnuma->fast = now - ipnuma->turned_at < DN_IPNUMA_FAST_NS;
        dn_ipnuma_attend_all(ipnuma, 0 == n || ipnuma->service.reads, now);
    }
    ipnuma->turned_at = now;
    if (0 != n) {
        /* Whoever reads rings: another thread of the program may sleep until something comes that this thread has taken. */
        ipnuma->after |= DN_IPNUMA_AFTER_RING;
    }
    if (ipnuma->unmet && !ipnuma->service.reads && !ipnuma->closing) {
        dn_ipnuma_meet(ipnuma);
    }
    return n;
}

void dn_ipnuma_give_credit(dn_ipnuma_pc_t *pc, uint32_t cost)
{
    pc->waiting_cost -= cost;
    pc->link.given += cost;
    if (DN_IPNUMA_OPEN == pc->state && pc->link.given - pc->link.told >= pc->ipnuma->where.credit / 4) {
        dn_ipnuma_link_word(&pc->link, 0, dn_clock_ns());
    }
}

/** Run the handlers of up to @p max messages of one peer. The lock is let go for each handler. @return messages. */
static int dn_ipnuma_dispatch(dn_ipnuma_t *ipnuma, dn_ipnuma_peer_t *peer, int max)
{
    int n = 0;

    while (n < max && NULL != peer->first) {
        dn_ipnuma_message_t *message = peer->first;
        const dn_handler_t *handler = &ipnuma->iface.handler[message->channel];
        if (NULL == handler->fn) {
            break;
        }
        peer->first = message->next;
        /* A handler may call progress, which runs the handler of the next message inside this one. */
        peer->depth++;
        dn_ipnuma_unlock(ipnuma);
        handler->fn(&peer->base.hot, message->tag, message->bytes, message->len, handler->arg);
        dn_ipnuma_lock(ipnuma);
        peer->depth--;
        /* Until now nothing may be done that comes behind this message. */
        peer->later -= message->later;
        if (NULL == peer->pc) {
            peer->waiting -= message->cost;
        } else {
            dn_ipnuma_give_credit(peer->pc, message->cost);
        }
        free(message);
        n++;
    }
    return n;
}

/** Give each peer with messages its turn. A peer that still has messages goes to the end of the queue. @return messages. */
static int dn_ipnuma_dispatch_all(dn_ipnuma_t *ipnuma)
{
    int n = 0;

    for (uint32_t turns = ipnuma->nready; 0 != turns && NULL != ipnuma->ready.first; turns--) {
        dn_ipnuma_peer_t *peer =
            (dn_ipnuma_peer_t *) ((char *) ipnuma->ready.first - offsetof(dn_ipnuma_peer_t, ready));
        dn_ipnuma_unready(ipnuma, peer);
        n += dn_ipnuma_dispatch(ipnuma, peer, DN_IPNUMA_MESSAGES);
        dn_ipnuma_make_ready(ipnuma, peer);
    }
    return n;
}

/** End a turn, without the lock: signal completions, tell the port of lost peers, and free peers that have left. */
static int dn_ipnuma_end_turn(dn_ipnuma_t *ipnuma, int more)
{
    int n = 0;

    if (more) {
        n = dn_ipnuma_signal(ipnuma);
        if (0 != dn_load_acquire_u32(&ipnuma->iface.doubts)) {
            dn_port_bury(&ipnuma->iface);
        }
        dn_ipnuma_reap(ipnuma);
    }
    return n;
}

/** Is there work for dn_ipnuma_end_turn()? */
static int dn_ipnuma_has_more(const dn_ipnuma_t *ipnuma)
{
    return NULL != ipnuma->done.first || ipnuma->reap || 0 != dn_load_acquire_u32(&ipnuma->iface.doubts);
}

/** The program looks at the network. @return dn_ipnuma_turn(). */
static int dn_ipnuma_take_turn(dn_ipnuma_t *ipnuma)
{
    /* Relaxed suffices: the napping thread compares the number without the lock, and reads nothing else by it. */
    dn_store_relaxed(&ipnuma->turns, ipnuma->turns + 1);
    const int got = dn_ipnuma_turn(ipnuma);
    if (DN_IPNUMA_NAPS == ipnuma->service.state) {
        dn_lull_put_off(&ipnuma->service.lull, ipnuma->turned_at);
    }
    return got;
}

void dn_ipnuma_hand_on(dn_iface_t *iface)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) iface;

    dn_ipnuma_lock(ipnuma);
    ipnuma->service.handed = ipnuma->turns;
    /* A thread that naps does not listen to the network. */
    if (DN_IPNUMA_NAPS == ipnuma->service.state) {
        ipnuma->after |= DN_IPNUMA_AFTER_CALL;
    }
    dn_ipnuma_unlock(ipnuma);
}

int dn_ipnuma_progress(dn_iface_t *iface)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) iface;
    int n = 0;

    /* While there is no peer, only the thread looks at the network. When the thread has met a peer, the next call of progress goes on. */
    if (0 == dn_load_acquire_u32(&ipnuma->npeers)) {
        return 0;
    }
    dn_ipnuma_lock(ipnuma);
    const int got = dn_ipnuma_take_turn(ipnuma);
    if (NULL != ipnuma->ready.first) {
        n = dn_ipnuma_dispatch_all(ipnuma);
    }
    ipnuma->vain = 0 != got + n || ipnuma->busy ? 0 : ipnuma->vain + 1;
    iface->rest = DN_IPNUMA_VAIN < ipnuma->vain && ipnuma->fast ? DN_IPNUMA_REST : 0;
    const int more = dn_ipnuma_has_more(ipnuma);
    dn_ipnuma_unlock(ipnuma);
    return n + dn_ipnuma_end_turn(ipnuma, more);
}

int dn_ipnuma_recv(dn_peer_base_t *base, int max)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) base->iface;
    dn_ipnuma_peer_t *peer = (dn_ipnuma_peer_t *) base;

    dn_ipnuma_lock(ipnuma);
    if (NULL == peer->first) {
        (void) dn_ipnuma_take_turn(ipnuma);
    }
    const int n = dn_ipnuma_dispatch(ipnuma, peer, max);
    const int more = dn_ipnuma_has_more(ipnuma);
    dn_ipnuma_unlock(ipnuma);
    (void) dn_ipnuma_end_turn(ipnuma, more);
    return n;
}

/* The thread */

/** When work is due, if no datagram comes. */
static uint64_t dn_ipnuma_timer(const dn_ipnuma_t *ipnuma)
{
    uint64_t at = ipnuma->service.look_at;

    for (const dn_ipnuma_pc_t *pc = ipnuma->pcs; NULL != pc; pc = pc->next) {
        const uint64_t link = DN_IPNUMA_OPEN == pc->state ? dn_ipnuma_link_timer(&pc->link) : UINT64_MAX;
        const uint64_t greet = 0 != pc->greet.at && DN_IPNUMA_DEAD != pc->state ? pc->greet.at : UINT64_MAX;
        const uint64_t stream =
            DN_IPNUMA_OPEN == pc->state && 0 != pc->stream.until ? pc->stream.until : UINT64_MAX;
        at = link < at ? link : at;
        at = stream < at ? stream : at;
        at = greet < at ? greet : at;
    }
    return at;
}

/** Most peers that one look gives up; the next look finds the others. */
#define DN_IPNUMA_SILENT 16u

/** A peer that one look gives up, and why. */
typedef struct dn_ipnuma_found {
    uint32_t pid;
    const char *what;
} dn_ipnuma_found_t;

/** Since when has the other side done nothing of what was sent to it? It may be heard all the time. */
static uint64_t dn_ipnuma_idle_since(dn_ipnuma_pc_t *pc, uint64_t now)
{
    if (0 == dn_ipnuma_link_behind(&pc->link) || pc->applied != pc->link.applied) {
        pc->applied = pc->link.applied;
        pc->applied_at = now;
    }
    return pc->applied_at;
}

/** Look for processes that are silent, or take nothing, and mark their connections. @param[out] found  Peers to be given up. @return how
 * many. */
static uint32_t dn_ipnuma_find_silent(dn_ipnuma_t *ipnuma, uint64_t now,
                                      dn_ipnuma_found_t found[DN_IPNUMA_SILENT])
{
    const uint64_t limit = ipnuma->timeout_ns;
    /* If the thread has not looked for some time, packets of these processes may have come, and not been read yet. */
    const int away = now - ipnuma->service.looked > limit / 2;
    uint32_t n = 0;

    ipnuma->service.looked = now;
    if (!away) {
        dn_ipnuma_expire(ipnuma, 0, now);
    }
    for (dn_ipnuma_pc_t *pc = ipnuma->pcs; NULL != pc && 0 != limit && DN_IPNUMA_SILENT > n; pc = pc->next) {
        uint64_t *heard_at = DN_IPNUMA_GREETS == pc->state ? &pc->greet.since : &pc->link.heard_at;
        if (DN_IPNUMA_DEAD == pc->state) {
            continue;
        }
        if (away) {
            *heard_at = now;
            pc->applied_at = now;
            continue;
        }
        const int idle = DN_IPNUMA_OPEN == pc->state && now - dn_ipnuma_idle_since(pc, now) > limit;
        if (now - *heard_at > limit || idle) {
            if (NULL != pc->peer && !dn_peer_is_doubted(&pc->peer->base)) {
                found[n++] = (dn_ipnuma_found_t){pc->pid, now - *heard_at > limit
                                                              ? "nothing was heard from"
                                                              : "nothing of what was sent was taken by"};
            }
            pc->silent = 1;
        } else if (now - *heard_at > limit / 2 && DN_IPNUMA_OPEN == pc->state) {
            dn_ipnuma_link_word(&pc->link, DN_IPNUMA_ASKS, now);
        }
    }
    return n;
}

/** Look for such processes, log them, and end their connections. The log line comes before the program learns of the loss. It is logged
 * without the lock, since the receiver of log lines may take long. */
static void dn_ipnuma_look(dn_ipnuma_t *ipnuma, uint64_t now)
{
    dn_ipnuma_found_t found[DN_IPNUMA_SILENT];
    const uint32_t n = dn_ipnuma_find_silent(ipnuma, now, found);

    if (0 != n) {
        dn_ipnuma_unlock(ipnuma);
        for (uint32_t i = 0; i < n; i++) {
            dn_log_error("%s PID %" PRIu32 " for %" PRIu64 " s (timeout_s); it is given up", found[i].what,
                         found[i].pid, ipnuma->timeout_ns / UINT64_C(1000000000));
        }
        dn_ipnuma_lock(ipnuma);
    }
    for (dn_ipnuma_pc_t *pc = ipnuma->pcs; NULL != pc; pc = pc->next) {
        if (pc->silent) {
            dn_ipnuma_kill(pc, DN_PEER_SUSPECT);
        } else if (0 <= pc->fd) {
            dn_ipnuma_pc_fit(pc);
        }
    }
}

/** Sleep until a time, until a datagram comes (only if @p listens), or until the program calls. The lock is let go.
 * @return not 0: a datagram or a call has come. */
static int dn_ipnuma_sleep(dn_ipnuma_t *ipnuma, uint64_t until, int listens)
{
    struct pollfd wait[2] = {{.fd = ipnuma->service.event, .events = POLLIN},
                             {.fd = ipnuma->fd, .events = POLLIN}};
    const uint64_t now = dn_clock_ns(), most = now + DN_IPNUMA_SLEEP_NS;

    until = until < most ? until : most;
    ipnuma->service.wake_at = until;
    dn_ipnuma_unlock(ipnuma);
    const int woken = dn_thread_wait(wait, listens ? 2 : 1, until);
    dn_ipnuma_lock(ipnuma);
    ipnuma->service.wake_at = 0;
    return woken;
}

/** Have the thread sleep: dn_ipnuma_sleep(). */
static void dn_ipnuma_rest(dn_ipnuma_t *ipnuma, uint64_t until, int listens)
{
    const uint64_t begin = dn_clock_ns();

    const int woken = dn_ipnuma_sleep(ipnuma, until, listens);
    dn_awake_slept(&ipnuma->service.awake, begin, dn_clock_ns(), woken);
}

/** Have the thread nap. The lock is let go. @return as dn_lull_wait(). */
static uint64_t dn_ipnuma_nap(dn_ipnuma_t *ipnuma)
{
    const uint64_t begin = dn_clock_ns(), until = ipnuma->service.look_at;

    dn_ipnuma_service_turn(ipnuma, DN_IPNUMA_NAPS);
    dn_ipnuma_unlock(ipnuma);
    const uint64_t turns = dn_lull_wait(&ipnuma->service.lull, ipnuma->service.event, &ipnuma->turns, until);
    dn_ipnuma_lock(ipnuma);
    dn_ipnuma_service_turn(ipnuma, DN_IPNUMA_LISTENS);
    dn_awake_slept(&ipnuma->service.awake, begin, dn_clock_ns(), 0);
    return turns;
}

/** Have the thread do a turn. @return not 0: datagrams came. */
static int dn_ipnuma_serve_turn(dn_ipnuma_t *ipnuma)
{
    ipnuma->service.reads = 1;
    const int got = dn_ipnuma_turn(ipnuma);
    ipnuma->service.reads = 0;
    return got;
}

/** Will the program be woken when the lock is let go? It wants the core then, and reads itself. */
static int dn_ipnuma_wakes(const dn_ipnuma_t *ipnuma)
{
    /* Relaxed suffices: the ring itself looks again. */
    return 0 != (DN_IPNUMA_AFTER_RING & ipnuma->after) && 0 != dn_load_relaxed_u32(ipnuma->iface.bell) % 2;
}

/** Does the program send a stream to some process? It wants the lock then, and the core; what comes are acknowledgements. */
static int dn_ipnuma_is_busy(const dn_ipnuma_t *ipnuma)
{
    const dn_ipnuma_pc_t *pc = ipnuma->pcs;

    while (NULL != pc && !dn_ipnuma_streams(pc)) {
        pc = pc->next;
    }
    return NULL != pc;
}

/** Have the thread stay awake after a request, since the sender may send its next request when it has the answer. */
static void dn_ipnuma_look_on(dn_ipnuma_t *ipnuma)
{
    const uint64_t turns = ipnuma->turns;
    uint64_t now = dn_clock_ns();
    int came = 0;

    if (!dn_awake_begin(&ipnuma->service.awake, now)) {
        return;
    }
    while (dn_awake_lasts(&ipnuma->service.awake, now, came) && turns == ipnuma->turns
           && !ipnuma->service.ends && !dn_ipnuma_is_busy(ipnuma)) {
        /* The program may want the lock. */
        dn_ipnuma_unlock(ipnuma);
        dn_pause();
        dn_ipnuma_lock(ipnuma);
        came = 0 != dn_ipnuma_serve_turn(ipnuma);
        now = dn_clock_ns();
    }
    /* The thread may go to another core, and wait there for its turn. */
    dn_ipnuma_unlock(ipnuma);
    const uint64_t off = dn_awake_end(&ipnuma->service.awake, now);
    dn_ipnuma_lock(ipnuma);
    if (0 != off) {
        dn_ipnuma_rest(ipnuma, now + off, 0);
    }
}

static void *dn_ipnuma_serve(void *arg)
{
    dn_ipnuma_t *ipnuma = arg;
    uint64_t turns = 0;

    dn_ipnuma_lock(ipnuma);
    dn_awake_start(&ipnuma->service.awake, dn_clock_ns());
    while (DN_IPNUMA_NO_THREAD != ipnuma->service.state && !ipnuma->service.ends) {
        const uint64_t now = dn_clock_ns();
        if (now >= ipnuma->service.look_at) {
            dn_ipnuma_look(ipnuma, now);
            const uint64_t gap =
                0 == ipnuma->timeout_ns ? DN_IPNUMA_SLEEP_NS : ipnuma->timeout_ns / DN_IPNUMA_LOOKS;
            ipnuma->service.look_at = now + gap;
        }
        /* Does the program look at the network? If it has gone to sleep since its last turn, the thread has to listen and ring. */
        const int polled = turns != ipnuma->turns && ipnuma->service.handed != ipnuma->turns;
        turns = ipnuma->turns;
        if (polled) {
            turns = dn_ipnuma_nap(ipnuma);
            continue;
        }
        if (0 != dn_ipnuma_serve_turn(ipnuma) && !dn_ipnuma_wakes(ipnuma)
            && ipnuma->contenders <= ipnuma->units && !dn_ipnuma_is_busy(ipnuma)) {
            dn_ipnuma_look_on(ipnuma);
        }
        dn_ipnuma_rest(ipnuma, dn_ipnuma_timer(ipnuma), 1);
    }
    dn_ipnuma_unlock(ipnuma);
    return NULL;
}

void dn_ipnuma_service_call(dn_ipnuma_t *ipnuma)
{
    if (DN_IPNUMA_LISTENS != ipnuma->service.state || 0 == ipnuma->service.wake_at
        || dn_ipnuma_timer(ipnuma) >= ipnuma->service.wake_at) {
        return;
    }
    /* The thread looks at the timers when it is awake, so one call wakes it. */
    ipnuma->service.wake_at = 0;
    ipnuma->after |= DN_IPNUMA_AFTER_CALL;
}

void dn_ipnuma_service_start(dn_ipnuma_t *ipnuma)
{
    if (DN_IPNUMA_NO_THREAD != ipnuma->service.state) {
        return;
    }
    dn_ipnuma_share_llcm(ipnuma);
    dn_bell_enroll_begin();
    ipnuma->service.looked = dn_clock_ns();
    ipnuma->service.look_at = ipnuma->service.looked;
    dn_ipnuma_service_turn(ipnuma, DN_IPNUMA_LISTENS);
    const int failed = dn_thread_start(&ipnuma->service.thread, dn_ipnuma_serve, ipnuma);
    if (0 != failed) {
        dn_ipnuma_service_turn(ipnuma, DN_IPNUMA_NO_THREAD);
        dn_log_later(
            &ipnuma->later,
            "no thread can be made to serve what comes over ipnuma: %s; raise limits, as of processes",
            strerror(failed));
    }
}

void dn_ipnuma_service_stop(dn_ipnuma_t *ipnuma)
{
    dn_ipnuma_lock(ipnuma);
    ipnuma->service.ends = 1;
    const int runs = DN_IPNUMA_NO_THREAD != ipnuma->service.state;
    dn_ipnuma_unlock(ipnuma);
    if (runs) {
        dn_thread_call(ipnuma->service.event);
        pthread_join(ipnuma->service.thread, NULL);
        dn_ipnuma_service_turn(ipnuma, DN_IPNUMA_NO_THREAD);
    }
}

/**
 * Does closing have to wait for another process, which has not done all that was sent? A connection that does not open is not waited for
 * long, unless there are messages for its other side.
 *
 * @param[in] soon  Not 0: closing has not waited for long yet.
 */
static int dn_ipnuma_has_to_go(const dn_ipnuma_t *ipnuma, int soon)
{
    for (const dn_ipnuma_pc_t *pc = ipnuma->pcs; NULL != pc; pc = pc->next) {
        if (0 != dn_ipnuma_link_behind(&pc->link)
            && (DN_IPNUMA_OPEN == pc->state
                || (DN_IPNUMA_GREETS == pc->state && (soon || 0 != pc->link.charged)))
            && !dn_process_has_ended(pc->pidfd)) {
            return 1;
        }
    }
    return 0;
}

void dn_ipnuma_linger(dn_ipnuma_t *ipnuma)
{
    const uint64_t begin = dn_clock_ns();
    uint64_t now = begin;

    dn_ipnuma_lock(ipnuma);
    ipnuma->service.reads = 1;
    while (dn_ipnuma_has_to_go(ipnuma, now - begin < DN_IPNUMA_LINGER_NS / 10)
           && now - begin < DN_IPNUMA_LINGER_NS) {
        if (0 == dn_ipnuma_turn(ipnuma)) {
            const uint64_t soon = dn_clock_ns() + DN_IPNUMA_LINGER_LOOK_NS;
            const uint64_t timer = dn_ipnuma_timer(ipnuma);
            (void) dn_ipnuma_sleep(ipnuma, timer < soon ? timer : soon, 1);
        }
        now = dn_clock_ns();
    }
    dn_ipnuma_unlock(ipnuma);
}
