// The product of repacked weights with one column or a group of columns, by format.
#pragma once
#include "repacked-iq4.h"
#include "repacked-multiply.h"

#define DEFINE_GEMV(name, ...)                                                                                   \
  NOINLINE void name(const uint8_t *x, int64_t blocks, const uint8_t *y, float *out, constants k) { __VA_ARGS__; }
DEFINE_GEMV(gemv_repacked_q4_0, gemv_blocks(TYPE_Q4_0, x, blocks, y, out, k, 0))
DEFINE_GEMV(gemv_repacked_mxfp4, gemv_blocks(TYPE_MXFP4, x, blocks, y, out, k, 0))
DEFINE_GEMV(gemv_repacked_q8_0, gemv_words_q8_0(x, blocks, y, out, k))
DEFINE_GEMV(gemv_repacked_q4_K, gemv_with_minimums(TYPE_Q4_K, x, blocks, y, out, k, 0))
DEFINE_GEMV(gemv_repacked_q5_K, gemv_with_minimums(TYPE_Q5_K, x, blocks, y, out, k, 0))
DEFINE_GEMV(gemv_repacked_q6_K, gemv_q6_K(x, blocks, y, out, k, 0))
DEFINE_GEMV(gemv_repacked_q4_0_dot, gemv_blocks(TYPE_Q4_0, x, blocks, y, out, k, 1))
DEFINE_GEMV(gemv_repacked_mxfp4_dot, gemv_blocks(TYPE_MXFP4, x, blocks, y, out, k, 1))
DEFINE_GEMV(gemv_repacked_q8_0_unsigned, gemv_dot_q8_0(x, blocks, y, out, k, 0))
DEFINE_GEMV(gemv_repacked_q8_0_signed, gemv_dot_q8_0(x, blocks, y, out, k, 1))
DEFINE_GEMV(gemv_repacked_q4_K_dot, gemv_with_minimums(TYPE_Q4_K, x, blocks, y, out, k, 1))
DEFINE_GEMV(gemv_repacked_q5_K_dot, gemv_with_minimums(TYPE_Q5_K, x, blocks, y, out, k, 1))
DEFINE_GEMV(gemv_repacked_q6_K_dot, gemv_q6_K(x, blocks, y, out, k, 1))
DEFINE_GEMV(gemv_repacked_iq4_nl, gemv_iq4_nl(x, blocks, y, out, k))
DEFINE_GEMV(gemv_repacked_iq4_nl_dot, gemv_blocks(TYPE_IQ4_NL, x, blocks, y, out, k, 1))
DEFINE_GEMV(gemv_repacked_iq4_xs, gemv_iq4_xs(x, blocks, y, out, k, 0))
DEFINE_GEMV(gemv_repacked_iq4_xs_dot, gemv_iq4_xs(x, blocks, y, out, k, 1))

// `rows` rows (whole tiles) of repacked weights, `row_bytes` each.
NOINLINE void gemv_repacked(int32_t type, const uint8_t *x, size_t row_bytes, int64_t rows, int64_t k, const uint8_t *record,
                            float *out, constants c) {
  const int64_t blocks = k / weights_of_block(type);
#define CASE(TYPE, name)                                                                                         \
  case TYPE:                                                                                                     \
    if (c.dot) name##_dot(x, blocks, record, out, c);                                           \
    else name(x, blocks, record, out, c);                                                                        \
    break;
  for (int64_t row = 0; row < rows; row += TILE_ROWS, x += TILE_ROWS * row_bytes, out += TILE_ROWS) {
    switch (type) {
      CASE(TYPE_Q4_0, gemv_repacked_q4_0)
      CASE(TYPE_MXFP4, gemv_repacked_mxfp4)
    case TYPE_Q8_0:
      if (c.dot == UNSIGNED_DOT) gemv_repacked_q8_0_unsigned(x, blocks, record, out, c);
      else if (c.dot) gemv_repacked_q8_0_signed(x, blocks, record, out, c);
      else gemv_repacked_q8_0(x, blocks, record, out, c);
      break;
      CASE(TYPE_Q4_K, gemv_repacked_q4_K)
      CASE(TYPE_Q5_K, gemv_repacked_q5_K)
      CASE(TYPE_Q6_K, gemv_repacked_q6_K)
      CASE(TYPE_IQ4_NL, gemv_repacked_iq4_nl)
      CASE(TYPE_IQ4_XS, gemv_repacked_iq4_xs)
    }
  }
#undef CASE
}

#define DEFINE_REPACKED(name, n, ...)                                                                            \
  NOINLINE void name##_##n(const uint8_t *x, int part, int64_t blocks, const uint8_t *y, repacked_results out, constants k) { \
    __VA_ARGS__;                                                                                                 \
  }
#define DEFINE_REPACKED_FOR_COLUMNS(n)                                                                           \
  DEFINE_REPACKED(multiply_repacked_q4_0, n, multiply_blocks(TYPE_Q4_0, x, part, blocks, y, n, out, k, 0)) \
  DEFINE_REPACKED(multiply_repacked_mxfp4, n, multiply_blocks(TYPE_MXFP4, x, part, blocks, y, n, out, k, 0)) \
  DEFINE_REPACKED(multiply_repacked_q8_0, n, multiply_words_q8_0(x, part, blocks, y, n, out, k))                 \
  DEFINE_REPACKED(multiply_repacked_q4_K, n, multiply_with_minimums(TYPE_Q4_K, x, part, blocks, y, n, out, k, 0)) \
  DEFINE_REPACKED(multiply_repacked_q5_K, n, multiply_with_minimums(TYPE_Q5_K, x, part, blocks, y, n, out, k, 0)) \
  DEFINE_REPACKED(multiply_repacked_q6_K, n, multiply_q6_K(x, part, blocks, y, n, out, k, 0))                    \
  DEFINE_REPACKED(multiply_repacked_q4_0_dot, n, multiply_blocks(TYPE_Q4_0, x, part, blocks, y, n, out, k, 1)) \
  DEFINE_REPACKED(multiply_repacked_mxfp4_dot, n, multiply_blocks(TYPE_MXFP4, x, part, blocks, y, n, out, k, 1)) \
  DEFINE_REPACKED(multiply_repacked_q8_0_unsigned, n, multiply_dot_q8_0(x, part, blocks, y, n, out, k, 0))       \
  DEFINE_REPACKED(multiply_repacked_q8_0_signed, n, multiply_dot_q8_0(x, part, blocks, y, n, out, k, 1))         \
  DEFINE_REPACKED(multiply_repacked_q4_K_dot, n, multiply_with_minimums(TYPE_Q4_K, x, part, blocks, y, n, out, k, 1)) \
  DEFINE_REPACKED(multiply_repacked_q5_K_dot, n, multiply_with_minimums(TYPE_Q5_K, x, part, blocks, y, n, out, k, 1)) \
  DEFINE_REPACKED(multiply_repacked_q6_K_dot, n, multiply_q6_K(x, part, blocks, y, n, out, k, 1))                \
  DEFINE_REPACKED(multiply_repacked_iq4_nl, n, multiply_iq4_nl(x, part, blocks, y, n, out, k))                   \
  DEFINE_REPACKED(multiply_repacked_iq4_nl_dot, n, multiply_blocks(TYPE_IQ4_NL, x, part, blocks, y, n, out, k, 1)) \
  DEFINE_REPACKED(multiply_repacked_iq4_xs, n, multiply_iq4_xs(x, part, blocks, y, n, out, k))                   \
  DEFINE_REPACKED(multiply_repacked_iq4_xs_dot, n, multiply_dot_iq4_xs(x, part, blocks, y, n, out, k))
DEFINE_REPACKED_FOR_COLUMNS(2)
DEFINE_REPACKED_FOR_COLUMNS(4)

// Rows of repacked weights (whole tiles, `row_bytes` each) × a group of up to four columns.
NOINLINE void multiply_repacked(int32_t type, const uint8_t *x, size_t row_bytes, int64_t rows, int64_t k, const uint8_t *record,
                                repacked_results out, constants c) {
  const int64_t blocks = k / weights_of_block(type);
#define CALL(name)                                                                                               \
  if (out.columns <= 2) name##_2(tile, part, blocks, record, out, c);                                            \
  else name##_4(tile, part, blocks, record, out, c)
#define CASE(TYPE, name)                                                                                         \
  case TYPE:                                                                                                     \
    if (c.dot) { CALL(name##_dot); }                                                            \
    else { CALL(name); }                                                                                         \
    break;
  for (int64_t row = 0; row < rows; row += TILE_ROWS / 2, out.first += TILE_ROWS / 2) {
    const uint8_t *tile = x + (size_t)(row / TILE_ROWS * TILE_ROWS) * row_bytes;
    const int part = (int)(row / (TILE_ROWS / 2) % 2);
    switch (type) {
      CASE(TYPE_Q4_0, multiply_repacked_q4_0)
      CASE(TYPE_MXFP4, multiply_repacked_mxfp4)
    case TYPE_Q8_0:
      if (c.dot == UNSIGNED_DOT) { CALL(multiply_repacked_q8_0_unsigned); }
      else if (c.dot) { CALL(multiply_repacked_q8_0_signed); }
      else { CALL(multiply_repacked_q8_0); }
      break;
      CASE(TYPE_Q4_K, multiply_repacked_q4_K)
      CASE(TYPE_Q5_K, multiply_repacked_q5_K)
      CASE(TYPE_Q6_K, multiply_repacked_q6_K)
      CASE(TYPE_IQ4_NL, multiply_repacked_iq4_nl)
      CASE(TYPE_IQ4_XS, multiply_repacked_iq4_xs)
    }
  }
#undef CASE
#undef CALL
}
