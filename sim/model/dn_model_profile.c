/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_model_profile.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"

/** A profile is a page of text. */
#define DN_PROFILE_BYTES_MAX (1u << 20)

typedef enum dn_unit {
    DN_UNIT_TIME,
    DN_UNIT_CLOCK,
    DN_UNIT_SIZE,
    DN_UNIT_RATE,
    DN_UNIT_COUNT,
    DN_UNIT_FLAG
} dn_unit_t;

typedef struct dn_param {
    const char *key;
    dn_unit_t unit;
    int must;
    uint64_t value;
    uint64_t min;
    uint64_t max;
    const char *meaning;
} dn_param_t;

static const dn_param_t dn_params[DN_P_COUNT] = {
#define DN_PARAM(id, key, unit, must, value, min, max, meaning) \
    {key, DN_UNIT_##unit, must, value, min, max, meaning},
#include "dn_model_param.h"
#undef DN_PARAM
};

/** A suffix of a key: so many of the base unit, or cycles of a clock. */
typedef struct dn_suffix {
    const char *text;
    dn_unit_t unit;
    double scale;
    int clock; /**< DN_P_*_CLOCK, or -1 */
} dn_suffix_t;

static const dn_suffix_t dn_suffixes[] = {
    {"_ps", DN_UNIT_TIME, 1, -1},
    {"_ns", DN_UNIT_TIME, 1e3, -1},
    {"_us", DN_UNIT_TIME, 1e6, -1},
    {"_dimm_cycles", DN_UNIT_TIME, 0, DN_P_DIMM_CLOCK},
    {"_swif_cycles", DN_UNIT_TIME, 0, DN_P_SWIF_CLOCK},
    {"_core_cycles", DN_UNIT_TIME, 0, DN_P_CORE_CLOCK},
    {"_bus_cycles", DN_UNIT_TIME, 0, DN_P_BUS_CLOCK},
    {"_mhz", DN_UNIT_CLOCK, 1e3, -1},
    {"_bytes", DN_UNIT_SIZE, 1, -1},
    {"_kib", DN_UNIT_SIZE, 1024, -1},
    {"_mib", DN_UNIT_SIZE, 1048576, -1},
    {"_mbyte_s", DN_UNIT_RATE, 1e6, -1},
    {"_gbit_s", DN_UNIT_RATE, 1.25e8, -1},
    {"_count", DN_UNIT_COUNT, 1, -1},
    {"_flag", DN_UNIT_FLAG, 1, -1},
};

enum { DN_SUFFIXES = sizeof(dn_suffixes) / sizeof(dn_suffixes[0]), DN_SUFFIX_NONE = -1 };

/** Where the parser stands. */
typedef struct dn_profile_reader {
    dn_model_profile_t *profile;
    const char *origin;
    int nic;
    unsigned line;
    int suffix[DN_P_COUNT]; /**< of the values that are there */
    double number[DN_P_COUNT];
} dn_profile_reader_t;

/** The units that a key may be given in, for an error text. */
static void dn_profile_units(dn_unit_t unit, const char *key, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < DN_SUFFIXES && used < size; i++) {
        if (unit == dn_suffixes[i].unit) {
            used += (size_t) snprintf(text + used, size - used, "%s%s%s", 0 == used ? "" : ", ", key,
                                      dn_suffixes[i].text);
        }
    }
}

/** Split a written key into a parameter and its suffix. @return the parameter, or -1 with the sentence said. */
static int dn_profile_find(const dn_profile_reader_t *reader, const char *word, int *suffix_p)
{
    char units[256];

    for (int p = 0; p < DN_P_COUNT; p++) {
        const size_t len = strlen(dn_params[p].key);
        if (0 != strncmp(word, dn_params[p].key, len)) {
            continue;
        }
        for (int s = 0; s < DN_SUFFIXES; s++) {
            if (0 == strcmp(word + len, dn_suffixes[s].text) && dn_params[p].unit == dn_suffixes[s].unit) {
                *suffix_p = s;
                return p;
            }
        }
        if ('\0' == word[len]) {
            dn_profile_units(dn_params[p].unit, dn_params[p].key, units, sizeof(units));
            dn_log_error("%s:%u: \"%s\" has no unit; write one of %s", reader->origin, reader->line, word,
                         units);
            return -1;
        }
    }
    for (int p = 0; p < DN_P_COUNT; p++) {
        const size_t len = strlen(dn_params[p].key);
        for (int s = 0; s < DN_SUFFIXES; s++) {
            if (0 == strncmp(word, dn_params[p].key, len) && 0 == strcmp(word + len, dn_suffixes[s].text)) {
                dn_profile_units(dn_params[p].unit, dn_params[p].key, units, sizeof(units));
                dn_log_error("%s:%u: \"%s\" is not given in that unit; write one of %s", reader->origin,
                             reader->line, word, units);
                return -1;
            }
        }
    }
    dn_log_error("%s:%u: there is no key \"%s\"; dn_papers --keys lists those that there are", reader->origin,
                 reader->line, word);
    return -1;
}

static char *dn_profile_trim(char *text)
{
    while (isspace((unsigned char) *text)) {
        text++;
    }
    size_t len = strlen(text);
    while (0 != len && isspace((unsigned char) text[len - 1])) {
        text[--len] = '\0';
    }
    return text;
}

/** One line, without its comment. */
static dn_status_t dn_profile_line(dn_profile_reader_t *reader, char *line)
{
    int suffix;
    char *end;
    char *equals = strchr(line, '=');

    if (NULL == equals) {
        dn_log_error("%s:%u: \"%s\" is no setting; write KEY = VALUE", reader->origin, reader->line, line);
        return DN_ERR_PARAM;
    }
    *equals = '\0';
    const char *key = dn_profile_trim(line);
    const char *value = dn_profile_trim(equals + 1);
    if (0 == strcmp(key, "name")) {
        snprintf(reader->profile->name, sizeof(reader->profile->name), "%s", value);
        return DN_OK;
    }
    const int p = dn_profile_find(reader, key, &suffix);
    if (0 > p) {
        return DN_ERR_PARAM;
    }
    errno = 0;
    const double number = strtod(value, &end);
    if (value == end || '\0' != *end || 0 != errno || !(number >= 0) || number > 1e18) {
        dn_log_error("%s:%u: \"%s\" is no number for %s; write one from 0 on, without a unit", reader->origin,
                     reader->line, value, key);
        return DN_ERR_PARAM;
    }
    if (DN_SUFFIX_NONE != reader->suffix[p]) {
        dn_log_error("%s:%u: %s is given twice; leave one out", reader->origin, reader->line,
                     dn_params[p].key);
        return DN_ERR_PARAM;
    }
    reader->suffix[p] = suffix;
    reader->number[p] = number;
    return DN_OK;
}

/** The value of a parameter in its base unit. */
static dn_status_t dn_profile_value(const dn_profile_reader_t *reader, int p)
{
    const dn_param_t *param = &dn_params[p];
    uint64_t *value = &reader->profile->value[p];

    if (DN_SUFFIX_NONE == reader->suffix[p]) {
        *value = param->value;
        if (param->must && reader->nic) {
            char units[256];
            dn_profile_units(param->unit, param->key, units, sizeof(units));
            dn_log_error("%s: %s is missing (%s); write one of %s", reader->origin, param->key,
                         param->meaning, units);
            return DN_ERR_PARAM;
        }
        return DN_OK;
    }
    const dn_suffix_t *suffix = &dn_suffixes[reader->suffix[p]];
    double scale = suffix->scale;
    if (0 <= suffix->clock) {
        const uint64_t khz = reader->profile->value[suffix->clock];
        if (0 == khz) {
            dn_log_error("%s: %s%s needs %s_mhz, which is missing", reader->origin, param->key, suffix->text,
                         dn_params[suffix->clock].key);
            return DN_ERR_PARAM;
        }
        scale = 1e9 / (double) khz;
    }
    const double exact = reader->number[p] * scale;
    if (exact + 0.5 < (double) param->min || exact > (double) param->max) {
        dn_log_error("%s: %s%s is %g; it must be from %g to %g", reader->origin, param->key, suffix->text,
                     reader->number[p], (double) param->min / scale, (double) param->max / scale);
        return DN_ERR_PARAM;
    }
    *value = (uint64_t) (exact + 0.5);
    return DN_OK;
}

/** Of the ways in which NIC and host tell each other, keep the times of those that are used. */
static void dn_profile_choose(dn_model_profile_t *profile)
{
    static const dn_model_param_t arrival[] = {DN_P_ARRIVAL, DN_P_ARRIVAL_REGISTER, DN_P_ARRIVAL_INTERRUPT};
    uint64_t *value = profile->value;

    value[DN_P_ARRIVAL] = value[arrival[value[DN_P_ARRIVAL_BY]]];
    if (0 != value[DN_P_START_BY_POLLING]) {
        value[DN_P_HOST_TO_NIC] = value[DN_P_START_POLLED];
    }
}

dn_status_t dn_model_profile_parse(dn_model_profile_t *profile, const char *origin, const char *text, int nic)
{
    dn_profile_reader_t reader = {.profile = profile, .origin = origin, .nic = nic};
    dn_status_t status = DN_OK;
    char *rest = NULL;
    char *copy = strdup(text);

    if (NULL == copy) {
        return DN_ERR_NOMEM;
    }
    memset(profile, 0, sizeof(*profile));
    for (int p = 0; p < DN_P_COUNT; p++) {
        reader.suffix[p] = DN_SUFFIX_NONE;
    }
    for (char *line = copy; NULL != line && DN_OK == status; line = rest) {
        reader.line++;
        rest = strchr(line, '\n');
        if (NULL != rest) {
            *rest++ = '\0';
        }
        line[strcspn(line, "#")] = '\0';
        line = dn_profile_trim(line);
        if ('\0' != line[0]) {
            status = dn_profile_line(&reader, line);
        }
    }
    free(copy);
    for (int p = 0; p < DN_P_COUNT && DN_OK == status; p++) {
        status = dn_profile_value(&reader, p);
    }
    if (DN_OK == status && 0 != profile->value[DN_P_LINK_LOSS] && 0 == profile->value[DN_P_RESEND_AFTER]) {
        dn_log_error("%s: link_loss needs resend_after: nothing above a NIC sends again what its link loses",
                     origin);
        status = DN_ERR_PARAM;
    }
    if (DN_OK == status) {
        dn_profile_choose(profile);
    }
    if (DN_OK == status && '\0' == profile->name[0]) {
        dn_log_error("%s: name is missing; write name = and what the NIC is called", origin);
        status = DN_ERR_PARAM;
    }
    return status;
}

/** The whole file as a string to be freed, or NULL. */
static char *dn_profile_slurp(const char *path)
{
    FILE *file = fopen(path, "r");
    if (NULL == file) {
        return NULL;
    }
    char *text = malloc(DN_PROFILE_BYTES_MAX + 1);
    if (NULL != text) {
        const size_t len = fread(text, 1, DN_PROFILE_BYTES_MAX, file);
        text[len] = '\0';
    }
    fclose(file);
    return text;
}

static dn_status_t dn_profile_read(dn_model_profile_t *profile, const char *name, int nic)
{
    const char *folder = getenv("DN_MODEL_PROFILES");
    char path[512];
    char *text;

    folder = NULL == folder || '\0' == folder[0] ? DN_PROFILE_DIR : folder;
    if (NULL != strchr(name, '/')) {
        snprintf(path, sizeof(path), "%s", name);
    } else {
        snprintf(path, sizeof(path), "%s/%s.profile", folder, name);
    }
    errno = 0;
    text = dn_profile_slurp(path);
    if (NULL == text) {
        dn_log_error("the profile %s cannot be read (%s); name a file with a / in it, or one of %s", path,
                     strerror(errno), folder);
        return DN_ERR_PARAM;
    }
    const dn_status_t status = dn_model_profile_parse(profile, path, text, nic);
    free(text);
    return status;
}

dn_status_t dn_model_profile_load(dn_model_profile_t *profile, const char *name)
{
    return dn_profile_read(profile, name, 1);
}

dn_status_t dn_model_profile_load_fabric(dn_model_profile_t *profile, const char *name)
{
    static const dn_model_param_t keys[] = {
        DN_P_SWITCH_PASS, DN_P_SWITCH_INTERVAL, DN_P_SWITCH_STORES, DN_P_SWITCH_PORTS, DN_P_SWITCH_RATE,
        DN_P_LINK_PER_M,  DN_P_SWITCH_COPIES,   DN_P_FLOW_UNIT,     DN_P_FLOW_CREDITS, DN_P_BIT_ERRORS};
    dn_model_profile_t fabric;
    const dn_status_t status = dn_profile_read(&fabric, name, 0);

    for (size_t i = 0; DN_OK == status && i < sizeof(keys) / sizeof(keys[0]); i++) {
        profile->value[keys[i]] = fabric.value[keys[i]];
    }
    return status;
}

dn_status_t dn_model_profile_open(const char *name, dn_model_profile_t **profile_p)
{
    dn_model_profile_t *profile = calloc(1, sizeof(*profile));
    if (NULL == profile) {
        return DN_ERR_NOMEM;
    }
    const dn_status_t status = dn_model_profile_load(profile, name);
    if (DN_OK != status) {
        free(profile);
        return status;
    }
    *profile_p = profile;
    return DN_OK;
}

void dn_model_profile_close(dn_model_profile_t *profile)
{
    free(profile);
}

uint64_t dn_model_profile_value(const dn_model_profile_t *profile, const char *key)
{
    for (int p = 0; p < DN_P_COUNT; p++) {
        if (0 == strcmp(key, dn_params[p].key)) {
            return profile->value[p];
        }
    }
    return 0;
}

const char *dn_model_key(size_t i, const char **meaning_p)
{
    if (DN_P_COUNT <= i) {
        return NULL;
    }
    *meaning_p = dn_params[i].meaning;
    return dn_params[i].key;
}
