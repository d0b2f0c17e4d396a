/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Stacks of nodes. On x86-64 a switch is a few moves; elsewhere, and under a sanitizer that has to follow, ucontext does it with two system
 * calls: 15 ns against 340 ns (perf/papers/dn_predict --speed).
 */
#include "dn_config.h"

#include <stdlib.h>
#include <ucontext.h>
#if defined(__SANITIZE_ADDRESS__)
#    include <sanitizer/asan_interface.h>
#endif
#if defined(__SANITIZE_THREAD__)
#    include <sanitizer/tsan_interface.h>
#endif

#include "dn_model_int.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void dn_model_swap(void **save_p, void *load) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".p2align 4\n"
        ".globl dn_model_swap\n"
        ".hidden dn_model_swap\n"
        ".type dn_model_swap, @function\n"
        "dn_model_swap:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size dn_model_swap, . - dn_model_swap\n");

dn_status_t dn_model_stack_make(void **context_p, uint8_t *stack, size_t bytes, void (*enter)(void))
{
    /* Six registers, the address that `ret` takes, and the place of a caller's: so the stack is aligned as by a call. */
    void **top = (void **) (stack + bytes) - 8;

    top[6] = (void *) enter;
    *context_p = top;
    return DN_OK;
}

dn_status_t dn_model_stack_here(void **context_p)
{
    *context_p = NULL;
    return DN_OK;
}

void dn_model_stack_switch(void **from_p, void *to)
{
    dn_model_swap(from_p, to);
}

void dn_model_stack_free(void *context)
{
    (void) context;
}
#else
typedef struct dn_context {
    ucontext_t saved;
    void *fiber;    /**< what TSan calls it, which follows nothing else */
    uint8_t *stack; /**< of a node; NULL: the caller's own */
    size_t bytes;
} dn_context_t;

dn_status_t dn_model_stack_here(void **context_p)
{
    dn_context_t *context = calloc(1, sizeof(*context));

    if (NULL == context) {
        return DN_ERR_NOMEM;
    }
#    if defined(__SANITIZE_THREAD__)
    context->fiber = __tsan_get_current_fiber();
#    endif
    *context_p = context;
    return DN_OK;
}

dn_status_t dn_model_stack_make(void **context_p, uint8_t *stack, size_t bytes, void (*enter)(void))
{
    if (DN_OK != dn_model_stack_here(context_p)) {
        return DN_ERR_NOMEM;
    }
    dn_context_t *context = *context_p;
    getcontext(&context->saved);
    context->saved.uc_stack.ss_sp = stack;
    context->saved.uc_stack.ss_size = bytes;
    context->saved.uc_link = NULL;
    makecontext(&context->saved, enter, 0);
    context->stack = stack;
    context->bytes = bytes;
#    if defined(__SANITIZE_THREAD__)
    context->fiber = __tsan_create_fiber(0);
#    endif
    return DN_OK;
}

void dn_model_stack_switch(void **from_p, void *to)
{
    dn_context_t *from = *from_p;
    dn_context_t *context = to;

#    if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(context->fiber, 0);
#    endif
    swapcontext(&from->saved, &context->saved);
}

void dn_model_stack_free(void *context)
{
    dn_context_t *const left = context;

    if (NULL != left && NULL != left->stack) {
#    if defined(__SANITIZE_ADDRESS__)
        /* Its last functions did not return, so the sanitizer still forbids their frames, to whatever is mapped there next. */
        ASAN_UNPOISON_MEMORY_REGION(left->stack, left->bytes);
#    endif
#    if defined(__SANITIZE_THREAD__)
        __tsan_destroy_fiber(left->fiber);
#    endif
    }
    free(left);
}
#endif
