/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_alloc.c
 * MPI_Alloc_mem gives memory that local peers map, so that a window made of it needs no messages.
 *
 * Open MPI asks its memory pools (framework mpool) for such memory, and takes memory of the C library when the pools have none.
 * The pool of this file is in the list of that framework as long as this component lives. Memory that the user
 * has not freed when MPI_Finalize returns is gone then, as all segments are.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

#include <sys/resource.h>

#include "opal/mca/mpool/base/base.h"
#include "opal/mca/mpool/mpool.h"

/** Above the priority of Open MPI's pools, which is 50. */
#define POOL_PRIORITY 60

/** Memory of this many bytes begins with a page. */
#define PAGE 4096u

/** Segments for MPI_Alloc_mem may take one file descriptor of so many. MPI_Alloc_mem can use other memory; files need their descriptors. */
#define DESCRIPTOR_SHARE 4u

static mca_base_component_list_item_t *listed; /**< of this pool in the list; NULL: the pool is not there */

/** Bytes in front of the user's bytes. Their last line holds the dn_piece_t of the memory. */
static uint64_t alloc_front(uint64_t size)
{
    return PAGE <= size ? PAGE : DN_RMA_LINE;
}

bool ompi_osc_dimmnet_spare(uint64_t len, dn_piece_t *piece)
{
    struct rlimit limit;

    return 0 == getrlimit(RLIMIT_NOFILE, &limit)
           && DN_OK
                  == dn_piece_alloc(&mca_osc_dimmnet_component.pieces, len, limit.rlim_cur / DESCRIPTOR_SHARE,
                                    piece);
}

/** mca_mpool_base_module_alloc_fn_t. @return NULL: Open MPI takes other memory. */
static void *pool_alloc(mca_mpool_base_module_t *pool, size_t size, size_t align, uint32_t flags)
{
    const uint64_t before = alloc_front(size);
    dn_piece_t block;

    if (DN_RMA_LINE < align || UINT64_MAX - before < size || !ompi_osc_dimmnet_port_ready()
        || !mca_osc_dimmnet_component.maps || !ompi_osc_dimmnet_spare(before + size, &block)) {
        return NULL;
    }
    memcpy(block.base + before - DN_RMA_LINE, &block, sizeof(block));
    return block.base + before;
}

/** mca_mpool_base_module_free_fn_t. */
static void pool_free(mca_mpool_base_module_t *pool, void *base)
{
    dn_piece_t block;

    memcpy(&block, (uint8_t *) base - DN_RMA_LINE, sizeof(block));
    dn_piece_free(&mca_osc_dimmnet_component.pieces, &block);
}

static int pool_query(const char *hints, int *priority, mca_mpool_base_module_t **module);

static mca_mpool_base_component_t component = {
    .mpool_version = {DN_OMPI_MPOOL_VERSION, .mca_component_name = "dimmnet",
                      MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                            OMPI_RELEASE_VERSION)},
    .mpool_query = pool_query,
};

static char name[] = "dimmnet";

static mca_mpool_base_module_t pool = {
    .mpool_component = &component,
    .mpool_alloc = pool_alloc,
    .mpool_free = pool_free,
    .flags = MCA_MPOOL_FLAGS_MPI_ALLOC_MEM,
    .mpool_allocation_unit = DN_RMA_LINE,
    .mpool_name = name,
};

/** A caller that gives hints wants another pool, unless the hints name this one. */
static int pool_query(const char *hints, int *priority, mca_mpool_base_module_t **module)
{
    if (NULL != hints && 0 != strcmp(hints, "mpool=dimmnet")) {
        return OPAL_ERR_NOT_FOUND;
    }
    *priority = POOL_PRIORITY;
    *module = &pool;
    return OPAL_SUCCESS;
}

void ompi_osc_dimmnet_alloc_open(void)
{
    if (0 == dn_ompi_params.osc.alloc_mem) {
        return;
    }
    listed = OBJ_NEW(mca_base_component_list_item_t);
    if (NULL != listed) {
        listed->cli_component = &component.mpool_version;
        opal_list_append(&opal_mpool_base_framework.framework_components, &listed->super);
    }
}

void ompi_osc_dimmnet_alloc_close(void)
{
    if (NULL != listed) {
        opal_list_remove_item(&opal_mpool_base_framework.framework_components, &listed->super);
        OBJ_RELEASE(listed);
        listed = NULL;
    }
}
