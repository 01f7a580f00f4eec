// The product of repacked weights with one column or a group of columns, by format.
#pragma once
#include "repacked-multiply.h"

// `rows` rows (whole tiles) of repacked weights, `row_bytes` each.
NOINLINE void gemv_repacked(int32_t type, const uint8_t *x, size_t row_bytes, int64_t rows, int64_t k, const uint8_t *record,
                            float *out, constants c) {
  const int64_t blocks = k / weights_of_block(type);
#define CASE(TYPE, name)                                                                                         \
  case TYPE:                                                                                                     \
    if (takes_dot(TYPE, c.dot)) name##_dot(x, blocks, record, out, c);                                           \
    else name(x, blocks, record, out, c);                                                                        \
    break;
  for (int64_t row = 0; row < rows; row += TILE_ROWS, x += TILE_ROWS * row_bytes, out += TILE_ROWS) {
    switch (type) {
      CASE(TYPE_Q4_0, gemv_repacked_q4_0)
      CASE(TYPE_MXFP4, gemv_repacked_mxfp4)
      CASE(TYPE_Q8_0, gemv_repacked_q8_0)
      CASE(TYPE_Q4_K, gemv_repacked_q4_K)
      CASE(TYPE_Q5_K, gemv_repacked_q5_K)
      CASE(TYPE_Q6_K, gemv_repacked_q6_K)
    }
  }
#undef CASE
}

// Rows of repacked weights (whole tiles, `row_bytes` each) × a group of up to four columns.
NOINLINE void multiply_repacked(int32_t type, const uint8_t *x, size_t row_bytes, int64_t rows, int64_t k, const uint8_t *record,
                                repacked_results out, constants c) {
  const int64_t blocks = k / weights_of_block(type);
#define CALL(name)                                                                                               \
  if (out.columns <= 2) name##_2(tile, part, blocks, record, out, c);                                            \
  else name##_4(tile, part, blocks, record, out, c)
#define CASE(TYPE, name)                                                                                         \
  case TYPE:                                                                                                     \
    if (takes_dot(TYPE, c.dot)) { CALL(name##_dot); }                                                            \
    else { CALL(name); }                                                                                         \
    break;
  for (int64_t row = 0; row < rows; row += TILE_ROWS / 2, out.first += TILE_ROWS / 2) {
    const uint8_t *tile = x + (size_t)(row / TILE_ROWS * TILE_ROWS) * row_bytes;
    const int part = (int)(row / (TILE_ROWS / 2) % 2);
    switch (type) {
      CASE(TYPE_Q4_0, multiply_repacked_q4_0)
      CASE(TYPE_MXFP4, multiply_repacked_mxfp4)
      CASE(TYPE_Q8_0, multiply_repacked_q8_0)
      CASE(TYPE_Q4_K, multiply_repacked_q4_K)
      CASE(TYPE_Q5_K, multiply_repacked_q5_K)
      CASE(TYPE_Q6_K, multiply_repacked_q6_K)
    }
  }
#undef CASE
#undef CALL
}
