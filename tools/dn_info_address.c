/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <string.h>

#include "dn_info.h"

/*
 * An address file has six lines of text, so that users can read what they copy from host to host:
 *
 *   dimmnet address 2
 *   host NAME
 *   process NUMBER
 *   devices LIST
 *   key HEXADECIMAL
 *   bytes HEXADECIMAL
 */
#define FIRST_LINE "dimmnet address 2"

static void write_bytes(FILE *file, const char *key, const uint8_t *bytes, size_t len)
{
    fputs(key, file);
    for (size_t i = 0; i < len; i++) {
        fprintf(file, "%02x", bytes[i]);
    }
    fputc('\n', file);
}

void info_address_write(FILE *file, const info_address_t *address)
{
    fprintf(file, FIRST_LINE "\nhost %s\nprocess %ld\ndevices %s\n", address->host, address->process,
            address->devices);
    write_bytes(file, "key ", address->key.byte, sizeof(address->key.byte));
    write_bytes(file, "bytes ", address->bytes, address->len);
}

/** Read the next line. @return the line behind @p key; NULL: there is no line, or it does not begin with @p key. */
static const char *next_line(FILE *file, char *line, size_t size, const char *key)
{
    size_t len = strlen(key);
    if (NULL == fgets(line, (int) size, file) || 0 != strncmp(line, key, len)) {
        return NULL;
    }
    char *end = strchr(line, '\n');
    if (NULL == end) {
        return NULL;
    }
    *end = '\0';
    return line + len;
}

/** Parse hexadecimal digits. @return the number of bytes; 0: the text is not one of at most @p max bytes. */
static size_t parse_bytes(const char *text, uint8_t *bytes, size_t max)
{
    size_t digits = strlen(text);
    if (0 != digits % 2 || 2 * max < digits || digits != strspn(text, "0123456789abcdef")) {
        return 0;
    }
    for (size_t i = 0; 2 * i < digits; i++) {
        unsigned byte;
        sscanf(text + 2 * i, "%2x", &byte);
        bytes[i] = (uint8_t) byte;
    }
    return digits / 2;
}

const char *info_address_read(FILE *file, info_address_t *address)
{
    char line[2 * DN_ADDRESS_MAX + 64];
    const char *text = next_line(file, line, sizeof(line), FIRST_LINE);
    if (NULL == text || '\0' != *text) {
        return "its first line is not \"" FIRST_LINE "\"";
    }
    text = next_line(file, line, sizeof(line), "host ");
    if (NULL == text || sizeof(address->host) <= strlen(text)) {
        return "it does not name the host";
    }
    snprintf(address->host, sizeof(address->host), "%s", text);
    text = next_line(file, line, sizeof(line), "process ");
    if (NULL == text || 1 != sscanf(text, "%ld", &address->process)) {
        return "it does not name the process";
    }
    text = next_line(file, line, sizeof(line), "devices ");
    if (NULL == text || sizeof(address->devices) <= strlen(text)) {
        return "it does not name the devices";
    }
    snprintf(address->devices, sizeof(address->devices), "%s", text);
    text = next_line(file, line, sizeof(line), "key ");
    if (NULL == text
        || sizeof(address->key.byte) != parse_bytes(text, address->key.byte, sizeof(address->key.byte))) {
        return "it does not hold a key";
    }
    text = next_line(file, line, sizeof(line), "bytes ");
    address->len = NULL == text ? 0 : parse_bytes(text, address->bytes, sizeof(address->bytes));
    if (0 == address->len) {
        return "it does not hold the bytes of an address";
    }
    return NULL;
}
