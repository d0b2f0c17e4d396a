/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dn_log.h"

/** What we were written against; a newer library keeps to it. */
#define DN_OFI_API FI_VERSION(1, 9)

/** What the user says of providers. */
typedef struct dn_ofi_wish {
    char provider[128]; /**< of the device's argument, "": any */
    const char *domain; /**< behind its '@', NULL: any */
    const char *include;
    const char *exclude;
} dn_ofi_wish_t;

/** What we can live with; a provider clears the mode bits that it does not need. */
static struct fi_info *dn_ofi_hints(const char *provider, uint64_t caps, uint64_t order, uint64_t op_flags)
{
    struct fi_info *hints = fi_allocinfo();

    if (NULL == hints) {
        return NULL;
    }
    hints->caps = caps;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->tx_attr->msg_order = order;
    hints->rx_attr->msg_order = order;
    hints->tx_attr->op_flags = op_flags;
    if ('\0' != provider[0]) {
        hints->fabric_attr->prov_name = strdup(provider);
    }
    return hints;
}

/** Is a provider in a list? An entry is its name, or that of its lower layer: tcp is tcp;ofi_rxm, too. */
static int dn_ofi_is_listed(const char *list, const char *provider)
{
    const size_t layer = strcspn(provider, ";");

    while ('\0' != *list) {
        const size_t len = strcspn(list, ",");
        if ((len == layer || len == strlen(provider)) && 0 == strncasecmp(list, provider, len)) {
            return 1;
        }
        list += len + (',' == list[len]);
    }
    return 0;
}

static int dn_ofi_is_wanted(const dn_ofi_wish_t *wish, const struct fi_info *info)
{
    const char *provider = info->fabric_attr->prov_name;

    if (NULL != wish->domain && 0 != strcmp(info->domain_attr->name, wish->domain)) {
        return 0;
    }
    if ('\0' != wish->provider[0]) {
        return 1;
    }
    return NULL != wish->include ? dn_ofi_is_listed(wish->include, provider)
                                 : !dn_ofi_is_listed(wish->exclude, provider);
}

/** Only with processes of this host? */
int dn_ofi_is_local(const struct fi_info *info)
{
    return 0 == strcmp(info->fabric_attr->prov_name, "shm") || 0 == strcmp(info->domain_attr->name, "lo");
}

/** The first that fits; unless it was asked for, one that leaves this host comes before one that does not. */
static const struct fi_info *dn_ofi_choose(const struct fi_info *list, const dn_ofi_wish_t *wish)
{
    const struct fi_info *local = NULL;

    for (const struct fi_info *info = list; NULL != info; info = info->next) {
        if (!dn_ofi_is_wanted(wish, info) || DN_OFI_PROVIDER_MAX <= strlen(info->fabric_attr->prov_name)
            || info->ep_attr->max_msg_size < DN_OFI_SMALL) {
            continue;
        }
        if (NULL != wish->domain || '\0' != wish->provider[0] || !dn_ofi_is_local(info)) {
            return info;
        }
        local = NULL == local ? info : local;
    }
    return local;
}

/** One question to libfabric. @return a copy of what fits, NULL: nothing. */
static struct fi_info *dn_ofi_ask(const dn_ofi_wish_t *wish, uint64_t caps, uint64_t order, uint64_t op_flags)
{
    struct fi_info *list = NULL;
    struct fi_info *found = NULL;
    struct fi_info *hints = dn_ofi_hints(wish->provider, caps, order, op_flags);

    if (NULL != hints && 0 == fi_getinfo(DN_OFI_API, NULL, NULL, 0, hints, &list)) {
        const struct fi_info *info = dn_ofi_choose(list, wish);
        found = NULL == info ? NULL : fi_dupinfo(info);
        fi_freeinfo(list);
    }
    if (NULL != hints) {
        fi_freeinfo(hints);
    }
    return found;
}

static dn_status_t dn_ofi_read_wish(dn_ofi_wish_t *wish, const dn_config_t *config, const char *argument)
{
    const char *named = getenv("FI_PROVIDER");

    *wish = (dn_ofi_wish_t){.exclude = ""};
    if (NULL != config->provider_include && '\0' != config->provider_include[0]) {
        wish->include = config->provider_include;
    }
    /* FI_PROVIDER=NAMES is obeyed by libfabric, and says what is wanted; FI_PROVIDER=^NAMES only takes away. */
    if (NULL != config->provider_exclude && (NULL == named || '\0' == named[0] || '^' == named[0])) {
        wish->exclude = config->provider_exclude;
    }
    if (NULL == argument) {
        return DN_OK;
    }
    if (sizeof(wish->provider) <= strlen(argument)) {
        dn_log_error("\"ofi:%s\" is too long; write ofi:PROVIDER@DOMAIN", argument);
        return DN_ERR_PARAM;
    }
    memcpy(wish->provider, argument, strlen(argument) + 1);
    char *at = strrchr(wish->provider, '@');
    if (NULL != at) {
        *at = '\0';
        wish->domain = at + 1;
    }
    return DN_OK;
}

/** Does the provider signal a write when its bytes are in the target's memory? */
static int dn_ofi_delivers(const struct fi_info *info)
{
    dn_ofi_wish_t same = {.domain = info->domain_attr->name};

    memcpy(same.provider, info->fabric_attr->prov_name, strlen(info->fabric_attr->prov_name) + 1);
    struct fi_info *sure = dn_ofi_ask(&same, FI_MSG | FI_RMA, 0, FI_DELIVERY_COMPLETE);
    if (NULL == sure) {
        return 0;
    }
    fi_freeinfo(sure);
    return 1;
}

/** With RMA and order where it can be had. */
dn_status_t dn_ofi_select(dn_ofi_t *ofi, const dn_config_t *config, const char *argument)
{
    static const uint64_t caps[] = {FI_MSG | FI_RMA, FI_MSG};
    static const uint64_t order[] = {FI_ORDER_SAS | FI_ORDER_WAS | FI_ORDER_RAS, FI_ORDER_SAS, 0};
    dn_ofi_wish_t wish;

    const dn_status_t status = dn_ofi_read_wish(&wish, config, argument);
    if (DN_OK != status) {
        return status;
    }
    for (size_t c = 0; c < 2 && NULL == ofi->info; c++) {
        for (size_t o = 0; o < 3 && NULL == ofi->info; o++) {
            ofi->info = dn_ofi_ask(&wish, caps[c], order[o], 0);
            ofi->writes_after_sends = 0 != (order[o] & FI_ORDER_WAS);
            ofi->rma = ofi->rma_wanted && 0 != (caps[c] & FI_RMA);
        }
    }
    if (NULL == ofi->info) {
        if (NULL != argument) {
            dn_log_error("libfabric has no provider with an RDM endpoint for \"ofi:%s\"; see fi_info",
                         argument);
        } else if (NULL != wish.include) {
            dn_log_error("libfabric has no provider with an RDM endpoint that provider_include=\"%s\" names; "
                         "see fi_info",
                         wish.include);
        } else {
            dn_log_answer(
                "ofi is passed over: libfabric has no provider with an RDM endpoint here; see fi_info");
        }
        return DN_ERR_UNSUPPORTED;
    }
    ofi->delivery = ofi->rma && dn_ofi_delivers(ofi->info);
    return DN_OK;
}
