/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <string.h>

#include "dn_info.h"

/*
 * Five lines of text, so that people see what they carry from host to host:
 *
 *   dimmnet address 1
 *   host NAME
 *   process NUMBER
 *   devices LIST
 *   bytes HEXADECIMAL
 */
#define FIRST_LINE "dimmnet address 1"

void info_address_write(FILE *file, const info_address_t *address)
{
    fprintf(file, FIRST_LINE "\nhost %s\nprocess %ld\ndevices %s\nbytes ", address->host, address->process,
            address->devices);
    for (size_t i = 0; i < address->len; i++) {
        fprintf(file, "%02x", address->bytes[i]);
    }
    fputc('\n', file);
}

/** The next line when it begins with @p key, without the key; NULL: it does not. */
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

static bool take_bytes(const char *text, info_address_t *address)
{
    size_t digits = strlen(text);
    if (0 == digits || 0 != digits % 2 || 2 * sizeof(address->bytes) < digits
        || digits != strspn(text, "0123456789abcdef")) {
        return false;
    }
    for (address->len = 0; 2 * address->len < digits; address->len++) {
        unsigned byte;
        sscanf(text + 2 * address->len, "%2x", &byte);
        address->bytes[address->len] = (uint8_t) byte;
    }
    return true;
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
    text = next_line(file, line, sizeof(line), "bytes ");
    if (NULL == text || !take_bytes(text, address)) {
        return "it does not hold the bytes of an address";
    }
    return NULL;
}
