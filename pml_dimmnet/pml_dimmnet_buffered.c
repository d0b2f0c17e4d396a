/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file pml_dimmnet_buffered.c
 * Buffered sends: what MPI_Bsend, MPI_Ibsend and MPI_Bsend_init do when a message cannot leave at once.
 *
 * For the user, a buffered send has ended when the message is copied. A request that the user never sees sends and frees
 * the copy.
 *
 * As with pml/ob1, the user's buffer is for messages above the eager limit. A shorter message that finds no room in the
 * peer's ring waits in the library's own memory.
 */
#include "dn_config.h"

#include "pml_dimmnet.h"

/** A message that was copied. */
typedef struct copy {
    dn_tag_req_t req;
    /** The communicator whose attached buffer has the bytes. NULL: the bytes are in data. */
    struct ompi_communicator_t *comm;
    uint8_t data[];
} copy_t;

/** dn_tag_fn_t of a copy: free it. No user waits for it. */
static void copy_complete(dn_tag_req_t *req)
{
    copy_t *copy = (copy_t *) req;

    if (NULL != copy->comm) {
        dn_ompi_attached_free(copy->comm, copy->req.buffer);
    }
    free(copy);
}

/**
 * Memory for a message. The user's buffer is asked twice: a call that is refused makes progress, and messages may leave the buffer.
 * @param[out] to_p  Where the bytes go.
 * @return NULL: there is no memory.
 */
static copy_t *copy_new(struct ompi_communicator_t *comm, size_t len, bool eager, uint8_t **to_p)
{
    copy_t *copy = malloc(sizeof(*copy) + (eager ? len : 0));

    if (NULL == copy) {
        return NULL;
    }
    *to_p = copy->data;
    for (int tries = 0; !eager && tries < 2; tries++) {
        *to_p = dn_ompi_attached_alloc(comm, len);
        if (NULL != *to_p) {
            break;
        }
    }
    if (NULL == *to_p) {
        free(copy);
        return NULL;
    }
    copy->comm = eager ? NULL : comm;
    copy->req.complete = copy_complete;
    return copy;
}

static void buffered_pack(uint8_t *to, size_t len, const void *buf, size_t count, const ompi_datatype_t *type)
{
    struct iovec iov = {.iov_base = (void *) to, .iov_len = len};
    opal_convertor_t convertor;
    uint32_t iov_count = 1;

    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    (void) opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count, buf, 0,
                                                    &convertor);
    (void) opal_convertor_pack(&convertor, &iov, &iov_count, &len);
    OBJ_DESTRUCT(&convertor);
}

int mca_pml_dimmnet_send_buffered(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                  struct ompi_communicator_t *comm)
{
    const size_t len = count * type->super.size;
    dn_tag_head_t head;
    dn_tag_peer_t *peer = dn_ompi_tag_to(comm, dst, tag, &head);
    uint8_t *to;

    if (OPAL_UNLIKELY(NULL == peer)) {
        return OMPI_ERR_UNREACH;
    }
    copy_t *copy = copy_new(comm, len, len <= peer->eager_limit, &to);
    if (NULL == copy) {
        return MPI_ERR_BUFFER;
    }
    if (0 != len) {
        buffered_pack(to, len, buf, count, type);
    }
    dn_tag_memory(&copy->req, to, len);
    const int rc = dn_ompi_status(dn_tag_send(&copy->req, peer, &head, false));
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        copy_complete(&copy->req);
    }
    return rc;
}
