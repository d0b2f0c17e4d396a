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

/** A time of the profile in ticks. */
static uint64_t dn_ticks(const dn_model_profile_t *profile, const char *key, double ticks_per_ps)
{
    return (uint64_t) ((double) dn_model_profile_value(profile, key) * ticks_per_ps + 0.5);
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
        .window = calloc(windows, sizeof(*nic->window)),
        .windows = windows,
    };
    return NULL != nic->window ? DN_OK : DN_ERR_NOMEM;
}

void dn_emulate_nic_close(dn_emulate_nic_t *nic)
{
    free(nic->window);
    nic->window = NULL;
}

static uint64_t dn_wire_bytes(const dn_emulate_nic_t *nic, uint64_t len)
{
    return dn_max(nic->header_bytes + len, nic->wire_min);
}

/** Put a packet on the link. @return when its first byte has left. */
static uint64_t dn_link(dn_emulate_nic_t *nic, uint64_t ready, uint64_t len)
{
    const uint64_t start = dn_max(ready, nic->link);

    nic->link = start + (uint64_t) ((double) dn_wire_bytes(nic, len) * nic->wire_per_byte + 0.5);
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

/** From the link into memory. */
static uint64_t dn_path(const dn_emulate_nic_t *nic, uint64_t len)
{
    const uint64_t wire = dn_wire_bytes(nic, len);

    if (wire <= nic->wire_min) {
        return nic->path + nic->padding;
    }
    return nic->path
           + (wire > nic->wire_free ? (uint64_t) ((double) (wire - nic->wire_free) * nic->wire_per_byte + 0.5)
                                    : 0);
}

uint64_t dn_emulate_aotf_arrival(const dn_emulate_nic_t *nic, uint64_t last, uint64_t size)
{
    return last + dn_path(nic, size);
}

uint64_t dn_emulate_botf_arrival(dn_emulate_nic_t *nic, uint64_t first, uint64_t last, uint64_t len)
{
    const uint64_t packets = 0 == len ? 1 : (len - 1) / nic->botf_max + 1;
    const uint64_t taken = dn_max(last, dn_max(first, nic->receive) + (packets - 1) * nic->receive_interval);

    nic->receive = 0 == nic->receive_interval ? 0 : taken + nic->receive_interval;
    return taken + dn_path(nic, dn_last_packet(nic, len)) + nic->botf_receive;
}

uint64_t dn_emulate_read(const dn_emulate_nic_t *nic, uint64_t len)
{
    return 0 != nic->host_read_line ? (len + 63) / 64 * nic->host_read_line : (len + 7) / 8 * nic->host_read;
}
