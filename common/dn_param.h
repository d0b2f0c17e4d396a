/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_param.h
 * The list of parameters (dn_params.def) as a table, a structure of settings for each section of the list, and the
 * functions that make values of a user's text.
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

/** @name Settings of a section: a structure with a member for each row. That of section PORT is dn_config_t. */
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
    DN_PARAM_KIND_LIST,       /**< const char *: a text, which is checked where it is used */
    DN_PARAM_KIND_ENVIRONMENT /**< no member: getenv() is called where the variable is used */
} dn_param_kind_t;

/** A buffer of so many bytes holds every text that the functions below write. */
#define DN_PARAM_TEXT 256

/** The largest number of words of one parameter. */
#define DN_PARAM_WORDS 7

/** A row of the list. */
typedef struct dn_param {
    dn_param_section_t section; /**< section of the row */
    dn_param_kind_t kind;       /**< kind of the row */
    const char *owner; /**< first part of the MCA name, such as "common_dimmnet"; section ENVIRONMENT: "" */
    const char *name;  /**< rest of the MCA name, without the _ behind the owner */
    const char *sentence;                 /**< what the parameter does */
    const char *unit;                     /**< unit of a number; "": none */
    const char *accepted;                 /**< list, environment: what is accepted, in words for the user */
    const char *word[DN_PARAM_WORDS + 1]; /**< word, flag: the name of each value, then NULL */
    const char *text;                     /**< word, list: the default */
    uint32_t number;                      /**< number, flag: the default */
    uint32_t low;                         /**< number: the lowest value that is accepted */
    uint32_t high;                        /**< number: the highest value that is accepted */
    uint32_t multiple;                    /**< number: a value is a multiple of this */
    int level;                            /**< level in ompi_info, 1 to 9 */
    const char *old; /**< components whose name was the owner in earlier versions, separated by blanks */
    size_t offset;   /**< offset in bytes of the member in the settings of its section */
} dn_param_t;

/** All rows, in the order of the list. @param[out] count_p  The number of rows. */
DN_API const dn_param_t *dn_param_list(size_t *count_p);

/** Find a row by its name without the owner. @return NULL: there is no such row. */
DN_API const dn_param_t *dn_param_find(dn_param_section_t section, const char *name);

/** Set all members of a section's settings to their defaults. @param[out] settings  The structure of the section. */
DN_API void dn_param_defaults(dn_param_section_t section, void *settings);

/**
 * Make a value of the text of a number, flag or word. A number is decimal, octal (0...) or hexadecimal (0x...), and
 * may have a unit k, m or g behind it. A flag is true, false, yes, no, 1 or 0. A word is one of the parameter's words,
 * or the index of one.
 *
 * @param[in]  text     Text of a user.
 * @param[out] value_p  The value for the member; set on DN_OK only.
 *
 * @retval DN_ERR_PARAM  the text is not accepted. Nothing has been logged: the caller tells the user what is accepted
 *                       (dn_param_accepted()).
 */
DN_API dn_status_t dn_param_parse(const dn_param_t *param, const char *text, uint32_t *value_p);

/** Number of words of a parameter; 0: the parameter is neither word nor flag. */
DN_API uint32_t dn_param_words(const dn_param_t *param);

/** Write which values a parameter accepts, such as "64 to 4096" or "auto, memfd, file". Result as snprintf(). */
DN_API int dn_param_accepted(const dn_param_t *param, char *text, size_t size);

/** Write a value as a user would write it. Result as snprintf(). @param[in] value  Value of the member; not used for a
 * list. */
DN_API int dn_param_show(const dn_param_t *param, uint32_t value, char *text, size_t size);

/** Write the default of a parameter as a user would write it. Result as snprintf(). */
DN_API int dn_param_default(const dn_param_t *param, char *text, size_t size);

/**
 * Set a member of a section's settings from text.
 *
 * @param[in] text  For a list the text is lent for the life of the settings.
 *
 * @retval DN_ERR_PARAM  there is no such parameter, or the value is not accepted: a log line says which.
 */
DN_API dn_status_t dn_param_set(dn_param_section_t section, void *settings, const char *name,
                                const char *text);

/** Are all members in their ranges? @retval DN_ERR_PARAM  no: a log line names the first member that is not. */
DN_API dn_status_t dn_param_check(dn_param_section_t section, const void *settings);

#ifdef __cplusplus
}
#endif

#endif
