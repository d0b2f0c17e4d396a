/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * dimmnet_perf measures the primitives of libdimmnet between a server and a client, on one host or on two, without MPI.
 * The client chooses the tests. Both sides then run the tests, which dn_perf has, too.
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dn_bench_fork.h"
#include "dn_json.h"
#include "dn_net.h"
#include "dn_output.h"
#include "dn_perf_tool.h"

#define DEFAULT_PORT 13003
#define TESTS_MAX    128
/* The default of --time-limit: seconds that a client has from its greeting to its last test, and a server to greet. */
#define TIME_LIMIT 600

/** A choice of the user: it names tests of dn_perf_steps.c. */
typedef struct {
    const char *name;
    const char *tests; /**< names of tests, separated by spaces */
    size_t max_size;   /**< default of the largest size, in bytes; 0: the test's own default */
} menu_t;

static const menu_t menu[] = {
    {"latency", "botf_lat", 0},
    {"bw", "botf_bw", 0},
    {"rate", "botf_bw", 64},
    {"push", "push_lat push_bw", 0},
    {"pull", "pull_lat pull_bw", 0},
    {"atomics", "fetch_add swap cas", 0},
    {"aotf", "aotf aotf_rate aotf_rate_apart", 0},
    {"all",
     "aotf aotf_rate aotf_rate_apart botf_lat botf_bw push_lat push_bw pull_lat pull_bw fetch_add swap cas",
     0},
};

#define MENU_ROWS ((int) (sizeof(menu) / sizeof(menu[0])))

/** The client. */
typedef struct {
    int socket;
    dn_group_key_t key;
    const char *server; /**< name of the server's host, for the output */
    const menu_t *asked;
    const dn_bench_options_t *options;
    dn_json_t json;
    int failed;
} client_t;

static const menu_t *find_menu(const char *name)
{
    for (int i = 0; i < MENU_ROWS; i++) {
        if (0 == strcmp(menu[i].name, name)) {
            return &menu[i];
        }
    }
    fprintf(stderr, PROGRAM ": there is no test %s; give one of", name);
    for (int i = 0; i < MENU_ROWS; i++) {
        fprintf(stderr, "%s %s", 0 == i ? "" : ",", menu[i].name);
    }
    fprintf(stderr, "\n");
    return NULL;
}

/** The list of all devices of this build, in their order. */
static const char *all_devices(void)
{
    static char list[DN_GREET_DEVICES];
    size_t used = 0;
    for (size_t i = 0; NULL != dn_device_name(i) && used < sizeof(list); i++) {
        used +=
            (size_t) snprintf(list + used, sizeof(list) - used, "%s%s", 0 == i ? "" : ",", dn_device_name(i));
    }
    return list;
}

/** What the emulation has said of the last test; "": nothing. Other devices say nothing. */
static char deviation[256];

/** dn_log_fn_t of answers. When a port over emulate:PROFILE closes, it tells how far its times were from the profile. */
static void keep_deviation(const char *sentence, void *arg)
{
    (void) arg;
    if (0 == strncmp(sentence, "emulate:", strlen("emulate:"))) {
        snprintf(deviation, sizeof(deviation), "%s", sentence);
    }
}

static void report_json(dn_json_t *json, const perf_t *perf, const perf_result_t *result)
{
    dn_json_object(json, NULL);
    dn_json_text(json, "test", perf->test->name);
    dn_json_text(json, "title", perf->test->title);
    dn_json_text(json, "device", result->attr.device);
    dn_json_count(json, "window", (uint64_t) perf->options.window);
    dn_json_count(json, "message_max", result->attr.botf_max);
    dn_json_count(json, "message_one_line", result->attr.botf_inline);
    dn_json_flag(json, "verified", perf->options.check);
    if ('\0' != deviation[0]) {
        dn_json_text(json, "deviation", deviation);
    }
    dn_json_array(json, "columns");
    for (int i = 0; NULL != perf->test->columns[i]; i++) {
        dn_json_text(json, NULL, perf->test->columns[i]);
    }
    dn_json_end_array(json);
    dn_json_array(json, "rows");
    for (int i = 0; i < result->num_rows; i++) {
        const perf_row_t *row = &result->row[i];
        dn_json_object(json, NULL);
        dn_json_count(json, "size", row->size);
        dn_json_count(json, "iterations", (uint64_t) dn_bench_iterations(&perf->options, row->size));
        dn_json_array(json, "values");
        for (int k = 0; k < result->num_values; k++) {
            dn_json_real(json, NULL, row->values[k]);
        }
        dn_json_end_array(json);
        dn_json_count(json, "errors", (uint64_t) row->errors);
        dn_json_end_object(json);
    }
    dn_json_end_array(json);
    dn_json_end_object(json);
}

static int run_test(client_t *client, const char *name)
{
    static perf_result_t result;
    const dn_bench_options_t *o = client->options;
    perf_t perf = {.program = PROGRAM, .index = 0, .socket = client->socket, .key = client->key};
    dn_plan_t plan = {
        .min_size = o->min_size,
        .max_size =
            SIZE_MAX == o->max_size && 0 != client->asked->max_size ? client->asked->max_size : o->max_size,
        .mem_limit = o->mem_limit,
        .iterations = o->iterations,
        .warmup = o->warmup,
        .batches = o->batches,
        .window = o->window,
        .check = o->check,
    };
    snprintf(plan.test, sizeof(plan.test), "%s", name);
    if (0 != dn_net_send(client->socket, &plan, sizeof(plan))) {
        fprintf(stderr, PROGRAM ": the server has ended\n");
        return 1;
    }
    deviation[0] = '\0';
    dn_plan_run(&plan, o, &perf, &result);
    if (!o->json) {
        const int failed = perf_print(&perf, &result);
        if ('\0' != deviation[0]) {
            printf("# %s\n", deviation);
        }
        return failed;
    }
    report_json(&client->json, &perf, &result);
    for (int i = 0; i < result.num_rows; i++) {
        client->failed |= 0 != result.row[i].errors;
    }
    return 0;
}

static void run_tests(client_t *client)
{
    char names[TESTS_MAX];
    char *rest = NULL;
    snprintf(names, sizeof(names), "%s", client->asked->tests);
    for (char *name = strtok_r(names, " ", &rest); NULL != name; name = strtok_r(NULL, " ", &rest)) {
        client->failed |= run_test(client, name);
    }
}

static int run_client(int socket, const char *server, const dn_token_t *token, const menu_t *asked,
                      const dn_bench_options_t *options)
{
    static const dn_plan_t end;
    client_t client = {
        .socket = socket, .server = server, .asked = asked, .options = options, .json = {.out = stdout}};
    /* The server may have other clients to serve before it greets this one. */
    dn_end_after((unsigned) options->time_limit,
                 PROGRAM ": what was connected to did not greet in time; is it our server? (--time-limit)\n");
    if (0 != dn_greet_server(socket, server, token, options->device, &client.key)) {
        return 1;
    }
    alarm(0);
    dn_log_answers_set(keep_deviation, NULL);
    if (options->json) {
        dn_json_object(&client.json, NULL);
        dn_json_text(&client.json, "program", PROGRAM);
        dn_json_text(&client.json, "version", DN_VERSION);
        dn_json_text(&client.json, "server", server);
        dn_json_text(&client.json, "devices", options->device);
        dn_json_array(&client.json, "tests");
    }
    run_tests(&client);
    if (options->json) {
        dn_json_end_array(&client.json);
        dn_json_flag(&client.json, "passed", !client.failed);
        dn_json_end_object(&client.json);
    }
    dn_net_send(socket, &end, sizeof(end));
    close(socket);
    return dn_output_end(PROGRAM, client.failed);
}

/* Both sides on this host */

typedef struct {
    int sockets[2];
    dn_token_t token;
    const menu_t *asked;
    const dn_bench_options_t *options;
} local_t;

static int local_child(int index, void *arg)
{
    const local_t *local = arg;
    close(local->sockets[1 - index]);
    return 0 == index
               ? run_client(local->sockets[0], "this host", &local->token, local->asked, local->options)
               : dn_serve(local->sockets[1], &local->token, local->options);
}

static int run_local(const menu_t *asked, const dn_bench_options_t *options)
{
    local_t local = {.asked = asked, .options = options};
    int cpus[2];
    if (0 != dn_bench_cpus(PROGRAM, options->cores, cpus, 2)) {
        return 1;
    }
    if (0 != socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, local.sockets)) {
        perror(PROGRAM ": no pair of sockets can be had");
        return 1;
    }
    return dn_bench_fork(2, cpus, 2, local_child, &local);
}

static int connect_and_run(const dn_token_t *token, const menu_t *asked, const dn_bench_options_t *options)
{
    int socket = dn_net_connect(PROGRAM, options->operand, options->port);
    return 0 > socket ? 1 : run_client(socket, options->operand, token, asked, options);
}

/* Do the options fit together? @return 0, or -1: a sentence is on stderr. */
static int check_options(const dn_bench_options_t *options)
{
    const char *wrong = NULL;
    if (options->local && NULL != options->operand) {
        wrong = "--local starts both processes here; leave out the host";
    } else if (options->keep && (options->local || NULL != options->operand)) {
        wrong = "--keep is for a server; leave out the host and --local";
    } else if (NULL != options->operand && 0 == options->port) {
        wrong = "a client needs the port of its server; --port 0 is for servers";
    } else if (DN_PLAN_MEMORY < options->mem_limit
               || (SIZE_MAX != options->max_size && DN_PLAN_MEMORY < options->max_size)) {
        wrong = "servers give at most 1G; use smaller sizes";
    } else if (NULL != options->device && DN_GREET_DEVICES <= strlen(options->device)) {
        wrong = "the list of devices is too long";
    }
    if (NULL != wrong) {
        fprintf(stderr, PROGRAM ": %s\n", wrong);
    }
    return NULL == wrong ? 0 : -1;
}

int main(int argc, char **argv)
{
    static const dn_bench_usage_t usage = {
        .name = PROGRAM,
        .purpose = "Measures what libdimmnet does between two processes. Without HOST it is the server and "
                   "waits for "
                   "one\nclient; with HOST the client, which prints. Tests (-t, default latency): latency, "
                   "bw, rate, "
                   "push, pull,\natomics, aotf, all.",
        .accepts = "dtmixcWMBCPOIKZAlj",
        .renamed = "dDmsinxwOpIbKkZTAa",
        .operand = "HOST",
    };
    dn_bench_options_t options;
    dn_token_t token;
    int cpu;
    perf_defaults(&options);
    options.bind = "127.0.0.1";
    options.port = DEFAULT_PORT;
    options.test = "latency";
    const dn_bench_parsed_t parsed = dn_bench_parse(argc, argv, &usage, &options);
    if (DN_BENCH_RUN != parsed) {
        return DN_BENCH_HELP == parsed ? dn_output_end(PROGRAM, 0) : 1;
    }
    const menu_t *asked = find_menu(options.test);
    if (NULL == asked || 0 != check_options(&options)) {
        return 1;
    }
    if (options.local) {
        options.device = NULL == options.device ? all_devices() : options.device;
        return run_local(asked, &options);
    }
    options.time_limit = 0 == options.time_limit ? TIME_LIMIT : options.time_limit;
    if (0 != dn_token_read(options.token, &token)) {
        return 1;
    }
    if (NULL != options.cores) {
        if (0 != dn_bench_cpus(PROGRAM, options.cores, &cpu, 1)) {
            return 1;
        }
        dn_bench_bind(cpu);
    }
    if (NULL == options.operand) {
        return dn_serve_all(&token, &options);
    }
    options.device = NULL == options.device ? all_devices() : options.device;
    return connect_and_run(&token, asked, &options);
}
