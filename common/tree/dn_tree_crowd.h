/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_crowd.h
 * What all processes of dn_tree_long.h have come to, where they are too many for each to look at all.
 *
 * They form groups (dn_tree_int.h). The first of a group looks at the counters of the others and says in its
 * area what all processes have come to that it stands for. The first of all says so of all, and the other
 * firsts hand that down. So a first looks at as many lines as a group has members, for each group that it is
 * in, and any other process at one line.
 *
 * Threads: as those of dn_tree_long.h.
 */
#ifndef DN_TREE_CROWD_H
#define DN_TREE_CROWD_H

#include "dn_tree.h"

/** Counters of an area, each in a line of its own from its start on; then what a crowd says there. */
#define DN_TREE_CROWD_COUNTERS 3

typedef struct dn_tree_crowd dn_tree_crowd_t;

/**
 * Form the groups.
 *
 * @param[in] area  By rank; lent until it is freed. Its counters begin where no process of a crowd before has come to.
 *
 * @retval DN_ERR_PARAM, DN_ERR_NOMEM  as dn_tree_create().
 */
dn_status_t dn_tree_crowd_create(const dn_tree_config_t *config, void *const *area,
                                 dn_tree_crowd_t **crowd_p);
void dn_tree_crowd_free(dn_tree_crowd_t *crowd);

/** Say in the own area that there is no crowd. */
void dn_tree_crowd_none(void *area);

/** Not 0: others learn of the counters from this process. */
int dn_tree_crowd_leads(const dn_tree_crowd_t *crowd);

/**
 * Look around, and tell the processes that look at us.
 *
 * @param[in] own  Our own counters.
 * @return not 0: there was something to tell.
 */
int dn_tree_crowd_look(dn_tree_crowd_t *crowd, const uint64_t own[DN_TREE_CROWD_COUNTERS]);

/** What all have come to in a counter, as far as dn_tree_crowd_look() saw. */
uint64_t dn_tree_crowd_all(const dn_tree_crowd_t *crowd, int which);

/** Has a rank told others, if it has to, that all have come to @p number in a counter? */
int dn_tree_crowd_has_told(const void *area, int which, uint64_t number);

#endif
