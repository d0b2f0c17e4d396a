/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "counter.h"

void counter_open(counter_t *counter, const char *name)
{
    char description[512] = "";
    int name_length = 0;
    int description_length = sizeof(description);
    int level, index, verbosity, class, bind, readonly, continuous, atomic, count;
    MPI_Datatype type;
    MPI_T_enum enumeration;

    counter->name = name;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&counter->session);
    if (MPI_SUCCESS != MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index)) {
        verify_fail("there is no performance variable %s of class counter", name);
    }
    MPI_T_pvar_get_info(index, NULL, &name_length, &verbosity, &class, &type, &enumeration, description,
                        &description_length, &bind, &readonly, &continuous, &atomic);
    MPI_Type_size(type, &counter->width);
    if (MPI_T_BIND_NO_OBJECT != bind) {
        verify_fail("%s is bound to an object", name);
    }
    if ('\0' == description[0]) {
        verify_fail("%s has no description", name);
    }
    if (4 != counter->width && 8 != counter->width) {
        verify_fail("%s is neither of 32 nor of 64 bits", name);
    }
    if (MPI_SUCCESS != MPI_T_pvar_handle_alloc(counter->session, index, NULL, &counter->handle, &count)
        || 1 != count) {
        verify_fail("no handle of one element for %s", name);
    }
    if (!continuous) {
        MPI_T_pvar_start(counter->session, counter->handle);
    }
}

unsigned long long counter_read(const counter_t *counter)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;
    void *to = 8 == counter->width ? (void *) &wide : (void *) &narrow;

    if (MPI_SUCCESS != MPI_T_pvar_read(counter->session, counter->handle, to)) {
        verify_fail("%s cannot be read", counter->name);
    }
    return 8 == counter->width ? wide : narrow;
}

void counter_close(counter_t *counter)
{
    MPI_T_pvar_handle_free(counter->session, &counter->handle);
    MPI_T_pvar_session_free(&counter->session);
    MPI_T_finalize();
}
