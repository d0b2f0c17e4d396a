/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file queue.c
 * A queue of work with locks: ways to put queens on a board so that none attacks another. A task is a board with queens in its first
 * rows. Who takes a short one puts its continuations into the queue; who takes a long one counts what it leads to.
 */
#include "start.h"

#define BOARD 9
#define SPLIT 3 /* rows that a task has before it is counted as a whole */
#define ROOM  1024

enum { QUEUE_LOCK, SUM_LOCK };

typedef struct task {
    int rows;
    int column[BOARD];
} task_t;

typedef struct work {
    int tasks;  /* in the queue */
    int active; /* taken, and not done */
    task_t task[ROOM];
} work_t;

static int fits(const task_t *task, int column)
{
    for (int r = 0; r < task->rows; r++) {
        const int apart = column - task->column[r], rows = task->rows - r;
        if (0 == apart || rows == apart || -rows == apart) {
            return 0;
        }
    }
    return 1;
}

static long count(task_t *task)
{
    long ways = 0;

    if (BOARD == task->rows) {
        return 1;
    }
    for (int c = 0; c < BOARD; c++) {
        if (fits(task, c)) {
            task->column[task->rows++] = c;
            ways += count(task);
            task->rows--;
        }
    }
    return ways;
}

/** Take a task. @return 0: all is done; -1: there is none now. */
static int take(dn_dsm_t *dsm, work_t *work, task_t *task)
{
    int found = -1;

    need(dn_dsm_lock(dsm, QUEUE_LOCK), "dn_dsm_lock");
    if (0 < work->tasks) {
        *task = work->task[--work->tasks];
        work->active++;
        found = 1;
    } else if (0 == work->active) {
        found = 0;
    }
    need(dn_dsm_unlock(dsm, QUEUE_LOCK), "dn_dsm_unlock");
    return found;
}

/** A task is done: its continuations go into the queue, unless it was counted. */
static void give(dn_dsm_t *dsm, work_t *work, task_t *task)
{
    need(dn_dsm_lock(dsm, QUEUE_LOCK), "dn_dsm_lock");
    for (int c = 0; c < BOARD && task->rows < SPLIT; c++) {
        if (fits(task, c)) {
            task_t *next = &work->task[work->tasks++];
            *next = *task;
            next->column[next->rows++] = c;
        }
    }
    work->active--;
    need(dn_dsm_unlock(dsm, QUEUE_LOCK), "dn_dsm_unlock");
}

int main(void)
{
    dn_dsm_t *dsm = start();
    work_t *work = share(dsm, sizeof(*work), DN_DSM_HOME_CYCLIC);
    long *ways = share(dsm, sizeof(*ways), DN_DSM_HOME_RANK), right = 1;
    task_t task = {0};
    double serial = 0;
    int found;

    if (0 == dn_dsm_rank(dsm)) {
        work->tasks = 1; /* an empty board: memory begins with zeros */
    }
    barrier(dsm);
    const double began = seconds();
    while (0 != (found = take(dsm, work, &task))) {
        if (0 > found) {
            continue;
        }
        if (SPLIT == task.rows) {
            const long more = count(&task);
            need(dn_dsm_lock(dsm, SUM_LOCK), "dn_dsm_lock");
            *ways += more;
            need(dn_dsm_unlock(dsm, SUM_LOCK), "dn_dsm_unlock");
        }
        give(dsm, work, &task);
    }
    barrier(dsm);
    const double took = seconds() - began;
    if (0 == dn_dsm_rank(dsm)) {
        task_t all = {0};
        serial = seconds();
        right = *ways == count(&all);
        serial = seconds() - serial;
    }
    barrier(dsm);
    return end(dsm, "queue", (int) right, took, serial);
}
