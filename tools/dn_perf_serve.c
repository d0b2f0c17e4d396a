/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * The server of dimmnet_perf serves one client after the other. A process of its own, with a deadline, serves each client.
 */
#include "dn_config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dn_net.h"
#include "dn_perf_tool.h"

/** The most seconds for the greeting. A stranger that connects and says nothing must not keep the server from its clients. */
#define GREETING_SECONDS 10

/** The shortest and the longest pause between two tries to accept, if the system has no descriptors or memory. */
#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 5000

void dn_plan_run(const dn_plan_t *plan, const dn_bench_options_t *options, perf_t *perf,
                 perf_result_t *result)
{
    dn_bench_options_t given = *options;
    given.min_size = plan->min_size;
    given.max_size = plan->max_size;
    given.mem_limit = plan->mem_limit;
    given.iterations = plan->iterations;
    given.warmup = plan->warmup;
    given.batches = plan->batches;
    given.window = plan->window;
    given.check = 0 != plan->check;
    perf_choose(perf, perf_find(plan->test), &given);
    perf_run(perf, result);
}

/** What end_late() says. */
static const char *late;

/* Handler of SIGALRM: end this process, whatever it does. */
static void end_late(int number)
{
    const ssize_t written = write(STDERR_FILENO, late, strlen(late));

    (void) number;
    _exit(0 < written ? 1 : 2);
}

void dn_end_after(unsigned seconds, const char *sentence)
{
    late = sentence;
    signal(SIGALRM, end_late);
    alarm(seconds);
}

int dn_serve(int socket, const dn_token_t *token, const dn_bench_options_t *options)
{
    static perf_result_t result;
    char devices[DN_GREET_DEVICES];
    dn_group_key_t key;
    dn_plan_t plan;
    dn_bench_options_t own = *options;
    const unsigned limit = (unsigned) options->time_limit;

    dn_end_after(0 != limit && limit < GREETING_SECONDS ? limit : GREETING_SECONDS,
                 PROGRAM ": the client was not done in time; it is served no longer (--time-limit)\n");
    if (0 != dn_greet_client(socket, token, options->device, devices, &key)) {
        return 1;
    }
    alarm(limit);
    own.device = devices;
    for (;;) {
        if (0 != dn_net_receive(socket, &plan, sizeof(plan))) {
            fprintf(stderr, PROGRAM ": the client left before it was done\n");
            return 1;
        }
        if ('\0' == plan.test[0]) {
            return 0;
        }
        if (!dn_plan_check(&plan)) {
            fprintf(stderr, PROGRAM ": the client asks for what does not exist, or for too much; refused\n");
            return 1;
        }
        perf_t perf = {.program = PROGRAM, .index = 1, .socket = socket, .key = key};
        dn_plan_run(&plan, &own, &perf, &result);
    }
}

/** Serve one client in a process of its own, so that nothing of this client is left for the next one. */
static int serve_in_child(int listener, int socket, const dn_token_t *token,
                          const dn_bench_options_t *options)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (0 == pid) {
        close(listener);
        status = dn_serve(socket, token, options);
        fflush(NULL);
        _exit(status);
    }
    close(socket);
    if (0 > pid || pid != waitpid(pid, &status, 0)) {
        perror(PROGRAM ": a process for the client cannot be started");
        return 1;
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, PROGRAM ": the process for the client was ended by signal %d\n", WTERMSIG(status));
        return 1;
    }
    return WEXITSTATUS(status);
}

/* Wait for the next client. Only one sentence is written, however long the system has no descriptors or memory. @return -1: no client can be
 * accepted any more. */
static int next_client(int listener)
{
    long wait_ms = BACKOFF_MIN_MS;
    int socket = dn_net_accept(listener);
    int error = errno;

    if (0 > socket) {
        fprintf(stderr, PROGRAM ": no client can be accepted (%s)%s\n", strerror(error),
                dn_net_lasts(error) ? "" : "; waiting until that is over");
    }
    while (0 > socket && !dn_net_lasts(error)) {
        const struct timespec pause = {wait_ms / 1000, wait_ms % 1000 * 1000000};
        nanosleep(&pause, NULL);
        wait_ms = 2 * wait_ms < BACKOFF_MAX_MS ? 2 * wait_ms : BACKOFF_MAX_MS;
        socket = dn_net_accept(listener);
        error = errno;
    }
    return socket;
}

int dn_serve_all(const dn_token_t *token, const dn_bench_options_t *options)
{
    int port = options->port;
    int status = 0;
    int listener = dn_net_listen(PROGRAM, options->bind, &port);
    if (0 > listener) {
        return 1;
    }
    if (!token->given && !dn_net_is_loopback(listener)) {
        fprintf(stderr,
                PROGRAM ": other hosts reach %s, so it takes a token to be served: put %d or more random "
                        "characters into a file of mode 0600, and name it by --token on both sides\n",
                options->bind, DN_TOKEN_MIN);
        close(listener);
        return 1;
    }
    printf("# waiting at %s port %d\n", options->bind, port);
    fflush(stdout);
    do {
        int socket = next_client(listener);
        if (0 > socket) {
            status = 1;
            break;
        }
        status = serve_in_child(listener, socket, token, options);
    } while (options->keep);
    close(listener);
    return status;
}
