/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura.h
 * Open MPI's matching transport layer on libdimmnet: two-sided messages under pml/cm.
 *
 * A short message is one BOTF message, matched where it arrives (tag/dn_match.h). A long one is announced by
 * its envelope; the receiver, once it has matched, PULLs the data and says that it is done, or asks for
 * the packed bytes in pieces when memory on either side is not contiguous, or pieces are faster (DIMM_Send/DIMM_Recv
 * paper, protocol B: the sender comes first). Where the receiver comes first, the sender may PUSH at once: see
 * mtl_uzura_announce.c. What finds no room in the peer's ring waits, in order, and is retried by
 * the progress function.
 *
 * Threads: the module's lock protects matching, handles and queues, and is never held while libdimmnet is called:
 * its progress calls the handler here with the port's lock held. Handlers run one at a time. A
 * request that has been matched belongs to the thread that matched it, then to the handlers.
 */
#ifndef MTL_UZURA_H
#define MTL_UZURA_H

#include <stdatomic.h>
#include <time.h>

#include "dn_ompi.h"
#include "dn_ompi_prog.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/mtl/mtl.h"
#include "ompi/mca/mtl/base/base.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

#include "tag/dn_match.h"
#include "tag/dn_pace.h"

/** What a message is: its BOTF tag. */
enum uzura_kind {
    UZURA_EAGER = 1, /**< uzura_head_t, data */
    UZURA_SYNC,      /**< uzura_head_t, handle of the sender's request, data; answered by UZURA_DONE */
    UZURA_RTS, /**< uzura_rts_t: long message of contiguous memory; answered by UZURA_CTS or UZURA_DONE */
    UZURA_RTS_PACKED, /**< uzura_rts_t without a key: memory is not contiguous, or nothing is to be PULLed */
    UZURA_CTS,        /**< uzura_cts_t: send the bytes */
    UZURA_FRAG,       /**< uzura_frag_t, bytes that follow those before */
    UZURA_DONE,       /**< handle of the sender's request: it may complete */
    UZURA_ANNOUNCE,   /**< uzura_announce_t: a receive waits for a long message */
    UZURA_TAKES,      /**< uzura_takes_t: such a receive is matched, its message is being PUSHed */
    UZURA_PUSHED,     /**< uzura_pushed_t: that has ended */
    UZURA_HOLD,       /**< announce all messages from now on: too much has arrived that nobody receives */
    UZURA_RELEASE,    /**< as before again */
};

/** The envelope. A message of up to 40 bytes travels in one line with it. */
typedef struct uzura_head {
    uint32_t context;
    int32_t source; /**< rank of the sender in the communicator */
    uint64_t tag;   /**< mtl_uzura_tag() */
} uzura_head_t;
_Static_assert(16 == sizeof(uzura_head_t), "40 bytes fit beside the envelope");

/** @name A tag of MPI as matching has it, and back; that of a receive may be MPI_ANY_TAG */
/** @{ */
static inline uint64_t mtl_uzura_tag(int tag)
{
    return (uint64_t) (uint32_t) tag;
}

static inline uint64_t mtl_uzura_wanted_tag(int tag)
{
    return MPI_ANY_TAG == tag ? 0 : mtl_uzura_tag(tag);
}

static inline uint64_t mtl_uzura_ignore(int tag)
{
    return MPI_ANY_TAG == tag ? DN_MATCH_ANY_TAG_IGNORE : 0;
}

static inline int mtl_uzura_mpi_tag(uint64_t tag)
{
    return (int) (uint32_t) tag;
}

/** Can a message have this tag? MPI_ANY_TAG, -1, is the greatest of 32 bits. */
static inline bool mtl_uzura_is_tag(uint64_t tag)
{
    return mtl_uzura_tag(MPI_ANY_TAG) > tag;
}
/** @} */

typedef struct uzura_rts {
    uzura_head_t head;
    uint64_t request; /**< handle at the sender */
    uint64_t len;
    dn_key_t key; /**< of the sender's memory, UZURA_RTS only */
} uzura_rts_t;

typedef struct uzura_cts {
    uint64_t request;  /**< handle at the sender */
    uint64_t receiver; /**< handle at the receiver, for UZURA_FRAG */
    uint64_t len;      /**< bytes wanted */
} uzura_cts_t;

/** A line: the bytes behind it begin where a line does, as copy kernels like it. */
typedef struct uzura_frag {
    uint64_t receiver; /**< handle at the receiver */
    uint8_t pad[56];
} uzura_frag_t;

typedef struct uzura_announce {
    uint32_t context;
    int32_t tag;
    uint64_t seen;   /**< messages from the process that this goes to */
    uint64_t number; /**< that stands at the claim until it is taken */
    uint32_t claim;  /**< index in claims */
    uint32_t pad;
    uint64_t request; /**< handle at the receiver */
    uint64_t len;     /**< room */
    dn_key_t key;     /**< of that */
    dn_key_t claims;
} uzura_announce_t;

typedef struct uzura_takes {
    uint64_t receiver; /**< handle at the receiver */
    uint64_t request;  /**< handle at the sender */
    uint64_t len;
} uzura_takes_t;

typedef struct uzura_pushed {
    uint64_t receiver; /**< handle at the receiver */
    uint64_t done;     /**< 0: the bytes are to be asked for */
} uzura_pushed_t;

struct uzura_request;

/** A process that is reached. */
typedef struct uzura_endpoint {
    dn_peer_t *peer;
    ompi_proc_t *proc;           /**< NULL: it has sent before anybody here named it */
    struct uzura_request *first; /**< sends that wait for room, oldest first */
    struct uzura_request *last;  /**< undefined while first is NULL */
    struct uzura_endpoint *next; /**< in uzura_module_t::endpoints */
    size_t eager_limit;          /**< bytes of data in an eager message to it */
    size_t piece_max;            /**< bytes of data in a UZURA_FRAG to it */
    dn_pace_t pace;              /**< of long messages from it */
    size_t kept_bytes;           /**< of its messages that nobody has received yet */
    bool hold;                   /**< it wants every message announced */
    bool holding;                /**< we want that of it */
    bool hold_due;               /**< holding has changed and it does not know */
    bool lost;
    bool offered;                    /**< what it announced still waits: offer */
    uint64_t sent;                   /**< messages put into its ring that are matched there */
    uint64_t seen;                   /**< such messages from it; both began at dn_first() */
    struct uzura_request *announced; /**< to it, one at a time; NULL: none */
    uzura_announce_t offer;
    uint64_t *offer_claim; /**< its claim, mapped */
    uint64_t left; /**< requests that were first, ever: another thread may have taken one out of the line */
} uzura_endpoint_t;

/** What a request waits for. */
enum uzura_state {
    UZURA_WAITS_ROOM,  /**< send: for room for its first message */
    UZURA_WAITS_REPLY, /**< send: for UZURA_CTS or UZURA_DONE */
    UZURA_SENDS,       /**< send: packed bytes are on their way */
    UZURA_PUSH_STARTS, /**< send: for room for the PUSH */
    UZURA_PUSHES,      /**< send: for the PUSH */
    UZURA_TELLS,       /**< send: for room for UZURA_PUSHED */
    UZURA_POSTED,      /**< receive: for a match */
    UZURA_MATCHED,     /**< receive: for nothing, its message is here */
    UZURA_IS_PUSHED,   /**< receive: for UZURA_PUSHED */
    UZURA_STARTS,      /**< receive: for room for the PULL */
    UZURA_PULLS,       /**< receive: for the PULL */
    UZURA_WAITS_BYTES, /**< receive: for UZURA_FRAG */
    UZURA_ANSWERS,     /**< receive: for room for its last answer, then it is complete */
    UZURA_ASKS,        /**< receive: for room for UZURA_CTS */
    UZURA_COMPLETE,
};

/** The part of a request that is ours: pml/cm allocates it behind mca_mtl_request_t. */
typedef struct uzura_request {
    /* What a short message touches stands first: a window of 64 receives is to stay in the first-level cache. */
    struct mca_mtl_request_t super;
    uint8_t *buffer;        /**< the user's memory when contiguous, else NULL */
    size_t len;             /**< send: bytes; receive: room */
    dn_match_recv_t posted; /**< receive: what it takes */
    enum uzura_state state;
    int error;       /**< MPI_SUCCESS, or what the status will say */
    uint64_t handle; /**< of this request, 0: none yet */
    size_t wanted;   /**< bytes of this message that the receiver takes */
    size_t done;     /**< of these, sent or received in pieces */
    bool walks;      /**< memory is not contiguous and has a program */

    enum uzura_kind kind;               /**< send: of its first message */
    struct opal_convertor_t *convertor; /**< where memory is not contiguous and has no program */
    uzura_endpoint_t *endpoint;
    struct uzura_request *next; /**< in one queue at most */
    uzura_head_t head;          /**< send: the envelope */
    uint64_t remote;            /**< handle of the other side's request */
    dn_segment_t *segment; /**< the registered buffer; send: NULL, none; receive: of one that was announced */
    dn_key_t key;          /**< of the other side's buffer */
    dn_comp_t comp;
    uint64_t *claim;         /**< receive: of its announcement */
    uint64_t claimed;        /**< that claim's number */
    enum dn_pace_way way;    /**< receive: how a long contiguous message comes */
    uint64_t started;        /**< receive: when that began, in ns */
    dn_prog_cursor_t cursor; /**< of the program, where done bytes are behind */
} uzura_request_t;

/** An unexpected message. Eager data follows. */
typedef struct uzura_kept {
    dn_match_msg_t msg;
    enum uzura_kind kind;
    uzura_endpoint_t *endpoint;
    uint64_t request; /**< handle at the sender; UZURA_EAGER: 0 */
    dn_key_t key;
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

/** Words by which sides agree who has an announced buffer: see mtl_uzura_announce.c. */
typedef struct uzura_claims {
    bool tried;
    dn_segment_t *segment;
    uint64_t *word; /**< NULL: there are none */
    uint32_t next;
    uint64_t
        number; /**< of the last one; a sender may keep an announcement for any time, so it never wraps */
} uzura_claims_t;

/** MCA variables. */
enum {
    MTL_UZURA_PRIORITY,
    MTL_UZURA_EAGER_LIMIT,  /**< bytes; longer messages are announced */
    MTL_UZURA_KEPT_LIMIT,   /**< bytes of one sender that wait unreceived until it has to announce */
    MTL_UZURA_SPIN_POLLS,   /**< polls of the source inside a blocking receive */
    MTL_UZURA_YIELD_POLLS,  /**< idle polls before the core is given away, when it is shared */
    MTL_UZURA_ANNOUNCE_MIN, /**< bytes above which a receive is announced; 0: none is */
    MTL_UZURA_STREAM,       /**< whether long contiguous messages come in pieces: enum dn_pace_stream */
    MTL_UZURA_NUMBERS
};
extern dn_ompi_number_t mtl_uzura_number[MTL_UZURA_NUMBERS];

typedef struct uzura_module {
    mca_mtl_base_module_t super;
    dn_port_t *port; /**< NULL before initialisation and after finalisation */
    bool oversubscribed;
    bool threads; /**< several may be in here at once */
    atomic_uint idle_polls;
    uint64_t dropped; /**< malformed messages */
    opal_mutex_t lock;
    /* protected by lock */
    dn_match_t match;
    uzura_handles_t handles;
    uzura_claims_t claims;
    uzura_endpoint_t *endpoints;
    uzura_request_t
        *busy; /**< that wait for room, or send in pieces: progress goes through them, oldest first */
    uzura_request_t *busy_last; /**< undefined while busy is NULL */
    bool parted;                /**< some process was left: counts of messages may have begun anew */
    bool queued;                /**< some endpoint has sends that wait, or a hold to tell */
    opal_mutex_t pump_lock;     /**< held by the thread that goes through what waits */
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

/** Put a request behind those of a queue. last is undefined while first is NULL. */
static inline void uzura_put_last(uzura_request_t **first, uzura_request_t **last, uzura_request_t *request)
{
    request->next = NULL;
    *(NULL == *first ? first : &(*last)->next) = request;
    *last = request;
}

/** Walk memory that does not lie together by the program of its datatype, if that has one. */
static inline void uzura_find_program(uzura_request_t *request)
{
    request->walks = NULL == request->buffer && 0 != request->len
                     && dn_ompi_prog_walk(&request->cursor, request->convertor);
}

/** @name mtl_uzura_component.c */
/** @{ */
int mtl_uzura_progress(void);
/** Look again whether this process shares its cores. */
void mtl_uzura_look_at_cores(void);
/** @} */

/** Nanoseconds of a clock that never goes back. Long messages only: a look takes 20 to 30. */
static inline uint64_t mtl_uzura_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

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

/** @name mtl_uzura_buffered.c */
/** @{ */
/**
 * MPI_Bsend of a message that could not leave at once: copy it, and send the copy.
 * @retval MPI_ERR_BUFFER            it is longer than an eager message, and the user's buffer has no room for it; or memory for
 *                                   the copy ran out.
 * @retval OMPI_ERR_UNREACH          the receiver is lost.
 * @retval OMPI_ERR_OUT_OF_RESOURCE  memory ran out.
 */
int mtl_uzura_send_buffered(const void *buf, size_t count, struct ompi_datatype_t *type, int dst, int tag,
                            struct ompi_communicator_t *comm);
/** MPI_Bsend_init. Each start sends what the memory holds then, by the send that pml/cm's table has. */
int mtl_uzura_init_buffered(const void *buf, size_t count, struct ompi_datatype_t *type, int dst, int tag,
                            struct ompi_communicator_t *comm, struct ompi_request_t **request);
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
    return (uzura_head_t){
        .context = (uint32_t) comm->c_contextid, .source = comm->c_my_rank, .tag = mtl_uzura_tag(tag)};
}
/** Send memory that lies together: the request has no ompi_request_t, or one that its callback completes. */
int mtl_uzura_start_send(uzura_request_t *request, struct ompi_communicator_t *comm, int dest, int tag,
                         void *buffer, size_t len, bool synchronous);
/** A message that is matched at the receiver was put into its ring. */
static inline void mtl_uzura_sent(uzura_endpoint_t *endpoint, const uzura_head_t *head)
{
    endpoint->sent++;
    if (OPAL_UNLIKELY(endpoint->offered) && endpoint->offer.context == head->context
        && mtl_uzura_tag(endpoint->offer.tag) == head->tag) {
        endpoint->offered = false;
    }
}
/** A send is complete. */
void mtl_uzura_send_finish(uzura_request_t *request);
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

/** @name mtl_uzura_announce.c */
/** @{ */
/** Announce a long receive from @p endpoint that was just posted, if it is worth it and allowed. */
void mtl_uzura_announce(uzura_request_t *request, uzura_endpoint_t *endpoint);
/** An announced receive is matched otherwise. */
void mtl_uzura_announce_end(uzura_request_t *request);
/** Take an announcement back. @return false: its message is on its way. */
bool mtl_uzura_announce_cancel(uzura_request_t *request);
/** PUSH a message if its receive has been announced. @return false: send it another way. */
bool mtl_uzura_push(uzura_request_t *request);
/** Try again. @return true: it waits no more. */
bool mtl_uzura_push_again(uzura_request_t *request);
/** Messages. */
void mtl_uzura_take_announce(dn_peer_t *src, const uzura_announce_t *announce);
void mtl_uzura_claims_close(void);
/** @} */

/** Polls of one source between two looks at the others, inside a blocking receive. */
#define UZURA_POLLS_OF_SOURCE 64u

/** The status that a call returns for one message: MPI_ERROR stays as the caller left it, as MPI has it. */
static inline void mtl_uzura_set_status(struct ompi_status_public_t *status, int source, int tag, size_t len)
{
    status->MPI_SOURCE = source;
    status->MPI_TAG = tag;
    status->_ucount = len;
    status->_cancelled = 0;
}

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
