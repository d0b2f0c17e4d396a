/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

static void write_text(dn_json_t *json, const char *text)
{
    fputc('"', json->out);
    for (; '\0' != *text; text++) {
        unsigned char c = (unsigned char) *text;
        if ('"' == c || '\\' == c) {
            fprintf(json->out, "\\%c", c);
        } else if (0x20 > c || 0x7f == c) {
            fprintf(json->out, "\\u%04x", c);
        } else {
            fputc(0x7f < c ? '?' : c, json->out);
        }
    }
    fputc('"', json->out);
}

/* Write what stands before a value: a comma, the indent and the key. */
static void begin(dn_json_t *json, const char *key)
{
    if (json->filled[json->depth]) {
        fputc(',', json->out);
    }
    json->filled[json->depth] = true;
    if (0 < json->depth) {
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    }
    if (NULL != key) {
        write_text(json, key);
        fputs(": ", json->out);
    }
}

static void open_bracket(dn_json_t *json, const char *key, char bracket)
{
    begin(json, key);
    fputc(bracket, json->out);
    json->depth++;
    assert(DN_JSON_MAX_DEPTH > json->depth);
    json->filled[json->depth] = false;
}

static void close_bracket(dn_json_t *json, char bracket)
{
    bool filled = json->filled[json->depth--];
    if (filled) {
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    }
    fputc(bracket, json->out);
    if (0 == json->depth) {
        fputc('\n', json->out);
    }
}

void dn_json_object(dn_json_t *json, const char *key)
{
    open_bracket(json, key, '{');
}

void dn_json_array(dn_json_t *json, const char *key)
{
    open_bracket(json, key, '[');
}

void dn_json_end_object(dn_json_t *json)
{
    close_bracket(json, '}');
}

void dn_json_end_array(dn_json_t *json)
{
    close_bracket(json, ']');
}

void dn_json_text(dn_json_t *json, const char *key, const char *text)
{
    begin(json, key);
    if (NULL == text) {
        fputs("null", json->out);
    } else {
        write_text(json, text);
    }
}

void dn_json_count(dn_json_t *json, const char *key, uint64_t count)
{
    begin(json, key);
    fprintf(json->out, "%" PRIu64, count);
}

void dn_json_real(dn_json_t *json, const char *key, double value)
{
    begin(json, key);
    if (isfinite(value)) {
        fprintf(json->out, "%.9g", value);
    } else {
        fputs("null", json->out);
    }
}

void dn_json_flag(dn_json_t *json, const char *key, bool flag)
{
    begin(json, key);
    fputs(flag ? "true" : "false", json->out);
}
