/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file conf_tests.h
 * Table of the conformance suite: name, processes. Expanded with CONF_TEST(name, processes) defined.
 */
/* conf_message.c */
CONF_TEST(messages_of_every_length_arrive_whole, 2)
CONF_TEST(messages_arrive_in_order, 2)
CONF_TEST(messages_wait_for_their_handler, 2)
CONF_TEST(windows_are_kicked_whole_or_shorter, 2)
CONF_TEST(messages_too_long_are_refused, 2)
CONF_TEST(handlers_may_send_and_progress, 2)
CONF_TEST(recv_takes_from_one_source_only, 3)
CONF_TEST(many_peers_all_send_to_all, 12)
CONF_TEST(handlers_are_set_once_and_only_where_allowed, 1)
CONF_TEST(counters_grow, 2)
/* conf_memory.c */
CONF_TEST(aotf_writes_every_size_at_every_offset, 2)
CONF_TEST(aotf_outside_the_llcm_is_refused, 2)
CONF_TEST(aligned_aotf_is_one_store, 2)
CONF_TEST(status_words_follow_the_data, 2)
CONF_TEST(misplaced_status_words_are_refused, 2)
CONF_TEST(a_fence_orders_push_before_aotf, 2)
CONF_TEST(a_fence_orders_messages_before_aotf, 2)
CONF_TEST(a_fence_orders_push_and_aotf_before_messages, 2)
/* conf_transfer.c */
CONF_TEST(push_and_pull_move_every_size, 2)
CONF_TEST(push_and_pull_join_any_blocks, 2)
CONF_TEST(long_transfers_go_both_ways_at_once, 2)
CONF_TEST(many_transfers_may_be_in_flight, 2)
CONF_TEST(flush_waits_for_transfers_without_completion, 2)
CONF_TEST(completions_may_start_transfers, 2)
CONF_TEST(transfers_to_oneself_work, 1)
CONF_TEST(transfers_out_of_range_are_refused, 2)
CONF_TEST(transfers_that_do_not_add_up_are_refused, 2)
CONF_TEST(stale_keys_are_refused, 2)
CONF_TEST(forged_keys_are_refused, 2)
CONF_TEST(empty_segments_are_legal, 2)
CONF_TEST(allocated_segments_are_zeroed, 1)
/* conf_atomic.c */
CONF_TEST(atomics_do_what_they_say, 2)
CONF_TEST(contended_atomics_lose_nothing, 4)
CONF_TEST(atomics_meet_the_owners_cpu_atomics, 2)
CONF_TEST(impossible_atomics_are_refused, 2)
/* conf_peer.c */
CONF_TEST(connecting_twice_gives_the_same_peer, 2)
CONF_TEST(connecting_to_oneself_works, 1)
CONF_TEST(attributes_tell_who_the_peer_is, 2)
CONF_TEST(a_peer_that_sends_first_is_the_one_connected_to, 2)
CONF_TEST(user_pointers_stay_with_the_peer, 2)
CONF_TEST(strangers_are_refused_until_admitted, 2)
CONF_TEST(messages_of_strangers_wait, 2)
CONF_TEST(slots_come_back_after_disconnection, 2)
CONF_TEST(slots_come_back_after_processes_end, 1)
CONF_TEST(full_slots_are_refused_with_a_sentence, 4)
CONF_TEST(messages_kicked_before_disconnection_arrive, 2)
CONF_TEST(oversubscription_is_seen, 8)
CONF_TEST(opening_and_closing_leaks_nothing, 1)
CONF_TEST(connecting_and_working_leaks_nothing, 2)
/* conf_death.c */
CONF_TEST(a_killed_peer_is_found_gone_when_asked, 2)
CONF_TEST(sending_to_a_killed_peer_ends, 2)
CONF_TEST(a_full_ring_of_a_killed_peer_ends, 2)
CONF_TEST(transfers_with_a_killed_peer_end, 2)
CONF_TEST(others_go_on_when_one_is_killed, 4)
CONF_TEST(sending_to_a_closed_port_ends, 2)
CONF_TEST(closing_drops_what_is_in_flight, 2)
