/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A NIC's times, as the model has them (dn_model_nic.c): test/unit/dn_emulate_times_are_those_of_the_model.c holds both
 * together.
 */
#include "dn_config.h"

#include "dn_emulate_int.h"

#include <stdlib.h>

static uint64_t dn_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t dn_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/** A time of the profile in ticks. */
static uint64_t dn_ticks(const dn_model_profile_t *profile, const char *key, double ticks_per_ps)
{
    return (uint64_t) ((double) dn_model_profile_value(profile, key) * ticks_per_ps + 0.5);
}

static uint64_t dn_wire_bytes(const dn_emulate_nic_t *nic, uint64_t len)
{
    return dn_max(nic->header_bytes + len, nic->wire_min);
}

static uint64_t dn_wire_time(const dn_emulate_nic_t *nic, uint64_t bytes)
{
    return (uint64_t) ((double) bytes * nic->wire_per_byte + 0.5);
}

/** From the link into memory. */
static uint64_t dn_path(const dn_emulate_nic_t *nic, uint64_t len)
{
    const uint64_t wire = dn_wire_bytes(nic, len);

    if (wire <= nic->wire_min) {
        return nic->path + nic->padding;
    }
    return nic->path + (wire > nic->wire_free ? dn_wire_time(nic, wire - nic->wire_free) : 0);
}

dn_status_t dn_emulate_nic_open(dn_emulate_nic_t *nic, const dn_model_profile_t *p, double f)
{
    const uint64_t windows = dn_model_profile_value(p, "botf_windows");

    *nic = (dn_emulate_nic_t){
        .host_store = dn_ticks(p, "host_store", f),
        .host_to_nic = dn_ticks(p, "host_to_nic", f),
        .host_read = dn_ticks(p, "host_read_8", f),
        .host_read_line = dn_ticks(p, "host_read_line", f),
        .write_from_host =
            dn_ticks(p, "stage_write_from_host", f) + dn_ticks(p, "stage_transaction_queue", f),
        .header_lookup = dn_ticks(p, "stage_header_lookup", f),
        .send_buffer = dn_ticks(p, "stage_size_decision", f) + dn_ticks(p, "stage_send_buffer", f),
        .link_send = dn_ticks(p, "stage_link_send", f),
        .botf_start = dn_ticks(p, "botf_start", f),
        .botf_receive = dn_ticks(p, "botf_receive", f),
        .receive_interval = dn_ticks(p, "receive_interval", f),
        .path = dn_ticks(p, "stage_outside", f) + dn_ticks(p, "stage_crossing", f)
                + dn_ticks(p, "stage_link_receive", f) + dn_ticks(p, "stage_access_check", f)
                + dn_ticks(p, "stage_memory_write", f) + dn_ticks(p, "arrival", f),
        .padding = dn_ticks(p, "stage_padding", f),
        .header_bytes = dn_model_profile_value(p, "header"),
        .wire_min = dn_model_profile_value(p, "packet_min"),
        .wire_free = dn_model_profile_value(p, "packet_in_stages"),
        .botf_max = dn_model_profile_value(p, "botf_payload"),
        .window_check = 0 != dn_model_profile_value(p, "botf_window_check"),
        .copy_per_byte = 1e12 / (double) dn_model_profile_value(p, "host_copy") * f,
        .wire_per_byte = 1e12 / (double) dn_model_profile_value(p, "link_rate") * f,
        .pass = dn_ticks(p, "hardwired_pass", f),
        .arrival = dn_ticks(p, "arrival", f),
        .memory_write = dn_ticks(p, "stage_memory_write", f),
        .dma_read = dn_ticks(p, "dma_read_start", f),
        .dma_write = dn_ticks(p, "dma_write_start", f),
        .dma_gap = dn_ticks(p, "dma_burst_gap", f),
        .page = dn_model_profile_value(p, "page"),
        .dma_burst = dn_model_profile_value(p, "dma_burst"),
        .pull_max = dn_model_profile_value(p, "pull"),
        .push_dma = 0 != dn_model_profile_value(p, "push_in_hardware"),
        .pull_dma = 0 != dn_model_profile_value(p, "pull_in_hardware"),
        .dma_cut = 0 != dn_model_profile_value(p, "dma_cut_through"),
        .lists = 0 != dn_model_profile_value(p, "push_lists"),
        .dma_per_byte = 1e12 / (double) dn_model_profile_value(p, "dma_rate") * f,
        .window = calloc(windows, sizeof(*nic->window)),
        .windows = windows,
    };
    nic->request = (dn_model_profile_value(p, "push_fields") + 1) * nic->host_store;
    nic->ask = 2 * nic->pass + nic->link_send + dn_path(nic, 0) - nic->arrival;
    if (0 == dn_model_profile_value(p, "push_remote_status")) {
        nic->tell = nic->ask + nic->host_read + nic->host_store + nic->host_to_nic + nic->header_lookup
                    + nic->link_send + dn_path(nic, sizeof(uint64_t));
    }
    return NULL != nic->window ? DN_OK : DN_ERR_NOMEM;
}

void dn_emulate_nic_close(dn_emulate_nic_t *nic)
{
    free(nic->window);
    nic->window = NULL;
}

/** Put a packet on the link. @return when its first byte has left. */
static uint64_t dn_link(dn_emulate_nic_t *nic, uint64_t ready, uint64_t len)
{
    const uint64_t start = dn_max(ready, nic->link);

    nic->link = start + dn_wire_time(nic, dn_wire_bytes(nic, len));
    return start + nic->link_send;
}

dn_emulate_trip_t dn_emulate_aotf_trip(dn_emulate_nic_t *nic, uint64_t now, uint64_t size)
{
    const uint64_t host = now + nic->host_store;
    const uint64_t queued = host + nic->host_to_nic + nic->write_from_host;
    const uint64_t ahead = nic->link < nic->header_lookup ? 0 : nic->link - nic->header_lookup;

    nic->pipe = dn_max(dn_max(queued, nic->pipe), ahead) + nic->header_lookup;
    const uint64_t left = dn_link(nic, nic->pipe + nic->send_buffer, size);
    return (dn_emulate_trip_t){host, left, left};
}

/** Fill a window, kick it. @return when its packet's first byte has left; *host_p: from here on, and when the host goes on. */
static uint64_t dn_window(dn_emulate_nic_t *nic, uint64_t *host_p, uint64_t len)
{
    uint64_t *window = &nic->window[nic->kicked % nic->windows];

    *host_p += nic->kicked >= nic->windows && nic->window_check ? nic->host_read : 0;
    *host_p = *window > *host_p ? *window + nic->host_read / 2 : *host_p;
    *host_p += (uint64_t) ((double) len * nic->copy_per_byte + 0.5) + nic->host_store;
    const uint64_t left = dn_link(nic, *host_p + nic->host_to_nic + nic->botf_start, len);
    *window = nic->link;
    nic->kicked++;
    return left;
}

/** Bytes in the packet that goes last. */
static uint64_t dn_last_packet(const dn_emulate_nic_t *nic, uint64_t len)
{
    return len < nic->botf_max ? len : nic->botf_max;
}

dn_emulate_trip_t dn_emulate_botf_trip(dn_emulate_nic_t *nic, uint64_t now, uint64_t len)
{
    const uint64_t last = dn_last_packet(nic, len);
    dn_emulate_trip_t trip = {.host = now};

    for (uint64_t off = last; off < len; off += nic->botf_max) {
        const uint64_t left = dn_window(nic, &trip.host, dn_last_packet(nic, len - off));
        trip.first = last == off ? left : trip.first;
    }
    trip.last = dn_window(nic, &trip.host, last);
    trip.first = last == len ? trip.last : trip.first;
    return trip;
}

uint64_t dn_emulate_aotf_arrival(const dn_emulate_nic_t *nic, uint64_t last, uint64_t size)
{
    return last + dn_path(nic, size);
}

/** So many packets, of which the last one has @p rest bytes. */
static uint64_t dn_window_arrival(dn_emulate_nic_t *nic, uint64_t first, uint64_t last, uint64_t packets,
                                  uint64_t rest)
{
    const uint64_t taken = dn_max(last, dn_max(first, nic->receive) + (packets - 1) * nic->receive_interval);

    nic->receive = 0 == nic->receive_interval ? 0 : taken + nic->receive_interval;
    return taken + dn_path(nic, rest) + nic->botf_receive;
}

static uint64_t dn_window_packets(const dn_emulate_nic_t *nic, uint64_t len)
{
    return 0 == len ? 1 : (len - 1) / nic->botf_max + 1;
}

uint64_t dn_emulate_botf_arrival(dn_emulate_nic_t *nic, uint64_t first, uint64_t last, uint64_t len)
{
    return dn_window_arrival(nic, first, last, dn_window_packets(nic, len), dn_last_packet(nic, len));
}

uint64_t dn_emulate_read(const dn_emulate_nic_t *nic, uint64_t len)
{
    return 0 != nic->host_read_line ? (len + 63) / 64 * nic->host_read_line : (len + 7) / 8 * nic->host_read;
}

/** @name Transfers (dn_model_dma.c, dn_model_op.c) */
/** @{ */
static dn_emulate_way_t dn_part_way(const dn_emulate_nic_t *nic, const dn_core_part_t *part)
{
    const int push = DN_CORE_PART_PUSH == part->kind;
    const int pull = DN_CORE_PART_ASK == part->kind || DN_CORE_PART_DATA == part->kind;
    const int whole = part->first && part->last;

    if (DN_CORE_PART_NONE == part->kind || (part->program && !nic->lists) || (pull && !nic->pull_dma)) {
        return DN_EMULATE_MESSAGE;
    }
    if (push && (!nic->push_dma || (whole && part->len <= nic->botf_max))) {
        return DN_EMULATE_WINDOW;
    }
    return push || DN_CORE_PART_DATA == part->kind ? DN_EMULATE_DMA : DN_EMULATE_WORD;
}

dn_emulate_way_t dn_emulate_way(const dn_emulate_nic_t *nic, unsigned kind, const dn_emulate_head_t *head,
                                const void *message, size_t len, dn_core_part_t *part_p)
{
    *part_p = (dn_core_part_t){.kind = DN_CORE_PART_NONE};
    if (DN_EMULATE_BOTF == kind && DN_CHAN_CORE == head->channel) {
        *part_p = dn_core_part(head->tag, message, len);
    }
    return dn_part_way(nic, part_p);
}

/** The bus is busy with so many bytes, until it may be asked for again. */
static uint64_t dn_dma_time(const dn_emulate_nic_t *nic, uint64_t len)
{
    const uint64_t gaps = 0 == len ? 0 : (len - 1) / nic->dma_burst;
    return (uint64_t) ((double) len * nic->dma_per_byte + 0.5) + gaps * nic->dma_gap;
}

/** A packet whose data the NIC reads; its page is looked up from @p ready on. @return when its first byte has left. */
static uint64_t dn_dma_packet(dn_emulate_nic_t *nic, uint64_t ready, uint64_t len)
{
    const uint64_t took = dn_dma_time(nic, len);
    const uint64_t wire = dn_wire_time(nic, dn_wire_bytes(nic, len));
    nic->step = dn_max(ready, nic->next);
    const uint64_t start = dn_max(nic->step + nic->pass, nic->dma);
    const uint64_t first = start + nic->dma_read;
    /* Cut through, its last byte is there just when that is due on the link. */
    const uint64_t left = dn_link(nic, first + took - (nic->dma_cut ? dn_min(took, wire) : 0), len);

    nic->dma = dn_max(first + took + nic->dma_gap, nic->link - wire);
    nic->next = dn_max(start, nic->dma - dn_min(nic->dma, nic->pass));
    return left;
}

/** Bytes of the packet that follows behind @p done of them: of one page, and of as much of a PULL as one may ask for at once. */
static uint64_t dn_dma_bytes(const dn_emulate_nic_t *nic, const dn_core_part_t *part, uint64_t done)
{
    const uint64_t at = part->off + done;
    const uint64_t len = dn_min(part->len - done, nic->page - at % nic->page);

    return DN_CORE_PART_DATA == part->kind ? dn_min(len, nic->pull_max - at % nic->pull_max) : len;
}

/** From one packet that the receiver's NIC writes to the next. */
static uint64_t dn_dma_interval(const dn_emulate_nic_t *nic, uint64_t len)
{
    return dn_max(nic->receive_interval,
                  nic->memory_write + nic->dma_write + dn_dma_time(nic, len) + nic->dma_gap);
}

/** The last packet has left when the receiver can take it: it has those ahead of it to write first. */
static dn_emulate_trip_t dn_dma_trip(dn_emulate_nic_t *nic, uint64_t ready, const dn_core_part_t *part)
{
    dn_emulate_trip_t trip = {.host = 0};
    uint64_t done = 0, taken = 0;

    do {
        const uint64_t at = part->off + done;
        const uint64_t len = dn_dma_bytes(nic, part, done);
        if (0 != at && DN_CORE_PART_DATA == part->kind && 0 == at % nic->pull_max) {
            /* It is asked for when the page before is in hand. */
            nic->next = dn_max(nic->next, nic->step + nic->ask);
        }
        const uint64_t left = dn_dma_packet(nic, ready, len);
        trip.first = 0 == done ? left : trip.first;
        trip.last = dn_max(left, taken);
        taken = trip.last + dn_dma_interval(nic, len);
        done += len;
    } while (done < part->len);
    return trip;
}

static uint64_t dn_dma_arrival(dn_emulate_nic_t *nic, uint64_t first, uint64_t last,
                               const dn_core_part_t *part)
{
    uint64_t taken = dn_max(first, nic->receive);
    uint64_t len = dn_dma_bytes(nic, part, 0);

    for (uint64_t done = len; done < part->len; done += len) {
        taken += dn_dma_interval(nic, len);
        len = dn_dma_bytes(nic, part, done);
    }
    taken = dn_max(taken, last);
    nic->receive = taken + dn_dma_interval(nic, len);
    return taken + dn_path(nic, len) + nic->pass + nic->dma_write
           - (DN_CORE_PART_PUSH == part->kind ? nic->arrival : 0);
}

/** A PUSH in windows, which go in the order of their data. */
static dn_emulate_trip_t dn_window_trip(dn_emulate_nic_t *nic, uint64_t now, uint64_t len)
{
    dn_emulate_trip_t trip = {.host = now};
    uint64_t done = 0;

    do {
        trip.last = dn_window(nic, &trip.host, dn_min(len - done, nic->botf_max));
        trip.first = 0 == done ? trip.last : trip.first;
        done += nic->botf_max;
    } while (done < len);
    return trip;
}

dn_emulate_trip_t dn_emulate_part_trip(dn_emulate_nic_t *nic, uint64_t began, uint64_t served,
                                       const dn_core_part_t *part)
{
    const int answers = DN_CORE_PART_DONE == part->kind || DN_CORE_PART_DATA == part->kind;
    const dn_emulate_way_t way = dn_part_way(nic, part);
    const uint64_t from = answers ? served : began;
    uint64_t ready = from;
    dn_emulate_trip_t trip;

    if (DN_EMULATE_WINDOW == way) {
        return dn_window_trip(nic, from, part->len);
    }
    if (part->first || (DN_CORE_PART_DATA == part->kind && 0 == part->off)) {
        nic->next = 0;
    }
    if (part->first) {
        ready += nic->request + nic->host_to_nic;
    }
    if (DN_EMULATE_DMA == way) {
        trip = dn_dma_trip(nic, ready, part);
    } else {
        trip.first = trip.last = dn_link(nic, ready + nic->pass, 0);
    }
    trip.host = from + (part->first ? (nic->lists ? 1 : part->blocks) * nic->request : 0);
    return trip;
}

uint64_t dn_emulate_part_arrival(dn_emulate_nic_t *nic, uint64_t first, uint64_t last,
                                 const dn_core_part_t *part)
{
    const dn_emulate_way_t way = dn_part_way(nic, part);
    uint64_t there;

    if (DN_EMULATE_WORD == way) {
        return last + dn_path(nic, 0) + nic->pass - (DN_CORE_PART_ASK == part->kind ? nic->arrival : 0);
    }
    if (DN_EMULATE_WINDOW == way) {
        const uint64_t packets = dn_window_packets(nic, part->len);
        there = dn_window_arrival(nic, first, last, packets, part->len - (packets - 1) * nic->botf_max);
    } else {
        there = dn_dma_arrival(nic, first, last, part);
    }
    return there + (part->status ? nic->tell : 0);
}
/** @} */
