/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dn_info.h"

#define TAG_QUESTION 0
#define TAG_ANSWER   1
/* The most questions that wait for their answers at a time. */
#define MAX_QUESTIONS 16

/* The first sentence that libdimmnet logs in a call is the reason of an error. Later sentences only follow from it. */

static char sentence[INFO_TEXT_MAX];

static void note_sentence(const char *text, void *arg)
{
    (void) arg;
    if ('\0' == sentence[0]) {
        snprintf(sentence, sizeof(sentence), "%s", text);
    }
}

static void listen_to_reasons(void)
{
    sentence[0] = '\0';
    dn_log_set(note_sentence, NULL);
    dn_log_answers_set(note_sentence, NULL);
}

static void note_reason(char why[INFO_TEXT_MAX], dn_status_t status)
{
    snprintf(why, INFO_TEXT_MAX, "%s", '\0' != sentence[0] ? sentence : dn_strerror(status));
}

/* Devices */

static void add_word(char list[INFO_LIST_MAX], const char *word)
{
    size_t used = strlen(list);
    snprintf(list + used, INFO_LIST_MAX - used, "%s%s", 0 == used ? "" : ",", word);
}

/** All devices of this build, as a list for dn_open(). */
static const char *known_names(void)
{
    static char names[INFO_LIST_MAX];
    names[0] = '\0';
    for (size_t i = 0; NULL != dn_device_name(i); i++) {
        add_word(names, dn_device_name(i));
    }
    return names;
}

/** Is this NAME or NAME:ARGUMENT of a device of this build? */
static bool is_known(const char *word)
{
    const size_t len = strcspn(word, ":");
    for (size_t i = 0; NULL != dn_device_name(i); i++) {
        if (len == strlen(dn_device_name(i)) && 0 == strncmp(word, dn_device_name(i), len)) {
            return true;
        }
    }
    return false;
}

int info_devices_parse(info_devices_t *devices, const char *list)
{
    char text[INFO_LIST_MAX];
    char *rest = NULL;
    *devices = (info_devices_t){.count = 0};
    if (NULL != list && sizeof(text) <= strlen(list)) {
        fprintf(stderr, INFO_PROGRAM ": the list of devices is too long\n");
        return -1;
    }
    snprintf(text, sizeof(text), "%s", NULL == list ? known_names() : list);
    for (char *word = strtok_r(text, ",", &rest); NULL != word; word = strtok_r(NULL, ",", &rest)) {
        if (!is_known(word)) {
            fprintf(stderr, INFO_PROGRAM ": there is no device \"%s\"; this build has %s\n", word,
                    known_names());
            return -1;
        }
        if (INFO_MAX_DEVICES == devices->count) {
            fprintf(stderr, INFO_PROGRAM ": --device takes at most %d devices\n", INFO_MAX_DEVICES);
            return -1;
        }
        snprintf(devices->device[devices->count++].word, INFO_LIST_MAX, "%s", word);
    }
    if (0 == devices->count) {
        fprintf(stderr, INFO_PROGRAM ": --device takes a list such as shm,ofi; \"%s\" names none\n", list);
        return -1;
    }
    return 0;
}

static void copy_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", NULL == text ? "" : text);
}

/** Make a random key for a process group: only processes that get the address have it. @return 0, or -1: a sentence is on stderr. */
static int random_key(dn_group_key_t *key)
{
    if (0 != getentropy(key->byte, sizeof(key->byte))) {
        fprintf(stderr,
                INFO_PROGRAM ": the kernel gives no random numbers; allow getrandom in the sandbox\n");
        return -1;
    }
    return 0;
}

/** Copy what an open port tells of its only device. */
static void copy_attributes(info_device_t *device, const dn_port_t *port)
{
    uint8_t bytes[DN_ADDRESS_MAX];
    dn_device_attr_t attr;
    device->address_len = sizeof(bytes);
    dn_address(port, bytes, &device->address_len);
    if (DN_OK == dn_device_attr(port, 0, &attr)) {
        copy_text(device->provider, sizeof(device->provider), attr.provider);
        copy_text(device->domain, sizeof(device->domain), attr.domain);
        copy_text(device->endpoint, sizeof(device->endpoint), attr.endpoint);
    }
}

void info_devices_look(info_devices_t *devices)
{
    dn_job_t job = {.pid = 0};
    if (0 != random_key(&job.key)) {
        return;
    }
    for (int i = 0; i < devices->count; i++) {
        info_device_t *device = &devices->device[i];
        dn_port_t *port;
        listen_to_reasons();
        const dn_status_t status = dn_open(device->word, &job, NULL, &port);
        device->available = DN_OK == status;
        if (DN_OK != status) {
            note_reason(device->why, status);
            continue;
        }
        copy_attributes(device, port);
        dn_close(port);
        add_word(devices->usable, device->word);
    }
}

/* A question is the address of the process that asks. The answer goes there. */

typedef struct {
    dn_port_t *port;
    int questions;
    struct {
        uint8_t bytes[DN_ADDRESS_MAX];
        size_t len;
    } question[MAX_QUESTIONS];
} answerer_t;

static void on_question(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    answerer_t *answerer = arg;
    (void) src;
    if (TAG_QUESTION == tag && DN_ADDRESS_MAX >= len && MAX_QUESTIONS > answerer->questions) {
        memcpy(answerer->question[answerer->questions].bytes, data, len);
        answerer->question[answerer->questions++].len = len;
    }
}

static void on_answer(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    bool *answered = arg;
    (void) src;
    (void) data;
    (void) len;
    *answered |= TAG_ANSWER == tag;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

/** Send one message, and give up after @p seconds. @return DN_ERR_AGAIN: gave up. */
static dn_status_t send_message(dn_port_t *port, dn_peer_t *peer, unsigned tag, const void *data, size_t len,
                                double seconds)
{
    dn_status_t status;
    const double end = now() + seconds;
    while (DN_ERR_AGAIN == (status = dn_botf(peer, DN_CHAN_USER, tag, NULL, 0, data, len)) && now() < end) {
        dn_progress(port);
        sched_yield();
    }
    return status;
}

/** Answer all questions. It is no error if a process that has asked is gone. */
static void answer(answerer_t *answerer)
{
    for (int i = 0; i < answerer->questions; i++) {
        dn_peer_t *peer;
        if (DN_OK
            == dn_connect(answerer->port, answerer->question[i].bytes, answerer->question[i].len, &peer)) {
            send_message(answerer->port, peer, TAG_ANSWER, NULL, 0, 1);
            dn_disconnect(peer);
        }
    }
    answerer->questions = 0;
}

/* The announcing side */

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void) number;
    ended = 1;
}

static int serve(dn_port_t *port, int seconds)
{
    static answerer_t answerer;
    const double last = now() + seconds;
    /* No time is measured here: between two looks the core is left to other processes. */
    const struct timespec pause = {.tv_nsec = 1000000};
    answerer.port = port;
    if (DN_OK != dn_handler_set(port, DN_CHAN_USER, on_question, &answerer)) {
        return 1;
    }
    while (!ended && (0 == seconds || now() < last)) {
        if (0 == dn_progress(port)) {
            nanosleep(&pause, NULL);
        }
        answer(&answerer);
    }
    return 0;
}

int info_announce(const info_devices_t *devices, int seconds, info_tell_fn_t tell, void *arg)
{
    static info_address_t address;
    const struct sigaction action = {.sa_handler = end};
    dn_job_t job = {.pid = 0};
    dn_port_t *port;
    char why[INFO_TEXT_MAX];
    int status = 1;
    if (0 != random_key(&job.key)) {
        return 1;
    }
    if ('\0' == devices->usable[0]) {
        fprintf(stderr, INFO_PROGRAM ": no device is available here: %s\n", devices->device[0].why);
        return 1;
    }
    listen_to_reasons();
    const dn_status_t opened = dn_open(devices->usable, &job, NULL, &port);
    if (DN_OK != opened) {
        note_reason(why, opened);
        fprintf(stderr, INFO_PROGRAM ": %s cannot be opened together: %s\n", devices->usable, why);
        return 1;
    }
    address.key = job.key;
    address.len = sizeof(address.bytes);
    address.process = (long) getpid();
    gethostname(address.host, sizeof(address.host) - 1);
    snprintf(address.devices, sizeof(address.devices), "%s", devices->usable);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    const dn_status_t told = dn_address(port, address.bytes, &address.len);
    if (DN_OK != told) {
        note_reason(why, told);
        fprintf(stderr, INFO_PROGRAM ": the address of %s cannot be told: %s\n", devices->usable, why);
    } else if (0 == tell(&address, arg)) {
        status = serve(port, seconds);
    }
    dn_close(port);
    return status;
}

/* The asking side */

/** Ask the peer, and wait for its answer. */
static void ask(dn_port_t *port, dn_peer_t *peer, const bool *answered, int seconds, info_route_t *route)
{
    uint8_t bytes[DN_ADDRESS_MAX];
    size_t len = sizeof(bytes);
    const double end = now() + seconds;
    dn_status_t status = dn_address(port, bytes, &len);
    if (DN_OK == status) {
        status = send_message(port, peer, TAG_QUESTION, bytes, len, seconds);
    }
    if (DN_OK != status) {
        note_reason(route->why, status);
        return;
    }
    while (!*answered && DN_OK == status && now() < end) {
        if (0 == dn_progress(port)) {
            sched_yield();
            status = dn_peer_check(peer);
        }
    }
    route->answered = *answered;
    if (!*answered && DN_OK == status) {
        snprintf(route->why, sizeof(route->why), "no answer came within %d s", seconds);
    } else if (!*answered) {
        note_reason(route->why, status);
    }
}

/** Reach the peer by one device alone. */
static void try_route(const info_address_t *to, const char *word, dn_job_t *job, int seconds,
                      info_route_t *route)
{
    dn_port_t *port;
    dn_peer_t *peer;
    bool answered = false;
    listen_to_reasons();
    dn_status_t status = dn_open(word, job, NULL, &port);
    if (DN_OK != status) {
        note_reason(route->why, status);
        return;
    }
    dn_handler_set(port, DN_CHAN_USER, on_answer, &answered);
    status = dn_connect(port, to->bytes, to->len, &peer);
    route->reaches = DN_OK == status;
    if (DN_OK != status) {
        note_reason(route->why, status);
    } else {
        dn_peer_attr(peer, &route->attr);
        ask(port, peer, &answered, seconds, route);
        dn_disconnect(peer);
    }
    dn_close(port);
    job->pid++;
}

/** Reach the peer by the whole list, and note which device is used. */
static void choose(info_peer_t *peer, const char *list, const dn_job_t *job)
{
    dn_port_t *port;
    dn_peer_t *there;
    dn_peer_attr_t attr;
    listen_to_reasons();
    dn_status_t status = dn_open(list, job, NULL, &port);
    if (DN_OK != status) {
        note_reason(peer->why, status);
        return;
    }
    status = dn_connect(port, peer->at.bytes, peer->at.len, &there);
    peer->reached = DN_OK == status;
    if (DN_OK != status) {
        note_reason(peer->why, status);
    } else {
        dn_peer_attr(there, &attr);
        snprintf(peer->device, sizeof(peer->device), "%s", attr.device);
        peer->shares_cores = 0 != dn_oversubscribed(port);
        dn_disconnect(there);
    }
    dn_close(port);
}

void info_peer_look(info_peer_t *peer, const info_devices_t *devices, int seconds)
{
    dn_job_t job = {.key = peer->at.key, .pid = 1};
    dn_pgid_t pgid;
    listen_to_reasons();
    const dn_status_t status = dn_address_pgid(peer->at.bytes, peer->at.len, &pgid);
    if (DN_OK != status) {
        note_reason(peer->why, status);
        for (int i = 0; i < devices->count; i++) {
            snprintf(peer->route[i].why, INFO_TEXT_MAX, "%s", peer->why);
        }
        return;
    }
    for (int i = 0; i < devices->count; i++) {
        if (devices->device[i].available) {
            try_route(&peer->at, devices->device[i].word, &job, seconds, &peer->route[i]);
        } else {
            snprintf(peer->route[i].why, INFO_TEXT_MAX, "%s", devices->device[i].why);
        }
    }
    choose(peer, devices->usable, &job);
}
