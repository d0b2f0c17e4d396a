/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_fault.h
 * Seeded faults over any device. This code stands between the inline calls of dimmnet.h and the device's ops.
 *
 * A schedule is a list of rules `OP:FAULT/N` and at most one seed (1 when left out), separated by commas,
 * such as "botf:again/7,push:slow/3,seed=1". A rule hits one call in N on average. A generator chooses these
 * calls. The seed and the two PIDs start the generator, so that a run can be replayed. Where several rules
 * of one operation hit the same call, the first rule in the list is taken.
 *
 *   OP     botf (also windows), aotf, push, pull, atomic, fence; all: each of them that FAULT fits
 *   FAULT  again      any OP: refused before any side effect, DN_ERR_AGAIN (fence: DN_INPROGRESS)
 *          delay      botf: the message is held, with all that follow it to that peer, for 1 to 8
 *                     dn_progress() calls of the sender; dn_fence() waits for it
 *          slow       push, pull, atomic: taken from the device and run by the core processor
 *          corrupt    botf: one bit of the message is turned over before it leaves
 *          drop       botf, aotf: the message or store is lost
 *          dup        botf: the message arrives twice
 *          kill       any OP: the peer is lost (DN_ERR_UNREACH) from this call on
 *   N      1..1000000
 *
 * again, delay and slow keep every promise of dimmnet.h but one: a delayed message leaves only while
 * its sender calls dn_progress(). Messages to one peer never overtake each other. drop, dup and corrupt
 * break what a reliable device promises: they test validation, not transport.
 *
 * Threads: every call may be made from several threads, dn_fault_close() excepted.
 *
 * Pinned by test/unit/dn_fault_*.c.
 */
#ifndef DN_FAULT_H
#define DN_FAULT_H

#include "dn_device.h"

typedef struct dn_fault dn_fault_t;

/** Parse a schedule. DN_ERR_PARAM: the log line says which rule is wrong and what is accepted. */
dn_status_t dn_fault_open(const char *schedule, uint32_t pid, dn_fault_t **fault_p);
/** Forget the schedule; all peers have been detached. Messages that are held for them are dropped and logged. */
void dn_fault_close(dn_fault_t *fault);
/**
 * Put the schedule between the callers and this peer's ops, which are complete. Messages that a detachment
 * left are taken over. DN_ERR_NOMEM: not done.
 */
dn_status_t dn_fault_attach(dn_fault_t *fault, dn_peer_base_t *peer);
/**
 * Undo dn_fault_attach(), and send the messages that are held as far as there is room. No-op when not attached.
 * Once the peer is lost, its ops are not touched, and messages that are held are dropped without a log line.
 */
void dn_fault_detach(dn_fault_t *fault, dn_peer_base_t *peer);
/** Release the messages that were held long enough; declare killed peers lost. @return messages released. */
int dn_fault_progress(dn_fault_t *fault);
/** The line that replays: the schedule with its seed. Valid until dn_fault_close(). */
const char *dn_fault_replay(const dn_fault_t *fault);

#endif
