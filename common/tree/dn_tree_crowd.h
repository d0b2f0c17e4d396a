/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_crowd.h
 * The counters of all processes of dn_tree_long.h, where there are too many processes for each to look at all.
 *
 * The processes form a tree of groups (dn_tree_int.h). The first member of a group looks at the counters of the
 * other members. It writes into its area the least counters of all processes that it stands for. The first
 * member of the top group writes the least counters of all processes, and the other first members hand these
 * down. So a first member looks at one line for each member, in each group that it is in. Any other process
 * looks at one line.
 *
 * Threads: as those of dn_tree_long.h.
 */
#ifndef DN_TREE_CROWD_H
#define DN_TREE_CROWD_H

#include "dn_tree.h"

/** Counters of an area, each in a line of its own, from the start of the area on. After them comes what a crowd writes. */
#define DN_TREE_CROWD_COUNTERS 3

typedef struct dn_tree_crowd dn_tree_crowd_t;

/**
 * Form the groups.
 *
 * @param[in] area  By rank; lent until the crowd is freed. No process of an earlier crowd has passed the begin of its counters.
 *
 * @retval DN_ERR_PARAM, DN_ERR_NOMEM  as dn_tree_create().
 */
dn_status_t dn_tree_crowd_create(const dn_tree_config_t *config, void *const *area,
                                 dn_tree_crowd_t **crowd_p);
void dn_tree_crowd_free(dn_tree_crowd_t *crowd);

/** Say in the own area that there is no crowd. */
void dn_tree_crowd_none(void *area);

/** Not 0: other processes learn of the counters from this process. */
int dn_tree_crowd_leads(const dn_tree_crowd_t *crowd);

/**
 * Look at the counters of other processes, and tell the processes that look at this one.
 *
 * @param[in] own  The counters of this process.
 * @return not 0: there was something to tell.
 */
int dn_tree_crowd_look(dn_tree_crowd_t *crowd, const uint64_t own[DN_TREE_CROWD_COUNTERS]);

/** The least value of a counter in all processes, as dn_tree_crowd_look() saw it last. */
uint64_t dn_tree_crowd_all(const dn_tree_crowd_t *crowd, int which);

/** Has the owner of an area told the processes that learn from it that all counters are at @p number? Yes, if no process does. */
int dn_tree_crowd_has_told(const void *area, int which, uint64_t number);

#endif
