/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/* A program in the manner of SPLASH, for m4 and c.m4.dn_dsm: bodies that attract each other. Forces are dealt out row by row, and
 * each process moves its own bodies. Sums are of whole numbers, so that their order is of no account.
 * usage: bodies PROCESSES */
#include <stdio.h>
#include <string.h>

MAIN_ENV

#define BODIES 160
#define STEPS  6
#define CELLS  4

struct global_memory {
    LOCKDEC(id_lock)
    int id;
    BARDEC(start)
    GSDEC(row)
    PAUSEDEC(first)
    ALOCKDEC(cell_lock, CELLS)
    long cell[CELLS];
    int ready; /* processes */
    CONDVARDEC(all_ready)
    unsigned long took[64];
    double *tail; /* G_MALLOCed by a process after CREATE */
};

struct body { double at, speed, force; };

static struct global_memory *global;
static struct body *body;
static int processes;

static void pull(struct body *all, int i)
{
    all[i].force = 0;
    for (int j = 0; j < BODIES; j++) {
        const double apart = all[j].at - all[i].at;
        all[i].force += apart / (1 + apart * apart);
    }
}

static void move(struct body *one)
{
    one->speed += one->force / 1024;
    one->at += one->speed / 1024;
}

static int cell_of(const struct body *one)
{
    return 0 > one->at ? 0 : CELLS <= one->at ? CELLS - 1 : (int) one->at;
}

/* What each process does. */
void slave_start(void)
{
    unsigned long began, ended;
    long i, id;

    LOCK(global->id_lock)
    id = global->id++;
    UNLOCK(global->id_lock)
    CLOCK(began)
    if (0 == id) {
        global->tail = (double *) G_MALLOC(BODIES * sizeof(double))
        SETPAUSE(global->first)
    }
    WAITPAUSE(global->first)
    for (int step = 0; step < STEPS; step++) {
        do {
            GETSUB(global->row, i, BODIES - 1, processes)
            if (0 <= i) pull(body, (int) i);
        } while (0 <= i);
        for (i = id; i < BODIES; i += processes) move(&body[i]);
        BARRIER(global->start, processes)
    }
    for (i = id; i < BODIES; i += processes) {
        global->tail[i] = body[i].speed;
        ALOCK(global->cell_lock, cell_of(&body[i]))
        global->cell[cell_of(&body[i])]++;
        AULOCK(global->cell_lock, cell_of(&body[i]))
    }
    LOCK(AGETL(global->cell_lock, 0))
    global->ready++;
    CONDVARBCAST(global->all_ready)
    while (global->ready < processes) CONDVARWAIT(global->all_ready, AGETL(global->cell_lock, 0))
    UNLOCK(AGETL(global->cell_lock, 0))
    CLOCK(ended)
    global->took[id] = ended - began;
}

/* Reads what it has written, and counts on zeros. */
static void begin(struct body *all)
{
    srand(1);
    for (int i = 0; i < BODIES; i++) {
        all[i].at = rand() % 4096;
        all[i].at = all[i].at / 1024;
        all[i].speed += all[i].at / 8;
    }
}

int main(int argc, char **argv)
{
    static struct body alone[BODIES];
    long cell[CELLS] = {0};
    int right = 1;

    processes = 2 == argc ? atoi(argv[1]) : 1;
    MAIN_INITENV(,8000000)
    printf("bodies: %d processes have ", processes);
    global = (struct global_memory *) G_MALLOC(sizeof(struct global_memory));
    body = (struct body *) G_MALLOC(BODIES * sizeof(struct body));
    LOCKINIT(global->id_lock);
    BARINIT(global->start, processes);
    GSINIT(global->row);
    PAUSEINIT(global->first);
    ALOCKINIT(global->cell_lock, CELLS);
    CONDVARINIT(global->all_ready)
    begin(body);
    if (NULL != getenv("AT_ONCE")) { /* as Splash-3 does */
        CREATE(slave_start, processes)
    } else {
        for (int i = 1; i < processes; i++) {
            CREATE(slave_start)
        }
        slave_start();
    }
    WAIT_FOR_END(processes - 1)
    begin(alone);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < BODIES; i++) pull(alone, i);
        for (int i = 0; i < BODIES; i++) move(&alone[i]);
    }
    for (int i = 0; i < BODIES; i++) {
        cell[cell_of(&alone[i])]++;
        right = right && alone[i].speed == global->tail[i];
    }
    right = right && 0 == memcmp(alone, body, sizeof(alone)) && 0 == memcmp(cell, global->cell, sizeof(cell));
    printf("%s answer (%lu us)\n", right ? "the serial" : "another", global->took[0]);
    if (!right) {
        exit(EXIT_FAILURE);
    }
    MAIN_END
}
