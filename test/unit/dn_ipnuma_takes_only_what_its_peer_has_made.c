/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Two ports over ipnuma, and somebody between or beside them: what is forged, changed, repeated or not let in does nothing, leaves
 * nothing behind, and gets no answer, or a shorter one.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "dn_port.h"
#include "ipnuma/dn_ipnuma_int.h"

/** The time limit of the ports, but where a test says another. */
#define LIMIT_NS UINT64_C(60000000000)

static dn_port_t *port[2];
static dn_peer_t *peer[2]; /**< the other, as each has it */
static unsigned heard;
static uint32_t timeout_s = 60;
static uint32_t ring_lines;              /**< 0: as it is by default */
static const char *second = "ipnuma:lo"; /**< device of port 1 */

static dn_ipnuma_t *device_of(int i)
{
    return (dn_ipnuma_t *) port[i]->ifaces;
}

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) tag;
    (void) data;
    (void) len;
    (void) arg;
    heard++;
}

static void progress_both(void)
{
    for (int i = 0; i < 2; i++) {
        dn_progress(port[i]);
    }
}

/** Give port 1 its turns: one that waits in vain leaves out most looks at the network. */
static void progress_second(void)
{
    for (int i = 0; i < 40; i++) {
        dn_progress(port[1]);
    }
}

static void settle(void)
{
    while (DN_INPROGRESS == dn_fence(peer[0]) || DN_INPROGRESS == dn_fence(peer[1])) {
        progress_both();
    }
}

static void open_one(int i, dn_auth_mode_t auth)
{
    const dn_job_t job = {.key = {"a key of 16 byte"}, .pid = (uint32_t) i, .size = 2};
    dn_config_t config;

    dn_config_init(&config);
    config.auth = auth;
    config.timeout_s = timeout_s;
    if (0 != ring_lines) {
        config.ring_lines = ring_lines;
    }
    assert_int_equal(dn_open(0 == i ? "ipnuma:lo" : second, &job, &config, &port[i]), DN_OK);
    assert_int_equal(dn_handler_set(port[i], DN_CHAN_USER, hear, NULL), DN_OK);
}

static void open_both(dn_auth_mode_t auth)
{
    heard = 0;
    open_one(0, auth);
    open_one(1, auth);
    peer[0] = dn_unit_connect(port[0], port[1]);
    peer[1] = dn_unit_connect(port[1], port[0]);
    settle();
}

static void close_both(void)
{
    settle();
    dn_close(port[1]);
    dn_close(port[0]);
}

/** The connection of port 1 with port 0, as port 1 has it. */
static dn_ipnuma_pc_t *pc_of_first(void)
{
    return dn_ipnuma_pc_of(device_of(1), device_of(0)->where.nonce);
}

/** Let a datagram come to port 1, whose lock is held. */
static void come_locked(const void *bytes, size_t len)
{
    _Alignas(8) uint8_t copy[2048];

    assert_true(len <= sizeof(copy));
    memcpy(copy, bytes, len);
    dn_ipnuma_arrived(device_of(1), copy, len, dn_clock_ns());
}

static void come(const void *bytes, size_t len)
{
    dn_ipnuma_lock(device_of(1));
    come_locked(bytes, len);
    dn_ipnuma_unlock(device_of(1));
}

/** A socket on loopback that nobody else has. */
static int open_socket(uint16_t *port_p)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(name);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(0 <= fd && 0 == bind(fd, (const struct sockaddr *) &name, sizeof(name)));
    assert_int_equal(getsockname(fd, (struct sockaddr *) &name, &len), 0);
    *port_p = ntohs(name.sin_port);
    return fd;
}

/** Send a row of datagrams of @p each bytes to a UDP port of this host: the kernel cuts it, and may join it again. @return 0: this kernel
 * sends no such row. */
static int send_row(int fd, uint16_t to, uint8_t *bytes, size_t len, uint16_t each)
{
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons(to), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct iovec piece = {bytes, len};
    union {
        struct cmsghdr head;
        uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
    } control = {
        .head = {.cmsg_len = CMSG_LEN(sizeof(each)), .cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_SEGMENT}};
    const struct msghdr message = {.msg_name = &name,
                                   .msg_namelen = sizeof(name),
                                   .msg_iov = &piece,
                                   .msg_iovlen = 1,
                                   .msg_control = each < len ? &control : NULL,
                                   .msg_controllen = each < len ? sizeof(control.bytes) : 0};

    memcpy(CMSG_DATA(&control.head), &each, sizeof(each));
    const ssize_t sent = sendmsg(fd, &message, 0);
    assert_true((ssize_t) len == sent || (each < len && -1 == sent));
    return (ssize_t) len == sent;
}

/** The HELLO of a third process of the group, which is to be answered at a socket. */
static dn_ipnuma_hello_datagram_t make_hello(uint16_t at, uint64_t token)
{
    dn_ipnuma_hello_datagram_t datagram = {
        .head = {.token = token, .kind = DN_IPNUMA_HELLO},
        .hello = {
            .magic = DN_IPNUMA_MAGIC, .version = DN_WIRE_VERSION, .pid = 7, .where = device_of(0)->where}};
    dn_pgid_t pgid;

    memcpy(datagram.hello.to, device_of(1)->where.nonce, sizeof(datagram.hello.to));
    datagram.hello.where.nonce[0] ^= token;
    datagram.hello.where.port = at;
    const dn_auth_root_t *root =
        dn_guests_root(&device_of(1)->guests, dn_port_group(port[1]), datagram.hello.where.exchange, &pgid);
    assert_non_null(root);
    dn_auth_mac(root, &datagram, offsetof(dn_ipnuma_hello_datagram_t, hello.mac), datagram.hello.mac);
    return datagram;
}

static void who_does_not_know_the_key_leaves_nothing(void **state)
{
    uint64_t random = 1;
    uint16_t at = 0;
    uint8_t answer[2048];

    (void) state;
    open_both(DN_AUTH_HELLO);
    const int fd = open_socket(&at);
    for (uint64_t i = 1; i <= 2000; i++) {
        dn_ipnuma_hello_datagram_t hello = make_hello(at, i);
        ((uint8_t *) &hello)[dn_test_below(&random, sizeof(hello))] ^=
            (uint8_t) (1 + dn_test_below(&random, 255));
        /* The kind is no part of what is asked: then it is another kind, or none. */
        come(&hello, sizeof(hello));
    }
    assert_int_equal(device_of(1)->napplicants, 0);
    assert_int_equal(device_of(1)->npcs, 1);
    assert_int_equal(recv(fd, answer, sizeof(answer), 0), -1);
    /* All but those of a group that might be let in yet. */
    assert_true(1700 < port[1]->counters.dropped);
    close(fd);
    close_both();
}

static void a_member_gets_a_short_answer_and_a_record_that_ends(void **state)
{
    uint16_t at = 0;
    uint8_t answer[2048];

    (void) state;
    open_both(DN_AUTH_HELLO);
    const int fd = open_socket(&at);
    const dn_ipnuma_hello_datagram_t hello = make_hello(at, 5);
    for (int i = 0; i < 10; i++) {
        /* Heard before, it is answered the same, and counts once. */
        come(&hello, sizeof(hello));
        const ssize_t got = recv(fd, answer, sizeof(answer), 0);
        assert_int_equal(got, sizeof(dn_ipnuma_challenge_datagram_t));
        assert_true((size_t) got < sizeof(hello));
        assert_int_equal(device_of(1)->napplicants, 1);
        assert_int_equal(device_of(1)->npcs, 1);
    }
    dn_ipnuma_lock(device_of(1));
    dn_ipnuma_expire(device_of(1), 0, dn_clock_ns() + 4 * LIMIT_NS);
    assert_int_equal(device_of(1)->napplicants, 0);
    dn_ipnuma_unlock(device_of(1));
    close(fd);
    close_both();
}

/** The PROOF of the one applicant of port 1, whose lock is held. */
static dn_ipnuma_proof_datagram_t make_proof(void)
{
    const dn_ipnuma_applicant_t *applicant = device_of(1)->applicant;
    dn_ipnuma_proof_datagram_t datagram = {.head = {.kind = DN_IPNUMA_PROOF}};

    assert_int_equal(device_of(1)->napplicants, 1);
    datagram.head.token = applicant->token;
    dn_auth_prove(&applicant->pair, DN_AUTH_OPENER, NULL, 0, datagram.proof.mac);
    return datagram;
}

/** End the connection with the third process, which does not answer. */
static void end_third(uint64_t token)
{
    dn_ipnuma_pc_t *pc = dn_ipnuma_pc_named(device_of(1), token);

    assert_non_null(pc);
    assert_int_equal(pc->state, DN_IPNUMA_OPEN);
    dn_ipnuma_kill(pc, DN_PEER_PARTED);
}

/** The path is interrupted between CHALLENGE and PROOF. The applicant says PROOF for as long as it does not give port 1 up. */
static void who_proves_late_is_taken(void **state)
{
    static const struct {
        uint32_t timeout_s;
        uint64_t late_ns;
    } tries[] = {{60, 2 * LIMIT_NS}, {1, LIMIT_NS / 3}, {0, 10000 * LIMIT_NS}};
    uint16_t at = 0;

    (void) state;
    for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        open_both(DN_AUTH_HELLO);
        const int fd = open_socket(&at);
        const dn_ipnuma_hello_datagram_t hello = make_hello(at, 5);
        dn_ipnuma_lock(device_of(1));
        const uint64_t limit = device_of(1)->timeout_ns;
        device_of(1)->timeout_ns = tries[i].timeout_s * UINT64_C(1000000000);
        come_locked(&hello, sizeof(hello));
        const dn_ipnuma_proof_datagram_t proof = make_proof();
        dn_ipnuma_expire(device_of(1), 0, dn_clock_ns() + tries[i].late_ns);
        device_of(1)->timeout_ns = limit;
        come_locked(&proof, sizeof(proof));
        assert_int_equal(device_of(1)->npcs, 2);
        end_third(proof.head.token);
        dn_ipnuma_unlock(device_of(1));
        close(fd);
        close_both();
    }
}

/** Port 1 was stopped for so long that an applicant's time is over, and the PROOF has come meanwhile. */
static void what_came_while_the_process_was_stopped_counts(void **state)
{
    const uint64_t until = dn_clock_ns() + UINT64_C(30000000000);
    uint16_t at = 0;

    (void) state;
    open_both(DN_AUTH_HELLO);
    const int fd = open_socket(&at);
    dn_ipnuma_hello_datagram_t hello = make_hello(at, 5);
    dn_ipnuma_lock(device_of(1));
    come_locked(&hello, sizeof(hello));
    dn_ipnuma_proof_datagram_t proof = make_proof();
    device_of(1)->applicant->since -= 4 * LIMIT_NS;
    device_of(1)->service.looked -= 4 * LIMIT_NS;
    device_of(1)->service.look_at = 0;
    /* The HELLO of another process comes before the PROOF. */
    hello = make_hello(at, 6);
    assert_true(send_row(fd, device_of(1)->where.port, (uint8_t *) &hello, sizeof(hello), sizeof(hello)));
    assert_true(send_row(fd, device_of(1)->where.port, (uint8_t *) &proof, sizeof(proof), sizeof(proof)));
    while (2 != device_of(1)->npcs && dn_clock_ns() < until) {
        dn_ipnuma_unlock(device_of(1));
        sched_yield();
        dn_ipnuma_lock(device_of(1));
    }
    end_third(proof.head.token);
    dn_ipnuma_unlock(device_of(1));
    close(fd);
    close_both();
}

/** A packet of port 0 to port 1 with one TLP of at most 4 bytes, made as port 0 would, and as if another TLP were before it in the packet. */
static size_t make_packet_behind(uint8_t *bytes, uint64_t number, const dn_tlp_t *before, const dn_tlp_t *tlp)
{
    dn_ipnuma_pc_t *pc = pc_of_first();
    const dn_ipnuma_head_t head = {
        .token = pc->token, .number = number, .kind = DN_IPNUMA_PACKET, .flags = DN_IPNUMA_CARRIES};
    const dn_ipnuma_ack_t ack = {.applied = pc->link.applied, .credit = pc->link.credit};
    const dn_ipnuma_piece_t piece = {
        .offset = pc->link.next, .len = (uint32_t) dn_tlp_size(tlp, before), .magic = DN_IPNUMA_MAGIC};
    const uint64_t end = DN_IPNUMA_END;
    size_t len = 0;

    memcpy(bytes, &head, sizeof(head));
    len += sizeof(head);
    memcpy(bytes + len, &ack, sizeof(ack));
    memcpy(bytes + DN_IPNUMA_AHEAD - sizeof(piece), &piece, sizeof(piece));
    len = DN_IPNUMA_AHEAD;
    uint8_t *data = dn_tlp_write(bytes + len, tlp, before);
    if (NULL != data) {
        memcpy(data, "some", tlp->len);
    }
    len += piece.len;
    memcpy(bytes + len, &end, sizeof(end));
    len += sizeof(end);
    if (DN_AUTH_ENCRYPTED == pc->link.auth) {
        _Alignas(8) uint8_t plain[512];
        memcpy(plain, bytes, len);
        dn_auth_encrypt(&pc->link.in, number, plain, len, offsetof(dn_ipnuma_head_t, proof), sizeof(head),
                        bytes);
    } else {
        dn_auth_seal(pc->link.auth, &pc->link.in, number, bytes, len, offsetof(dn_ipnuma_head_t, proof));
    }
    return len;
}

/** A packet of port 0 to port 1 with one TLP of at most 4 bytes, made as port 0 would. */
static size_t make_packet(uint8_t *bytes, uint64_t number, const dn_tlp_t *tlp)
{
    return make_packet_behind(bytes, number, NULL, tlp);
}

/** A message of so many bytes, of which 4 come. */
static dn_tlp_t message_of(uint32_t total)
{
    return (dn_tlp_t){
        .kind = DN_TLP_MESSAGE, .message = DN_TLP_BOTF, .channel = DN_CHAN_USER, .len = 4, .total = total};
}

static void drop_what_was_changed_or_heard_before(dn_auth_mode_t auth)
{
    _Alignas(8) uint8_t bytes[512];
    uint64_t random = 2;

    open_both(auth);
    /* Port 0 is told that something came that it has not sent, and says so. */
    dn_test_log.expected = 1;
    /* Not one that port 0 is about to use. */
    const uint64_t number = pc_of_first()->link.seen.range[0].last + 1000;
    const dn_tlp_t message = message_of(4);
    const size_t len = make_packet(bytes, number, &message);
    for (int i = 0; i < 2000; i++) {
        _Alignas(8) uint8_t changed[512];
        memcpy(changed, bytes, len);
        changed[dn_test_below(&random, len)] ^= (uint8_t) (1 + dn_test_below(&random, 255));
        come(changed, len);
        progress_second();
        assert_int_equal(heard, 0);
    }
    assert_int_equal(pc_of_first()->state, DN_IPNUMA_OPEN);
    come(bytes, len);
    progress_second();
    assert_int_equal(heard, 1);
    for (int i = 0; i < 100; i++) {
        come(bytes, len);
        progress_second();
        assert_int_equal(heard, 1);
    }
    dn_close(port[1]);
    dn_close(port[0]);
    dn_test_log.expected = 0;
}

static void what_was_changed_or_heard_before_is_dropped(void **state)
{
    (void) state;
    drop_what_was_changed_or_heard_before(DN_AUTH_FULL);
    drop_what_was_changed_or_heard_before(DN_AUTH_ENCRYPTED);
}

/** What a process has sent is not taken for what the other has. */
static void what_comes_back_to_its_sender_is_dropped(void **state)
{
    _Alignas(8) uint8_t bytes[512];
    const dn_tlp_t message = message_of(4);

    (void) state;
    for (int auth = DN_AUTH_HELLO; auth <= DN_AUTH_ENCRYPTED; auth++) {
        open_both((dn_auth_mode_t) auth);
        dn_ipnuma_pc_t *pc = pc_of_first();
        const dn_auth_way_t in = pc->link.in;
        /* As port 1 itself would make it. */
        pc->link.in = pc->link.out;
        const size_t len = make_packet(bytes, pc->link.seen.range[0].last + 1000, &message);
        pc->link.in = in;
        const uint64_t dropped = port[1]->counters.dropped;
        come(bytes, len);
        progress_second();
        assert_int_equal(heard, 0);
        assert_true(dropped < port[1]->counters.dropped);
        close_both();
    }
}

/** Each side says so in a sentence, and nobody is connected. */
static void another_auth_is_refused(void **state)
{
    uint8_t address[DN_ADDRESS_MAX];

    (void) state;
    for (int auth = DN_AUTH_NONE; auth < DN_AUTH_ENCRYPTED; auth++) {
        for (int i = 0; i < 2; i++) {
            const dn_job_t job = {.key = {"a key of 16 byte"}, .pid = (uint32_t) i, .size = 2};
            dn_config_t config;
            dn_config_init(&config);
            config.auth = 0 == i ? DN_AUTH_ENCRYPTED : auth;
            assert_int_equal(dn_open("ipnuma:lo", &job, &config, &port[i]), DN_OK);
        }
        for (int i = 0; i < 2; i++) {
            size_t len = sizeof(address);
            assert_int_equal(dn_address(port[!i], address, &len), DN_OK);
            dn_test_log_expect();
            assert_int_equal(dn_connect(port[i], address, len, &peer[i]), DN_ERR_ACCESS);
            assert_non_null(
                strstr(dn_test_log.last, "has another auth than this process; set it to one value"));
            dn_test_log.expected = 0;
            assert_int_equal(device_of(i)->npcs, 0);
        }
        dn_close(port[1]);
        dn_close(port[0]);
    }
}

static const dn_tlp_t leave = {.kind = DN_TLP_MESSAGE, .message = DN_TLP_LEAVE};

/** Open both ports. Datagrams are made up in the name of port 0. Port 0 says nothing until close_after_lies(): it would take leave of
 * who says that something came of what it has not sent. */
static void open_to_be_told_lies(void)
{
    open_both(DN_AUTH_FULL);
    dn_test_log.expected = 1;
    dn_ipnuma_lock(device_of(0));
}

static void close_after_lies(void)
{
    dn_ipnuma_unlock(device_of(0));
    dn_close(port[1]);
    dn_close(port[0]);
    dn_test_log.expected = 0;
}

/** What comes of a message behind that finds nobody to be given to. Port 1 says that it cuts off port 0. */
static void who_leaves_in_the_midst_of_a_message_is_cut_off(void **state)
{
    _Alignas(8) uint8_t bytes[512];
    const dn_tlp_t message = message_of(8);

    (void) state;
    open_to_be_told_lies();
    const uint64_t number = pc_of_first()->link.seen.range[0].last + 1000;
    come(bytes, make_packet(bytes, number, &message));
    assert_int_equal(pc_of_first()->state, DN_IPNUMA_OPEN);
    dn_ipnuma_pc_t *pc = pc_of_first();
    come(bytes, make_packet(bytes, number + 1, &leave));
    assert_int_equal(pc->state, DN_IPNUMA_DEAD);
    progress_second();
    assert_int_equal(heard, 0);
    close_after_lies();
}

/** A short write says where it goes by the write before it in the same datagram, and by no other. */
static void a_datagram_that_begins_with_a_short_write_is_refused(void **state)
{
    _Alignas(8) uint8_t bytes[512];
    uint64_t *word = NULL, off = 0;
    void *memory = NULL;

    (void) state;
    open_to_be_told_lies();
    assert_int_equal(dn_llcm_alloc(port[1], 2 * sizeof(*word), &off, &memory), DN_OK);
    word = memory;
    dn_ipnuma_pc_t *pc = pc_of_first();
    const uint64_t number = pc->link.seen.range[0].last + 1000;
    dn_tlp_t write = {.kind = DN_TLP_WRITE, .address = device_of(1)->where.llcm_at + off, .len = 4};
    const dn_tlp_t before = write;
    come(bytes, make_packet(bytes, number, &write));
    assert_memory_equal(&word[0], "some", 4);
    assert_int_equal(pc->state, DN_IPNUMA_OPEN);
    write.address += sizeof(*word);
    come(bytes, make_packet_behind(bytes, number + 1, &before, &write));
    assert_int_equal(pc->state, DN_IPNUMA_DEAD);
    assert_int_equal(word[1], 0);
    close_after_lies();
}

/** A packet of port 0 to port 1 with @p len bytes as a part of a piece of @p whole bytes, which is one message. @param[out] bytes  Room
 * for the whole piece. */
static size_t make_part(uint8_t *bytes, uint64_t number, uint32_t whole, uint8_t part, uint32_t len)
{
    const dn_ipnuma_pc_t *pc = pc_of_first();
    const dn_tlp_t message = {.kind = DN_TLP_MESSAGE,
                              .message = DN_TLP_BOTF,
                              .channel = DN_CHAN_USER,
                              .len = whole - DN_TLP_HEADER,
                              .total = whole - DN_TLP_HEADER};
    const uint64_t end = DN_IPNUMA_END;
    dn_ipnuma_head_t head;
    dn_ipnuma_piece_t piece;

    const dn_tlp_t any = message_of(4);
    (void) make_packet(bytes, number, &any);
    memcpy(&head, bytes, sizeof(head));
    head.flags |= DN_IPNUMA_PART;
    head.part = part;
    head.proof = 0;
    memcpy(bytes, &head, sizeof(head));
    memcpy(&piece, bytes + DN_IPNUMA_AHEAD - sizeof(piece), sizeof(piece));
    piece.len = whole;
    memcpy(bytes + DN_IPNUMA_AHEAD - sizeof(piece), &piece, sizeof(piece));
    memset(bytes + DN_IPNUMA_AHEAD, part, len);
    if (0 == part && DN_TLP_DATA >= whole) {
        (void) dn_tlp_write(bytes + DN_IPNUMA_AHEAD, &message, NULL);
    }
    memcpy(bytes + DN_IPNUMA_AHEAD + len, &end, sizeof(end));
    const size_t size = DN_IPNUMA_AHEAD + len + sizeof(end);
    dn_auth_seal(pc->link.auth, &pc->link.in, number, bytes, size, offsetof(dn_ipnuma_head_t, proof));
    return size;
}

static void parts_make_the_piece_that_they_were_cut_from(void **state)
{
    enum { WHOLE = 2 * DN_IPNUMA_PART_BYTES + 100 };
    static const uint32_t wrong[][3] = {
        /* bytes of the piece, part, bytes of the part */
        {WHOLE, 3, 100},
        {WHOLE, 255, 100},
        {WHOLE, 1, 100},
        {WHOLE, 2, DN_IPNUMA_PART_BYTES},
        {DN_IPNUMA_DATAGRAM, 0, DN_IPNUMA_PART_BYTES},
        {UINT32_MAX - 3, 0, DN_IPNUMA_PART_BYTES},
        {UINT32_MAX - 3, 1, DN_IPNUMA_PART_BYTES},
    };
    _Alignas(8) uint8_t bytes[2 * DN_TLP_DATA];

    (void) state;
    open_to_be_told_lies();
    dn_ipnuma_pc_t *pc = pc_of_first();
    uint64_t number = pc->link.seen.range[0].last + 1000;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const uint64_t dropped = pc->link.counts.dropped;
        come(bytes, make_part(bytes, number++, wrong[i][0], (uint8_t) wrong[i][1], wrong[i][2]));
        assert_int_equal(pc->link.counts.dropped, dropped + 1);
        assert_int_equal(pc->link.earlies, 0);
        assert_int_equal(pc->state, DN_IPNUMA_OPEN);
    }
    /* In any order, and one of them twice. */
    const uint64_t next = pc->link.next;
    come(bytes, make_part(bytes, number++, WHOLE, 2, 100));
    come(bytes, make_part(bytes, number++, WHOLE, 0, DN_IPNUMA_PART_BYTES));
    come(bytes, make_part(bytes, number++, WHOLE, 0, DN_IPNUMA_PART_BYTES));
    assert_int_equal(pc->link.next, next);
    assert_int_equal(pc->link.earlies, 1);
    come(bytes, make_part(bytes, number++, WHOLE, 1, DN_IPNUMA_PART_BYTES));
    assert_int_equal(pc->link.next, next + WHOLE);
    assert_int_equal(pc->link.earlies, 0);
    assert_int_equal(pc->state, DN_IPNUMA_OPEN);
    /* Parts of two pieces that begin at one place. */
    come(bytes, make_part(bytes, number++, WHOLE, 2, 100));
    come(bytes, make_part(bytes, number++, WHOLE + 4, 2, 104));
    assert_int_equal(pc->state, DN_IPNUMA_DEAD);
    assert_non_null(strstr(dn_test_log.last, "sent two pieces of one offset"));
    close_after_lies();
}

/** A packet of port 0 whose piece lies so many bytes ahead of what port 1 expects. */
static size_t make_packet_ahead(uint8_t *bytes, uint64_t number, uint64_t ahead)
{
    const dn_tlp_t message = message_of(4);
    dn_ipnuma_link_t *link = &pc_of_first()->link;

    /* The thread of port 1 looks at its connection, too. */
    dn_ipnuma_lock(device_of(1));
    link->next += ahead;
    const size_t len = make_packet(bytes, number, &message);
    link->next -= ahead;
    dn_ipnuma_unlock(device_of(1));
    return len;
}

/** As many pieces are early as may be, when the piece before them comes in parts. */
static void the_piece_that_all_wait_for_has_a_place(void **state)
{
    enum { WHOLE = DN_IPNUMA_PART_BYTES + 100 };
    _Alignas(8) uint8_t bytes[2 * DN_TLP_DATA];
    const dn_tlp_t message = message_of(4);
    const uint64_t size = dn_tlp_size(&message, NULL);

    (void) state;
    open_to_be_told_lies();
    dn_ipnuma_pc_t *pc = pc_of_first();
    uint64_t number = pc->link.seen.range[0].last + 1000;
    /* Some bytes lie between, so that none of them is taken. */
    for (uint64_t i = 0; i < 2 * DN_LOSS_FLYING + 1; i++) {
        come(bytes, make_packet_ahead(bytes, number++, WHOLE + DN_TLP_DW + i * size));
    }
    assert_int_equal(pc->link.earlies, 2 * DN_LOSS_FLYING);
    const uint64_t next = pc->link.next;
    come(bytes, make_part(bytes, number++, WHOLE, 1, 100));
    assert_int_equal(pc->link.next, next);
    come(bytes, make_part(bytes, number++, WHOLE, 0, DN_IPNUMA_PART_BYTES));
    assert_int_equal(pc->link.next, next + WHOLE);
    assert_int_equal(pc->link.earlies, 2 * DN_LOSS_FLYING);
    assert_int_equal(pc->state, DN_IPNUMA_OPEN);
    close_after_lies();
}

/** No handler takes messages, and their sender goes on beyond its credit: what waits stays bounded. */
static void who_sends_beyond_its_credit_is_cut_off(void **state)
{
    _Alignas(8) uint8_t bytes[512];
    const dn_tlp_t message = message_of(4);
    const uint32_t cost = dn_ipnuma_cost(4);

    (void) state;
    ring_lines = 64;
    open_to_be_told_lies();
    dn_ipnuma_pc_t *pc = pc_of_first();
    const uint32_t credit = device_of(1)->where.credit;
    const uint64_t number = pc->link.seen.range[0].last + 1000;
    for (uint32_t i = 0; i < credit / cost; i++) {
        come(bytes, make_packet(bytes, number + i, &message));
        assert_int_equal(pc->state, DN_IPNUMA_OPEN);
    }
    assert_int_equal(pc->waiting_cost, credit / cost * cost);
    come(bytes, make_packet(bytes, number + credit / cost, &message));
    assert_int_equal(pc->state, DN_IPNUMA_DEAD);
    assert_int_equal(pc->waiting_cost, credit / cost * cost);
    assert_non_null(strstr(dn_test_log.last, "sent more messages than it had credit for"));
    close_after_lies();
    ring_lines = 0;
}

static void what_lies_too_far_ahead_is_refused(void **state)
{
    _Alignas(8) uint8_t bytes[512];
    const dn_tlp_t message = message_of(4);

    (void) state;
    open_to_be_told_lies();
    dn_ipnuma_pc_t *pc = pc_of_first();
    const uint64_t number = pc->link.seen.range[0].last + 1000;
    const uint64_t most = pc->link.ahead - dn_tlp_size(&message, NULL);
    come(bytes, make_packet_ahead(bytes, number, most));
    assert_int_equal(pc->state, DN_IPNUMA_OPEN);
    assert_int_equal(pc->link.earlies, 1);
    come(bytes, make_packet_ahead(bytes, number + 1, most + DN_TLP_DW));
    assert_int_equal(pc->state, DN_IPNUMA_DEAD);
    assert_int_equal(pc->link.earlies, 1);
    assert_non_null(strstr(dn_test_log.last, "sent more than there is room for"));
    close_after_lies();
}

/** Wait until port 1 has dropped so many datagrams more. */
static void await_dropped(uint64_t before, uint64_t more)
{
    const uint64_t until = dn_clock_ns() + UINT64_C(30000000000);

    while (before + more > dn_load_relaxed(&port[1]->counters.dropped) && dn_clock_ns() < until) {
        progress_both();
    }
    assert_true(before + more <= dn_load_relaxed(&port[1]->counters.dropped));
}

/** Datagrams of a stranger, by the kernel: none is too short or too long, alone or in a row. */
static void datagrams_of_any_length_do_nothing(void **state)
{
    static const struct {
        uint16_t len, each;
    } rows[] = {{1, 1},         {31, 31},       {32, 32},       {33, 33},       {16896, 16896},
                {16897, 16897}, {65507, 65507}, {64000, 20001}, {60000, 16895}, {63, 31}};
    static uint8_t bytes[65507];
    uint16_t at = 0;

    (void) state;
    open_both(DN_AUTH_HELLO);
    const int fd = open_socket(&at);
    for (int kind = 0; kind <= DN_IPNUMA_PROOF + 1; kind++) {
        for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            const uint64_t before = dn_load_relaxed(&port[1]->counters.dropped);
            memset(bytes, kind, sizeof(bytes));
            if ((device_of(1)->cuts_rows || rows[i].len == rows[i].each)
                && send_row(fd, device_of(1)->where.port, bytes, rows[i].len, rows[i].each)) {
                await_dropped(before, (rows[i].len + rows[i].each - 1) / rows[i].each);
            }
        }
    }
    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), -1);
    assert_int_equal(device_of(1)->npcs, 1);
    assert_int_equal(device_of(1)->napplicants, 0);
    close(fd);
    assert_int_equal(dn_botf(peer[0], DN_CHAN_USER, 0, NULL, 0, "x", 1), DN_OK);
    settle();
    while (0 == heard) {
        progress_both();
    }
    close_both();
}

/** The port closes, and has released the peer, in the midst of a message: its sender leaves as it should. */
static void what_is_left_of_a_message_is_dropped_while_the_port_closes(void **state)
{
    _Alignas(8) uint8_t bytes[512];
    const dn_tlp_t message = message_of(8);

    (void) state;
    open_to_be_told_lies();
    dn_ipnuma_lock(device_of(1));
    dn_ipnuma_pc_t *pc = pc_of_first();
    dn_ipnuma_peer_t *peer_of_first = pc->peer;
    const uint64_t number = pc->link.seen.range[0].last + 1000;
    come_locked(bytes, make_packet(bytes, number, &message));
    assert_non_null(pc->partial);
    device_of(1)->closing = 1;
    pc->peer = NULL;
    come_locked(bytes, make_packet(bytes, number + 1, &message));
    come_locked(bytes, make_packet(bytes, number + 2, &leave));
    assert_int_equal(pc->state, DN_IPNUMA_OPEN);
    pc->peer = peer_of_first;
    dn_ipnuma_unlock(device_of(1));
    close_after_lies();
}

/** dn_ipnuma_link_ops_t::take of a process that has no memory for anything. */
static int take_nothing(dn_ipnuma_link_t *link, const dn_tlp_t *tlp)
{
    (void) link;
    (void) tlp;
    return -1;
}

/** It is heard all the time, and nothing that is sent to it takes effect. */
static void who_takes_nothing_is_given_up(void **state)
{
    dn_ipnuma_link_ops_t ops = dn_ipnuma_pc_ops;

    (void) state;
    timeout_s = 3;
    open_both(DN_AUTH_HELLO);
    ops.take = take_nothing;
    dn_ipnuma_lock(device_of(1));
    pc_of_first()->link.ops = &ops;
    dn_ipnuma_unlock(device_of(1));
    dn_test_log.expected = 1;
    const uint64_t begin = dn_clock_ns();
    /* The thread that looks after the other process gets the lock in the pauses. */
    const struct timespec pause = {.tv_nsec = 1000000};
    assert_int_equal(dn_botf(peer[0], DN_CHAN_USER, 0, NULL, 0, "x", 1), DN_OK);
    while (DN_OK == dn_peer_check(peer[0]) && dn_clock_ns() - begin < UINT64_C(60000000000)) {
        progress_both();
        (void) nanosleep(&pause, NULL);
    }
    assert_int_equal(dn_peer_check(peer[0]), DN_ERR_UNREACH);
    assert_int_equal(heard, 0);
    assert_non_null(strstr(dn_test_log.last, "nothing of what was sent was taken by PID 1"));
    dn_close(port[0]);
    dn_close(port[1]);
    dn_test_log.expected = 0;
    timeout_s = 60;
}

/** Take the UDP port of a process that is gone. @return -1: somebody else has it. */
static int take_port(uint16_t udp_port)
{
    const struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons(udp_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(0 <= fd);
    if (0 != bind(fd, (const struct sockaddr *) &name, sizeof(name))) {
        close(fd);
        return -1;
    }
    return fd;
}

/** Answer each datagram by itself, by one of other bytes, and by one that is cut off. @return how many came. */
static unsigned answer_with_nonsense(int fd, uint16_t to)
{
    uint8_t bytes[2048];
    unsigned came = 0;
    ssize_t len;

    while (0 < (len = recv(fd, bytes, sizeof(bytes), 0))) {
        came++;
        (void) send_row(fd, to, bytes, (size_t) len, (uint16_t) len);
        (void) send_row(fd, to, bytes, (size_t) len / 2, (uint16_t) (len / 2));
        dn_test_fill(bytes, (size_t) len, came);
        (void) send_row(fd, to, bytes, (size_t) len, (uint16_t) len);
    }
    return came;
}

/** An address that is no longer true: a service that is not of dimmnet has the UDP port now, and answers. */
static void another_service_on_the_port_is_no_peer(void **state)
{
    const uint64_t until = dn_clock_ns() + UINT64_C(60000000000);
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    unsigned came = 0;

    (void) state;
    timeout_s = 3;
    open_both(DN_AUTH_HELLO);
    assert_int_equal(dn_address(port[1], address, &len), DN_OK);
    const uint16_t udp_port = device_of(1)->where.port;
    close_both();
    const int fd = take_port(udp_port);
    if (0 > fd) {
        timeout_s = 60;
        skip();
    }
    open_one(0, DN_AUTH_HELLO);
    dn_test_log_expect();
    assert_int_equal(dn_connect(port[0], address, len, &peer[0]), DN_OK);
    while (DN_OK == dn_peer_check(peer[0]) && dn_clock_ns() < until) {
        dn_progress(port[0]);
        came += answer_with_nonsense(fd, device_of(0)->where.port);
    }
    assert_int_equal(dn_peer_check(peer[0]), DN_ERR_UNREACH);
    assert_true(0 < came);
    assert_true(dn_test_log_said(1, "nothing was heard from PID 1"));
    close(fd);
    dn_close(port[0]);
    timeout_s = 60;
}

static void end(dn_comp_t *comp, dn_status_t status)
{
    (void) comp;
    heard = (unsigned) (100 - status);
}

/** @return the status with which an operation ended. */
static dn_status_t finish(dn_status_t status)
{
    heard = 0;
    while (DN_INPROGRESS == status && 0 == heard) {
        progress_both();
    }
    return DN_INPROGRESS == status ? (dn_status_t) (100 - (int) heard) : status;
}

static void what_is_not_shared_is_not_reached(void **state)
{
    static uint64_t memory[2][512], local[512];
    dn_segment_t *segment = NULL;
    dn_comp_t comp = {end};
    dn_key_t key;
    uint64_t at = 0;

    (void) state;
    open_both(DN_AUTH_HELLO);
    assert_int_equal(dn_segment_register(port[1], memory[0], sizeof(memory[0]), &segment), DN_OK);
    dn_segment_key(segment, &key);
    dn_test_fill(local, sizeof(local), 1);
    dn_xfer_t xfer = {.local = local, .key = &key, .len = sizeof(local), .comp = &comp};
    const dn_amo_t amo = {.op = DN_AMO_ADD, .width = 8, .operand = 1, .key = &key, .comp = &comp};
    assert_int_equal(finish(dn_push(peer[0], &xfer)), DN_OK);
    assert_memory_equal(memory[0], local, sizeof(local));
    /* A neighbour that lets in nobody of this network: an entry of the table as the thesis has it. */
    dn_ipnuma_lock(device_of(1));
    assert_int_equal(dn_ipnuma_regions_add(&device_of(1)->regions, memory[1], sizeof(memory[1]), 0xac120000,
                                           0xffff0000, 1 << 20, &at),
                     DN_OK);
    dn_ipnuma_unlock(device_of(1));
    for (int i = 0; i < DN_KEY_WAYS; i++) {
        key.way[i].word[0] = at;
    }
    assert_int_equal(finish(dn_push(peer[0], &xfer)), DN_ERR_RANGE);
    for (int i = 0; i < 512; i++) {
        assert_int_equal(memory[1][i], 0);
    }
    assert_true(0 < device_of(1)->refused_writes);
    assert_int_equal(device_of(1)->refused_reads, 0);
    dn_test_fill(memory[1], sizeof(memory[1]), 2);
    assert_int_equal(finish(dn_pull(peer[0], &xfer)), DN_ERR_RANGE);
    assert_int_not_equal(dn_test_mismatch(local, sizeof(local), 2), sizeof(local));
    assert_int_equal(dn_test_mismatch(local, sizeof(local), 1), sizeof(local));
    assert_true(0 < device_of(1)->refused_reads);
    assert_int_equal(finish(dn_atomic(peer[0], &amo)), DN_ERR_RANGE);
    assert_int_equal(dn_test_mismatch(memory[1], sizeof(memory[1]), 2), sizeof(memory[1]));
    /* And the peer stays. */
    dn_segment_key(segment, &key);
    assert_int_equal(finish(dn_push(peer[0], &xfer)), DN_OK);
    close_both();
}

static unsigned zeros, others; /**< bytes of answers */

/** dn_ipnuma_link_ops_t::take of a process that looks at them. */
static int take_and_count(dn_ipnuma_link_t *link, const dn_tlp_t *tlp)
{
    for (uint32_t i = 0; DN_TLP_COMPLETION == tlp->kind && i < tlp->len; i++) {
        zeros += 0 == ((const uint8_t *) tlp->data)[i];
        others += 0 != ((const uint8_t *) tlp->data)[i];
    }
    return dn_ipnuma_pc_ops.take(link, tlp);
}

/** Memory whose owner takes it back between the request for it and the answer. */
static void memory_that_goes_while_it_is_read_is_refused(void **state)
{
    enum { LEN = 1 << 16 };
    static uint8_t local[LEN];
    uint8_t *memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    dn_ipnuma_link_ops_t ops = dn_ipnuma_pc_ops;
    dn_segment_t *segment = NULL;
    dn_comp_t comp = {end};
    dn_key_t key;

    (void) state;
    ops.take = take_and_count;
    assert_true(MAP_FAILED != memory);
    dn_test_fill(memory, LEN, 1);
    dn_test_fill(local, LEN, 2);
    open_both(DN_AUTH_HELLO);
    assert_int_equal(dn_segment_register(port[1], memory, LEN, &segment), DN_OK);
    dn_segment_key(segment, &key);
    const dn_xfer_t xfer = {.local = local, .key = &key, .len = LEN, .comp = &comp};
    dn_ipnuma_lock(device_of(0));
    device_of(0)->pcs->link.ops = &ops;
    dn_ipnuma_unlock(device_of(0));
    /* Neither the thread of port 1 nor anybody else reads, or answers, but this. */
    dn_ipnuma_lock(device_of(1));
    const dn_status_t status = dn_pull(peer[0], &xfer);
    while (pc_of_first()->replies == pc_of_first()->replied) {
        dn_progress(port[0]);
        (void) dn_ipnuma_socket_receive(device_of(1));
    }
    /* Who reads the memory now dies. */
    dn_ipnuma_regions_remove(&device_of(1)->regions, dn_key_way(&key, DN_KEY_IPNUMA)->word[0]);
    assert_int_equal(mprotect(memory, LEN, PROT_NONE), 0);
    dn_ipnuma_unlock(device_of(1));
    assert_int_equal(finish(status), DN_ERR_RANGE);
    /* An error and zeros come; the reader's memory stays as it was. */
    assert_int_equal(others, 0);
    assert_int_equal(zeros, LEN);
    assert_int_equal(dn_test_mismatch(local, LEN, 2), LEN);
    dn_ipnuma_lock(device_of(0));
    device_of(0)->pcs->link.ops = &dn_ipnuma_pc_ops;
    dn_ipnuma_unlock(device_of(0));
    close_both();
    munmap(memory, LEN);
}

/** All that a port shares, where its device is opened for processes at some addresses. */
static void only_the_addresses_that_are_named_are_let_in(void **state)
{
    static const char *const wrong[] = {"ipnuma:lo@", "ipnuma:lo@10.0.0.0", "ipnuma:lo@10.0.0/8",
                                        "ipnuma:lo@10.0.0.0/33", "ipnuma:lo@10.0.0.0/8x"};
    const dn_job_t job = {.key = {"a key of 16 byte"}, .size = 2};
    dn_comp_t comp = {end};
    dn_port_t *none = NULL;

    (void) state;
    for (int in = 0; in < 2; in++) {
        uint64_t memory = 0, local = 7;
        dn_segment_t *segment = NULL;
        dn_key_t key;
        second = in ? "ipnuma:lo@127.0.0.0/8" : "ipnuma:lo@172.18.0.0/16";
        open_both(DN_AUTH_HELLO);
        assert_int_equal(dn_segment_register(port[1], &memory, sizeof(memory), &segment), DN_OK);
        dn_segment_key(segment, &key);
        const dn_xfer_t xfer = {.local = &local, .key = &key, .len = sizeof(local), .comp = &comp};
        assert_int_equal(finish(dn_push(peer[0], &xfer)), in ? DN_OK : DN_ERR_RANGE);
        assert_int_equal(memory, in ? 7 : 0);
        /* Blocks so short go by messages. */
        const dn_block_t blocks[] = {{0, 4}, {4, 4}};
        const dn_sg_t sg = {.block = blocks, .count = 2};
        const dn_xfer_t scattered = {
            .local = &local, .key = &key, .len = sizeof(local), .remote_sg = &sg, .comp = &comp};
        local = 9;
        assert_int_equal(finish(dn_push(peer[0], &scattered)), in ? DN_OK : DN_ERR_ACCESS);
        assert_int_equal(memory, in ? 9 : 0);
        assert_int_equal(finish(dn_pull(peer[0], &scattered)), in ? DN_OK : DN_ERR_ACCESS);
        /* A process reaches its own memory in any case. */
        assert_int_equal(finish(dn_push(dn_unit_connect(port[1], port[1]), &scattered)), DN_OK);
        assert_int_equal(memory, 9);
        close_both();
    }
    second = "ipnuma:lo";
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        dn_test_log_expect();
        assert_int_equal(dn_open(wrong[i], &job, NULL, &none), DN_ERR_PARAM);
        assert_non_null(strstr(dn_test_log.last, "INTERFACE@ADDRESS/BITS"));
        dn_test_log.expected = 0;
    }
}

static char said[4096]; /**< sentences of one call */

static void keep(const char *sentence, void *arg)
{
    const size_t len = strlen(said);

    (void) arg;
    snprintf(said + len, sizeof(said) - len, "%s\n", sentence);
}

static int next_file(void)
{
    const int fd = dup(STDERR_FILENO);

    assert_true(0 <= fd);
    close(fd);
    return fd;
}

/** A sentence says why, and what to do. No file stays open. */
static void refuse(const char *device, dn_status_t wanted, const char *sentence)
{
    const dn_job_t job = {.key = {"a key of 16 byte"}, .size = 2};
    dn_port_t *none = NULL;

    said[0] = '\0';
    dn_log_set(keep, NULL);
    assert_int_equal(dn_open(device, &job, NULL, &none), wanted);
    dn_log_set(dn_test_log_note, &dn_test_log);
    assert_non_null(strstr(said, sentence));
}

static void what_cannot_be_opened_is_said(void **state)
{
    struct rlimit limit;
    const int first = next_file();

    (void) state;
    refuse("ipnuma:nothing0", DN_ERR_UNSUPPORTED,
           "no interface or IPv4 address \"nothing0\" that is up; name one");
    refuse("ipnuma:192.0.2.1", DN_ERR_UNSUPPORTED,
           "no interface or IPv4 address \"192.0.2.1\" that is up; name one");
    refuse("ipnuma:a-name-that-is-longer-than-that-of-any-interface-which-the-kernel-has", DN_ERR_PARAM,
           "ipnuma takes INTERFACE or INTERFACE@ADDRESS/BITS");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    /* An event and a timer come first. Then the interfaces are listed by a file of the C library, and a socket follows. */
    for (int files = 0; files < 3; files++) {
        const struct rlimit few = {.rlim_cur = (rlim_t) (first + files), .rlim_max = limit.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        refuse("ipnuma:lo", DN_ERR_NOMEM, "; raise limits, as of open files");
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    }
    assert_int_equal(next_file(), first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_does_not_know_the_key_leaves_nothing),
        cmocka_unit_test(a_member_gets_a_short_answer_and_a_record_that_ends),
        cmocka_unit_test(who_proves_late_is_taken),
        cmocka_unit_test(what_came_while_the_process_was_stopped_counts),
        cmocka_unit_test(what_was_changed_or_heard_before_is_dropped),
        cmocka_unit_test(what_comes_back_to_its_sender_is_dropped),
        cmocka_unit_test(another_auth_is_refused),
        cmocka_unit_test(who_leaves_in_the_midst_of_a_message_is_cut_off),
        cmocka_unit_test(a_datagram_that_begins_with_a_short_write_is_refused),
        cmocka_unit_test(parts_make_the_piece_that_they_were_cut_from),
        cmocka_unit_test(the_piece_that_all_wait_for_has_a_place),
        cmocka_unit_test(who_sends_beyond_its_credit_is_cut_off),
        cmocka_unit_test(what_lies_too_far_ahead_is_refused),
        cmocka_unit_test(datagrams_of_any_length_do_nothing),
        cmocka_unit_test(what_is_left_of_a_message_is_dropped_while_the_port_closes),
        cmocka_unit_test(who_takes_nothing_is_given_up),
        cmocka_unit_test(another_service_on_the_port_is_no_peer),
        cmocka_unit_test(what_is_not_shared_is_not_reached),
        cmocka_unit_test(memory_that_goes_while_it_is_read_is_refused),
        cmocka_unit_test(only_the_addresses_that_are_named_are_let_in),
        cmocka_unit_test(what_cannot_be_opened_is_said),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
