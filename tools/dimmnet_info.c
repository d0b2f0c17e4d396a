/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * dimmnet_info shows what libdimmnet finds here: the devices and what they can do, the machine, and the way to a peer.
 */
#include "dn_config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dn_dsm.h"
#include "dn_info.h"
#include "dn_option.h"
#include "dn_output.h"
#include "dn_param.h"

#define DEFAULT_SECONDS 5
#define MAX_SECONDS     86400

typedef struct {
    const char *list;     /**< devices; NULL: all */
    const char *announce; /**< address file to write; NULL: none */
    const char *connect;  /**< address file to read; NULL: none */
    int seconds;          /**< -1: not given */
    bool peer;
    bool json;
} options_t;

/** All that is found out. */
typedef struct {
    info_devices_t devices;
    info_peer_t here;         /**< a second process of this host */
    info_peer_t asked;        /**< the process that an address file names */
    const info_peer_t *shown; /**< the one of these that is shown; NULL: the user asked for no peer */
} found_t;

/* Text */

static const struct {
    unsigned bit;
    const char *name;
} caps[] = {
    {DN_CAP_PUSH, "push"},
    {DN_CAP_PULL, "pull"},
    {DN_CAP_ATOMIC, "atomic"},
    {DN_CAP_MAP, "map"},
};

#define NUM_CAPS (sizeof(caps) / sizeof(caps[0]))

static void print_caps(const dn_peer_attr_t *attr)
{
    printf("    by itself:");
    for (size_t i = 0; i < NUM_CAPS; i++) {
        printf("%s%s", 0 != (attr->caps & caps[i].bit) ? " " : "",
               0 != (attr->caps & caps[i].bit) ? caps[i].name : "");
    }
    printf("%s\n    by the core processors:", attr->direct ? " private-memory" : "");
    for (size_t i = 0; i < NUM_CAPS; i++) {
        const bool core = 0 == (attr->caps & caps[i].bit) && DN_CAP_MAP != caps[i].bit;
        printf("%s%s", core ? " " : "", core ? caps[i].name : "");
    }
    printf("%s\n", attr->direct ? "" : " private-memory");
}

static void print_device(const info_device_t *device, const info_route_t *route)
{
    printf("  %s: %s%s\n", device->word,
           device->available ? "available" : "refused: ", device->available ? "" : device->why);
    if (!device->available) {
        return;
    }
    if ('\0' != device->provider[0]) {
        printf("    provider: %s, domain %s, reached at %s\n", device->provider, device->domain,
               device->endpoint);
    }
    printf("    address: %zu bytes\n", device->address_len);
    if (!route->reaches) {
        printf("    limits are not known: a second process here is not reached: %s\n", route->why);
        return;
    }
    printf("    longest message: %zu bytes, in one line: %zu\n    LLCM: %llu bytes\n", route->attr.botf_max,
           route->attr.botf_inline, (unsigned long long) route->attr.llcm_len);
    print_caps(&route->attr);
}

static void print_detection(void)
{
    const char *name;

    printf("Shared memory of libdn_dsm: accesses are detected by\n");
    for (size_t i = 0; NULL != (name = dn_dsm_detect_name(i)); i++) {
        const char *why = dn_dsm_detect_why_not(name);
        printf("  %s: %s%s\n", name, NULL == why ? "works" : "refused: ", NULL == why ? "" : why);
    }
}

static void print_peer(const info_devices_t *devices, const info_peer_t *peer)
{
    printf("Peer: process %ld of %s, which opened %s\n", peer->at.process, peer->at.host, peer->at.devices);
    for (int i = 0; i < devices->count; i++) {
        const info_route_t *route = &peer->route[i];
        const char *word = devices->device[i].word;
        if (!route->reaches) {
            printf("  %s: refused: %s\n", word, route->why);
        } else {
            printf("  %s: reaches it, %s%s\n", word,
                   route->answered ? "a message was answered" : "but a message was not answered: ",
                   route->answered ? "" : route->why);
        }
    }
    if (peer->reached) {
        printf("  used: %s, the first of the list that reaches it%s\n", peer->device,
               peer->shares_cores ? "; both share their cores" : "");
    } else {
        printf("  used: none: %s\n", peer->why);
    }
}

static int print_text(const found_t *found)
{
    printf("dimmnet %s\nDevices\n", DN_VERSION);
    for (int i = 0; i < found->devices.count; i++) {
        print_device(&found->devices.device[i], &found->here.route[i]);
    }
    print_detection();
    const int result = info_topology_print(NULL);
    if (NULL != found->shown) {
        print_peer(&found->devices, found->shown);
    }
    return result;
}

/* JSON */

static void json_limits(dn_json_t *json, const dn_peer_attr_t *attr)
{
    dn_json_object(json, "limits");
    dn_json_count(json, "message_max", attr->botf_max);
    dn_json_count(json, "message_one_line", attr->botf_inline);
    dn_json_count(json, "llcm_bytes", attr->llcm_len);
    dn_json_end_object(json);
    dn_json_object(json, "capabilities");
    for (size_t i = 0; i < NUM_CAPS; i++) {
        dn_json_flag(json, caps[i].name, 0 != (attr->caps & caps[i].bit));
    }
    dn_json_flag(json, "private_memory", 0 != attr->direct);
    dn_json_end_object(json);
}

static void json_device(dn_json_t *json, const info_device_t *device, const info_route_t *route)
{
    dn_json_object(json, NULL);
    dn_json_text(json, "device", device->word);
    dn_json_flag(json, "available", device->available);
    dn_json_text(json, "reason", device->available ? NULL : device->why);
    if (device->available) {
        const bool network = '\0' != device->provider[0];
        dn_json_text(json, "provider", network ? device->provider : NULL);
        dn_json_text(json, "domain", network ? device->domain : NULL);
        dn_json_text(json, "endpoint", network ? device->endpoint : NULL);
        dn_json_count(json, "address_bytes", device->address_len);
        if (route->reaches) {
            json_limits(json, &route->attr);
        }
    }
    dn_json_end_object(json);
}

static void json_peer(dn_json_t *json, const info_devices_t *devices, const info_peer_t *peer)
{
    dn_json_object(json, "peer");
    dn_json_text(json, "host", peer->at.host);
    dn_json_count(json, "process", (uint64_t) peer->at.process);
    dn_json_text(json, "devices", peer->at.devices);
    dn_json_text(json, "used", peer->reached ? peer->device : NULL);
    dn_json_text(json, "reason", peer->reached ? NULL : peer->why);
    dn_json_flag(json, "shares_cores", peer->shares_cores);
    dn_json_array(json, "routes");
    for (int i = 0; i < devices->count; i++) {
        const info_route_t *route = &peer->route[i];
        dn_json_object(json, NULL);
        dn_json_text(json, "device", devices->device[i].word);
        dn_json_flag(json, "reaches", route->reaches);
        dn_json_flag(json, "answered", route->answered);
        dn_json_text(json, "reason", route->answered ? NULL : route->why);
        if (route->reaches) {
            json_limits(json, &route->attr);
        }
        dn_json_end_object(json);
    }
    dn_json_end_array(json);
    dn_json_end_object(json);
}

static void json_detection(dn_json_t *json)
{
    const char *name;

    dn_json_array(json, "shared_memory_detection");
    for (size_t i = 0; NULL != (name = dn_dsm_detect_name(i)); i++) {
        const char *why = dn_dsm_detect_why_not(name);
        dn_json_object(json, NULL);
        dn_json_text(json, "name", name);
        dn_json_flag(json, "works", NULL == why);
        dn_json_text(json, "reason", why);
        dn_json_end_object(json);
    }
    dn_json_end_array(json);
}

static int print_json(const found_t *found)
{
    dn_json_t json = {.out = stdout};
    dn_json_object(&json, NULL);
    dn_json_text(&json, "program", INFO_PROGRAM);
    dn_json_text(&json, "version", DN_VERSION);
    dn_json_count(&json, "wire_version", DN_WIRE_VERSION);
    dn_json_array(&json, "devices");
    for (int i = 0; i < found->devices.count; i++) {
        json_device(&json, &found->devices.device[i], &found->here.route[i]);
    }
    dn_json_end_array(&json);
    json_detection(&json);
    const int result = info_topology_print(&json);
    if (NULL != found->shown) {
        json_peer(&json, &found->devices, found->shown);
    }
    dn_json_end_object(&json);
    return result;
}

/* Parameters */

/** Print the page of parameters of the documentation. */
static void print_parameters(void)
{
    size_t count;
    const dn_param_t *param = dn_param_list(&count);
    char value[DN_PARAM_TEXT], accepted[DN_PARAM_TEXT];

    printf("# Parameters\n\n"
           "`dimmnet_info --parameters` writes this page from `common/dn_params.def`. `mpirun --mca NAME "
           "VALUE` sets a parameter, or "
           "the environment\nvariable `OMPI_MCA_NAME`; those of the last rows are environment variables "
           "themselves. A number may "
           "have the unit k, m or g.\n\n"
           "| parameter | default | accepted | what it does |\n|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        dn_param_default(&param[i], value, sizeof(value));
        dn_param_accepted(&param[i], accepted, sizeof(accepted));
        printf("| `%s%s%s` | %s | %s%s%s | %s%s%s |\n", param[i].owner, '\0' == param[i].owner[0] ? "" : "_",
               param[i].name, value, accepted, '\0' == param[i].unit[0] ? "" : " ", param[i].unit,
               param[i].sentence,
               '\0' == param[i].old[0] ? "" : ". Before, and still heard: with the name of ", param[i].old);
    }
}

/* A second process here: what a device can do is found out by reaching this process. */

static int tell_pipe(const info_address_t *address, void *arg)
{
    FILE *pipe = arg;
    info_address_write(pipe, address);
    return fclose(pipe);
}

/** Start a second process. @param[out] file_p  From here its address can be read; nothing comes if no device is available there.
 * @return the kernel's number of the process, or -1. */
static pid_t start_second(const char *list, FILE **file_p)
{
    int ends[2];
    const pid_t parent = getpid();
    if (0 != pipe(ends)) {
        return -1;
    }
    fflush(NULL);
    const pid_t pid = fork();
    if (0 == pid) {
        static info_devices_t devices;
        /* The second process is silent: what is refused to it is refused to its parent, too, which reports that. */
        const int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        if (parent != getppid() || 0 != info_devices_parse(&devices, list)) {
            _exit(1);
        }
        info_devices_look(&devices);
        _exit(info_announce(&devices, 0, tell_pipe, fdopen(ends[1], "w")));
    }
    const int error = errno;
    close(ends[1]);
    *file_p = fdopen(ends[0], "r");
    if (0 > pid) {
        errno = error;
    }
    return pid;
}

/** Find out all about the devices and peers. The second process is started first, since libraries below libdimmnet do not survive a fork. */
static int look(const options_t *options, found_t *found)
{
    FILE *file = NULL;
    int status;
    const int seconds = 0 > options->seconds ? DEFAULT_SECONDS : options->seconds;
    const pid_t second = start_second(options->list, &file);
    if (0 > second || NULL == file) {
        fprintf(stderr, INFO_PROGRAM ": a second process cannot be started: %s\n", strerror(errno));
        return -1;
    }
    info_devices_look(&found->devices);
    const char *why = info_address_read(file, &found->here.at);
    fclose(file);
    if (NULL == why) {
        info_peer_look(&found->here, &found->devices, seconds);
    } else {
        snprintf(found->here.why, sizeof(found->here.why), "it opened no device");
        for (int i = 0; i < found->devices.count; i++) {
            snprintf(found->here.route[i].why, INFO_TEXT_MAX, "%s", found->here.why);
        }
    }
    kill(second, SIGTERM);
    waitpid(second, &status, 0);
    if (NULL != options->connect) {
        info_peer_look(&found->asked, &found->devices, seconds);
        found->shown = &found->asked;
    } else if (options->peer) {
        found->shown = &found->here;
    }
    return 0;
}

/* Address files */

static int read_address(const char *name, info_address_t *address)
{
    const bool standard = 0 == strcmp(name, "-");
    FILE *file = standard ? stdin : fopen(name, "r");
    if (NULL == file) {
        fprintf(stderr, INFO_PROGRAM ": %s cannot be read: %s\n", name, strerror(errno));
        return -1;
    }
    const char *why = info_address_read(file, address);
    if (!standard) {
        fclose(file);
    }
    if (NULL != why) {
        fprintf(stderr, INFO_PROGRAM ": %s is no address file: %s; " INFO_PROGRAM " --announce writes one\n",
                name, why);
        return -1;
    }
    return 0;
}

/** info_tell_fn_t: write an address file. The file gets its name when it is whole. It has the key of the process group, so only its owner can
 * read it: the file is always a new one, since a file that was there before may belong to somebody else. */
static int tell_file(const info_address_t *address, void *arg)
{
    const char *name = arg;
    char new_name[4096];
    if (0 == strcmp(name, "-")) {
        info_address_write(stdout, address);
        return fflush(stdout);
    }
    if (sizeof(new_name) <= (size_t) snprintf(new_name, sizeof(new_name), "%s.XXXXXX", name)) {
        fprintf(stderr, INFO_PROGRAM ": the name of the address file is too long\n");
        return -1;
    }
    const int fd = mkostemp(new_name, O_CLOEXEC);
    FILE *file = 0 > fd ? NULL : fdopen(fd, "w");
    if (NULL != file) {
        info_address_write(file, address);
    }
    if (NULL == file || 0 != fclose(file) || 0 != rename(new_name, name)) {
        fprintf(stderr, INFO_PROGRAM ": %s cannot be written: %s\n", name, strerror(errno));
        if (0 <= fd) {
            unlink(new_name);
        }
        return -1;
    }
    return 0;
}

static int announce(const options_t *options, info_devices_t *devices)
{
    char name[4096];
    snprintf(name, sizeof(name), "%s", options->announce);
    info_devices_look(devices);
    const int status = info_announce(devices, 0 > options->seconds ? 0 : options->seconds, tell_file, name);
    if (0 == status && 0 != strcmp(name, "-")) {
        unlink(name);
    }
    return status;
}

/* Options */

static const char letters[] = ":D:pa:c:w:jPVh";
static const struct option long_options[] = {
    {"device", required_argument, NULL, 'D'},   {"peer", no_argument, NULL, 'p'},
    {"announce", required_argument, NULL, 'a'}, {"connect", required_argument, NULL, 'c'},
    {"wait", required_argument, NULL, 'w'},     {"json", no_argument, NULL, 'j'},
    {"parameters", no_argument, NULL, 'P'},     {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
};

static void print_help(void)
{
    printf(
        "Usage: " INFO_PROGRAM " [options]\n"
        "Shows the devices of libdimmnet, what each can do here, and the machine as hwloc sees it.\n\n"
        "Options:\n"
        "  -D, --device LIST     devices, first choice first, such as shm,ofi:tcp (default: all of this "
        "build)\n"
        "  -p, --peer            start a second process, and say which device would be used to it and why\n"
        "                        others are refused\n"
        "  -a, --announce FILE   write to FILE (-: standard output) where this process is, and wait for "
        "others\n"
        "  -c, --connect FILE    as --peer, to the process that FILE (-: standard input) names, on any host\n"
        "  -w, --wait SECONDS    wait so long for an answer (default 5); with --announce end after that "
        "time\n"
        "                        (default: when a signal says so)\n"
        "  -j, --json            print one JSON document\n"
        "  -P, --parameters      list all parameters with default and range, as a page of Markdown\n"
        "  -V, --version         print the version\n"
        "  -h, --help            show this text\n");
}

static int complain(const char *what, const char *text, const char *advice)
{
    fprintf(stderr, INFO_PROGRAM ": %s%s; %s\n", what, text, advice);
    return -1;
}

static int parse_seconds(const char *text, int *seconds_p)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (end == text || '\0' != *end || 0 != errno || 1 > value || MAX_SECONDS < value) {
        return complain("--wait takes not ", text, "give a number of 1 to 86400");
    }
    *seconds_p = (int) value;
    return 0;
}

/** @return 0: go on; 1: the program is done; -1: a sentence is on stderr. */
static int parse_options(int argc, char **argv, options_t *options)
{
    char room[3];
    int letter;
    opterr = 0;
    while (-1 != (letter = getopt_long(argc, argv, letters, long_options, NULL))) {
        switch (letter) {
        case 'D':
            options->list = optarg;
            break;
        case 'p':
            options->peer = true;
            break;
        case 'a':
            options->announce = optarg;
            break;
        case 'c':
            options->connect = optarg;
            break;
        case 'w':
            if (0 != parse_seconds(optarg, &options->seconds)) {
                return -1;
            }
            break;
        case 'j':
            options->json = true;
            break;
        case 'P':
            print_parameters();
            return 1;
        case 'V':
            printf(INFO_PROGRAM " (dimmnet) %s\n", DN_VERSION);
            return 1;
        case 'h':
            print_help();
            return 1;
        default:
            return complain(':' == letter ? "a value is missing after " : "there is no option ",
                            dn_option_wrong(argv, letters, room), "-h lists the options");
        }
    }
    if (optind < argc) {
        return complain("there is nothing to do with ", argv[optind], "-h lists the options");
    }
    if (NULL != options->announce && (NULL != options->connect || options->peer || options->json)) {
        return complain("--announce", " only waits for others",
                        "give it without --connect, --peer and --json");
    }
    if (NULL != options->connect && options->peer) {
        return complain("--peer and --connect", " name two peers", "give one of them");
    }
    return 0;
}

/** Do what the options say. @return the exit status. */
static int run(int argc, char **argv)
{
    static found_t found;
    options_t options = {.seconds = -1};
    const int taken = parse_options(argc, argv, &options);
    if (0 != taken) {
        return 0 > taken;
    }
    if (0 != info_devices_parse(&found.devices, options.list)) {
        return 1;
    }
    if (NULL != options.announce) {
        return announce(&options, &found.devices);
    }
    if (NULL != options.connect && 0 != read_address(options.connect, &found.asked.at)) {
        return 1;
    }
    if (0 != look(&options, &found) || 0 != (options.json ? print_json(&found) : print_text(&found))) {
        return 1;
    }
    return '\0' == found.devices.usable[0] || (NULL != found.shown && !found.shown->reached);
}

int main(int argc, char **argv)
{
    const int status = run(argc, argv);

    return dn_output_end(INFO_PROGRAM, status);
}
