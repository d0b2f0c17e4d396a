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
 * Writes one JSON document, member by member. A member of an object has a key, one of an array NULL.
 * All text is ASCII: other bytes of a string are written as '?'.
 */

#define DN_JSON_MAX_DEPTH 16

typedef struct {
    FILE *out;
    int depth;
    bool filled[DN_JSON_MAX_DEPTH]; /**< something stands before the next member, by depth */
} dn_json_t;

/** Open an object or an array. The first is the document. */
void dn_json_object(dn_json_t *json, const char *key);
void dn_json_array(dn_json_t *json, const char *key);
/** Close what was opened last, with the bracket that it needs; the document ends with a newline. */
void dn_json_end_object(dn_json_t *json);
void dn_json_end_array(dn_json_t *json);

/** @p text NULL: null. */
void dn_json_text(dn_json_t *json, const char *key, const char *text);
void dn_json_count(dn_json_t *json, const char *key, uint64_t count);
/** null when it is no number. */
void dn_json_real(dn_json_t *json, const char *key, double value);
void dn_json_flag(dn_json_t *json, const char *key, bool flag);

#endif
