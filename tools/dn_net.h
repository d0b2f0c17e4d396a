/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_NET_H
#define DN_NET_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A TCP connection beside libdimmnet, by which two processes agree. Failures are told on stderr in one
 * sentence that begins with the name of the program; -1 is returned then.
 */

/** Wait at an address; @p port_p: in, 0: any that is free; out, the one that it is. @return a socket. */
int dn_net_listen(const char *program, const char *address, int *port_p);

/** Does only this host reach the address that a socket is bound to? */
bool dn_net_is_loopback(int socket);

/** The next client. @return a socket; -1, without a sentence: errno says why. */
int dn_net_accept(int listener);

/** Is this error of dn_net_accept() one that stays? The others end when the system has descriptors or memory again. */
bool dn_net_lasts(int error);

/** @return a socket. */
int dn_net_connect(const char *program, const char *host, int port);

/** All @p len bytes. @return 0, or -1, without a sentence, when the other end is gone or silent for too long. */
int dn_net_send(int socket, const void *data, size_t len);
int dn_net_receive(int socket, void *data, size_t len);

#endif
