/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_png.c
 * See dn_dsm_png.h. Each row is an IDAT chunk with one stored block of deflate. The head of zlib's format is before the first block, and the
 * sum of all rows behind the last block. */
#include "dn_config.h"

#include "dn_dsm_png.h"

/** Write bytes of a chunk, and add them to its CRC. */
static void dn_dsm_png_put(dn_dsm_png_t *png, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        png->crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            png->crc = png->crc >> 1 ^ (0 != (png->crc & 1) ? UINT32_C(0xedb88320) : 0);
        }
    }
    fwrite(bytes, 1, len, png->file);
}

/** Write a number, the highest byte first. */
static void dn_dsm_png_number(dn_dsm_png_t *png, uint32_t number)
{
    const uint8_t bytes[4] = {(uint8_t) (number >> 24), (uint8_t) (number >> 16), (uint8_t) (number >> 8),
                              (uint8_t) number};

    dn_dsm_png_put(png, bytes, sizeof(bytes));
}

static void dn_dsm_png_chunk(dn_dsm_png_t *png, const char *type, uint32_t len)
{
    dn_dsm_png_number(png, len);
    png->crc = UINT32_MAX;
    dn_dsm_png_put(png, (const uint8_t *) type, 4);
}

static void dn_dsm_png_chunk_end(dn_dsm_png_t *png)
{
    dn_dsm_png_number(png, ~png->crc);
}

void dn_dsm_png_begin(dn_dsm_png_t *png, FILE *file, uint32_t width, uint32_t height)
{
    static const uint8_t mark[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    /* 8 bits for a colour; 2: red, green and blue; 0: compression by deflate; 0: the usual filters; 0: rows in order. */
    static const uint8_t form[5] = {8, 2, 0, 0, 0};

    *png = (dn_dsm_png_t){.file = file, .width = width, .height = height, .sum = {1, 0}};
    fwrite(mark, 1, sizeof(mark), file);
    dn_dsm_png_chunk(png, "IHDR", 13);
    dn_dsm_png_number(png, width);
    dn_dsm_png_number(png, height);
    dn_dsm_png_put(png, form, sizeof(form));
    dn_dsm_png_chunk_end(png);
    dn_dsm_png_chunk(png, "IDAT", 2);
    dn_dsm_png_put(png, (const uint8_t[2]){0x78, 0x01}, 2);
    dn_dsm_png_chunk_end(png);
}

void dn_dsm_png_row(dn_dsm_png_t *png, const uint8_t *rgb)
{
    const uint32_t colours = 3 * png->width, len = 1 + colours;
    const uint8_t last = 1 == png->height;
    /* Of the block: whether it is the last one, its length, and the complement of its length. Of the row: 0, it is not filtered. */
    const uint8_t head[6] = {last,           (uint8_t) len,         (uint8_t) (len >> 8),
                             (uint8_t) ~len, (uint8_t) (~len >> 8), 0};

    dn_dsm_png_chunk(png, "IDAT", (uint32_t) sizeof(head) + colours + (last ? 4 : 0));
    dn_dsm_png_put(png, head, sizeof(head));
    dn_dsm_png_put(png, rgb, colours);
    png->sum[1] = (png->sum[1] + png->sum[0]) % 65521;
    for (uint32_t i = 0; i < colours; i++) {
        png->sum[0] = (png->sum[0] + rgb[i]) % 65521;
        png->sum[1] = (png->sum[1] + png->sum[0]) % 65521;
    }
    if (last) {
        dn_dsm_png_number(png, png->sum[1] << 16 | png->sum[0]);
    }
    dn_dsm_png_chunk_end(png);
    png->height--;
    if (last) {
        dn_dsm_png_chunk(png, "IEND", 0);
        dn_dsm_png_chunk_end(png);
    }
}
