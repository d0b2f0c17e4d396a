/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A mapping whose way of detection is free looks once whether userfaultfd works. Where the kernel then refuses it for the memory of the
 * mapping, accesses are detected by segv, an answer says so, and no descriptor of userfaultfd stays open. Who has asked for uffd gets the
 * error, as does everybody where the kernel refuses segv, too.
 */
#include "dn_config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "dn_dsm.h"
#include "dn_page.h"
#include "errors.h"
#include "sanitizers.h"

static uint8_t memory[100];
static unsigned begun;        /**< descriptors of userfaultfd */
static int last = -1;         /**< of these */
static unsigned refused_from; /**< from this one on, of those begun, each range is refused; 0: none is */
static bool refuses_segv;
static char answer[400];

int __real_mprotect(void *at, size_t len, int prot);
int __wrap_mprotect(void *at, size_t len, int prot);

int __wrap_mprotect(void *at, size_t len, int prot)
{
    if (refuses_segv) {
        errno = ENOMEM;
        return -1;
    }
    return __real_mprotect(at, len, prot);
}

int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_ioctl(int fd, unsigned long request, ...)
{
    va_list list;

    va_start(list, request);
    void *arg = va_arg(list, void *);
    va_end(list);
    if (UFFDIO_API == request) {
        begun++;
        last = fd;
    }
    if (UFFDIO_REGISTER == request && 0 != refused_from && refused_from <= begun) {
        errno = EINVAL;
        return -1;
    }
    return __real_ioctl(fd, request, arg);
}

/** dn_log_fn_t. */
static void keep_answer(const char *sentence, void *arg)
{
    (void) arg;
    snprintf(answer, sizeof(answer), "%s", sentence);
}

/** Map, store and load. @return how accesses are detected. */
static const char *used(dn_world_t *world, const dn_key_t *key, const char *detect)
{
    dn_mapping_t *map;

    begun = 0;
    answer[0] = '\0';
    memory[1] = 1;
    dn_check_equal(dn_page_map(world->port, world->peer[0], key, 0, sizeof(memory), detect, &map), DN_OK);
    dn_check(0 == refused_from || (0 > fcntl(last, F_GETFD) && EBADF == errno));
    volatile uint8_t *at = dn_page_base(map);
    dn_check_equal(at[1], 1);
    at[2] = 2;
    dn_check_equal(dn_page_release(map), DN_OK);
    dn_check_equal(memory[2], 2);
    const char *name = dn_page_detects(map);
    dn_check_equal(dn_page_unmap(map), DN_OK);
    return name;
}

static void test(dn_world_t *world)
{
    enum { PROBE = 1, MAPPING };
    dn_segment_t *segment;
    dn_mapping_t *map;
    dn_key_t key;

    dn_world_start(world);
    dn_world_connect_to(world, 0);
    dn_check_equal(dn_segment_register(world->port, memory, sizeof(memory), &segment), DN_OK);
    dn_segment_key(segment, &key);
    dn_log_answers_set(keep_answer, NULL);
    dn_check(0 == strcmp("uffd", used(world, &key, "auto")));
    dn_check_equal(begun, MAPPING);
    dn_check('\0' == answer[0]);
    refused_from = MAPPING;
    dn_check(0 == strcmp("segv", used(world, &key, "auto")));
    dn_check_equal(begun, MAPPING);
    dn_check(NULL != strstr(answer, "the kernel refuses uffd for them (Invalid argument)"));
    begun = 0;
    refused(dn_page_map(world->port, world->peer[0], &key, 0, sizeof(memory), "uffd", &map),
            DN_ERR_UNSUPPORTED, "cannot be detected by uffd");
    refuses_segv = true;
    begun = 0;
    answer[0] = '\0';
    refused(dn_page_map(world->port, world->peer[0], &key, 0, sizeof(memory), "auto", &map), DN_ERR_NOMEM,
            "cannot be detected by segv");
    dn_check('\0' == answer[0]);
    refuses_segv = false;
    refused_from = PROBE;
    dn_check(0 == strcmp("segv", used(world, &key, "auto")));
    dn_check_equal(begun, PROBE);
    dn_check(NULL != strstr(answer, "by segv, not by uffd"));
    dn_log_answers_set(NULL, NULL);
    dn_world_stop(world);
}

int main(void)
{
    static const dn_variant_t shm = {.file = "", .device = "shm"};
    const char *why = dn_dsm_detect_why_not("uffd");

    if (NULL != why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    return dn_world_run("dn_page_takes_segv_where_uffd_is_refused", &shm, 1, test);
}
