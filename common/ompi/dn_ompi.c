/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi.c
 * The one port of an MPI process, its connections, and the display of its errors.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "dn_ompi_int.h"
#include "dn_ompi_progress.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/runtime/params.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/runtime/opal.h"
#include "opal/util/basename.h"
#include "opal/util/output.h"

/** The most different texts that a process shows. Further texts are left out. */
#define TEXTS_MAX 32

/** How often a process tries to let in all processes of its job. A try fails when a process has not told its address yet. */
#define LETS_MAX 16

static struct {
    dn_port_t *port;
    bool port_threads;      /**< the port was opened for threads */
    pid_t launcher;         /**< the parent of this process: Open MPI's daemon of this host */
    int users;              /**< dn_ompi_open() calls not yet undone */
    dn_counters_t counters; /**< of the port, when its last user closed it */
    uint32_t job_is_in;     /**< 1: a thread lets the job's processes in, or has let in all of them */
    uint32_t lets_in;       /**< tries in which the address of a process was missing */
} dn_ompi;

static struct {
    opal_mutex_t lock;
    uint64_t hash[TEXTS_MAX];
    int count;
} dn_ompi_shown = {.lock = OPAL_MUTEX_STATIC_INIT};

/** Has this process not shown the text yet? If two texts have the same hash, the second is not shown. */
static bool new_in_process(uint64_t hash)
{
    bool is_new = true;

    opal_mutex_lock(&dn_ompi_shown.lock);
    for (int i = 0; i < dn_ompi_shown.count; i++) {
        if (hash == dn_ompi_shown.hash[i]) {
            is_new = false;
        }
    }
    if (TEXTS_MAX == dn_ompi_shown.count) {
        is_new = false;
    }
    if (is_new) {
        dn_ompi_shown.hash[dn_ompi_shown.count++] = hash;
    }
    opal_mutex_unlock(&dn_ompi_shown.lock);
    return is_new;
}

/**
 * Is this process the first of its job on this host to show the text? The mark is a folder, which only one process can make.
 * The folder lies beside the session folder of the job, and stays until Open MPI removes everything there: the process that has
 * shown the text may end long before another process comes to the text. When Open MPI sees that a process of the job was killed,
 * Open MPI removes files there, and what is inside the job's folder: neither may be the mark. A process that cannot make the
 * folder shows the text. So does a process whose daemon is gone, since nobody would remove the folder.
 */
static bool new_on_host(uint64_t hash)
{
    const char *job = opal_process_info.job_session_dir;
    char *family = NULL == job || dn_ompi.launcher != getppid() ? NULL : opal_dirname(job);
    char *path = NULL;
    bool is_new = true;

    if (NULL != family
        && 0 <= asprintf(&path, "%s/dimmnet-said-%016llx", family,
                         (unsigned long long) dn_ompi_hash(hash, job))) {
        is_new = 0 == mkdir(path, S_IRWXU) || EEXIST != errno;
        free(path);
    }
    free(family);
    return is_new;
}

/** The line that Open MPI prints before and behind a help text. */
#define HELP_LINE "--------------------------------------------------------------------------\n"

/** Format a text between two lines. @return the caller's to free(); NULL: no memory. */
static char *help_text(const char *format, va_list args)
{
    char *text = NULL;
    char *framed = NULL;

    if (0 <= vasprintf(&text, format, args)) {
        if (0 > asprintf(&framed, HELP_LINE "%s" HELP_LINE, text)) {
            framed = NULL;
        }
        free(text);
    }
    return framed;
}

/** @param[in] text  Freed here. NULL: nothing is shown. */
static void show_once(uint64_t key, char *text)
{
    if (NULL != text && new_in_process(key) && new_on_host(key)) {
        fputs(text, stderr);
    }
    free(text);
}

void dn_ompi_help(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *text = help_text(format, args);
    va_end(args);
    show_once(NULL == text ? 0 : dn_ompi_hash(DN_OMPI_HASH, text), text);
}

void dn_ompi_help_once(uint64_t key, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *text = help_text(format, args);
    va_end(args);
    show_once(key, text);
}

/** dn_log_fn_t: errors of libdimmnet become help texts. */
static void show_sentence(const char *sentence, void *arg)
{
    dn_ompi_help_once(dn_ompi_lost_key(sentence), DN_OMPI_TEXT_LIBDIMMNET, opal_process_info.nodename,
                      sentence);
}

/** dn_log_fn_t: sentences that are no errors, for users that set common_dimmnet_verbose. */
static void show_answer(const char *sentence, void *arg)
{
    opal_output(0, "dimmnet: %s", sentence);
}

/** dn_log_fn_t: as show_answer(), after Open MPI has ended. */
static void print_answer(const char *sentence, void *arg)
{
    fprintf(stderr, "dimmnet: %s\n", sentence);
}

/**
 * Keep this library loaded. Open MPI unloads a component, and this library with the component. But Open MPI keeps the
 * variables that are registered here, and reads their values and enumerators until Open MPI ends.
 */
static void stay_loaded(const char *library)
{
    void *self = dlopen(library, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);

    if (NULL != self) {
        dlclose(self);
    }
}

/** Is the Open MPI that runs of the version with whose structures this library was compiled? */
static bool same_open_mpi(void)
{
    const size_t len = strlen(DN_OMPI_VERSION);

    return 0 == strncmp(opal_version_string, DN_OMPI_VERSION, len)
           && !isdigit((unsigned char) opal_version_string[len]);
}

/**
 * Do structures have the sizes that they have in the Open MPI that runs? Its sources may have been configured in another way, and headers
 * that stand in for missing headers (standin/) may not fit. Open MPI's classes know the sizes of their objects. If a size differs, a text
 * says so, once for all components.
 */
static bool same_structures(const mca_base_component_t *component)
{
    const struct {
        const opal_class_t *class;
        size_t size;
    } known[] = {
        {OBJ_CLASS(opal_mutex_t), sizeof(opal_mutex_t)},
        {OBJ_CLASS(ompi_proc_t), sizeof(ompi_proc_t)},
        {OBJ_CLASS(ompi_communicator_t), sizeof(ompi_communicator_t)},
        {OBJ_CLASS(ompi_request_t), sizeof(ompi_request_t)},
        {OBJ_CLASS(ompi_datatype_t), sizeof(ompi_datatype_t)},
        {OBJ_CLASS(opal_convertor_t), sizeof(opal_convertor_t)},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].size != known[i].class->cls_sizeof) {
            dn_ompi_help_once(dn_ompi_hash(DN_OMPI_HASH, DN_OMPI_TEXT_OTHER_STRUCTURES),
                              DN_OMPI_TEXT_OTHER_STRUCTURES, component->mca_type_name,
                              component->mca_component_name, known[i].class->cls_name,
                              (unsigned long) known[i].size, (unsigned long) known[i].class->cls_sizeof);
            return false;
        }
    }
    return true;
}

/** Are the component, this library and libdimmnet of one version? Two installations may be found at once, or a part of an installation may
 * be older than the rest. If a version differs, a text says so, once for all components. */
static bool same_dimmnet(const mca_base_component_t *component, const char *built)
{
    if (0 == strcmp(DN_VERSION, built) && 0 == strcmp(DN_VERSION, dn_version())) {
        return true;
    }
    dn_ompi_help_once(dn_ompi_hash(DN_OMPI_HASH, DN_OMPI_TEXT_OTHER_DIMMNET), DN_OMPI_TEXT_OTHER_DIMMNET,
                      component->mca_type_name, component->mca_component_name, built, DN_VERSION,
                      dn_version());
    return false;
}

int dn_ompi_register_built(const mca_base_component_t *component, dn_param_section_t section,
                           const char *built)
{
    Dl_info self;

    if (0 > mca_base_var_find("opal", "common", "dimmnet", "devices")
        && 0 != dladdr((void *) (uintptr_t) dn_ompi_register_built, &self) && NULL != self.dli_fname) {
        dn_ompi.launcher = getppid();
        stay_loaded(self.dli_fname);
    }
    if (!same_open_mpi()) {
        dn_ompi_help(DN_OMPI_TEXT_OTHER_OPEN_MPI, component->mca_type_name, component->mca_component_name,
                     DN_OMPI_VERSION, opal_version_string);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (!same_structures(component) || !same_dimmnet(component, built)) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    dn_ompi_params_register(component, DN_PARAM_PORT);
    dn_ompi_params_register(component, DN_PARAM_TAG);
    dn_ompi_params_register(component, DN_PARAM_MPI);
    dn_ompi_params_register(component, section);
    if (dn_ompi_helper_thread()) {
        /* This is set before any component asks for it: the first component of dimmnet is registered before Open MPI selects
         * the PML, BTLs and MTL. */
        opal_set_using_threads(true);
        /* All processes are added in MPI_Init. If the program's thread added a process later, it would hold Open MPI's lock while it
         * waits for the port. The helper thread serves the port, and may wait for Open MPI's lock at the same time. */
        ompi_add_procs_cutoff = UINT32_MAX;
    }
    return OPAL_SUCCESS;
}

/**
 * The key of the process group. Only the processes of the job know the launcher's key. If the launcher gives no key, the key is
 * random: each process is a group of its own, and lets in the processes that PMIx names.
 * @return false: the kernel gives no random bytes.
 */
static bool find_key(dn_group_key_t *group)
{
    unsigned long long word[2];
    char *key = dn_ompi_job_key();
    bool known = NULL != key && 2 == sscanf(key, "%16llx-%16llx", &word[0], &word[1]);

    free(key);
    if (known) {
        _Static_assert(sizeof(word) == sizeof(group->byte), "a group's key is two words of the launcher's");
        memcpy(group->byte, word, sizeof(word));
        return true;
    }
    return (ssize_t) sizeof(group->byte) == getrandom(group->byte, sizeof(group->byte), 0);
}

/** Tell other processes the address. A byte follows the address. It is 1 if this process will tell another address when it meets a process
 * that shared memory does not reach. */
static int dn_ompi_tell_address(enum dn_ompi_when when)
{
    char address[DN_ADDRESS_MAX + 1];
    size_t len = DN_ADDRESS_MAX;
    dn_status_t status = dn_address(dn_ompi.port, address, &len);
    int rc = dn_ompi_status(status);

    if (DN_OK == status) {
        address[len++] = (char) dn_ompi_far_tell();
        rc = DN_OMPI_AHEAD_OF_MODEX == when ? dn_ompi_address_tell_modex(address, len)
                                            : dn_ompi_address_tell(DN_OMPI_ADDRESS_FIRST, address, len);
    }
    /* A process alone may have no launcher, and no process looks for its address: the exchange may fail. */
    return 1 == dn_ompi_job_size() ? dn_ompi_status(status) : rc;
}

/** Is the port open without a user? It is kept so from one session of this process to the next. Its address stays the same then: PMIx may
 * go on to show the first address that a process has told. */
static bool is_kept(void)
{
    return NULL != dn_ompi.port && 0 == dn_ompi.users;
}

/** Close the kept port, at the latest when the process ends. */
static void __attribute__((destructor)) close_kept(void)
{
    if (is_kept()) {
        dn_close(dn_ompi.port);
        dn_ompi.port = NULL;
    }
}

/** Open a port, or use the kept port. A kept port that was opened for another choice of dn_job_t::threads is closed. */
static dn_status_t find_port(const dn_job_t *job)
{
    const char *devices = dn_ompi_far_devices();

    if (NULL != dn_ompi.port && dn_ompi.port_threads != job->threads) {
        close_kept();
    }
    dn_ompi.port_threads = job->threads;
    return NULL != dn_ompi.port ? DN_OK : dn_open(devices, job, &dn_ompi_params.port, &dn_ompi.port);
}

static int open_port(enum dn_ompi_when when)
{
    dn_group_key_t key;
    const char *dir = opal_process_info.job_session_dir;
    dn_status_t status;
    int rc;

    if (dn_ompi_params_refused(DN_PARAM_PORT) || dn_ompi_params_refused(DN_PARAM_MPI)) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (!find_key(&key)) {
        show_sentence("the kernel gives no random bytes for a process group key", NULL);
        return OPAL_ERR_IN_ERRNO;
    }
    const dn_job_t job = {.key = key,
                          .pid = OPAL_PROC_MY_NAME.vpid,
                          .nlocal = 1 + (uint32_t) opal_process_info.num_local_peers,
                          .size = dn_ompi_job_size(),
                          .dir = NULL != dir && 0 == access(dir, W_OK | X_OK) ? dir : NULL,
                          .threads = opal_using_threads() || dn_ompi_threads()};

    dn_log_set(show_sentence, NULL);
    dn_log_answers_set(dn_ompi_params.mpi.verbose ? show_answer : NULL, NULL);
    status = find_port(&job);
    if (DN_OK != status || !dn_ompi_encrypts()) {
        dn_ompi_say_in_clear();
    }
    if (DN_OK != status) {
        rc = dn_ompi_status(status);
        goto err_log;
    }
    dn_ompi.job_is_in = 0;
    dn_ompi.lets_in = 0;
    dn_ompi_far_begin(dn_ompi.port);
    rc = dn_ompi_tell_address(when);
    if (OPAL_SUCCESS != rc) {
        goto err_port;
    }
    return OPAL_SUCCESS;

err_port:
    dn_ompi_far_end();
    dn_ompi_address_forget();
    dn_close(dn_ompi.port);
    dn_ompi.port = NULL;
err_log:
    dn_log_set(NULL, NULL);
    return rc;
}

void dn_ompi_say_in_clear(void)
{
    if (DN_AUTH_ENCRYPTED == dn_ompi_params.port.auth && dn_ompi_spans_hosts()) {
        dn_ompi_help(DN_OMPI_TEXT_IN_CLEAR, opal_process_info.nodename,
                     NULL == dn_ompi_params.mpi.devices ? "" : dn_ompi_params.mpi.devices);
    }
}

int dn_ompi_open(enum dn_ompi_when when, dn_port_t **port_p)
{
    if (0 == dn_ompi.users) {
        int rc = open_port(when);

        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        dn_ompi_progress_open(dn_ompi.port);
    }
    dn_ompi.users++;
    *port_p = dn_ompi.port;
    return OPAL_SUCCESS;
}

dn_port_t *dn_ompi_port(void)
{
    return dn_ompi.port;
}

void dn_ompi_close(void)
{
    if (0 != --dn_ompi.users) {
        return;
    }
    dn_ompi_progress_close();
    dn_counters(dn_ompi.port, &dn_ompi.counters);
    const bool network = dn_ompi_far_is_open();
    dn_ompi_far_end();
    dn_ompi_address_forget();
    if (!DN_OMPI_BEGINS_AGAIN || network) {
        dn_close(dn_ompi.port);
        dn_ompi.port = NULL;
    }
    dn_log_set(NULL, NULL);
    dn_log_answers_set(is_kept() && dn_ompi_params.mpi.verbose ? print_answer : NULL, NULL);
    dn_ompi_lost_forget();
}

void dn_ompi_counters(dn_counters_t *counters)
{
    if (NULL == dn_ompi.port || is_kept()) {
        *counters = dn_ompi.counters;
    } else {
        dn_counters(dn_ompi.port, counters);
    }
}

/** Let in the process group of an address. */
static dn_status_t dn_ompi_admit(const void *address, size_t len)
{
    dn_pgid_t pgid;
    dn_status_t status = dn_address_pgid(address, len, &pgid);

    return DN_OK == status ? dn_group_admit(dn_ompi.port, &pgid) : status;
}

void dn_ompi_let_job_in(void)
{
    bool all = true;

    /* One thread does this. Once is enough if all processes have told their addresses in the modex: a process that greets is through
     * the modex, so all addresses are there. */
    if (LETS_MAX <= dn_load_relaxed(&dn_ompi.lets_in) || !dn_cas_acq_rel_u32(&dn_ompi.job_is_in, 0, 1)) {
        return;
    }
    for (uint32_t rank = 0; rank < dn_ompi_job_size(); rank++) {
        const opal_process_name_t proc = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = rank};
        void *address = NULL;
        size_t len;

        if (rank != OPAL_PROC_MY_NAME.vpid) {
            all = dn_ompi_address_recall(&proc, &address, &len) && DN_OK == dn_ompi_admit(address, len - 1)
                  && all;
        }
        free(address);
    }
    if (!all) {
        /* A process that was not let in will greet again. */
        dn_store_relaxed(&dn_ompi.lets_in, dn_load_relaxed(&dn_ompi.lets_in) + 1);
        dn_store_release(&dn_ompi.job_is_in, 0);
    }
}

/** Find the address of a process.
 * @param[out] address_p      The caller's to free(); also after an error.
 * @param[out] comes_later_p  The process will tell another address when it meets a process that shared memory does not reach. */
static int dn_ompi_find_address(const opal_proc_t *proc, void **address_p, size_t *len_p, bool *comes_later_p)
{
    int rc = OPAL_ERR_OUT_OF_RESOURCE;

    *comes_later_p = false;
    if (0 != opal_compare_proc(OPAL_PROC_MY_NAME, proc->proc_name)) {
        rc = dn_ompi_address_find(&proc->proc_name, address_p, len_p);
        if (OPAL_SUCCESS == rc) {
            *comes_later_p = 0 != ((const uint8_t *) *address_p)[--*len_p];
        }
        return rc;
    }
    *len_p = DN_ADDRESS_MAX;
    *address_p = malloc(*len_p);
    if (NULL != *address_p) {
        rc = dn_ompi_status(dn_address(dn_ompi.port, *address_p, len_p));
    }
    return rc;
}

int dn_ompi_connect(opal_proc_t *proc, dn_peer_t **peer_p)
{
    void *address = NULL;
    bool comes_later;
    dn_status_t status;
    size_t len;

    if (OPAL_SUCCESS != dn_ompi_find_address(proc, &address, &len, &comes_later)) {
        free(address);
        return OPAL_ERR_UNREACH;
    }
    status = dn_ompi_admit(address, len);
    if (DN_OK == status) {
        dn_ompi_lost_note(proc);
        status = dn_connect(dn_ompi.port, address, len, peer_p);
        dn_ompi_progress_look();
    }
    if (DN_ERR_UNSUPPORTED == status) {
        status = dn_ompi_far_connect(proc, address, len, comes_later, peer_p);
    }
    free(address);
    return dn_ompi_status(status);
}

bool dn_ompi_added(const opal_proc_t *proc)
{
    const ompi_proc_t *ompi = (const ompi_proc_t *) proc;

    /* Pairs with a barrier in Open MPI. Open MPI writes this pointer after that barrier, as its last step. */
    return NULL != dn_load_acquire(&ompi->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML]);
}
