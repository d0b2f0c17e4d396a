/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_NET_H
#define DN_NET_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A TCP connection beside libdimmnet, by which two processes agree. At a failure a function writes one sentence to
 * stderr, which begins with the name of the program, and returns -1.
 */

/** Wait for clients at an address. @param[in,out] port_p  In: a port; 0: any free port. Out: the port. @return a socket. */
int dn_net_listen(const char *program, const char *address, int *port_p);

/** Does only this host reach the address that a socket is bound to? */
bool dn_net_is_loopback(int socket);

/** Wait for the next client. @return a socket; or -1, without a sentence: errno says why. */
int dn_net_accept(int listener);

/** Will this error of dn_net_accept() stay? Other errors end when the system has descriptors or memory again. */
bool dn_net_lasts(int error);

/** Connect to a server. @return a socket. */
int dn_net_connect(const char *program, const char *host, int port);

/** Send all @p len bytes. @return 0; or -1, without a sentence: the other end is gone, or was silent for too long. */
int dn_net_send(int socket, const void *data, size_t len);
/** Receive all @p len bytes. @return as dn_net_send(). */
int dn_net_receive(int socket, void *data, size_t len);

#endif
