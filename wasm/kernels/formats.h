// The quantized formats that the kernels multiply: the one table of them in C; wasm/quantizations.ts has the same names.
//
//   X(NAME, name, type, bytes, wide, granule, planes, multiply, offset, ...)
//
//   type      number of ggml_type
//   bytes     of a block of 32 weights, or of a super-block of 256
//   wide      1: GEMV wants activations as i16
//   granule   weights that share a scale: 32 or 16
//   planes    bytes of a panel for each weight
//   multiply  which function of gemm-micro-kernel.h takes its panels
//   offset    of formats in blocks: what is subtracted from the unsigned quants; -1 where a minimum is added instead
//
// A format needs gemv_name_1 to _4, pack_name, and FORMAT_NAME (blocks) or SUPER_NAME (super-blocks). What llama.cpp calls
// follows from the group that it is in: dot products, and floats of a row.
//
// Formats whose weights are repacked have a second row:
//
//   R(NAME, name, quants, scales, record, subtracted, codes, apart, gemv, multiply)
//
//   quants      bytes of 32 weights of a tile
//   scales      how a tile has its scales: see repacked-layout.h
//   record      how activations are quantized for it: see repacked-activations.h
//   subtracted  from the unsigned quants of its products
//   codes       code book of its nibbles, by the machine's dot product
//   apart       1: separate functions for a signed and an unsigned dot product of bytes
//   gemv        the product with one column, and `multiply` that with two to four; both get `dot` as a constant
#pragma once

// Blocks of 32 with unsigned quants; the last field is the code book.
#define UNSIGNED_FORMATS(X)                              \
  X(Q4_0, q4_0, 2, 18, 0, 32, 1, multiply_4_bits, 8, ZERO_I32)            \
  X(Q4_1, q4_1, 3, 20, 0, 32, 1, multiply_4_bits, -1, ZERO_I32)           \
  X(Q5_0, q5_0, 6, 22, 0, 32, 1, multiply_5_bits, 16, ZERO_I32)           \
  X(Q5_1, q5_1, 7, 24, 0, 32, 1, multiply_5_bits, -1, ZERO_I32)           \
  X(MXFP4, mxfp4, 39, 17, 0, 32, 1, multiply_5_bits, 12, codes_mxfp4())

// Blocks of 32 with signed quants, or nibbles with a signed code book; the last fields: 1 for Q8_0, and the code book.
#define SIGNED_FORMATS(X)                                \
  X(Q8_0, q8_0, 8, 34, 1, 32, 2, multiply_8_bits, 0, 1, ZERO_I32)         \
  X(IQ4_NL, iq4_nl, 20, 18, 1, 32, 2, multiply_8_bits, 0, 0, codes_iq4_nl())

// Super-blocks of 256.
#define SUPER_FORMATS(X)                                 \
  X(Q2_K, q2_K, 10, 84, 0, 16, 1, multiply_3_bits_16, 0)                     \
  X(Q3_K, q3_K, 11, 110, 0, 16, 1, multiply_3_bits_16, 0)                    \
  X(Q4_K, q4_K, 12, 144, 0, 32, 1, multiply_4_bits, 0)                    \
  X(Q5_K, q5_K, 13, 176, 0, 32, 1, multiply_5_bits, 0)                    \
  X(Q6_K, q6_K, 14, 210, 0, 16, 1, multiply_6_bits_16, 0)                    \
  X(IQ4_XS, iq4_xs, 23, 136, 0, 32, 2, multiply_8_bits, 0)

#define BLOCK_FORMATS(X) UNSIGNED_FORMATS(X) SIGNED_FORMATS(X)
#define FORMATS(X) BLOCK_FORMATS(X) SUPER_FORMATS(X)

// Formats whose weights are repacked.
#define REPACKED_FORMATS(R)                                                                                             \
  R(Q4_0, q4_0, TILE_Q4, HALVES, BYTES_OF_32, 8, ZERO_I32, 0, gemv_blocks, multiply_blocks)                              \
  R(IQ4_NL, iq4_nl, TILE_Q4, HALVES, BYTES_OF_32, 8, codes_of_iq4(dot), 0, gemv_iq4_nl, multiply_iq4_nl)                 \
  R(MXFP4, mxfp4, TILE_Q4, EXPONENTS, BYTES_OF_32, 12, codes_mxfp4(), 0, gemv_blocks, multiply_blocks)                   \
  R(Q8_0, q8_0, TILE_Q8, HALVES, WORDS_OF_32, 128, ZERO_I32, 1, gemv_q8_0, multiply_q8_0)                                \
  R(Q4_K, q4_K, TILE_Q4, MINIMUMS, BYTES_OF_256, 0, ZERO_I32, 0, gemv_with_minimums, multiply_with_minimums)             \
  R(Q5_K, q5_K, TILE_Q5, MINIMUMS, BYTES_OF_256, 16, ZERO_I32, 0, gemv_with_minimums, multiply_with_minimums)            \
  R(Q6_K, q6_K, TILE_Q6, HALVES_AND_WORDS, BYTES_OF_256, 32, ZERO_I32, 0, gemv_q6_K, multiply_q6_K)                      \
  R(IQ4_XS, iq4_xs, TILE_Q4, SIX_BITS, BYTES_OF_256, 8, codes_of_iq4(dot), 0, gemv_iq4_xs, multiply_iq4_xs)

// Formats that a KV cache may have.
#define CACHE_FORMATS(X) X(Q4_0, q4_0) X(Q4_1, q4_1) X(Q5_0, q5_0) X(Q5_1, q5_1) X(Q8_0, q8_0)

enum {
#define NUMBER(NAME, name, type, ...) TYPE_##NAME = type,
  FORMATS(NUMBER)
#undef NUMBER
#define BYTES(NAME, name, type, bytes, ...) BYTES_##NAME = bytes,
  FORMATS(BYTES)
#undef BYTES
};
