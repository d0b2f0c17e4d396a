#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
"""Objects and buffers between ranks by mpi4py. Argument: a seed. Needs no numpy."""

import array
import hashlib
import random
import sys
import threading

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK = WORLD.Get_rank()
RANKS = WORLD.Get_size()
SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
checked = 0


def check(condition, what):
    global checked
    if not condition:
        print(f"FAILED: mpi4py_exchange: rank {RANK}: {what} (seed {SEED})", file=sys.stderr, flush=True)
        WORLD.Abort(1)
    checked += 1


def content(source, target, number, size):
    return random.Random(f"{SEED}.{source}.{target}.{number}").randbytes(size)


def thing(source, number):
    """A nested object whose pickle is between some bytes and some hundred KiB."""
    rng = random.Random(f"{SEED}.{source}.{number}")
    return {"from": source, "number": number, "text": "x" * rng.randrange(1 << rng.randrange(18)),
            "list": [rng.random() for _ in range(rng.randrange(200))], "set": {rng.randrange(9), None}}


def objects():
    right, left = (RANK + 1) % RANKS, (RANK - 1) % RANKS
    for number in range(40):
        got = WORLD.sendrecv(thing(RANK, number), dest=right, sendtag=number, source=left, recvtag=number)
        check(got == thing(left, number), f"object {number} of rank {left} differs")


def any_source():
    if RANK == 0:
        seen = {source: 0 for source in range(1, RANKS)}
        for _ in range(20 * (RANKS - 1)):
            status = MPI.Status()
            got = WORLD.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            source = status.Get_source()
            check(got == (source, seen[source]), f"rank {source} was overtaken: {got}")
            seen[source] += 1
    else:
        for number in range(20):
            WORLD.send((RANK, number), dest=0, tag=number)
    WORLD.Barrier()


def buffers():
    right, left = (RANK + 1) % RANKS, (RANK - 1) % RANKS
    for size in (0, 1, 41, 64, 4095, 4096, 8193, 65536, 1 << 20, (5 << 20) + 3):
        incoming = bytearray(size + 8)
        requests = [WORLD.Irecv([incoming, size, MPI.BYTE], source=left, tag=size % 1000),
                    WORLD.Isend([content(RANK, right, size, size), MPI.BYTE], dest=right, tag=size % 1000)]
        MPI.Request.Waitall(requests)
        check(incoming[:size] == content(left, RANK, size, size), f"buffer of {size} bytes differs")
        check(incoming[size:] == bytes(8), f"bytes after a buffer of {size} bytes were overwritten")


def collectives():
    values = array.array("q", [RANK * 1000 + i for i in range(5000)])
    sums = array.array("q", bytes(8 * len(values)))
    WORLD.Allreduce([values, MPI.INT64_T], [sums, MPI.INT64_T], op=MPI.SUM)
    first = 1000 * RANKS * (RANKS - 1) // 2
    check(all(first + RANKS * i == value for i, value in enumerate(sums)), "Allreduce: a sum is wrong")
    everyone = WORLD.allgather(thing(RANK, -1))
    check(everyone == [thing(source, -1) for source in range(RANKS)], "allgather: an object differs")
    parts = WORLD.alltoall([content(RANK, target, -2, 100 * target + 7000) for target in range(RANKS)])
    check(parts == [content(source, RANK, -2, 100 * RANK + 7000) for source in range(RANKS)],
          "alltoall: an object differs")
    check(WORLD.bcast(thing(0, -3) if RANK == 0 else None, root=0) == thing(0, -3), "bcast: it differs")
    half = WORLD.Split(RANK % 2, RANK)
    check(half.allreduce(1) == len(range(RANK % 2, RANKS, 2)), "Split: allreduce is wrong")
    half.Free()


def windows():
    right, left = (RANK + 1) % RANKS, (RANK - 1) % RANKS
    size = 300000
    window = MPI.Win.Allocate(size, 1, comm=WORLD)
    memory = window.tomemory()
    window.Fence()
    window.Put([content(RANK, right, -4, size), MPI.BYTE], right)
    window.Fence()
    check(bytes(memory) == content(left, RANK, -4, size), "Put: the window's bytes differ")
    incoming = bytearray(size)
    window.Lock(right, MPI.LOCK_SHARED)
    window.Get([incoming, MPI.BYTE], right)
    window.Unlock(right)
    check(bytes(incoming) == content(RANK, right, -4, size), "Get: the bytes differ")
    window.Free()


def threads():
    """Only where mpi4py got MPI_THREAD_MULTIPLE, its default."""
    if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
        return
    right, left = (RANK + 1) % RANKS, (RANK - 1) % RANKS
    problems = []

    def run(index, comm):
        for number in range(40):
            got = comm.sendrecv(thing(RANK, index * 100 + number), dest=right, source=left)
            if got != thing(left, index * 100 + number):
                problems.append((index, number))

    comms = [WORLD.Dup() for _ in range(3)]
    workers = [threading.Thread(target=run, args=pair) for pair in enumerate(comms)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for comm in comms:
        comm.Free()
    check(not problems, f"objects exchanged by threads differ: {problems[:5]}")


def main():
    for part in (objects, any_source, buffers, collectives, windows, threads):
        part()
    digest = hashlib.sha256(content(0, 0, 0, 1000)).hexdigest()
    check(set(WORLD.allgather(digest)) == {digest}, "the ranks were given different seeds")
    total = WORLD.reduce(checked, op=MPI.SUM, root=0)
    if RANK == 0:
        print(f"mpi4py_exchange: {RANKS} ranks, {total} checks passed")


main()
