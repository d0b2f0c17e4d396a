/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_text.h
 * The texts that dimmnet's Open MPI components print, for dn_ompi_help(). Each text is a macro. doc/write_troubleshooting reads this file, so
 * each line of a macro's value holds one string.
 */
#ifndef DN_OMPI_TEXT_H
#define DN_OMPI_TEXT_H

#define DN_OMPI_TEXT_LIBDIMMNET     \
    "dimmnet reports on host %s:\n" \
    "\n"                            \
    "  %s\n"

#define DN_OMPI_TEXT_OTHER_OPEN_MPI                                              \
    "The component %s_%s of dimmnet was built for another Open MPI, whose\n"     \
    "internal structures may differ. It is not used.\n"                          \
    "\n"                                                                         \
    "  Built for: Open MPI %s\n"                                                 \
    "  Running:   Open MPI %s\n"                                                 \
    "\n"                                                                         \
    "Build dimmnet again for the Open MPI that runs, or take dimmnet's folder\n" \
    "out of the MCA parameter mca_base_component_path.\n"

#define DN_OMPI_TEXT_OTHER_STRUCTURES                                             \
    "The component %s_%s of dimmnet was built with headers that do not fit the\n" \
    "Open MPI that runs. It and those like it are not used.\n"                    \
    "\n"                                                                          \
    "  Structure:  %s\n"                                                          \
    "  Built with: %lu bytes\n"                                                   \
    "  Running:    %lu bytes\n"                                                   \
    "\n"                                                                          \
    "Configure the sources of that Open MPI as it was configured itself\n"        \
    "(contrib/ompi_source), and build dimmnet again with the option\n"            \
    "--with-ompi-source that names them.\n"

#define DN_OMPI_TEXT_OTHER_DIMMNET                                                 \
    "Parts of two installations of dimmnet have met, or one of them was removed\n" \
    "in part. The component %s_%s and those like it are not used.\n"               \
    "\n"                                                                           \
    "  The component:         dimmnet %s\n"                                        \
    "  libmca_common_dimmnet: dimmnet %s\n"                                        \
    "  libdimmnet:            dimmnet %s\n"                                        \
    "\n"                                                                           \
    "Install one of them again, whole, and take the folder of the other out of\n"  \
    "the MCA parameter mca_base_component_path and out of LD_LIBRARY_PATH.\n"

#define DN_OMPI_TEXT_BAD_VALUE                                                  \
    "A value of an MCA parameter is not accepted. dimmnet's components that\n"  \
    "need the parameter withdraw on host %s.\n"                                 \
    "\n"                                                                        \
    "  Parameter: %s\n"                                                         \
    "  Value:     %s\n"                                                         \
    "  Accepted:  %s\n"                                                         \
    "\n"                                                                        \
    "A parameter common_dimmnet_NAME may also have been set by the name of a\n" \
    "component, such as btl_dimmnet_NAME.\n"

#define DN_OMPI_TEXT_BAD_LIMIT                                                \
    "An MCA parameter of dimmnet has a value that cannot be used. Another\n"  \
    "transport will be used on host %s, if there is one.\n"                   \
    "\n"                                                                      \
    "  Parameter: %s\n"                                                       \
    "  Value:     %lu bytes\n"                                                \
    "  Accepted:  %lu to %lu bytes\n"                                         \
    "\n"                                                                      \
    "The upper end is the longest message. It grows with the MCA parameter\n" \
    "common_dimmnet_ring_lines.\n"

#define DN_OMPI_TEXT_PEER_LIMIT                                               \
    "A process takes messages that are shorter than those that btl_dimmnet\n" \
    "sends, so another transport will be used for it. This happens between\n" \
    "jobs whose MCA parameters differ.\n"                                     \
    "\n"                                                                      \
    "  Host:            %s\n"                                                 \
    "  Process:         %s\n"                                                 \
    "  Longest message: %lu bytes there, %lu bytes here\n"                    \
    "\n"                                                                      \
    "Run both jobs with the same common_dimmnet_ring_lines,\n"                \
    "btl_dimmnet_eager_limit and btl_dimmnet_max_send_size.\n"

#define DN_OMPI_TEXT_NOT_REACHED                                                   \
    "A process cannot be reached by dimmnet: no device in the list\n"              \
    "common_dimmnet_devices reaches it, or the same is not listed there.\n"        \
    "\n"                                                                           \
    "  Host:     %s\n"                                                             \
    "  Process:  %s\n"                                                             \
    "  Its host: %s\n"                                                             \
    "  Reason:   %s\n"                                                             \
    "\n"                                                                           \
    "Leave common_dimmnet_devices at auto on all hosts, or list a device that\n"   \
    "reaches other hosts on all of them, as in shm,ofi (dimmnet_info -D shm,ofi\n" \
    "tells which work on a host, and why others do not), or run the job with\n"    \
    "--mca pml ob1.\n"

#define DN_OMPI_TEXT_NO_NETWORK                                                     \
    "A process runs on another host, and the device %s, by which dimmnet reaches\n" \
    "it, cannot be used on host %s: why, another text says. Where the job\n"        \
    "begins so, pml/dimmnet withdraws there, and the job ends unless it does so\n"  \
    "on all hosts.\n"                                                               \
    "\n"                                                                            \
    "For ofi install libfabric there (fi_info lists the providers that it has),\n"  \
    "for ipnuma give the host an IPv4 address, or run the job without dimmnet:\n"   \
    "--mca pml ob1 --mca btl ^dimmnet --mca osc ^dimmnet --mca coll ^llcm\n"

#define DN_OMPI_TEXT_IN_CLEAR                                                      \
    "Messages are to be encrypted (common_dimmnet_auth), and the list\n"           \
    "common_dimmnet_devices has no device that works here and does so for\n"       \
    "processes on other hosts. dimmnet sends them nothing; another transport of\n" \
    "Open MPI, such as btl/tcp, may carry what goes there, and everybody on the\n" \
    "way can read it.\n"                                                           \
    "\n"                                                                           \
    "  Host: %s\n"                                                                 \
    "  List: %s\n"                                                                 \
    "\n"                                                                           \
    "Leave common_dimmnet_devices at auto, or list shm,ipnuma, in a build that\n"  \
    "has ipnuma.\n"

#define DN_OMPI_TEXT_NOT_PUBLISHED                                              \
    "A process of host %s has met one of another host, and the launcher does\n" \
    "not let it tell its new address: they cannot reach each other.\n"          \
    "\n"                                                                        \
    "Name the network from the start: --mca common_dimmnet_devices shm,ofi\n"

#define DN_OMPI_TEXT_NO_PORT                                                       \
    "dimmnet cannot open its devices on host %s, so that pml/dimmnet withdraws.\n" \
    "All processes of a job have to use the same PML: where others could open\n"   \
    "theirs, the job ends.\n"                                                      \
    "\n"                                                                           \
    "To go on without dimmnet, run the job with\n"                                 \
    "--mca pml ob1 --mca btl ^dimmnet --mca osc ^dimmnet --mca coll ^llcm\n"

#define DN_OMPI_TEXT_NO_MEMORY                                                  \
    "Memory ran out on host %s while a message was to be sent, or to be kept\n" \
    "until it is received. The job cannot go on.\n"                             \
    "\n"                                                                        \
    "Receive messages earlier, or lower the MCA parameter\n"                    \
    "common_dimmnet_unexpected_limit.\n"

#define DN_OMPI_TEXT_NO_WINDOW_MEMORY                                        \
    "Memory ran out on host %s while an operation of another process on a\n" \
    "window was to be answered. The job cannot go on.\n"                     \
    "\n"                                                                     \
    "Give the processes more memory, or run fewer of them on the host.\n"

#define DN_OMPI_TEXT_BAD_REQUEST                                                  \
    "A process has sent to a window on host %s what is no request. It was\n"      \
    "dropped, and the window is as it was.\n"                                     \
    "\n"                                                                          \
    "  What was wrong: %s\n"                                                      \
    "\n"                                                                          \
    "No version of dimmnet sends this: memory of a process of the job has been\n" \
    "overwritten, or a program writes into dimmnet's memory.\n"

#define DN_OMPI_TEXT_NO_HELPER                                                   \
    "The helper thread that the MCA parameter common_dimmnet_helper_thread\n"    \
    "asks for cannot be started on host %s: %s.\n"                               \
    "\n"                                                                         \
    "One-sided operations on memory that is not mapped wait until their\n"       \
    "target calls MPI. Allow more threads (ulimit -u), or allocate windows by\n" \
    "MPI_Win_allocate or MPI_Alloc_mem, which need no thread.\n"

#define DN_OMPI_TEXT_NO_SEGMENT                                         \
    "There is no memory for a window on host %s, so it is not made.\n"  \
    "\n"                                                                \
    "  Bytes of this process: %lu\n"                                    \
    "\n"                                                                \
    "Each process needs that much free memory (MemAvailable in\n"       \
    "/proc/meminfo), address space (ulimit -v) and a file descriptor\n" \
    "(ulimit -n). Make a smaller window, or run fewer processes on the host.\n"

#define DN_OMPI_TEXT_PEER_LOST                                              \
    "A process of the job has ended without finishing MPI, or cannot be\n"  \
    "reached any more. The job cannot go on.\n"                             \
    "\n"                                                                    \
    "  Host:     %s\n"                                                      \
    "  Process:  %s\n"                                                      \
    "  Its host: %s\n"                                                      \
    "\n"                                                                    \
    "Look for the first error of that process, or for one of its host or\n" \
    "network: that is the reason.\n"

#endif
