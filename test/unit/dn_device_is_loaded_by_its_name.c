/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A device that is not built in is found by the name of its file and loaded when a list names it, once for all threads and ports, and
 * stays. What is no module, or one for another library, is refused by one sentence that says which file it is. A program
 * with more rights than its caller loads nothing from where the caller points to.
 */
#include "dn_config.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dn_unit.h"

#include "dn_device.h"
#include "dn_port.h"

enum { THREADS = 8, ROUNDS = 50, PATH = 512 };

static const dn_job_t job = {.key = {{1}}, .nlocal = 1};
static char folder[] = "/tmp/dn-modules-XXXXXX";

static const char *path_of(const char *file)
{
    static char path[PATH];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    return path;
}

static void copy(const char *from, const char *file, mode_t mode)
{
    static char bytes[1 << 16];
    size_t len;
    FILE *in = fopen(from, "r");
    FILE *out = fopen(path_of(file), "w");

    assert_non_null(in);
    assert_non_null(out);
    while (0 < (len = fread(bytes, 1, sizeof(bytes), in))) {
        assert_int_equal(fwrite(bytes, 1, len, out), len);
    }
    assert_int_equal(fchmod(fileno(out), mode), 0);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static int is_loaded(const char *file)
{
    void *handle = dlopen(path_of(file), RTLD_NOW | RTLD_NOLOAD);
    if (NULL != handle) {
        dlclose(handle);
    }
    return NULL != handle;
}

static int is_named(const char *name)
{
    int times = 0;
    for (size_t i = 0; NULL != dn_device_name(i); i++) {
        times += 0 == strcmp(name, dn_device_name(i));
    }
    return times;
}

static void refused(const char *spec, const char *word)
{
    dn_port_t *port = NULL;

    dn_test_log_expect();
    assert_int_equal(dn_open(spec, &job, NULL, &port), DN_ERR_PARAM);
    if (!dn_test_log_said(1, word)) {
        fail_msg("\"%s\" is not refused with \"%s\"", spec, word);
    }
}

static void *open_and_close(void *arg)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        dn_port_t *port = NULL;
        if (DN_OK != dn_open(0 == i % 2 ? "good" : "shm,good", &job, NULL, &port)) {
            return arg;
        }
        dn_progress(port);
        dn_close(port);
    }
    return NULL;
}

static dn_port_t *shared; /**< a port of several threads */
static int loads;         /**< modules that were loaded, each while the port could be used */

static void *use_shared(void *arg)
{
    if (!dn_port_trylock(shared)) {
        return arg;
    }
    dn_port_unlock(shared);
    return NULL;
}

/** A module is being loaded. */
static void loading(void)
{
    pthread_t thread;
    void *failed = shared;

    loads += 0 == pthread_create(&thread, NULL, use_shared, shared) && 0 == pthread_join(thread, &failed)
             && NULL == failed;
}

/** In a child, since it stays loaded. */
static void it_is_loaded_while_others_use_the_port(void **state)
{
    int status;
    const pid_t child = fork();

    if (0 == child) {
        const dn_job_t threaded = {.key = {{1}}, .nlocal = 1, .threads = 1};
        char at[32];
        snprintf(at, sizeof(at), "%lx", (unsigned long) loading);
        setenv("DN_TEST_LOADING", at, 1);
        if (DN_OK != dn_open("shm", &threaded, NULL, &shared) || DN_OK != dn_device_open(shared, "good")) {
            _exit(2);
        }
        dn_close(shared);
        _exit(1 == loads ? 0 : 1);
    }
    assert_true(0 < child);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void threads_load_it_once_and_it_stays(void **state)
{
    pthread_t thread[THREADS];
    void *failed;

    assert_true(dn_device_known("good"));
    assert_int_equal(is_named("good"), 1);
    assert_false(is_loaded("dn_device_good.so"));
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, open_and_close, folder), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
    }
    assert_true(is_loaded("dn_device_good.so"));
    assert_int_equal(is_named("good"), 1);
    assert_false(is_loaded("dn_device_other.so"));
}

static void ports_have_it_side_by_side(void **state)
{
    dn_port_t *one = NULL, *two = NULL;

    assert_int_equal(dn_open("good", &job, NULL, &one), DN_OK);
    assert_int_equal(dn_open("good,shm", &job, NULL, &two), DN_OK);
    dn_close(one);
    assert_int_equal(dn_progress(two), 0);
    dn_close(two);
    refused("good,good", "is twice");
}

static void what_is_no_module_is_refused(void **state)
{
    FILE *text = fopen(path_of("dn_device_text.so"), "w");

    assert_non_null(text);
    fputs("no library\n", text);
    assert_int_equal(fclose(text), 0);
    refused("nix", "there is no device \"nix\" as in \"nix\"; known devices: ");
    refused("nix", "good");
    refused("nix", "no dn_device_nix.so is in /tmp/dn-modules-");
    refused("nix", DN_TEST_DEVICE_DIR);
    refused("shm,text:argument", path_of("dn_device_text.so"));
    refused("other", "holds the device good; rename it");
    assert_false(is_loaded("dn_device_other.so"));
    refused("../good", "there is no device \"../good\"");
    refused("", "no device of \"\" works here");
    /* Its name would be cut in addresses. */
    assert_int_equal(is_named("muchtoolong"), 0);
    assert_false(dn_device_known("muchtoolong"));
    assert_false(dn_device_known("nix"));
    /* The folders have been looked into several times. */
    assert_int_equal(is_named("good"), 1);
    /* A file cannot take the place of what is built in. */
    assert_int_equal(is_named("shm"), 1);
    assert_true(dn_device_known("shm"));
}

/** The device of the module, with an entry in place of one of its own. */
static void added(dn_device_module_t module, dn_device_t device, dn_status_t status, const char *word)
{
    module.device = &device;
    dn_test_log_expect();
    assert_int_equal(dn_device_add(&module), status);
    assert_true(dn_test_log_said(1, word));
}

static void what_is_for_another_library_is_refused(void **state)
{
    void *handle = dlopen(path_of("dn_device_good.so"), RTLD_NOW);
    assert_non_null(handle);
    const dn_device_module_t *good = dlsym(handle, "dn_device_module");
    assert_non_null(good);
    static dn_device_t mine;
    static dn_device_module_t module;
    dn_port_t *port = NULL;

    module = *good;
    mine = *good->device;
    module.version++;
    added(module, mine, DN_ERR_VERSION, "build it again");
    module = *good;
    module.size[2] += 8;
    added(module, mine, DN_ERR_VERSION, "other headers");
    module = *good;
    mine.recv = NULL;
    added(module, mine, DN_ERR_PARAM, "lacks an entry");
    mine = *good->device;
    mine.name = "muchtoolong";
    added(module, mine, DN_ERR_PARAM, "1 to 8 letters");
    mine.name = "shm";
    added(module, mine, DN_ERR_PARAM, "there is a device shm already");
    mine.name = "good";
    added(module, mine, DN_ERR_PARAM, "there is a device good already");
    assert_int_equal(dn_device_add(good), DN_OK);
    mine.name = "mine";
    module.device = &mine;
    assert_int_equal(dn_device_add(&module), DN_OK);
    assert_int_equal(dn_device_add(&module), DN_OK);
    assert_int_equal(is_named("mine"), 1);
    assert_true(dn_device_known("mine"));
    assert_int_equal(dn_open("mine,good", &job, NULL, &port), DN_OK);
    dn_close(port);
    dlclose(handle);
}

static void a_set_id_program_does_not_ask_its_caller(void **state)
{
    int status = 0;

    copy("/proc/self/exe", "program", 0755);
    if (0 != chown(path_of("program"), (uid_t) -1, 65534) || 0 != chmod(path_of("program"), 02755)) {
        skip();
    }
    const pid_t pid = fork();
    if (0 == pid) {
        execl(path_of("program"), "program", "asks", NULL);
        _exit(DN_TEST_SKIP);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (DN_TEST_SKIP == WEXITSTATUS(status)) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/** The program with the rights of another group, or started as if it were. */
static int asks(void)
{
    dn_port_t *port = NULL;

    if (0 == getauxval(AT_SECURE)) {
        return DN_TEST_SKIP;
    }
    dn_test_log_watch();
    dn_test_log_expect();
    return DN_ERR_PARAM == dn_open("good", &job, NULL, &port)
                   && dn_test_log_said(1, "there is no device \"good\"") && 0 == is_named("good")
               ? 0
               : 1;
}

static int set_up(void **state)
{
    const char *module = getenv("DN_TEST_MODULE");

    if (NULL == mkdtemp(folder) || NULL == module) {
        return 1;
    }
    copy(module, "dn_device_good.so", 0644);
    copy(module, "dn_device_other.so", 0644);
    copy(module, "dn_device_muchtoolong.so", 0644);
    copy(module, "dn_device_shm.so", 0644);
    setenv("DN_DEVICE_PATH", folder, 1);
    return dn_unit_setup(state);
}

static int tear_down(void **state)
{
    static const char *const file[] = {"dn_device_good.so", "dn_device_other.so", "dn_device_muchtoolong.so",
                                       "dn_device_shm.so",  "dn_device_text.so",  "program"};
    for (unsigned i = 0; i < sizeof(file) / sizeof(file[0]); i++) {
        unlink(path_of(file[i]));
    }
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_loaded_while_others_use_the_port),
        cmocka_unit_test(threads_load_it_once_and_it_stays),
        cmocka_unit_test(ports_have_it_side_by_side),
        cmocka_unit_test(what_is_no_module_is_refused),
        cmocka_unit_test(what_is_for_another_library_is_refused),
        cmocka_unit_test(a_set_id_program_does_not_ask_its_caller),
    };
    return 1 < argc ? asks() : cmocka_run_group_tests(tests, set_up, tear_down);
}
