/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_config.c
 * The configuration: its defaults, its values from the environment, and its checks. */
#include "dn_config.h"

#include "dn_dsm_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const dn_dsm_protocols[] = {
    [DN_DSM_LAZY] = "lazy", [DN_DSM_SCOPE] = "scope", [DN_DSM_EAGER] = "eager", [DN_DSM_UPDATE] = "update"};

void dn_dsm_config_init(dn_dsm_config_t *config)
{
    *config = (dn_dsm_config_t){.ranks = 1,
                                .bytes = UINT64_C(64) << 20,
                                .locks = 256,
                                .timeout_s = 60,
                                .devices = "shm",
                                .protocol = "lazy",
                                .detect = "auto",
                                .share = "auto",
                                .homes = "stay"};
}

/** Read a number from the environment, if the variable is set. */
static dn_status_t dn_dsm_config_number(const char *name, uint64_t max, uint64_t *value_p)
{
    const char *text = getenv(name);
    char *end;

    if (NULL == text) {
        return DN_OK;
    }
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (0 != errno || end == text || '\0' != *end || '-' == *text || max < value) {
        dn_log_error("shared memory: %s is \"%s\": set it to a number up to %llu", name, text,
                     (unsigned long long) max);
        return DN_ERR_PARAM;
    }
    *value_p = value;
    return DN_OK;
}

static dn_status_t dn_dsm_config_small(const char *name, uint32_t *value_p)
{
    uint64_t value = *value_p;
    const dn_status_t status = dn_dsm_config_number(name, UINT32_MAX, &value);

    *value_p = (uint32_t) value;
    return status;
}

static void dn_dsm_config_word(const char *name, const char **word_p)
{
    const char *text = getenv(name);

    *word_p = NULL == text ? *word_p : text;
}

dn_status_t dn_dsm_config_env(dn_dsm_config_t *config)
{
    dn_dsm_config_init(config);
    dn_dsm_config_word("DN_DSM_FOLDER", &config->folder);
    dn_dsm_config_word("DN_DSM_DEVICES", &config->devices);
    dn_dsm_config_word("DN_DSM_SETTINGS", &config->settings);
    dn_dsm_config_word("DN_DSM_PROTOCOL", &config->protocol);
    dn_dsm_config_word("DN_DSM_DETECT", &config->detect);
    dn_dsm_config_word("DN_DSM_SHARE", &config->share);
    dn_dsm_config_word("DN_DSM_HOMES", &config->homes);
    dn_dsm_config_word("DN_DSM_MAP", &config->map);
    return DN_OK == dn_dsm_config_small("OMPI_COMM_WORLD_RANK", &config->rank)
                   && DN_OK == dn_dsm_config_small("OMPI_COMM_WORLD_SIZE", &config->ranks)
                   && DN_OK == dn_dsm_config_small("DN_DSM_RANK", &config->rank)
                   && DN_OK == dn_dsm_config_small("DN_DSM_RANKS", &config->ranks)
                   && DN_OK == dn_dsm_config_small("DN_DSM_LOCKS", &config->locks)
                   && DN_OK == dn_dsm_config_small("DN_DSM_TIMEOUT", &config->timeout_s)
                   && DN_OK == dn_dsm_config_number("DN_DSM_BYTES", UINT64_C(1) << 46, &config->bytes)
               ? DN_OK
               : DN_ERR_PARAM;
}

/** Parse dn_dsm_config_t::share. @param[out] together_p  dn_dsm_t::together. */
static dn_status_t dn_dsm_config_share(const char *share, uint32_t *together_p)
{
    char *end;
    const unsigned long together = strtoul(share, &end, 10);

    if (0 == strcmp(share, "auto")) {
        *together_p = DN_DSM_RANKS_MAX;
    } else if (0 == strcmp(share, "never")) {
        *together_p = 1;
    } else if ('0' <= share[0] && '9' >= share[0] && '\0' == *end && 1 <= together
               && DN_DSM_RANKS_MAX >= together) {
        *together_p = (uint32_t) together;
    } else {
        dn_log_error("shared memory: share is \"%s\": set it to auto, never, or the most processes of a "
                     "host, up to %u",
                     share, DN_DSM_RANKS_MAX);
        return DN_ERR_PARAM;
    }
    return DN_OK;
}

dn_status_t dn_dsm_config_take(dn_dsm_t *dsm, const dn_dsm_config_t *config)
{
    const uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
    const uint64_t pages = config->bytes / page + (0 != config->bytes % page);
    uint32_t protocol = 0;

    if (0 == config->ranks || DN_DSM_RANKS_MAX < config->ranks || config->rank >= config->ranks) {
        dn_log_error("shared memory: rank %u of %u: there are 1 to %u processes, and ranks from 0 on",
                     (unsigned) config->rank, (unsigned) config->ranks, DN_DSM_RANKS_MAX);
        return DN_ERR_PARAM;
    }
    /* A run counts pages in 31 bits (dn_dsm_run_t). */
    if (0 == pages || UINT32_MAX / 2 < pages || 0 == config->locks || DN_DSM_LOCKS_MAX < config->locks) {
        dn_log_error("shared memory: %llu bytes and %u locks: there is at least one of each, at most %u "
                     "pages of %u bytes and %u locks",
                     (unsigned long long) config->bytes, (unsigned) config->locks, UINT32_MAX / 2,
                     (unsigned) page, DN_DSM_LOCKS_MAX);
        return DN_ERR_PARAM;
    }
    while (protocol < sizeof(dn_dsm_protocols) / sizeof(dn_dsm_protocols[0])
           && 0 != strcmp(config->protocol, dn_dsm_protocols[protocol])) {
        protocol++;
    }
    if (sizeof(dn_dsm_protocols) / sizeof(dn_dsm_protocols[0]) == protocol) {
        dn_log_error("shared memory: there is no protocol \"%s\", but lazy, scope, eager and update",
                     config->protocol);
        return DN_ERR_PARAM;
    }
    if (DN_OK != dn_dsm_config_share(config->share, &dsm->together)) {
        return DN_ERR_PARAM;
    }
    if (0 != strcmp(config->homes, "stay") && 0 != strcmp(config->homes, "move")) {
        dn_log_error("shared memory: homes is \"%s\": set it to stay or move", config->homes);
        return DN_ERR_PARAM;
    }
    const dn_status_t status = dn_dsm_detect_choose("shared memory", config->detect, &dsm->watch);
    if (DN_OK != status) {
        return status;
    }
    dsm->protocol = (dn_dsm_protocol_t) protocol;
    dsm->moves = 0 == strcmp(config->homes, "move");
    dsm->rank = config->rank;
    dsm->ranks = config->ranks;
    dsm->locks = config->locks;
    dsm->timeout_s = config->timeout_s;
    dsm->page_bytes = (uint32_t) page;
    dsm->pages = (uint32_t) pages;
    return DN_OK;
}
