/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_var.c
 * MCA variables common_dimmnet_*, and numeric variables of any component: they have an enumerator of our own.
 */
#include "dn_config.h"

#include "dn_ompi_int.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#define PROJECT   "opal"
#define FRAMEWORK "common"
#define COMPONENT "dimmnet"

/**
 * What a variable accepts. An object of a class of this library, for Open MPI keeps it after the component
 * has been unloaded. A value that is not accepted is reported here and replaced by the standard.
 */
typedef struct dn_ompi_accept {
    mca_base_var_enum_t super;
    const mca_base_var_enum_value_t *words; /**< ended by a NULL string; NULL: a number */
    unsigned low, high, multiple;           /**< of a number, as in dn_ompi_number_t */
    int standard;
    bool *refused; /**< set when a value is not accepted */
} dn_ompi_accept_t;

static void accept_construct(dn_ompi_accept_t *accept);
static OBJ_CLASS_INSTANCE(dn_ompi_accept_t, mca_base_var_enum_t, accept_construct, NULL);

/** mca_base_var_enum_t: get_count. */
static int accept_count(mca_base_var_enum_t *self, int *count)
{
    const dn_ompi_accept_t *accept = (const dn_ompi_accept_t *) self;

    *count = 0; /* numbers are too many to list */
    while (NULL != accept->words && NULL != accept->words[*count].string) {
        ++*count;
    }
    return OPAL_SUCCESS;
}

/** mca_base_var_enum_t: get_value. */
static int accept_value(mca_base_var_enum_t *self, int index, int *value, const char **text)
{
    const dn_ompi_accept_t *accept = (const dn_ompi_accept_t *) self;
    int count;

    (void) accept_count(self, &count);
    if (0 > index || index >= count) {
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    }
    *value = accept->words[index].value;
    *text = accept->words[index].string;
    return OPAL_SUCCESS;
}

/** mca_base_var_enum_t: dump. */
static int accept_dump(mca_base_var_enum_t *self, char **text DN_OMPI_ENUM_DUMP_MORE)
{
    const dn_ompi_accept_t *accept = (const dn_ompi_accept_t *) self;
    char words[128] = "";
    size_t used = 0;
    int len;

    if (NULL != accept->words) {
        for (int i = 0; NULL != accept->words[i].string && used < sizeof(words); i++) {
            used += (size_t) snprintf(words + used, sizeof(words) - used, "%s%s", 0 == i ? "" : ", ",
                                      accept->words[i].string);
        }
        len = asprintf(text, "%s", words);
    } else if (1 == accept->multiple) {
        len = asprintf(text, "%u to %u", accept->low, accept->high);
    } else {
        len = asprintf(text, "a multiple of %u from %u to %u", accept->multiple, accept->low, accept->high);
    }
    return 0 > len ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

/** mca_base_var_enum_t: string_from_value. */
static int accept_to_string(mca_base_var_enum_t *self, const int value, char **text)
{
    const dn_ompi_accept_t *accept = (const dn_ompi_accept_t *) self;
    int len = 0;

    if (NULL == text) {
        return OPAL_SUCCESS;
    }
    for (const mca_base_var_enum_value_t *word = accept->words; NULL != word && NULL != word->string;
         word++) {
        if (value == word->value) {
            len = asprintf(text, "%s", word->string);
            return 0 > len ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
        }
    }
    len = asprintf(text, "%d", value);
    return 0 > len ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

static bool word_parse(const dn_ompi_accept_t *accept, const char *text, int *value_p)
{
    for (const mca_base_var_enum_value_t *word = accept->words; NULL != word->string; word++) {
        if (0 == strcmp(word->string, text)) {
            *value_p = word->value;
            return true;
        }
    }
    return false;
}

static bool number_parse(const dn_ompi_accept_t *accept, const char *text, int *value_p)
{
    static const char units[] = "kKmMgG";
    const char *unit;
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 0);
    if (0 != errno || end == text || NULL != strchr(text, '-') || UINT_MAX < value) {
        return false;
    }
    unit = '\0' == *end ? NULL : strchr(units, *end);
    if (NULL != unit) {
        value <<= 10 * (1 + (unit - units) / 2);
        end++;
    }
    if ('\0' != *end || value < accept->low || value > accept->high) {
        return false;
    }
    *value_p = (int) value;
    return 0 == value % accept->multiple;
}

/** mca_base_var_enum_t: value_from_string. */
static int accept_from_string(mca_base_var_enum_t *self, const char *text, int *value_p)
{
    const dn_ompi_accept_t *accept = (const dn_ompi_accept_t *) self;
    char *accepted = NULL;

    if (NULL != accept->words ? word_parse(accept, text, value_p) : number_parse(accept, text, value_p)) {
        return OPAL_SUCCESS;
    }
    (void) accept_dump(self, &accepted DN_OMPI_ENUM_DUMP_TEXT);
    dn_ompi_help("bad-value", opal_process_info.nodename, self->enum_name, text, accepted);
    free(accepted);
    *accept->refused = true;
    *value_p = accept->standard;
    return OPAL_SUCCESS;
}

static void accept_construct(dn_ompi_accept_t *accept)
{
    accept->super.get_count = accept_count;
    accept->super.get_value = accept_value;
    accept->super.value_from_string = accept_from_string;
    accept->super.string_from_value = accept_to_string;
    accept->super.dump = accept_dump;
    accept->words = NULL;
}

enum {
    NUMBER_RING_LINES,
    NUMBER_MAX_PEERS,
    NUMBER_LLCM_BYTES,
    NUMBER_STAGE_BYTES,
    NUMBER_STAGE_MIN,
    NUMBER_HELP_MIN,
    NUMBER_TIMEOUT_S,
    NUMBERS
};

/* Ranges as in dn_config_t. They stay below INT_MAX, all that an enumerator can hold. */
static dn_ompi_number_t dn_ompi_number[NUMBERS] = {
    [NUMBER_RING_LINES] = {.name = "ring_lines",
                           .help = "Message lines of 64 bytes in each direction of a pair of processes; the "
                                   "longest message follows from it",
                           .level = OPAL_INFO_LVL_5,
                           .low = 64,
                           .high = 4096,
                           .multiple = 1},
    [NUMBER_MAX_PEERS] = {.name = "max_peers",
                          .help = "Processes that may send to one process at the same time",
                          .level = OPAL_INFO_LVL_5,
                          .low = 1,
                          .high = 16384,
                          .multiple = 1},
    [NUMBER_LLCM_BYTES] = {.name = "llcm_bytes",
                           .help = "Bytes of a process that its peers may write with single stores",
                           .level = OPAL_INFO_LVL_9,
                           .low = 4096,
                           .high = 16 << 20,
                           .multiple = 64},
    [NUMBER_STAGE_BYTES] = {.name = "stage_bytes",
                            .help =
                                "Memory through which a process sends its longer messages; it should exceed "
                                "the caches of two cores, and is taken as such messages come; 0: none, they "
                                "go through the rings",
                            .level = OPAL_INFO_LVL_5,
                            .high = DN_STAGE_BYTES_MAX,
                            .multiple = 64},
    [NUMBER_STAGE_MIN] = {.name = "stage_min",
                          .help = "Bytes of a message above which it goes through that memory",
                          .level = OPAL_INFO_LVL_5,
                          .high = INT_MAX,
                          .multiple = 1},
    [NUMBER_HELP_MIN] = {.name = "help_min",
                         .help = "Bytes of a transfer from which both processes copy a part of it; 0: never",
                         .level = OPAL_INFO_LVL_5,
                         .low = 0,
                         .high = INT_MAX,
                         .multiple = 1},
    [NUMBER_TIMEOUT_S] = {.name = "timeout_s",
                          .help =
                              "Seconds after which a process on a network that answers no more is given up, "
                              "as when its host was cut off; a process that computes answers, one that is "
                              "stopped does not; 0: never",
                          .level = OPAL_INFO_LVL_3,
                          .high = 86400,
                          .multiple = 1},
};

/* The first word of a value is the one that is shown. */
static const mca_base_var_enum_value_t backing_words[] = {{0, "auto"}, {1, "memfd"}, {2, "file"}, {0, NULL}};
static const mca_base_var_enum_value_t auth_words[] = {
    {DN_AUTH_HELLO, "hello"}, {DN_AUTH_FULL, "full"}, {DN_AUTH_NONE, "none"}, {0, NULL}};
static const mca_base_var_enum_value_t bool_words[] = {{1, "true"}, {0, "false"}, {1, "yes"}, {0, "no"},
                                                       {1, "1"},    {0, "0"},     {0, NULL}};

static char *dn_ompi_devices;
static char *dn_ompi_fault;
static unsigned dn_ompi_first;
static char *dn_ompi_provider_include;
static char *dn_ompi_provider_exclude;
static int dn_ompi_cma;
static int dn_ompi_backing;
static int dn_ompi_auth;
static int dn_ompi_verbose;
static int dn_ompi_helper;
static bool dn_ompi_refused; /**< a word */

/** Where a variable belongs to. */
typedef struct owner {
    const char *project, *framework, *component;
} owner_t;

static const owner_t dn_ompi_owner = {PROJECT, FRAMEWORK, COMPONENT};

/** An object that knows its variable's name; NULL: no memory. */
static dn_ompi_accept_t *accept_new(const owner_t *owner, const char *name, int standard, bool *refused)
{
    dn_ompi_accept_t *accept = OBJ_NEW(dn_ompi_accept_t);

    if (NULL != accept) {
        if (0 > asprintf(&accept->super.enum_name, "%s_%s_%s", owner->framework, owner->component, name)) {
            accept->super.enum_name = NULL;
        }
        accept->standard = standard;
        accept->refused = refused;
    }
    return accept;
}

static void number_register(const owner_t *owner, dn_ompi_number_t *number)
{
    dn_ompi_accept_t *accept = accept_new(owner, number->name, (int) number->standard, &number->refused);
    char *accepted = NULL;
    char *help = NULL;

    number->value = number->standard;
    number->refused = false;
    if (NULL == accept) {
        return;
    }
    accept->low = number->low;
    accept->high = number->high;
    accept->multiple = number->multiple;
    (void) accept_dump(&accept->super, &accepted DN_OMPI_ENUM_DUMP_TEXT);
    if (0 > asprintf(&help, "%s (default: %u; accepted: %s)", number->help, number->standard, accepted)) {
        help = NULL;
    }
    (void) mca_base_var_register(owner->project, owner->framework, owner->component, number->name, help,
                                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, &accept->super, 0, 0, number->level,
                                 MCA_BASE_VAR_SCOPE_READONLY, &number->value);
    OBJ_RELEASE(accept);
    free(help);
    free(accepted);
}

void dn_ompi_number_register(const mca_base_component_t *component, dn_ompi_number_t *number)
{
    const owner_t owner = {component->mca_project_name, component->mca_type_name,
                           component->mca_component_name};

    number_register(&owner, number);
}

void dn_ompi_numbers_share(dn_ompi_number_t *number, size_t count)
{
    /** ompi_info lists them with the first; the second is where they came from. */
    static const owner_t pml = {"ompi", "pml", "dimmnet"};
    static const owner_t mtl = {"ompi", "mtl", "uzura"};

    for (size_t i = 0; i < count; i++) {
        int index = mca_base_var_find(PROJECT, FRAMEWORK, COMPONENT, number[i].name);

        if (0 > index) {
            number_register(&dn_ompi_owner, &number[i]);
            index = mca_base_var_find(PROJECT, FRAMEWORK, COMPONENT, number[i].name);
        }
        if (0 <= index) {
            (void) mca_base_var_register_synonym(index, pml.project, pml.framework, pml.component,
                                                 number[i].name, 0);
            (void) mca_base_var_register_synonym(index, mtl.project, mtl.framework, mtl.component,
                                                 number[i].name, MCA_BASE_VAR_SYN_FLAG_DEPRECATED);
        }
    }
}

static void register_word(const char *name, const char *help, const mca_base_var_enum_value_t *words,
                          int standard, int *storage)
{
    dn_ompi_accept_t *accept = accept_new(&dn_ompi_owner, name, standard, &dn_ompi_refused);

    *storage = standard;
    if (NULL != accept) {
        accept->words = words;
        (void) mca_base_var_register(PROJECT, FRAMEWORK, COMPONENT, name, help, MCA_BASE_VAR_TYPE_INT,
                                     &accept->super, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY,
                                     storage);
        OBJ_RELEASE(accept);
    }
}

static void register_text(const char *name, const char *help, mca_base_var_info_lvl_t level,
                          const char *standard, char **storage)
{
    *storage = (char *) (uintptr_t) standard;
    (void) mca_base_var_register(PROJECT, FRAMEWORK, COMPONENT, name, help, MCA_BASE_VAR_TYPE_STRING, NULL, 0,
                                 0, level, MCA_BASE_VAR_SCOPE_READONLY, storage);
}

static void register_numbers(const dn_config_t *config)
{
    dn_ompi_number[NUMBER_RING_LINES].standard = config->ring_lines;
    dn_ompi_number[NUMBER_MAX_PEERS].standard = config->max_peers;
    dn_ompi_number[NUMBER_LLCM_BYTES].standard = config->llcm_bytes;
    dn_ompi_number[NUMBER_STAGE_BYTES].standard = config->stage_bytes;
    dn_ompi_number[NUMBER_STAGE_MIN].standard = config->stage_min;
    dn_ompi_number[NUMBER_HELP_MIN].standard = config->help_min > INT_MAX ? 0 : (unsigned) config->help_min;
    dn_ompi_number[NUMBER_TIMEOUT_S].standard = config->timeout_s;
    for (int i = 0; i < NUMBERS; i++) {
        number_register(&dn_ompi_owner, &dn_ompi_number[i]);
    }
}

static void register_all(void)
{
    char exclude_help[400];
    dn_config_t config;

    dn_config_init(&config);
    dn_ompi_refused = false;
    register_text(
        "devices",
        "Devices that carry messages: auto is shm, and ofi as soon as a process is on another host. Or a "
        "list, separated by "
        "commas; a process is reached by the first that "
        "can, so shm,ofi spans hosts; ofi:PROVIDER@DOMAIN asks libfabric for these; emulate:PROFILE "
        "keeps the times of another NIC on this host (default: auto; accepted: auto, or shm, and ofi and "
        "emulate where they were built)",
        OPAL_INFO_LVL_3, "auto", &dn_ompi_devices);
    register_word("cma",
                  "Copy between processes by process_vm_readv and process_vm_writev, where the kernel allows "
                  "it (default: true; accepted: true, false)",
                  bool_words, 0 != config.cma, &dn_ompi_cma);
    register_word("backing",
                  "Where shared memory comes from: a memfd, a file in the job's session folder or /dev/shm, "
                  "or auto: the first of these that works (default: auto; accepted: auto, memfd, file)",
                  backing_words, 0, &dn_ompi_backing);
    register_word(
        "auth",
        "What messages of a network carry, so that only processes of the job are heard: with hello, who "
        "connects proves that it has the job's key, and later messages carry a secret word; with full, "
        "a tag over their bytes and number, so that nobody on the way can change, forge or repeat one, and "
        "transfers go by messages; none spares the word. One value for the whole job (default: hello; "
        "accepted: hello, full, none)",
        auth_words, config.auth, &dn_ompi_auth);
    register_word(
        "verbose",
        "Say why a device is passed over or does not reach a process, and how far an emulation was from its "
        "profile (default: false; accepted: true, false)",
        bool_words, 0, &dn_ompi_verbose);
    register_word(
        "helper_thread",
        "Have a thread of each process serve one-sided operations on memory that its peers do not map, "
        "while the process computes and calls nothing of MPI; its messages then take locks, as with "
        "MPI_THREAD_MULTIPLE (default: false; accepted: true, false)",
        bool_words, 0, &dn_ompi_helper);
    register_numbers(&config);
    register_text(
        "provider_include",
        "Providers of libfabric of which the device ofi uses the first that works, separated by "
        "commas; tcp is tcp;ofi_rxm, too (default: empty, any but those of provider_exclude; accepted: "
        "names that fi_info shows, not together with provider_exclude)",
        OPAL_INFO_LVL_3, NULL, &dn_ompi_provider_include);
    (void) snprintf(
        exclude_help, sizeof(exclude_help),
        "Providers of libfabric that the device ofi does not use, separated by commas; not heeded "
        "where FI_PROVIDER names some (default: %s; accepted: names that fi_info shows, not "
        "together with provider_include)",
        config.provider_exclude);
    register_text("provider_exclude", exclude_help, OPAL_INFO_LVL_3, config.provider_exclude,
                  &dn_ompi_provider_exclude);
    register_text("fault",
                  "Faults to inject, for tests: rules OPERATION:FAULT/N separated by commas, such as "
                  "push:again/7,seed=1 (default: empty, none)",
                  OPAL_INFO_LVL_9, NULL, &dn_ompi_fault);
    /* Beyond INT_MAX, too, which an enumerator does not hold; dn_open() refuses the last number. */
    dn_ompi_first = config.first;
    (void) mca_base_var_register(
        PROJECT, FRAMEWORK, COMPONENT, "first",
        "Number at which all that is counted begins, for tests of long runs; the same "
        "in all processes (default: 0; accepted: 0..4294967294)",
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, 0, 0, OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_READONLY,
        &dn_ompi_first);
}

bool dn_ompi_var_registered(void)
{
    return 0 <= mca_base_var_find(PROJECT, FRAMEWORK, COMPONENT, "devices");
}

/** Let a component's own names stand for the variables. */
static void register_synonyms(const owner_t *owner)
{
    static const char *const word_names[] = {
        "auth",    "devices",       "cma",  "backing", "fault", "provider_include", "provider_exclude",
        "verbose", "helper_thread", "first"};
    const size_t words = sizeof(word_names) / sizeof(word_names[0]);

    for (size_t i = 0; i < words + NUMBERS; i++) {
        const char *name = i < words ? word_names[i] : dn_ompi_number[i - words].name;
        const int index = mca_base_var_find(PROJECT, FRAMEWORK, COMPONENT, name);

        if (0 <= index) {
            (void) mca_base_var_register_synonym(index, owner->project, owner->framework, owner->component,
                                                 name, 0);
        }
    }
}

void dn_ompi_var_register(const mca_base_component_t *component)
{
    /** One of these opens the port before the others are registered: their names have to be heard by then. */
    static const owner_t all[] = {{"opal", "btl", "dimmnet"},
                                  {"ompi", "pml", "dimmnet"},
                                  {"ompi", "mtl", "uzura"},
                                  {"ompi", "coll", "llcm"},
                                  {"ompi", "osc", "dimmnet"}};
    const owner_t owner = {component->mca_project_name, component->mca_type_name,
                           component->mca_component_name};

    if (dn_ompi_var_registered()) {
        /* A framework that was closed has taken its names along. */
        register_synonyms(&owner);
        return;
    }
    register_all();
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        register_synonyms(&all[i]);
    }
}

bool dn_ompi_leaves_host(void)
{
    /** The devices that reach processes of their own host alone. */
    static const char *const on_host[] = {"shm", "emulate"};
    const char *word = dn_ompi_devices;

    if (NULL != word && dn_ompi_far_is_auto(word)) {
        return dn_ompi_far_is_built();
    }
    while (NULL != word && '\0' != *word) {
        const size_t name = strcspn(word, ":,");

        bool stays = false;

        for (size_t i = 0; i < sizeof(on_host) / sizeof(on_host[0]); i++) {
            stays = stays || (strlen(on_host[i]) == name && 0 == strncmp(word, on_host[i], name));
        }
        if (!stays) {
            return true;
        }
        word += strcspn(word, ",");
        word += ',' == *word;
    }
    return false;
}

bool dn_ompi_helper_thread(void)
{
    return 0 != dn_ompi_helper;
}

bool dn_ompi_yields(void)
{
    const int index = mca_base_var_find("ompi", "mpi", NULL, "yield_when_idle");
    const bool *yields = NULL;

    return 0 <= index && OPAL_SUCCESS == mca_base_var_get_value(index, &yields, NULL, NULL) && NULL != yields
           && *yields;
}

void dn_ompi_var_get(dn_ompi_settings_t *settings)
{
    dn_config_t *config = &settings->config;

    settings->devices = dn_ompi_devices;
    settings->verbose = 0 != dn_ompi_verbose;
    settings->refused = dn_ompi_refused;
    for (int i = 0; i < NUMBERS; i++) {
        settings->refused = settings->refused || dn_ompi_number[i].refused;
    }
    if (OPAL_SUCCESS
        != mca_base_var_check_exclusive(PROJECT, FRAMEWORK, COMPONENT, "provider_include", FRAMEWORK,
                                        COMPONENT, "provider_exclude")) {
        settings->refused = true; /* Open MPI has said why */
    }
    dn_config_init(config);
    config->ring_lines = dn_ompi_number[NUMBER_RING_LINES].value;
    config->max_peers = dn_ompi_number[NUMBER_MAX_PEERS].value;
    config->llcm_bytes = dn_ompi_number[NUMBER_LLCM_BYTES].value;
    config->stage_bytes = dn_ompi_number[NUMBER_STAGE_BYTES].value;
    config->stage_min = dn_ompi_number[NUMBER_STAGE_MIN].value;
    config->help_min = dn_ompi_number[NUMBER_HELP_MIN].value;
    if (0 == config->help_min) {
        config->help_min = UINT64_MAX;
    }
    config->cma = dn_ompi_cma;
    config->backing = backing_words[dn_ompi_backing].string;
    config->fault = dn_ompi_fault;
    config->first = dn_ompi_first;
    config->auth = (dn_auth_mode_t) dn_ompi_auth;
    config->timeout_s = dn_ompi_number[NUMBER_TIMEOUT_S].value;
    config->provider_include = dn_ompi_provider_include;
    config->provider_exclude = dn_ompi_provider_exclude;
}
