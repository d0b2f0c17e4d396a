/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Any text as the profile of a NIC: it is refused by one sentence, or every value is within the bounds of its key.
 */
#include "dn_config.h"

#include "dn_fuzz.h"

#include <string.h>

#include "../dn_test.h"
#include "model/dn_model_profile.h"

static const struct {
    uint64_t min;
    uint64_t max;
    uint64_t otherwise;
} bounds[DN_P_COUNT] = {
#define DN_PARAM(id, key, unit, must, value, min, max, meaning) {min, max, value},
#include "model/dn_model_param.h"
#undef DN_PARAM
};

static unsigned sentences;

static void count_sentence(const char *sentence, void *arg)
{
    (void) arg;
    (void) sentence;
    sentences++;
}

/** Some values are made of others when all are known. */
static int is_chosen(int p)
{
    return DN_P_ARRIVAL == p || DN_P_HOST_TO_NIC == p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static dn_model_profile_t profile;
    char *text = malloc(len + 1);

    DN_FUZZ_CHECK(NULL != text);
    memcpy(text, data, len);
    text[len] = '\0';
    dn_log_set(count_sentence, NULL);
    for (int nic = 0; nic < 2; nic++) {
        sentences = 0;
        const dn_status_t status = dn_model_profile_parse(&profile, "text", text, nic);
        DN_FUZZ_CHECK(DN_OK == status ? 0 == sentences : 1 == sentences);
        for (int p = 0; p < DN_P_COUNT && DN_OK == status; p++) {
            const uint64_t value = profile.value[p];
            DN_FUZZ_CHECK(is_chosen(p) || value == bounds[p].otherwise
                          || (bounds[p].min <= value && value <= bounds[p].max));
        }
        DN_FUZZ_CHECK(
            DN_OK != status
            || ('\0' != profile.name[0] && NULL != memchr(profile.name, '\0', sizeof(profile.name))));
    }
    free(text);
    return 0;
}

/** A line of a key with a unit that it may have, or not, and a number. */
static size_t write_line(uint64_t *random, char *to, size_t room)
{
    static const char *const unit[] = {"_ps",    "_ns",  "_us",  "_dimm_cycles", "_core_cycles", "_mhz",
                                       "_bytes", "_kib", "_mib", "_mbyte_s",     "_gbit_s",      "_count",
                                       "_flag",  ""};
    static const char *const number[] = {"0",  "1",   "1.5", "100",  "1e3", "1e18", "1e19",
                                         "-1", "nan", "inf", "0x10", "x",   ""};
    const char *meaning;
    const char *key = dn_model_key(dn_test_below(random, DN_P_COUNT), &meaning);
    const int n =
        snprintf(to, room, "%s%s = %s%s\n", key, unit[dn_test_below(random, sizeof(unit) / sizeof(unit[0]))],
                 number[dn_test_below(random, sizeof(number) / sizeof(number[0]))],
                 0 == dn_test_below(random, 8) ? " # why" : "");
    return (size_t) n < room ? (size_t) n : 0;
}

size_t dn_fuzz_seed(uint64_t *random, uint8_t *data)
{
    char *text = (char *) data;
    size_t len = 0 == dn_test_below(random, 4) ? 0 : (size_t) snprintf(text, DN_FUZZ_MAX, "name = a\n");

    for (uint64_t n = dn_test_below(random, 40); 0 != n; n--) {
        len += write_line(random, text + len, DN_FUZZ_MAX - len);
    }
    return len;
}
