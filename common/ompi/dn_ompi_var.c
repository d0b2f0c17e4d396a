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
 * What a number accepts. An object of its own, of a class of this library: Open MPI keeps it after the
 * component has been unloaded.
 */
typedef struct dn_ompi_range {
    mca_base_var_enum_t super;
    unsigned low, high, multiple;
} dn_ompi_range_t;

static void range_construct(dn_ompi_range_t *range);
static OBJ_CLASS_INSTANCE(dn_ompi_range_t, mca_base_var_enum_t, range_construct, NULL);

static int number_get_count(mca_base_var_enum_t *self, int *count)
{
    *count = 0; /* too many to list */
    return OPAL_SUCCESS;
}

static int number_get_value(mca_base_var_enum_t *self, int index, int *value, const char **text)
{
    return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
}

static bool number_fits(const dn_ompi_range_t *range, unsigned long long value)
{
    if (value < range->low || value > range->high) {
        return false;
    }
    return 0 == range->multiple ? 0 == (value & (value - 1)) : 0 == value % range->multiple;
}

static int number_from_string(mca_base_var_enum_t *self, const char *text, int *value_p)
{
    const dn_ompi_range_t *range = (const dn_ompi_range_t *) self;
    unsigned long long value;
    unsigned shift = 0;
    char *end;

    errno = 0;
    value = strtoull(text, &end, 0);
    if (0 != errno || end == text || NULL != strchr(text, '-')) {
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    }
    switch (*end) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    }
    if ('\0' != end[0 != shift] || value > UINT_MAX || !number_fits(range, value << shift)) {
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    }
    *value_p = (int) (value << shift);
    return OPAL_SUCCESS;
}

static int number_to_string(mca_base_var_enum_t *self, const int value, char **text)
{
    if (NULL != text && 0 > asprintf(text, "%u", (unsigned) value)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return OPAL_SUCCESS;
}

static int number_dump(mca_base_var_enum_t *self, char **text DN_OMPI_ENUM_DUMP_MORE)
{
    const dn_ompi_range_t *range = (const dn_ompi_range_t *) self;
    int len;

    if (0 == range->multiple) {
        len = asprintf(text, "a power of two from %u to %u", range->low, range->high);
    } else if (1 == range->multiple) {
        len = asprintf(text, "%u to %u", range->low, range->high);
    } else {
        len = asprintf(text, "a multiple of %u from %u to %u", range->multiple, range->low, range->high);
    }
    return 0 > len ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

static void range_construct(dn_ompi_range_t *range)
{
    range->super.get_count = number_get_count;
    range->super.get_value = number_get_value;
    range->super.value_from_string = number_from_string;
    range->super.string_from_value = number_to_string;
    range->super.dump = number_dump;
}

enum { NUMBER_RING_LINES, NUMBER_RING_BULK, NUMBER_MAX_PEERS, NUMBER_LLCM_BYTES, NUMBER_HELP_MIN, NUMBERS };

/* Ranges as in dn_config_t. They stay below INT_MAX, all that an enumerator can hold. */
static dn_ompi_number_t dn_ompi_number[NUMBERS] = {
    [NUMBER_RING_LINES] = {.name = "ring_lines",
                           .help = "Message lines of 64 bytes in each direction of a pair of processes",
                           .level = OPAL_INFO_LVL_5,
                           .low = 16,
                           .high = 4096},
    [NUMBER_RING_BULK] = {.name = "ring_bulk",
                          .help = "Bytes beside the lines of a pair for messages that are longer than a few "
                                  "lines; the longest message follows from it",
                          .level = OPAL_INFO_LVL_5,
                          .low = 4096,
                          .high = 1 << 20,
                          .multiple = 64},
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
    [NUMBER_HELP_MIN] = {.name = "help_min",
                         .help = "Bytes of a transfer from which both processes copy a part of it; 0: never",
                         .level = OPAL_INFO_LVL_5,
                         .low = 0,
                         .high = INT_MAX,
                         .multiple = 1},
};

/* Values of the variable backing; the first is the default. */
static const mca_base_var_enum_value_t backing_words[] = {{0, "auto"}, {1, "memfd"}, {2, "file"}, {0, NULL}};

static char *dn_ompi_devices;
static char *dn_ompi_fault;
static bool dn_ompi_cma;
static int dn_ompi_backing;
static bool dn_ompi_refused;

/** Where a variable belongs to. */
typedef struct owner {
    const char *project, *framework, *component;
} owner_t;

static const owner_t dn_ompi_owner = {PROJECT, FRAMEWORK, COMPONENT};

/** A refused value leaves the default and is remembered. */
static void register_one(const char *name, const char *help, mca_base_var_type_t type,
                         mca_base_var_enum_t *accepts, mca_base_var_info_lvl_t level, void *storage)
{
    if (0 > mca_base_var_register(PROJECT, FRAMEWORK, COMPONENT, name, help, type, accepts, 0, 0, level,
                                  MCA_BASE_VAR_SCOPE_READONLY, storage)) {
        dn_ompi_refused = true;
    }
}

static int number_register(const owner_t *owner, dn_ompi_number_t *number)
{
    dn_ompi_range_t *range = OBJ_NEW(dn_ompi_range_t);
    char *accepted = NULL;
    char *help = NULL;
    int index;

    if (NULL == range) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    range->super.enum_name = strdup(number->name);
    range->low = number->low;
    range->high = number->high;
    range->multiple = number->multiple;
    number->value = number->standard;
    (void) number_dump(&range->super, &accepted DN_OMPI_ENUM_DUMP_TEXT);
    if (0 > asprintf(&help, "%s (default: %u; accepted: %s)", number->help, number->standard, accepted)) {
        help = NULL;
    }
    index = mca_base_var_register(owner->project, owner->framework, owner->component, number->name, help,
                                  MCA_BASE_VAR_TYPE_UNSIGNED_INT, &range->super, 0, 0, number->level,
                                  MCA_BASE_VAR_SCOPE_READONLY, &number->value);
    OBJ_RELEASE(range);
    free(help);
    free(accepted);
    return 0 > index ? OPAL_ERR_BAD_PARAM : OPAL_SUCCESS;
}

int dn_ompi_number_register(const mca_base_component_t *component, dn_ompi_number_t *number)
{
    const owner_t owner = {component->mca_project_name, component->mca_type_name,
                           component->mca_component_name};

    return number_register(&owner, number);
}

static void register_numbers(const dn_config_t *config)
{
    dn_ompi_number[NUMBER_RING_LINES].standard = config->ring_lines;
    dn_ompi_number[NUMBER_RING_BULK].standard = config->ring_bulk;
    dn_ompi_number[NUMBER_MAX_PEERS].standard = config->max_peers;
    dn_ompi_number[NUMBER_LLCM_BYTES].standard = config->llcm_bytes;
    dn_ompi_number[NUMBER_HELP_MIN].standard = config->help_min > INT_MAX ? 0 : (unsigned) config->help_min;
    for (int i = 0; i < NUMBERS; i++) {
        if (OPAL_SUCCESS != number_register(&dn_ompi_owner, &dn_ompi_number[i])) {
            dn_ompi_refused = true;
        }
    }
}

static void register_all(void)
{
    mca_base_var_enum_t *backing = NULL;
    dn_config_t config;

    dn_config_init(&config);
    dn_ompi_refused = false;

    dn_ompi_devices = (char *) (uintptr_t) "shm";
    register_one("devices",
                 "Devices that carry messages, separated by commas; a process is reached by the first that "
                 "can (default: shm; accepted: shm)",
                 MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_3, &dn_ompi_devices);
    dn_ompi_cma = 0 != config.cma;
    register_one("cma",
                 "Copy between processes by process_vm_readv and process_vm_writev, where the kernel lets "
                 "us (default: true; accepted: true, false)",
                 MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_3, &dn_ompi_cma);
    dn_ompi_backing = 0;
    mca_base_var_enum_create("dimmnet_backing", backing_words, &backing);
    register_one("backing",
                 "Where shared memory comes from: a memfd, a file in the job's session folder or /dev/shm, "
                 "or auto: the first of these that works (default: auto; accepted: auto, memfd, file)",
                 MCA_BASE_VAR_TYPE_INT, backing, OPAL_INFO_LVL_3, &dn_ompi_backing);
    if (NULL != backing) {
        OBJ_RELEASE(backing);
    }
    register_numbers(&config);
    dn_ompi_fault = NULL;
    register_one("fault",
                 "Faults to inject, for tests: rules OPERATION:FAULT/N separated by commas, such as "
                 "push:again/7,seed=1 (default: empty, none)",
                 MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_9, &dn_ompi_fault);
}

bool dn_ompi_var_registered(void)
{
    return 0 <= mca_base_var_find(PROJECT, FRAMEWORK, COMPONENT, "devices");
}

void dn_ompi_var_register(const mca_base_component_t *component)
{
    static const char *const word_names[] = {"devices", "cma", "backing", "fault"};
    const size_t words = sizeof(word_names) / sizeof(word_names[0]);

    if (!dn_ompi_var_registered()) {
        register_all();
    }
    for (size_t i = 0; i < words + NUMBERS; i++) {
        const char *name = i < words ? word_names[i] : dn_ompi_number[i - words].name;
        int index = mca_base_var_find(PROJECT, FRAMEWORK, COMPONENT, name);

        if (0 > index
            || 0 > mca_base_var_register_synonym(index, component->mca_project_name, component->mca_type_name,
                                                 component->mca_component_name, name, 0)) {
            dn_ompi_refused = true;
        }
    }
}

void dn_ompi_var_get(dn_ompi_settings_t *settings)
{
    dn_config_t *config = &settings->config;

    settings->devices = dn_ompi_devices;
    settings->refused = dn_ompi_refused;
    dn_config_init(config);
    config->ring_lines = dn_ompi_number[NUMBER_RING_LINES].value;
    config->ring_bulk = dn_ompi_number[NUMBER_RING_BULK].value;
    config->max_peers = dn_ompi_number[NUMBER_MAX_PEERS].value;
    config->llcm_bytes = dn_ompi_number[NUMBER_LLCM_BYTES].value;
    config->help_min = dn_ompi_number[NUMBER_HELP_MIN].value;
    if (0 == config->help_min) {
        config->help_min = UINT64_MAX;
    }
    config->cma = dn_ompi_cma;
    config->backing = backing_words[dn_ompi_backing].string;
    config->fault = dn_ompi_fault;
}
