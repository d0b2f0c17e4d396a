/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura.h
 * Open MPI's matching transport layer on libdimmnet: two-sided messages under pml/cm.
 *
 * A short message is one BOTF message, matched where it arrives (uzura_match.h). A long one is announced by
 * its envelope; the receiver, once it has matched, PULLs the data and says that it is done, or asks for
 * the packed bytes in pieces when memory on either side is not contiguous (DIMM_Send/DIMM_Recv paper, protocol
 * B: the sender comes first). What finds no room in the peer's ring waits, in order, and is retried by
 * the progress function.
 *
 * Threads: the module's lock protects matching, handles and queues, and is never held while libdimmnet is called:
 * its progress calls the handler here with the port's lock held. Handlers run one at a time. A
 * request that has been matched belongs to the thread that matched it, then to the handlers.
 */
#ifndef MTL_UZURA_H
#define MTL_UZURA_H

#include "dn_ompi.h"
#include "dn_ompi_prog.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/mtl/mtl.h"
#include "ompi/mca/mtl/base/base.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

#include "uzura_match.h"

/** What a message is: its BOTF tag. */
enum uzura_kind {
    UZURA_EAGER = 1, /**< uzura_head_t, data */
    UZURA_SYNC,      /**< uzura_head_t, handle of the sender's request, data; answered by UZURA_DONE */
    UZURA_RTS, /**< uzura_rts_t: long message of contiguous memory; answered by UZURA_CTS or UZURA_DONE */
    UZURA_RTS_PACKED, /**< uzura_rts_t without a key: memory is not contiguous, or nothing is to be PULLed */
    UZURA_CTS,        /**< uzura_cts_t: send the bytes */
    UZURA_FRAG,       /**< handle of the receiver's request, bytes that follow those before */
    UZURA_STAGED,     /**< uzura_staged_t: bytes that follow those before lie in the sender's stage */
    UZURA_DONE,       /**< handle of the sender's request: it may complete */
    UZURA_HOLD,       /**< announce all messages from now on: too much has arrived that nobody receives */
    UZURA_RELEASE,    /**< as before again */
};

/** The envelope. A message of up to 40 bytes travels in one line with it. */
typedef struct uzura_head {
    uint32_t context;
    int32_t source; /**< rank of the sender in the communicator */
    int32_t tag;
    uint32_t pad;
} uzura_head_t;
_Static_assert(16 == sizeof(uzura_head_t), "40 bytes fit beside the envelope");

typedef struct uzura_rts {
    uzura_head_t head;
    uint64_t request; /**< handle at the sender */
    uint64_t len;
    dn_key_t key;   /**< of the sender's memory, UZURA_RTS only */
    dn_key_t stage; /**< of the sender's stage; len 0: none */
} uzura_rts_t;

typedef struct uzura_cts {
    uint64_t request;  /**< handle at the sender */
    uint64_t receiver; /**< handle at the receiver, for UZURA_FRAG */
    uint64_t len;      /**< bytes wanted */
    uint64_t staged;   /**< not 0: by the stage, whose key the sender has given */
} uzura_cts_t;

typedef struct uzura_staged {
    uint64_t receiver; /**< handle at the receiver */
    uint64_t chunk;    /**< number in the stage */
    uint64_t len;
} uzura_staged_t;

struct uzura_request;

/** A process that is reached. */
typedef struct uzura_endpoint {
    dn_peer_t *peer;
    ompi_proc_t *proc;           /**< NULL: it has sent before anybody here named it */
    struct uzura_request *first; /**< sends that wait for room, oldest first */
    struct uzura_request *last;  /**< undefined while first is NULL */
    struct uzura_endpoint *next; /**< in uzura_module_t::endpoints */
    size_t eager_limit;          /**< bytes of data in an eager message to it */
    size_t kept_bytes;           /**< of its messages that nobody has received yet */
    bool hold;                   /**< it wants every message announced */
    bool holding;                /**< we want that of it */
    bool hold_due;               /**< holding has changed and it does not know */
    bool lost;
    void *stage;        /**< its stage, mapped here; NULL: not yet */
    dn_key_t stage_key; /**< of that */
} uzura_endpoint_t;

/** What a request waits for. */
enum uzura_state {
    UZURA_WAITS_ROOM,  /**< send: for room for its first message */
    UZURA_WAITS_REPLY, /**< send: for UZURA_CTS or UZURA_DONE */
    UZURA_SENDS,       /**< send: packed bytes are on their way */
    UZURA_POSTED,      /**< receive: for a match */
    UZURA_MATCHED,     /**< receive: for nothing, its message is here */
    UZURA_STARTS,      /**< receive: for room for the PULL */
    UZURA_PULLS,       /**< receive: for the PULL */
    UZURA_WAITS_BYTES, /**< receive: for UZURA_FRAG */
    UZURA_ANSWERS,     /**< receive: for room for its last answer, then it is complete */
    UZURA_ASKS,        /**< receive: for room for UZURA_CTS */
    UZURA_COMPLETE,
};

/** The part of a request that is ours: pml/cm allocates it behind mca_mtl_request_t. */
typedef struct uzura_request {
    struct mca_mtl_request_t super;
    uzura_recv_t posted; /**< receive: what it takes */
    enum uzura_state state;
    int error;                          /**< MPI_SUCCESS, or what the status will say */
    struct opal_convertor_t *convertor; /**< where memory is not contiguous and has no program */
    uint8_t *buffer;                    /**< the user's memory when contiguous, else NULL */
    size_t len;                         /**< send: bytes; receive: room */
    size_t wanted;                      /**< bytes of this message that the receiver takes */
    size_t done;                        /**< of these, sent or received in pieces */
    uzura_endpoint_t *endpoint;
    struct uzura_request *next; /**< in one queue at most */
    enum uzura_kind kind;       /**< send: of its first message */
    uzura_head_t head;          /**< send: the envelope; receive: that of the message matched */
    uint64_t handle;            /**< of this request, 0: none yet */
    uint64_t remote;            /**< handle of the other side's request */
    dn_segment_t *segment;      /**< send: the registered buffer; NULL: none */
    dn_key_t key;               /**< receive: of the sender's buffer */
    dn_comp_t comp;
    bool by_stage;           /**< bytes go through the stage */
    size_t staged;           /**< send: bytes in a chunk that the receiver does not know of */
    size_t staged_at;        /**< that chunk */
    dn_key_t stage;          /**< receive: of the sender's stage; len 0: none */
    bool walks;              /**< memory is not contiguous and has a program */
    dn_prog_cursor_t cursor; /**< of that program, where done bytes are behind */
} uzura_request_t;

/** An unexpected message. Eager data follows. */
typedef struct uzura_kept {
    uzura_msg_t msg;
    enum uzura_kind kind;
    uzura_endpoint_t *endpoint;
    uint64_t request; /**< handle at the sender; UZURA_EAGER: 0 */
    dn_key_t key;
    dn_key_t stage;
    size_t len; /**< of the whole message */
    uint8_t data[];
} uzura_kept_t;

/** Handles: what crosses to another process instead of an address. */
typedef struct uzura_handles {
    struct uzura_slot {
        uzura_request_t *request;
        uint32_t generation;
        uint32_t next_free;
    } * slot;
    uint32_t count;
    uint32_t first_free;
} uzura_handles_t;

/** The stage of this process: see mtl_uzura_stage.c. */
typedef struct uzura_stage {
    bool tried;
    dn_segment_t *segment;
    dn_key_t key;
    void *chunk; /**< NULL: there is none */
    size_t count;
    size_t next;                     /**< chunk to be filled next */
    const uzura_endpoint_t **reader; /**< by chunk: who was to read it last */
} uzura_stage_t;

/** MCA variables. */
enum {
    MTL_UZURA_PRIORITY,
    MTL_UZURA_EAGER_LIMIT, /**< bytes; longer messages are announced */
    MTL_UZURA_KEPT_LIMIT,  /**< bytes of one sender that wait unreceived until it has to announce */
    MTL_UZURA_SPIN_POLLS,  /**< polls of the source inside a blocking receive */
    MTL_UZURA_YIELD_POLLS, /**< idle polls before the core is given away, when it is shared */
    MTL_UZURA_STAGE_BYTES,
    MTL_UZURA_STAGE_MIN, /**< bytes of a message from which it may go through the stage */
    MTL_UZURA_STAGE_MAX, /**< bytes of a contiguous one up to which it does */
    MTL_UZURA_NUMBERS
};
extern dn_ompi_number_t mtl_uzura_number[MTL_UZURA_NUMBERS];

typedef struct uzura_module {
    mca_mtl_base_module_t super;
    dn_port_t *port; /**< NULL before initialisation and after finalisation */
    bool oversubscribed;
    unsigned idle_polls;
    uint64_t dropped; /**< malformed messages */
    opal_mutex_t lock;
    /* protected by lock */
    uzura_match_t match;
    uzura_handles_t handles;
    uzura_stage_t stage;
    uzura_endpoint_t *endpoints;
    uzura_request_t *busy;  /**< that wait for room, or send in pieces: progress goes through them */
    bool queued;            /**< some endpoint has sends that wait, or a hold to tell */
    opal_mutex_t pump_lock; /**< held by the thread that goes through what waits */
} uzura_module_t;

OMPI_DECLSPEC extern mca_mtl_base_component_2_0_0_t mca_mtl_uzura_component;
extern uzura_module_t mtl_uzura;

static inline void uzura_lock(void)
{
    OPAL_THREAD_LOCK(&mtl_uzura.lock);
}

static inline void uzura_unlock(void)
{
    OPAL_THREAD_UNLOCK(&mtl_uzura.lock);
}

/** @name mtl_uzura_component.c */
/** @{ */
int mtl_uzura_progress(void);
/** Look again whether this process shares its cores. */
void mtl_uzura_look_at_cores(void);
/** @} */

/** @name mtl_uzura_module.c: processes, handles */
/** @{ */
/** The endpoint of a rank, made when it is first used. NULL: it is not reached, a help text has said so. */
uzura_endpoint_t *mtl_uzura_endpoint_make(ompi_proc_t *proc);
/** The endpoint of a peer that has sent. The lock is held. NULL: memory ran out. */
uzura_endpoint_t *mtl_uzura_endpoint_of(dn_peer_t *peer);
/** A process is gone: say so once and end the job. */
void mtl_uzura_lost(uzura_endpoint_t *endpoint);
/** Give a request a handle. @return false: memory ran out. */
bool mtl_uzura_handle_take(uzura_request_t *request);
void mtl_uzura_handle_drop(uzura_request_t *request);
/** The request of a handle that came from @p peer, if it is in that state; else NULL. */
uzura_request_t *mtl_uzura_handle_find(uint64_t handle, const dn_peer_t *peer, enum uzura_state state);

static inline uzura_endpoint_t *mtl_uzura_endpoint(ompi_proc_t *proc)
{
    uzura_endpoint_t *endpoint = proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];

    return OPAL_LIKELY(NULL != endpoint) ? endpoint : mtl_uzura_endpoint_make(proc);
}
/** @} */

/** @name mtl_uzura_direct.c */
/** @{ */
/** Take the common cases over from pml/cm, or give them back. */
void mtl_uzura_direct_open(void);
void mtl_uzura_direct_close(void);
/** @} */

/** @name mtl_uzura_send.c */
/** @{ */
int mtl_uzura_send(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
                   struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode);
int mtl_uzura_isend(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
                    struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, bool blocking,
                    mca_mtl_request_t *mtl_request);
static inline uzura_head_t mtl_uzura_envelope(const struct ompi_communicator_t *comm, int tag)
{
    return (uzura_head_t){.context = (uint32_t) comm->c_contextid, .source = comm->c_my_rank, .tag = tag};
}
/** Messages that a send waits for. */
void mtl_uzura_take_cts(dn_peer_t *src, const uzura_cts_t *cts);
void mtl_uzura_take_done(dn_peer_t *src, uint64_t handle);
/** Send what waits for an endpoint. @return messages sent. */
int mtl_uzura_send_waiting(uzura_endpoint_t *endpoint);
/** Send the next pieces. @return true: the request is complete. */
bool mtl_uzura_send_pieces(uzura_request_t *request, int *events);
/** @} */

/** Pack the next @p len bytes of a request. */
void mtl_uzura_pack(uzura_request_t *request, void *to, size_t len);

/** @name mtl_uzura_stage.c */
/** @{ */
/** The key by which the receiver may map the stage; unchanged when this message is not to use it. */
void mtl_uzura_stage_offer(const uzura_request_t *request, dn_key_t *key);
/** Map the stage of a sender. @return false: it is not to be had. */
bool mtl_uzura_stage_take(uzura_endpoint_t *endpoint, const dn_key_t *key);
/** Send the next chunk. DN_ERR_AGAIN: none is free, or no room to tell. DN_ERR_UNSUPPORTED: send this piece another way,
 * as the stage is full of what others have not read. */
dn_status_t mtl_uzura_stage_send(uzura_request_t *request);
/** Where the bytes of a chunk are. NULL: there is no such chunk. */
const uint8_t *mtl_uzura_stage_find(const uzura_endpoint_t *endpoint, const uzura_staged_t *staged);
/** They have been read. */
void mtl_uzura_stage_clear(uzura_endpoint_t *endpoint, const uzura_staged_t *staged);
void mtl_uzura_stage_close(void);
/** @} */

/** @name mtl_uzura_recv.c */
/** @{ */
int mtl_uzura_irecv(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int source, int tag,
                    struct opal_convertor_t *convertor, struct mca_mtl_request_t *mtl_request);
int mtl_uzura_iprobe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int source, int tag,
                     int *flag, struct ompi_status_public_t *status);
int mtl_uzura_improbe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int source,
                      int tag, int *matched, struct ompi_message_t **message,
                      struct ompi_status_public_t *status);
int mtl_uzura_imrecv(struct mca_mtl_base_module_t *mtl, struct opal_convertor_t *convertor,
                     struct ompi_message_t **message, struct mca_mtl_request_t *mtl_request);
int mtl_uzura_cancel(struct mca_mtl_base_module_t *mtl, mca_mtl_request_t *mtl_request, int flag);
/** Receive into memory that lies together. @param blocking  poll the source for a while. */
int mtl_uzura_start_receive(uzura_request_t *request, const struct ompi_communicator_t *comm, int source,
                            int tag, void *buffer, size_t len, bool blocking);
/** dn_handler_fn_t of DN_CHAN_MTL. */
void mtl_uzura_receive(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg);
/** Try again what a receive waits to say. @return true: it waits no more. */
bool mtl_uzura_recv_again(uzura_request_t *request);
/** Forget what a process has sent, or what came for a context, and nobody has received. */
void mtl_uzura_forget_sender(const uzura_endpoint_t *endpoint);
void mtl_uzura_forget_context(uint32_t context);
/** @} */

/** @name Requests */
/** @{ */
/** Put a request among those that progress goes through. */
void mtl_uzura_busy(uzura_request_t *request);
/** Complete: status fields are set, the memory of the request may go. */
static inline void mtl_uzura_complete(uzura_request_t *request)
{
    request->state = UZURA_COMPLETE;
    request->super.completion_callback(&request->super);
}
/** @} */

#endif
