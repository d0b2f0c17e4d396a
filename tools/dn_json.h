/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_JSON_H
#define DN_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Writes one JSON document, member by member. The key of a member of an array, and of the document, is NULL.
 * All text is ASCII: other bytes of a string are written as '?'.
 */

#define DN_JSON_MAX_DEPTH 16

typedef struct {
    FILE *out;
    int depth;                      /**< objects and arrays that are open */
    bool filled[DN_JSON_MAX_DEPTH]; /**< by depth: a member was written, so the next one needs a comma */
} dn_json_t;

/** Open an object or an array. The first one is the document. */
void dn_json_object(dn_json_t *json, const char *key);
void dn_json_array(dn_json_t *json, const char *key);
/** Close the object or the array that was opened last. The document ends with a newline. */
void dn_json_end_object(dn_json_t *json);
void dn_json_end_array(dn_json_t *json);

/** Write a string. @param[in] text  NULL: null is written. */
void dn_json_text(dn_json_t *json, const char *key, const char *text);
void dn_json_count(dn_json_t *json, const char *key, uint64_t count);
/** Write a number. If the value is infinite or no number, null is written. */
void dn_json_real(dn_json_t *json, const char *key, double value);
void dn_json_flag(dn_json_t *json, const char *key, bool flag);

#endif
