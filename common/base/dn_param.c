/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_param.c
 * The table of parameters. A parameter is read from a text and written as a text.
 */
#include "dn_config.h"

#include "dn_param.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"

#define DN_PARAM_ROW(row, says, ...)         \
    {.section = DN_SECTION_NOW,              \
     .owner = DN_OWNER_NOW,                  \
     .name = #row,                           \
     .offset = offsetof(DN_STRUCT_NOW, row), \
     .sentence = says,                       \
     __VA_ARGS__},

static const dn_param_t dn_param_row[] = {
#define DN_NUMBER(row, is, least, most, of, in, shown, before, says)                                \
    DN_PARAM_ROW(row, says, .kind = DN_PARAM_KIND_NUMBER, .number = is, .low = least, .high = most, \
                 .multiple = of, .unit = in, .level = shown, .old = before)
#define DN_FLAG(row, is, shown, before, says)                                                   \
    DN_PARAM_ROW(row, says, .kind = DN_PARAM_KIND_FLAG, .number = is, .high = 1, .multiple = 1, \
                 .word = {"false", "true"}, .unit = "", .level = shown, .old = before)
#define DN_WORD(row, is, shown, before, says, ...)                                                     \
    DN_PARAM_ROW(row, says, .kind = DN_PARAM_KIND_WORD, .text = is, .word = {__VA_ARGS__}, .unit = "", \
                 .level = shown, .old = before)
#define DN_LIST(row, is, all, shown, before, says)                                               \
    DN_PARAM_ROW(row, says, .kind = DN_PARAM_KIND_LIST, .text = is, .accepted = all, .unit = "", \
                 .level = shown, .old = before)
#define DN_ENVIRONMENT(row, all, says)  \
    {.section = DN_PARAM_ENVIRONMENT,   \
     .kind = DN_PARAM_KIND_ENVIRONMENT, \
     .owner = "",                       \
     .name = #row,                      \
     .sentence = says,                  \
     .accepted = all,                   \
     .text = "",                        \
     .unit = "",                        \
     .old = ""},
#define DN_PARAMS_ALL
#include "dn_params.def"
};

#define DN_PARAM_ROWS (sizeof(dn_param_row) / sizeof(dn_param_row[0]))

const dn_param_t *dn_param_list(size_t *count_p)
{
    *count_p = DN_PARAM_ROWS;
    return dn_param_row;
}

const dn_param_t *dn_param_find(dn_param_section_t section, const char *name)
{
    for (size_t i = 0; i < DN_PARAM_ROWS; i++) {
        if (section == dn_param_row[i].section && 0 == strcmp(name, dn_param_row[i].name)) {
            return &dn_param_row[i];
        }
    }
    return NULL;
}

/** Find the index of a word. @return 0: @p text is none of the words. */
static int dn_param_index(const char *const *word, const char *text, uint32_t *index_p)
{
    for (uint32_t i = 0; NULL != word[i]; i++) {
        if (0 == strcmp(word[i], text)) {
            *index_p = i;
            return 1;
        }
    }
    return 0;
}

uint32_t dn_param_words(const dn_param_t *param)
{
    uint32_t count = 0;

    while (NULL != param->word[count]) {
        count++;
    }
    return count;
}

/** Is a value in the range of a parameter? The value of a word is its index. */
static int dn_param_fits(const dn_param_t *param, uint64_t value)
{
    return NULL != param->word[0]
               ? value < dn_param_words(param)
               : value >= param->low && value <= param->high && 0 == value % param->multiple;
}

static int dn_param_number(const char *text, uint64_t *value_p)
{
    static const char units[] = "kKmMgG";
    char *end;

    /* strtoull() takes a sign, and what is not a number for 0. */
    if ('0' > text[0] || '9' < text[0]) {
        return 0;
    }
    errno = 0;
    *value_p = strtoull(text, &end, 0);
    if (0 != errno || UINT32_MAX < *value_p) {
        return 0;
    }
    if ('\0' != *end) {
        const char *unit = strchr(units, *end);
        if (NULL == unit || '\0' != end[1]) {
            return 0;
        }
        *value_p <<= 10 * (1 + (unit - units) / 2);
    }
    return 1;
}

dn_status_t dn_param_parse(const dn_param_t *param, const char *text, uint32_t *value_p)
{
    static const char *const more[] = {"no", "yes", NULL};
    uint64_t value;

    if (dn_param_index(param->word, text, value_p)
        || (DN_PARAM_KIND_FLAG == param->kind && dn_param_index(more, text, value_p))) {
        return DN_OK;
    }
    if (!dn_param_number(text, &value) || !dn_param_fits(param, value)) {
        return DN_ERR_PARAM;
    }
    *value_p = (uint32_t) value;
    return DN_OK;
}

int dn_param_accepted(const dn_param_t *param, char *text, size_t size)
{
    int used = 0;

    for (uint32_t i = 0; NULL != param->word[i]; i++) {
        const size_t at = (size_t) used < size ? (size_t) used : size;
        used += snprintf(text + at, size - at, "%s%s", 0 == i ? "" : ", ", param->word[i]);
    }
    if (NULL != param->word[0]) {
        return used;
    }
    if (NULL != param->accepted) {
        return snprintf(text, size, "%s", param->accepted);
    }
    return 1 == param->multiple ? snprintf(text, size, "%u to %u", param->low, param->high)
                                : snprintf(text, size, "a multiple of %u from %u to %u", param->multiple,
                                           param->low, param->high);
}

int dn_param_show(const dn_param_t *param, uint32_t value, char *text, size_t size)
{
    return NULL != param->word[0] && value < dn_param_words(param)
               ? snprintf(text, size, "%s", param->word[value])
               : snprintf(text, size, "%u", value);
}

int dn_param_default(const dn_param_t *param, char *text, size_t size)
{
    return NULL != param->text ? snprintf(text, size, "%s", param->text)
                               : dn_param_show(param, param->number, text, size);
}

/** Set the member of a parameter, from the default of its row or from a user's text. */
static void dn_param_store(const dn_param_t *param, void *settings, const char *text, uint32_t value)
{
    void *member = (char *) settings + param->offset;

    switch (param->kind) {
    case DN_PARAM_KIND_NUMBER:
        *(uint32_t *) member = value;
        break;
    case DN_PARAM_KIND_FLAG:
    case DN_PARAM_KIND_WORD:
        *(int *) member = (int) value;
        break;
    case DN_PARAM_KIND_LIST:
        *(const char **) member = text;
        break;
    case DN_PARAM_KIND_ENVIRONMENT:
        break;
    }
}

void dn_param_defaults(dn_param_section_t section, void *settings)
{
    for (size_t i = 0; i < DN_PARAM_ROWS; i++) {
        const dn_param_t *param = &dn_param_row[i];
        if (section == param->section) {
            uint32_t value = param->number;
            if (DN_PARAM_KIND_WORD == param->kind) {
                (void) dn_param_index(param->word, param->text, &value);
            }
            dn_param_store(param, settings, param->text, value);
        }
    }
}

/** Log one sentence: the text that was given, and the values that are accepted. */
static void dn_param_refuse(const dn_param_t *param, const char *text)
{
    char accepted[DN_PARAM_TEXT];

    (void) dn_param_accepted(param, accepted, sizeof(accepted));
    dn_log_error("%s is \"%s\"; it takes %s%s%s", param->name, text, accepted,
                 '\0' == param->unit[0] ? "" : " ", param->unit);
}

dn_status_t dn_param_set(dn_param_section_t section, void *settings, const char *name, const char *text)
{
    const dn_param_t *param = dn_param_find(section, name);
    uint32_t value = 0;

    if (NULL == param) {
        dn_log_error("there is no parameter %s; dimmnet_info --parameters lists them", name);
        return DN_ERR_PARAM;
    }
    if (DN_PARAM_KIND_LIST != param->kind && DN_OK != dn_param_parse(param, text, &value)) {
        dn_param_refuse(param, text);
        return DN_ERR_PARAM;
    }
    dn_param_store(param, settings, text, value);
    return DN_OK;
}

dn_status_t dn_param_check(dn_param_section_t section, const void *settings)
{
    for (size_t i = 0; i < DN_PARAM_ROWS; i++) {
        const dn_param_t *param = &dn_param_row[i];
        const void *member = (const char *) settings + param->offset;
        char text[DN_PARAM_TEXT];

        if (section != param->section || DN_PARAM_KIND_LIST == param->kind
            || DN_PARAM_KIND_ENVIRONMENT == param->kind) {
            continue;
        }
        /* A number, a flag and a word are 32 bits all. */
        const uint32_t value = DN_PARAM_KIND_NUMBER == param->kind ? *(const uint32_t *) member
                                                                   : (uint32_t) * (const int *) member;
        if (DN_PARAM_KIND_FLAG != param->kind && !dn_param_fits(param, value)) {
            (void) dn_param_show(param, value, text, sizeof(text));
            dn_param_refuse(param, text);
            return DN_ERR_PARAM;
        }
    }
    return DN_OK;
}
