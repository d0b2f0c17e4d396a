/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Contexts that have a name. Where processes cannot agree on a context's number, they agree on a name of two words, and each process
 * has a number of its own for the name. A sender tells each receiver once which name the sender's number stands for. The receiver turns
 * the sender's number in each envelope into its own number:
 *
 *   sender                               receiver
 *   DN_TAG_NAME, its number, name ---->  finds or makes its own number for the name, and notes both numbers for this sender
 *   a message, its number         ---->  is matched by the receiver's number
 *
 * The name leaves ahead of the first message, by the same ring, so the sender waits for no answer. A receiver may be told names that its
 * owner does not know yet: their messages are kept until the owner calls dn_tag_name().
 *
 * A process's own numbers have DN_TAG_NAMED set. A number in an envelope has DN_TAG_ABROAD set, too. So a process never takes a
 * sender's number for its own.
 */
#include "dn_config.h"

#include "dn_tag_int.h"

#include <stdlib.h>

/** Names at most that peers have told and this process's owner does not know. A job has few; a broken sender may tell any number. */
#define DN_TAG_STRANGE_NAMES 4096u

/** A context of this process. */
struct dn_tag_name {
    uint64_t word[2];
    uint32_t context;
    uint32_t owners; /**< dn_tag_name() calls not yet undone; 0: only peers have told the name */
    dn_tag_name_t *next;
};

/** A sender's number for a context of this process. */
struct dn_tag_alias {
    uint32_t theirs;
    uint32_t ours;
    dn_tag_alias_t *next;
};

static dn_tag_name_t *dn_tag_find_name(const dn_tag_t *tag, const uint64_t word[2])
{
    dn_tag_name_t *name = tag->names.first;

    while (NULL != name && (word[0] != name->word[0] || word[1] != name->word[1])) {
        name = name->next;
    }
    return name;
}

static bool dn_tag_context_taken(const dn_tag_t *tag, uint32_t context)
{
    const dn_tag_name_t *name = tag->names.first;

    while (NULL != name && context != name->context) {
        name = name->next;
    }
    return NULL != name;
}

/** The context of a name; it is made where there is none. The lock is held. NULL: memory ran out. */
static dn_tag_name_t *dn_tag_name_of(dn_tag_t *tag, const uint64_t word[2])
{
    dn_tag_name_t *name = dn_tag_find_name(tag, word);

    if (NULL != name) {
        return name;
    }
    name = calloc(1, sizeof(*name));
    if (NULL == name) {
        return NULL;
    }
    name->word[0] = word[0];
    name->word[1] = word[1];
    do {
        name->context = DN_TAG_NAMED | (++tag->names.last & (DN_TAG_ABROAD - 1));
    } while (dn_tag_context_taken(tag, name->context));
    name->next = tag->names.first;
    tag->names.first = name;
    tag->names.strange++;
    return name;
}

dn_status_t dn_tag_name(dn_tag_t *tag, const uint64_t word[2], uint32_t *context_p)
{
    dn_tag_lock(tag);
    dn_tag_name_t *name = dn_tag_name_of(tag, word);
    if (NULL != name) {
        tag->names.strange -= 0 == name->owners++;
        *context_p = name->context;
    }
    dn_tag_unlock(tag);
    return NULL == name ? DN_ERR_NOMEM : DN_OK;
}

/** Free the aliases of a peer. @param[in] ours  Of this context; NULL: of all. The lock is held, or no other thread has the peer. */
static void dn_tag_forget_aliases(dn_tag_peer_t *peer, const uint32_t *ours)
{
    for (dn_tag_alias_t **link = &peer->aliases; NULL != *link;) {
        dn_tag_alias_t *alias = *link;

        if (NULL == ours || *ours == alias->ours) {
            *link = alias->next;
            free(alias);
        } else {
            link = &alias->next;
        }
    }
}

void dn_tag_names_leave(dn_tag_peer_t *peer)
{
    dn_tag_forget_aliases(peer, NULL);
}

void dn_tag_names_close(dn_tag_t *tag)
{
    while (NULL != tag->names.first) {
        dn_tag_name_t *next = tag->names.first->next;

        free(tag->names.first);
        tag->names.first = next;
    }
}

void dn_tag_unname(dn_tag_t *tag, uint32_t context)
{
    dn_tag_name_t **link = &tag->names.first;

    dn_tag_lock(tag);
    while (NULL != *link && context != (*link)->context) {
        link = &(*link)->next;
    }
    dn_tag_name_t *name = *link;
    const bool ends = NULL != name && 0 == --name->owners;
    if (ends) {
        *link = name->next;
        free(name);
        for (dn_tag_peer_t *peer = tag->peers; NULL != peer; peer = peer->next) {
            dn_tag_forget_aliases(peer, &context);
        }
    }
    dn_tag_unlock(tag);
    if (ends) {
        /* From now on no message finds the way to this context. */
        dn_tag_forget(tag, context);
    }
}

/** A send of a name. */
typedef struct dn_tag_introduction {
    dn_tag_req_t req;
    uint64_t word[2];
} dn_tag_introduction_t;

/** dn_tag_fn_t */
static void dn_tag_introduced(dn_tag_req_t *req)
{
    free(req);
}

dn_status_t dn_tag_introduce(dn_tag_peer_t *peer, const uint64_t word[2], uint32_t context)
{
    dn_tag_introduction_t *introduction = calloc(1, sizeof(*introduction));

    if (NULL == introduction) {
        return DN_ERR_NOMEM;
    }
    dn_tag_req_t *req = &introduction->req;
    introduction->word[0] = word[0];
    introduction->word[1] = word[1];
    req->complete = dn_tag_introduced;
    dn_tag_memory(req, introduction->word, sizeof(introduction->word));
    const dn_status_t status = dn_tag_send_name(req, peer, dn_tag_abroad(context));
    if (DN_OK != status) {
        free(introduction);
    }
    return status;
}

/** Note a sender's number for a context of this process. A sender has one number for a name at a time, and one name for a number. The lock
 * is held. @return false: memory ran out. */
static bool dn_tag_note_alias(dn_tag_peer_t *peer, uint32_t theirs, uint32_t ours)
{
    dn_tag_alias_t *alias = peer->aliases;

    while (NULL != alias && theirs != alias->theirs && ours != alias->ours) {
        alias = alias->next;
    }
    if (NULL == alias) {
        alias = calloc(1, sizeof(*alias));
        if (NULL == alias) {
            return false;
        }
        alias->next = peer->aliases;
        peer->aliases = alias;
    }
    alias->theirs = theirs;
    alias->ours = ours;
    return true;
}

bool dn_tag_got_name(dn_tag_t *tag, dn_peer_t *src, const dn_tag_named_t *named)
{
    if (!dn_tag_is_abroad(named->head.context)) {
        return false;
    }
    dn_tag_lock(tag);
    dn_tag_peer_t *peer = dn_tag_peer_of(tag, src);
    const bool good = DN_TAG_STRANGE_NAMES > tag->names.strange || NULL != dn_tag_find_name(tag, named->word);
    const dn_tag_name_t *name = NULL != peer && good ? dn_tag_name_of(tag, named->word) : NULL;
    const bool noted = NULL != name && dn_tag_note_alias(peer, named->head.context, name->context);
    if (NULL != peer) {
        peer->seen++;
    }
    dn_tag_unlock(tag);
    if (good && !noted) {
        tag->config.no_memory(tag->config.arg);
    }
    return good;
}

bool dn_tag_translate(dn_tag_t *tag, const dn_peer_t *src, dn_tag_head_t *head)
{
    if (0 == (head->context & DN_TAG_NAMED)) {
        return true;
    }
    dn_tag_lock(tag);
    const dn_tag_peer_t *peer = dn_peer_user(src, tag->channel);
    const dn_tag_alias_t *alias = NULL == peer ? NULL : peer->aliases;
    while (NULL != alias && head->context != alias->theirs) {
        alias = alias->next;
    }
    if (NULL != alias) {
        head->context = alias->ours;
    }
    dn_tag_unlock(tag);
    return NULL != alias;
}
