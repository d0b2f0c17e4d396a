/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_png.h
 * A picture in the format PNG, row by row, and not compressed: no library is needed. */
#ifndef DN_DSM_PNG_H
#define DN_DSM_PNG_H

#include <stdint.h>
#include <stdio.h>

/** A picture that is being written. ferror() of its file tells whether it is whole. */
typedef struct dn_dsm_png {
    FILE *file;
    uint32_t width;  /**< in points: 1 to DN_DSM_PNG_WIDTH_MAX */
    uint32_t height; /**< rows that have not been written */
    uint32_t crc;    /**< of the chunk that is being written */
    uint32_t sum[2]; /**< Adler-32 of all rows so far */
} dn_dsm_png_t;

/** The most points of a row: a row is one block of deflate, which has at most 65535 bytes. */
#define DN_DSM_PNG_WIDTH_MAX 21844u

/** Begin a picture. @param[in] height  Rows, at least 1. */
void dn_dsm_png_begin(dn_dsm_png_t *png, FILE *file, uint32_t width, uint32_t height);
/** Write the next row; the last one ends the picture. @param[in] rgb  3 bytes for each point. */
void dn_dsm_png_row(dn_dsm_png_t *png, const uint8_t *rgb);

#endif
