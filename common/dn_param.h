/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_param.h
 * The list of parameters, dn_params.def, as a table; the settings that its sections are read into; and the one way in which the text
 * of a user becomes a value.
 *
 * Threads: the table is constant. Settings belong to the caller.
 */
#ifndef DN_PARAM_H
#define DN_PARAM_H

#include "dn_types.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Sections of the list. */
typedef enum dn_param_section {
#define DN_NUMBER(...)
#define DN_FLAG(...)
#define DN_WORD(...)
#define DN_LIST(...)
#define DN_SECTION(section) DN_PARAM_##section,
#define DN_PARAMS_ALL
#include "dn_params.def"
    DN_PARAM_SECTIONS
} dn_param_section_t;

/** @name Settings of a section, each with the rows' names. Of section PORT it is dn_config_t. */
/** @{ */
/** Section TAG. */
typedef struct dn_tag_limits {
#define DN_PARAMS_AS_MEMBERS
#define DN_PARAMS_TAG
#include "dn_params.def"
} dn_tag_limits_t;

/** Section MPI. */
typedef struct dn_mpi_params {
#define DN_PARAMS_AS_MEMBERS
#define DN_PARAMS_MPI
#include "dn_params.def"
} dn_mpi_params_t;

/** Section BTL. */
typedef struct dn_btl_params {
#define DN_PARAMS_AS_MEMBERS
#define DN_PARAMS_BTL
#include "dn_params.def"
} dn_btl_params_t;

/** Section PML. */
typedef struct dn_pml_params {
#define DN_PARAMS_AS_MEMBERS
#define DN_PARAMS_PML
#include "dn_params.def"
} dn_pml_params_t;

/** Section MTL. */
typedef struct dn_mtl_params {
#define DN_PARAMS_AS_MEMBERS
#define DN_PARAMS_MTL
#include "dn_params.def"
} dn_mtl_params_t;

/** Section COLL. */
typedef struct dn_coll_params {
#define DN_PARAMS_AS_MEMBERS
#define DN_PARAMS_COLL
#include "dn_params.def"
} dn_coll_params_t;

/** Section OSC. */
typedef struct dn_osc_params {
#define DN_PARAMS_AS_MEMBERS
#define DN_PARAMS_OSC
#include "dn_params.def"
} dn_osc_params_t;
/** @} */

/** What a parameter is, and the type of its member. */
typedef enum dn_param_kind {
    DN_PARAM_KIND_NUMBER,     /**< uint32_t */
    DN_PARAM_KIND_FLAG,       /**< int: 0 or 1 */
    DN_PARAM_KIND_WORD,       /**< int: index of the word */
    DN_PARAM_KIND_LIST,       /**< const char *: a text that its reader checks */
    DN_PARAM_KIND_ENVIRONMENT /**< none: its reader asks getenv() */
} dn_param_kind_t;

/** Bytes that hold any text that is written below. */
#define DN_PARAM_TEXT 256

/** Most words of one parameter. */
#define DN_PARAM_WORDS 7

/** A row of the list. */
typedef struct dn_param {
    dn_param_section_t section; /**< in which its row stands */
    dn_param_kind_t kind;       /**< what it is */
    const char *owner;          /**< MCA name up to its last _; section ENVIRONMENT: "" */
    const char *name;           /**< MCA name behind the owner and _ */
    const char *sentence;       /**< what it does */
    const char *unit;           /**< of a number; "": none */
    const char
        *accepted; /**< of a list or a variable of the environment: what is accepted, told to the user */
    const char *word[DN_PARAM_WORDS + 1]; /**< of a word or flag: all of them by their values, then NULL */
    const char *text;                     /**< default of a word or list */
    uint32_t number;                      /**< default of a number or flag */
    uint32_t low;                         /**< of a number: the lowest that is accepted, */
    uint32_t high;                        /**< the highest, */
    uint32_t multiple;                    /**< and what it is a multiple of */
    int level;                            /**< of ompi_info, 1 to 9 */
    const char *old; /**< components by whose name the variable went before, apart by blanks */
    size_t offset;   /**< of the member in its section's settings */
} dn_param_t;

/** All rows, in the list's order. @param[out] count_p  Their number. */
DN_API const dn_param_t *dn_param_list(size_t *count_p);

/** A row by its name without the owner. @return NULL: there is none. */
DN_API const dn_param_t *dn_param_find(dn_param_section_t section, const char *name);

/** Set all members of a section's settings to their defaults. @param[out] settings  The section's
 * structure. */
DN_API void dn_param_defaults(dn_param_section_t section, void *settings);

/**
 * Read a value that is no list. Numbers may be decimal, octal (0...) or hexadecimal (0x...), with a unit k, m
 * or g behind them. A flag is true, false, yes, no, 1 or 0; a word may also be given by its index.
 *
 * @param[in]  text     Of a user.
 * @param[out] value_p  Set on DN_OK: what the member takes.
 *
 * @retval DN_ERR_PARAM  not accepted; nothing has been logged: say so with dn_param_accepted().
 */
DN_API dn_status_t dn_param_parse(const dn_param_t *param, const char *text, uint32_t *value_p);

/** Number of words that a parameter has; 0: it is no word and no flag. */
DN_API uint32_t dn_param_words(const dn_param_t *param);

/** Write what a parameter takes, such as "64 to 4096" or "auto, memfd, file", as snprintf() does. */
DN_API int dn_param_accepted(const dn_param_t *param, char *text, size_t size);

/** Write a value as its user would, as snprintf() does. @param[in] value  Of the member; not used for a
 * list. */
DN_API int dn_param_show(const dn_param_t *param, uint32_t value, char *text, size_t size);

/** Write the default, as snprintf() does. */
DN_API int dn_param_default(const dn_param_t *param, char *text, size_t size);

/**
 * Set a member of a section's settings from text.
 *
 * @param[in] text  Lent for the life of the settings when the member is a list.
 *
 * @retval DN_ERR_PARAM  there is no such name, or the value is not accepted: a log line says so.
 */
DN_API dn_status_t dn_param_set(dn_param_section_t section, void *settings, const char *name,
                                const char *text);

/** Are all members in their ranges? @retval DN_ERR_PARAM  no: a log line names the first that is not. */
DN_API dn_status_t dn_param_check(dn_param_section_t section, const void *settings);

#ifdef __cplusplus
}
#endif

#endif
