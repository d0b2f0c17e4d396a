/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura_stage.c
 * The stage: memory of the sender that all local receivers map, for long messages that one side packs while the other
 * unpacks.
 *
 * Chunks are used in turn, over more memory than a core's own caches hold. In a small ring each line is in both
 * caches, so writing it takes a transfer between cores and reading it another; by the time that a chunk
 * of the stage is used again, its lines have left both for the shared cache. Between two cores with L =
 * 60 ns the ring of lines carries 10 GB/s, the same ring over 2 MiB 30 to 40.
 */
#include "dn_config.h"

#include "mtl_uzura.h"

/** Bytes of data in a chunk: packing and unpacking overlap by chunks. */
#define CHUNK_BYTES ((size_t) 32 << 10)

/** A chunk. full: written by the sender before it tells, cleared (release) by the receiver when it has read. */
typedef struct uzura_chunk {
    uint64_t full;
    uint8_t pad[64 - sizeof(uint64_t)];
    uint8_t data[CHUNK_BYTES];
} uzura_chunk_t;

/** Make the stage with the first message that needs it. */
static bool stage_made(void)
{
    uzura_stage_t *stage = &mtl_uzura.stage;
    const size_t count = mtl_uzura_number[MTL_UZURA_STAGE_BYTES].value / sizeof(uzura_chunk_t);

    uzura_lock();
    if (!stage->tried) {
        stage->tried = true;
        stage->reader = 0 == count ? NULL : calloc(count, sizeof(stage->reader[0]));
        if (NULL != stage->reader
            && DN_OK == dn_segment_alloc(mtl_uzura.port, count * sizeof(uzura_chunk_t), &stage->segment)) {
            stage->chunk = dn_segment_base(stage->segment);
            stage->count = count;
            dn_segment_key(stage->segment, &stage->key);
        }
    }
    uzura_unlock();
    return NULL != stage->chunk;
}

void mtl_uzura_stage_close(void)
{
    if (NULL != mtl_uzura.stage.segment) {
        dn_segment_free(mtl_uzura.stage.segment);
    }
    free(mtl_uzura.stage.reader);
    memset(&mtl_uzura.stage, 0, sizeof(mtl_uzura.stage));
}

void mtl_uzura_stage_offer(const uzura_request_t *request, dn_key_t *key)
{
    const bool wanted =
        NULL == request->buffer || request->len <= mtl_uzura_number[MTL_UZURA_STAGE_MAX].value;

    if (request->len >= mtl_uzura_number[MTL_UZURA_STAGE_MIN].value
        && (NULL != mtl_uzura.stage.chunk || (wanted && stage_made()))) {
        *key = mtl_uzura.stage.key;
    }
}

bool mtl_uzura_stage_take(uzura_endpoint_t *endpoint, const dn_key_t *key)
{
    void *base;

    if (0 == key->len) {
        return false;
    }
    if (NULL != endpoint->stage && 0 == memcmp(key, &endpoint->stage_key, sizeof(*key))) {
        return true;
    }
    if (DN_OK != dn_segment_map(endpoint->peer, key, &base)) {
        return false;
    }
    endpoint->stage = base;
    endpoint->stage_key = *key;
    return true;
}

/**
 * Fill the next chunk.
 * @retval DN_ERR_AGAIN        the receiver of this message has not read it yet: it will.
 * @retval DN_ERR_UNSUPPORTED  another receiver has not, and may not for long.
 */
static dn_status_t fill_chunk(uzura_request_t *request)
{
    uzura_stage_t *stage = &mtl_uzura.stage;
    uzura_chunk_t *chunk = (uzura_chunk_t *) stage->chunk + stage->next;
    const size_t left = request->wanted - request->done;

    if (0 != __atomic_load_n(&chunk->full, __ATOMIC_ACQUIRE)) {
        return request->endpoint == stage->reader[stage->next] ? DN_ERR_AGAIN : DN_ERR_UNSUPPORTED;
    }
    request->staged = left < CHUNK_BYTES ? left : CHUNK_BYTES;
    request->staged_at = stage->next;
    mtl_uzura_pack(request, chunk->data, request->staged);
    /* Seen by the receiver after the message that names the chunk. */
    __atomic_store_n(&chunk->full, 1, __ATOMIC_RELAXED);
    stage->reader[stage->next] = request->endpoint;
    stage->next = stage->next + 1 == stage->count ? 0 : stage->next + 1;
    return DN_OK;
}

dn_status_t mtl_uzura_stage_send(uzura_request_t *request)
{
    dn_status_t status = 0 == request->staged ? fill_chunk(request) : DN_OK;

    if (DN_OK != status) {
        return status;
    }
    const uzura_staged_t staged = {request->remote, request->staged_at, request->staged};
    status = dn_botf(request->endpoint->peer, DN_CHAN_MTL, UZURA_STAGED, &staged, sizeof(staged), NULL, 0);
    if (DN_OK == status) {
        request->done += request->staged;
        request->staged = 0;
    }
    return status;
}

const uint8_t *mtl_uzura_stage_find(const uzura_endpoint_t *endpoint, const uzura_staged_t *staged)
{
    const uzura_chunk_t *chunk = endpoint->stage;

    if (NULL == chunk || staged->chunk >= endpoint->stage_key.len / sizeof(*chunk)
        || staged->len > CHUNK_BYTES) {
        return NULL;
    }
    return chunk[staged->chunk].data;
}

void mtl_uzura_stage_clear(uzura_endpoint_t *endpoint, const uzura_staged_t *staged)
{
    uzura_chunk_t *chunk = endpoint->stage;

    __atomic_store_n(&chunk[staged->chunk].full, 0, __ATOMIC_RELEASE);
}
