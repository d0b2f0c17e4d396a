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

/** The interface of libfabric for which this device was written. Newer libraries keep to it. */
#define DN_OFI_API FI_VERSION(1, 9)

/** What the user wants of providers. */
typedef struct dn_ofi_wish {
    char provider[128];  /**< of the device's argument; "": any */
    const char *hint;    /**< provider that libfabric is asked for; libfabric adds layers to it; "": any */
    const char *domain;  /**< behind the '@' of the device's argument; NULL: any */
    const char *include; /**< names of providers; NULL: all */
    const char *exclude; /**< names of providers */
} dn_ofi_wish_t;

/** What this device can work with. A provider clears the mode bits that it does not need. */
static struct fi_info *dn_ofi_hints(const dn_ofi_lib_t *lib, const char *hint, uint64_t caps,
                                    uint64_t op_flags)
{
    struct fi_info *hints = lib->dupinfo(NULL);

    if (NULL == hints) {
        return NULL;
    }
    hints->caps = caps;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->tx_attr->op_flags = op_flags;
    if ('\0' != hint[0]) {
        hints->fabric_attr->prov_name = strdup(hint);
    }
    return hints;
}

/** Is @p name, of @p len characters, a name of this provider, or of the provider below its layers? The name tcp is also for tcp;ofi_rxm.
 * From libfabric 1.18 on, tcp has RDM endpoints of its own; before, the provider of these endpoints is called net. So each of the names
 * tcp and net is for both, but net is not for tcp;ofi_rxm. */
static int dn_ofi_is_called(const char *name, size_t len, const char *provider)
{
    const size_t lower = strcspn(provider, ";");

    return ((len == lower || len == strlen(provider)) && 0 == strncasecmp(name, provider, len))
           || (3 == len && 3 == lower && 0 == strncasecmp(name, "tcp", 3) && 0 == strncmp(provider, "net", 3))
           || (3 == len && 0 == strncasecmp(name, "net", 3) && 0 == strcmp(provider, "tcp"));
}

static int dn_ofi_is_listed(const char *list, const char *provider)
{
    while ('\0' != *list) {
        const size_t len = strcspn(list, ",");
        if (dn_ofi_is_called(list, len, provider)) {
            return 1;
        }
        list += len + (',' == list[len]);
    }
    return 0;
}

static int dn_ofi_is_wanted(const dn_ofi_wish_t *wish, const struct fi_info *info)
{
    const char *provider = info->fabric_attr->prov_name;

    if ((NULL != wish->domain && 0 != strcmp(info->domain_attr->name, wish->domain))
        || DN_OFI_PROVIDER_MAX <= strlen(provider)
        || info->ep_attr->max_msg_size < sizeof(dn_ofi_head_t) + DN_OFI_BOTF_MIN) {
        return 0;
    }
    if ('\0' != wish->hint[0]) {
        return 1;
    }
    if ('\0' != wish->provider[0]) {
        return dn_ofi_is_called(wish->provider, strlen(wish->provider), provider);
    }
    return NULL != wish->include ? dn_ofi_is_listed(wish->include, provider)
                                 : !dn_ofi_is_listed(wish->exclude, provider);
}

int dn_ofi_is_local(const struct fi_info *info)
{
    return 0 == strcmp(info->fabric_attr->prov_name, "shm") || 0 == strcmp(info->domain_attr->name, "lo");
}

int dn_ofi_has_sockets(const struct fi_info *info)
{
    return dn_ofi_is_listed("tcp,sockets,udp", info->fabric_attr->prov_name);
}

/** The first provider that fits. If the user has named neither provider nor domain, a provider that reaches other hosts comes first. */
static const struct fi_info *dn_ofi_first(const struct fi_info *list, const dn_ofi_wish_t *wish)
{
    const struct fi_info *local = NULL;

    for (const struct fi_info *info = list; NULL != info; info = info->next) {
        if (!dn_ofi_is_wanted(wish, info)) {
            continue;
        }
        if (NULL != wish->domain || '\0' != wish->provider[0] || !dn_ofi_is_local(info)) {
            return info;
        }
        local = NULL == local ? info : local;
    }
    return local;
}

/** Choose a provider of a list. libfabric lists the fastest first, except for tcp: RDM endpoints of a layer above tcp cost more system
 * calls than RDM endpoints of tcp itself (8 B one-way 12.8 instead of 9.8 us, perf/dn_latency). */
static const struct fi_info *dn_ofi_choose(const struct fi_info *list, const dn_ofi_wish_t *wish)
{
    const struct fi_info *first = dn_ofi_first(list, wish);

    if (NULL == first || !dn_ofi_is_called("tcp", 3, first->fabric_attr->prov_name)) {
        return first;
    }
    for (const struct fi_info *info = first; NULL != info; info = info->next) {
        if (dn_ofi_is_wanted(wish, info) && dn_ofi_is_called("tcp", 3, info->fabric_attr->prov_name)
            && NULL == strchr(info->fabric_attr->prov_name, ';')
            && 0 == strcmp(info->domain_attr->name, first->domain_attr->name)) {
            return info;
        }
    }
    return first;
}

/** Ask libfabric once for a provider. @return a copy of the one that fits; NULL: none fits. */
static struct fi_info *dn_ofi_ask(const dn_ofi_lib_t *lib, const dn_ofi_wish_t *wish, uint64_t caps,
                                  uint64_t op_flags)
{
    struct fi_info *list = NULL;
    struct fi_info *found = NULL;
    struct fi_info *hints = dn_ofi_hints(lib, wish->hint, caps, op_flags);

    if (NULL != hints && 0 == lib->getinfo(DN_OFI_API, NULL, NULL, 0, hints, &list)) {
        const struct fi_info *info = dn_ofi_choose(list, wish);
        found = NULL == info ? NULL : lib->dupinfo(info);
        lib->freeinfo(list);
    }
    if (NULL != hints) {
        lib->freeinfo(hints);
    }
    return found;
}

static dn_status_t dn_ofi_read_wish(dn_ofi_wish_t *wish, const dn_config_t *config, const char *argument)
{
    const char *named = getenv("FI_PROVIDER");

    *wish = (dn_ofi_wish_t){.hint = "", .exclude = ""};
    if (NULL != config->provider_include && '\0' != config->provider_include[0]) {
        wish->include = config->provider_include;
    }
    /* libfabric obeys FI_PROVIDER. FI_PROVIDER=NAMES says what the user wants, so provider_exclude does not count. FI_PROVIDER=^NAMES
     * only excludes. */
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
    /* libfabric knows fewer providers by these two names than dn_ofi_is_called() does. */
    const int either = 0 == strcasecmp(wish->provider, "tcp") || 0 == strcasecmp(wish->provider, "net");
    wish->hint = either ? "" : wish->provider;
    return DN_OK;
}

/** Does the provider signal a write when its bytes are in the target's memory? */
static int dn_ofi_delivers(const dn_ofi_lib_t *lib, const struct fi_info *info)
{
    const dn_ofi_wish_t same = {.hint = info->fabric_attr->prov_name, .domain = info->domain_attr->name};
    struct fi_info *sure = dn_ofi_ask(lib, &same, FI_MSG | FI_RMA, FI_DELIVERY_COMPLETE);

    if (NULL == sure) {
        return 0;
    }
    lib->freeinfo(sure);
    return 1;
}

/** Log why there is no provider. If the user has named a provider, that is an error. */
static dn_status_t dn_ofi_none(const dn_ofi_wish_t *wish, const char *argument, const char *wrong)
{
    const size_t bytes = sizeof(dn_ofi_head_t) + DN_OFI_BOTF_MIN;

    if (NULL != wrong && (NULL != argument || NULL != wish->include)) {
        dn_log_error("ofi cannot be used: %s", wrong);
    } else if (NULL != wrong) {
        dn_log_answer("ofi is passed over: %s", wrong);
    } else if (NULL != argument) {
        dn_log_error("libfabric has no provider with an RDM endpoint and messages of %zu bytes for "
                     "\"ofi:%s\"; see fi_info",
                     bytes, argument);
    } else if (NULL != wish->include) {
        dn_log_error("libfabric has no provider with an RDM endpoint and messages of %zu bytes that "
                     "provider_include=\"%s\" names; "
                     "see fi_info",
                     bytes, wish->include);
    } else {
        dn_log_answer("ofi is passed over: libfabric has no provider with an RDM "
                      "endpoint and messages of %zu bytes here; see fi_info",
                      bytes);
    }
    return DN_ERR_UNSUPPORTED;
}

/** Ask ofi_rxm to note the sender of a message when the message comes (FI_SOURCE). Otherwise ofi_rxm looks for the sender when it needs the
 * sender. From libfabric 2.0 on, and before 2.4, that crashes when an address is inserted while a message waits for a buffer. */
static void dn_ofi_have_senders_noted(const dn_ofi_lib_t *lib, struct fi_info *info)
{
    const uint32_t version = lib->version();

    if (NULL != strstr(info->fabric_attr->prov_name, "ofi_rxm") && !FI_VERSION_LT(version, FI_VERSION(2, 0))
        && FI_VERSION_LT(version, FI_VERSION(2, 4))) {
        info->caps |= FI_SOURCE;
        info->rx_attr->caps |= FI_SOURCE;
    }
}

/** A provider with RMA comes first. This device asks for no order: messages are numbered. */
dn_status_t dn_ofi_select(dn_ofi_t *ofi, const dn_config_t *config, const char *argument)
{
    const char *wrong;
    dn_ofi_wish_t wish;

    const dn_status_t status = dn_ofi_read_wish(&wish, config, argument);
    if (DN_OK != status) {
        return status;
    }
    ofi->lib = dn_ofi_lib_load(&wrong);
    if (NULL == ofi->lib) {
        return dn_ofi_none(&wish, argument, wrong);
    }
    ofi->info = dn_ofi_ask(ofi->lib, &wish, FI_MSG | FI_RMA, 0);
    ofi->rma = NULL != ofi->info && ofi->rma_wanted;
    if (NULL == ofi->info) {
        ofi->info = dn_ofi_ask(ofi->lib, &wish, FI_MSG, 0);
    }
    if (NULL == ofi->info) {
        return dn_ofi_none(&wish, argument, NULL);
    }
    ofi->delivery = ofi->rma && dn_ofi_delivers(ofi->lib, ofi->info);
    dn_ofi_have_senders_noted(ofi->lib, ofi->info);
    return DN_OK;
}
