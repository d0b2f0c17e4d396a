/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_model_param.h
 * The keys of a profile: DN_PARAM(id, key, unit, must, default, min, max, meaning), expanded with it defined.
 *
 * unit: TIME (picoseconds), CLOCK (kHz), SIZE (bytes), RATE (bytes a second), COUNT, FLAG (0 or 1). A profile
 * writes the key with a suffix that tells its unit: host_store_ns, stage_link_send_swif_cycles. must 1: every
 * profile has it. min and max are in the unit given here.
 */
/* Clocks, that times in cycles refer to. */
DN_PARAM(DIMM_CLOCK, "dimm_clock", CLOCK, 0, 0, 1000, 10000000, "clock of the memory slot's side of the NIC")
DN_PARAM(SWIF_CLOCK, "swif_clock", CLOCK, 0, 0, 1000, 10000000, "clock of the NIC's switch interface")
DN_PARAM(CORE_CLOCK, "core_clock", CLOCK, 0, 0, 1000, 10000000, "clock of the NIC's hardwired core")
DN_PARAM(BUS_CLOCK, "bus_clock", CLOCK, 0, 0, 1000, 10000000, "clock of the host's bus")
/* The host's side. */
DN_PARAM(HOST_STORE, "host_store", TIME, 1, 0, 0, 100000000,
         "CPU time of one uncached store of up to 8 bytes")
DN_PARAM(HOST_TO_NIC, "host_to_nic", TIME, 1, 0, 0, 100000000,
         "from the end of the store until the NIC sees it")
DN_PARAM(START_POLLED, "start_polled", TIME, 0, 0, 0, 100000000,
         "in place of host_to_nic, where the NIC polls host memory for what is to be done")
DN_PARAM(START_BY_POLLING, "start_by_polling", FLAG, 0, 0, 0, 1,
         "1: the NIC learns by such polling what is to be done, 0: by the host's store")
DN_PARAM(ARRIVAL, "arrival", TIME, 0, 0, 0, 100000000,
         "from what came being in memory until a host can know that polls memory")
DN_PARAM(ARRIVAL_REGISTER, "arrival_register", TIME, 0, 0, 0, 100000000,
         "the same of a host that polls a register of the NIC")
DN_PARAM(ARRIVAL_INTERRUPT, "arrival_interrupt", TIME, 0, 0, 0, 100000000,
         "the same of a host that is interrupted")
DN_PARAM(ARRIVAL_BY, "arrival_by", COUNT, 0, 0, 0, 2,
         "how the host learns of what came: 0 memory, 1 register, 2 interrupt")
DN_PARAM(HOST_READ_4, "host_read_4", TIME, 1, 0, 0, 100000000,
         "CPU time to read up to 4 bytes where it polls")
DN_PARAM(HOST_READ_8, "host_read_8", TIME, 1, 0, 0, 100000000, "the same of 8 bytes")
DN_PARAM(HOST_READ_8_PLAIN, "host_read_8_plain", TIME, 0, 0, 0, 100000000,
         "the same of 8 bytes without MMX; 0: as host_read_8")
DN_PARAM(HOST_READ_LINE, "host_read_line", TIME, 0, 0, 0, 100000000,
         "to read 64 bytes of host memory; 0: messages lie in LLCM and are read 8 bytes at a time")
DN_PARAM(HOST_COPY, "host_copy", RATE, 1, 0, 1000000, UINT64_C(1000000000000), "writing into a window")
DN_PARAM(PROGRAM_TIMER, "program_timer", TIME, 0, 0, 0, 100000000, "to read the CPU's cycle counter")
DN_PARAM(PROGRAM_BARRIER, "program_barrier", TIME, 0, 0, 0, 100000000,
         "masking and comparing in a barrier of two nodes, in all")
DN_PARAM(PROGRAM_BARRIER_MMX, "program_barrier_mmx", TIME, 0, 0, 0, 100000000, "the same with MMX")
DN_PARAM(PROGRAM_SUM, "program_sum", TIME, 0, 0, 0, 100000000, "adding in a global sum of two nodes, in all")
DN_PARAM(PROGRAM_SERVICE, "program_service", TIME, 0, 0, 0, 100000000,
         "CPU time of the network software for one message, sender and receiver in all")
/* One store to one packet (AOTF): the stages in their order. */
DN_PARAM(WRITE_FROM_HOST, "stage_write_from_host", TIME, 1, 0, 0, 100000000,
         "the NIC takes address and data in")
DN_PARAM(TRANSACTION_QUEUE, "stage_transaction_queue", TIME, 0, 0, 0, 100000000,
         "through the empty transaction FIFO")
DN_PARAM(HEADER_LOOKUP, "stage_header_lookup", TIME, 0, 0, 0, 100000000,
         "HTLB, page map, or what gives the header")
DN_PARAM(SIZE_DECISION, "stage_size_decision", TIME, 0, 0, 0, 100000000, "transfer size decided")
DN_PARAM(SEND_BUFFER, "stage_send_buffer", TIME, 0, 0, 0, 100000000, "send buffer handshake")
DN_PARAM(LINK_SEND, "stage_link_send", TIME, 1, 0, 0, 100000000, "switch interface, MAC or PHY, sending")
DN_PARAM(PADDING, "stage_padding", TIME, 0, 0, 0, 100000000,
         "delay of a packet that is padded, up to packet_min")
DN_PARAM(OUTSIDE, "stage_outside", TIME, 0, 0, 0, 100000000,
         "serialising, optics, cable between two switch interfaces")
DN_PARAM(CROSSING, "stage_crossing", TIME, 0, 0, 0, 100000000,
         "from one board's clock to the other's; none when looped back")
DN_PARAM(LINK_RECEIVE, "stage_link_receive", TIME, 1, 0, 0, 100000000,
         "switch interface, MAC or PHY, receiving")
DN_PARAM(ACCESS_CHECK, "stage_access_check", TIME, 0, 0, 0, 100000000,
         "receiver's table of what may be written")
DN_PARAM(MEMORY_WRITE, "stage_memory_write", TIME, 1, 0, 0, 100000000, "into the memory that the host polls")
/* The transaction FIFO and the header table. */
DN_PARAM(AOTF_MAX, "aotf_payload", SIZE, 0, 8, 1, 8, "most bytes of one store")
DN_PARAM(FIFO, "transaction_fifo", COUNT, 0, 2048, 1, 1000000, "stores that the FIFO holds")
DN_PARAM(CREDITS, "aotf_credits", COUNT, 0, 2048, 1, 1000000,
         "stores of a user before it has to look at the FIFO")
DN_PARAM(HTLB_ENTRIES, "htlb_entries", COUNT, 0, 0, 0, 65536, "headers on the chip; 0: all are")
DN_PARAM(HTLB_WAYS, "htlb_ways", COUNT, 0, 4, 1, 64, "ways of the HTLB")
DN_PARAM(HTLB_MISS, "htlb_miss", TIME, 0, 0, 0, UINT64_C(10000000000), "core processor fetches a header")
/* Windows (BOTF). */
DN_PARAM(BOTF_MAX, "botf_payload", SIZE, 1, 0, 8, 65536,
         "most bytes in one packet built in a window, without header")
DN_PARAM(WINDOWS, "botf_windows", COUNT, 0, 2, 1, 4096, "windows used in turn")
DN_PARAM(WINDOW_CHECK, "botf_window_check", FLAG, 0, 0, 0, 1,
         "1: a window's state is read before it is written again")
DN_PARAM(BOTF_START, "botf_start", TIME, 0, 0, 0, 100000000,
         "from the kick at the NIC until the packet is in the send buffer")
DN_PARAM(BOTF_RECEIVE, "botf_receive", TIME, 0, 0, 0, 100000000,
         "translation at the receiver, beyond AOTF's path")
DN_PARAM(RECEIVE_INTERVAL, "receive_interval", TIME, 0, 0, 0, 100000000,
         "least time between packets that need translation")
/* Packets and links. */
DN_PARAM(HEADER_BYTES, "header", SIZE, 1, 0, 0, 65536, "header, trailer and gap of a packet on the wire")
DN_PARAM(WIRE_MIN, "packet_min", SIZE, 0, 0, 0, 65536, "shorter packets are padded to this")
DN_PARAM(WIRE_FREE, "packet_in_stages", SIZE, 0, 0, 0, 65536,
         "wire bytes whose time the stages hold already, for longer packets")
DN_PARAM(LINK_RATE, "link_rate", RATE, 1, 0, 1000000, UINT64_C(1000000000000), "link, one direction")
DN_PARAM(LINK_LOSS, "link_loss", COUNT, 0, 0, 0, 900000,
         "packets of a million that are lost on their way; then resend_after has to be given")
DN_PARAM(RESEND_AFTER, "resend_after", TIME, 0, 0, 0, UINT64_C(1000000000000),
         "packets are acknowledged, and sent again so long after they left; 0: they are not")
DN_PARAM(LINK_PER_M, "link_per_metre", TIME, 0, 5000, 0, 100000, "propagation")
/* Remote DMA (PUSH, PULL). */
DN_PARAM(WINDOW_FIELDS, "push_fields", COUNT, 0, 8, 0, 64, "stores that describe a request, without the kick")
DN_PARAM(PASS, "hardwired_pass", TIME, 0, 0, 0, 100000000,
         "one pass of the send or receive part: queue, tables, header")
DN_PARAM(DMA_READ, "dma_read_start", TIME, 0, 0, 0, 100000000,
         "from the request until the first bytes are on the NIC")
DN_PARAM(DMA_WRITE, "dma_write_start", TIME, 0, 0, 0, 100000000,
         "from the request until the first bytes are in memory")
DN_PARAM(DMA_RATE, "dma_rate", RATE, 0, UINT64_C(1000000000000), 1000000, UINT64_C(1000000000000),
         "bus during a burst")
DN_PARAM(DMA_BURST, "dma_burst", SIZE, 0, 65536, 8, 1048576, "bytes after which the bus is asked for again")
DN_PARAM(DMA_BURST_GAP, "dma_burst_gap", TIME, 0, 0, 0, 100000000, "that asking")
DN_PARAM(DMA_CUT, "dma_cut_through", FLAG, 0, 1, 0, 1, "1: a packet leaves while its data still come")
DN_PARAM(PAGE, "page", SIZE, 0, 4096, 64, 1048576, "bytes translated at once, most in a DMA packet")
DN_PARAM(PUSH_DMA, "push_in_hardware", FLAG, 0, 1, 0, 1, "0: dn_push() is done with windows")
DN_PARAM(PULL_DMA, "pull_in_hardware", FLAG, 0, 1, 0, 1, "0: the core processors do it by messages")
DN_PARAM(PULL_MAX, "pull", SIZE, 0, 65535, 64, UINT64_C(1) << 32,
         "most bytes of one PULL; longer ones are split")
DN_PARAM(PUSH_REMOTE, "push_remote_status", FLAG, 0, 0, 0, 1,
         "1: the receiver's status word is written by hardware; 0: by an AOTF after the acknowledgement")
DN_PARAM(PUSH_SG, "push_lists", FLAG, 0, 0, 0, 1,
         "1: the NIC takes lists of blocks; 0: a request for each block")
DN_PARAM(TLB_ENTRIES, "tlb_entries", COUNT, 0, 0, 0, 65536, "of PATLB and RVATLB each; 0: all fit")
DN_PARAM(TLB_MISS, "tlb_miss", TIME, 0, 0, 0, UINT64_C(10000000000),
         "refill from the table in the NIC's DRAM or the host")
DN_PARAM(CORE_TIME, "core_processor", TIME, 0, 0, 0, UINT64_C(10000000000),
         "an interrupt's program on the core processor")
DN_PARAM(BANK_SWITCH, "bank_switch", TIME, 0, 0, 0, UINT64_C(10000000000), "exchanging the SO-DIMMs")
DN_PARAM(LLCM_SIZE, "llcm", SIZE, 0, UINT64_C(1) << 32, 4096, UINT64_C(1) << 40,
         "polled memory of a node, rings of messages in it")
/* IP-NUMA's tables. */
DN_PARAM(PAGE_REGION, "page_region", SIZE, 0, 0, 0, UINT64_C(1) << 40,
         "others' memory that the page map reaches, an entry a page; 0: there is no page map")
DN_PARAM(PC_IDS, "pc_id", COUNT, 0, 65536, 1, 65536,
         "computers that the page map's entries can name: 16 bits")
DN_PARAM(SHARED_REGIONS, "shared_region", COUNT, 0, 0, 0, 1000000,
         "entries of the table of what others may write; 0: enough")
DN_PARAM(REFUSAL_TOLD, "refusal_told", FLAG, 0, 0, 0, 1,
         "1: who wrote by store or window what it may not is sent an error code")
DN_PARAM(REFUSED_READ_ZERO, "refused_read_zero", FLAG, 0, 0, 0, 1,
         "1: a refused read returns zeros; 0: nothing")
/* Switches. */
DN_PARAM(SWITCH_PASS, "switch_pass", TIME, 0, 0, 0, UINT64_C(100000000), "through an idle switch")
DN_PARAM(SWITCH_INTERVAL, "switch_interval", TIME, 0, 0, 0, UINT64_C(100000000),
         "least time between packets out of one port")
DN_PARAM(SWITCH_STORES, "switch_stores", FLAG, 0, 0, 0, 1, "1: the whole packet is in before it goes on")
DN_PARAM(SWITCH_PORTS, "switch_ports", COUNT, 0, 8, 2, 1024, "ports of a switch")
DN_PARAM(SWITCH_RATE, "switch_link_rate", RATE, 0, 0, 1000000, UINT64_C(1000000000000),
         "a port of a switch: a link to it is as fast as its slower end; not given: as the NIC's")
DN_PARAM(SWITCH_COPIES, "switch_multicast", FLAG, 0, 0, 0, 1,
         "1: a switch makes of one packet as many as it has targets")
/* What the two ends of a link have agreed on. */
DN_PARAM(FLOW_UNIT, "link_flow_unit", SIZE, 0, 0, 0, 65536,
         "bytes that one credit is for; 0: a packet, however long")
DN_PARAM(FLOW_CREDITS, "link_credits", COUNT, 0, 0, 0, 1000000000,
         "credits of a link: what is sent waits for those of all its bytes; 0: they never run out")
DN_PARAM(BIT_ERRORS, "link_bit_errors", COUNT, 0, 0, 0, UINT64_C(1000000000000),
         "bits of 10^15 that come wrong on a link, which then sends the packet again; 0: none, or corrected")
