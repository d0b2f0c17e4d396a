/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A thread brings memory in while the program starts. Meanwhile Open MPI or UCX may write a jump over the start of madvise(), so the thread
 * must not be in that function.
 */
#include "dn_config.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dn_unit.h"

#include "shm/dn_shm_memory.h"

enum { PAGES = 8 };

static unsigned called;

/** In place of the C library's function, for all of this program. */
int madvise(void *mem, size_t bytes, int advice)
{
    called++;
    return 0;
}

static void memory_comes_without_the_librarys_function(void **state)
{
    const size_t bytes = (size_t) PAGES * (size_t) sysconf(_SC_PAGESIZE);
    unsigned char has_memory[PAGES];
    const int fd = memfd_create("populate", MFD_CLOEXEC);

    assert_true(0 <= fd);
    assert_int_equal(ftruncate(fd, (off_t) bytes), 0);
    uint8_t *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(MAP_FAILED != mem);
    called = 0;
    assert_int_equal(dn_shm_populate(fd, mem, 0, bytes), 0);
    dn_shm_enter_pages(mem, bytes);
    assert_int_equal(called, 0);
    assert_int_equal(mincore(mem, bytes, has_memory), 0);
    for (unsigned i = 0; i < PAGES; i++) {
        assert_int_equal(has_memory[i] & 1, 1);
    }
    munmap(mem, bytes);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_without_the_librarys_function),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
