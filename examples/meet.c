/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file meet.c Open a port, connect by files: see meet.h. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "meet.h"

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

void meet_need(dn_status_t status, const char *what)
{
    if (DN_OK != status) {
        fail(what, dn_strerror(status));
    }
}

void meet_tell(const meet_t *meet, const char *what, const void *bytes, size_t len)
{
    char name[64], part[64];

    snprintf(name, sizeof(name), "%s.%u", what, (unsigned) meet->rank);
    snprintf(part, sizeof(part), "part.%u", (unsigned) meet->rank);
    FILE *file = fopen(part, "w");
    if (NULL == file || len != fwrite(bytes, 1, len, file) || 0 != fclose(file)) {
        fail(part, "cannot be written");
    }
    /* A file with its final name is whole. */
    if (0 != rename(part, name)) {
        fail(name, "cannot be made");
    }
}

size_t meet_hear(meet_t *meet, uint32_t rank, const char *what, void *bytes, size_t size)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    char name[64];
    FILE *file;

    snprintf(name, sizeof(name), "%s.%u", what, (unsigned) rank);
    while (NULL == (file = fopen(name, "r"))) {
        /* Other processes may need this one meanwhile. No bell rings for a file: look each millisecond. */
        dn_progress(meet->port);
        nanosleep(&pause, NULL);
    }
    const size_t len = fread(bytes, 1, size, file);
    fclose(file);
    return len;
}

void meet_wait(meet_t *meet)
{
    meet->steps += (uint64_t) dn_progress(meet->port);
    dn_wait(meet->port, &meet->wait, meet->steps, 0);
}

void meet_begin(meet_t *meet, int argc, char **argv)
{
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);

    *meet = (meet_t){.ranks = 4 == argc ? (uint32_t) atoi(argv[3]) : 0};
    if (1 > meet->ranks || MEET_MAX < meet->ranks || 0 != chdir(argv[1])) {
        fail(argv[0], "the arguments are FOLDER RANK RANKS; ./run RANKS PROGRAM gives them");
    }
    meet->rank = (uint32_t) atoi(argv[2]);
    dn_job_t job = {.pid = meet->rank, .nlocal = meet->ranks, .size = meet->ranks};
    FILE *file = fopen("key", "r");
    if (NULL == file || 1 != fread(&job.key, sizeof(job.key), 1, file) || 0 != fclose(file)) {
        fail(argv[1], "has no file key of 16 bytes, which are the key of the process group");
    }
    const char *devices = getenv("MEET_DEVICES");
    meet_need(dn_open(NULL == devices ? "shm" : devices, &job, NULL, &meet->port), "dn_open");
    meet_need(dn_address(meet->port, address, &len), "dn_address");
    meet_tell(meet, "address", address, len);
    for (uint32_t r = 0; r < meet->ranks; r++) {
        len = meet_hear(meet, r, "address", address, sizeof(address));
        meet_need(dn_connect(meet->port, address, len, &meet->peer[r]), "dn_connect");
    }
}

void meet_end(meet_t *meet)
{
    uint8_t done = 1;

    meet_tell(meet, "done", &done, sizeof(done));
    for (uint32_t r = 0; r < meet->ranks; r++) {
        meet_hear(meet, r, "done", &done, sizeof(done));
    }
    dn_close(meet->port);
}
