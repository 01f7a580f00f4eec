// The product of repacked weights with one column or a group of columns: a function for each format and each dot product of
// bytes that a machine may have, made from the rows of REPACKED_FORMATS.
#pragma once
#include "repacked-iq4.h"

// `apart` is a constant: of formats that need no functions apart, those for a signed dot product are never called, and left out.
#define BY_DOT(apart, call, name)                                                                                \
  if (c.dot == SIGNED_DOT && apart) { call(name##_signed_dot); }                                                  \
  else if (c.dot) { call(name##_dot); }                                                                           \
  else { call(name); }

#define DEFINE(NAME, name, product, dot)                                                                         \
  NOINLINE void name(const uint8_t *x, int64_t blocks, const uint8_t *y, float *out, constants k) {               \
    product(TYPE_##NAME, x, blocks, y, out, k, dot);                                                             \
  }
#define DEFINE_GEMV(NAME, name, quants, scales, record, subtracted, codes, apart, gemv, multiply)                 \
  DEFINE(NAME, gemv_repacked_##name, gemv, NO_DOT)                                                               \
  DEFINE(NAME, gemv_repacked_##name##_dot, gemv, UNSIGNED_DOT)                                                   \
  DEFINE(NAME, gemv_repacked_##name##_signed_dot, gemv, SIGNED_DOT)
REPACKED_FORMATS(DEFINE_GEMV)
#undef DEFINE

// `rows` rows (whole tiles) of repacked weights, `row_bytes` each.
NOINLINE void gemv_repacked(int32_t type, const uint8_t *x, size_t row_bytes, int64_t rows, int64_t k, const uint8_t *record,
                            float *out, constants c) {
  const int64_t blocks = k / format_of_repacked(type).weights;
#define CALL(name) name(x, blocks, record, out, c)
#define CASE(NAME, name, quants, scales, kind, subtracted, codes, apart, ...) \
  case TYPE_##NAME: BY_DOT(apart, CALL, gemv_repacked_##name) break;
  for (int64_t row = 0; row < rows; row += TILE_ROWS, x += TILE_ROWS * row_bytes, out += TILE_ROWS) {
    switch (type) {
      REPACKED_FORMATS(CASE)
    }
  }
#undef CASE
#undef CALL
}

#define DEFINE(NAME, name, product, n, dot)                                                                      \
  NOINLINE void name##_##n(const uint8_t *x, int64_t blocks, const uint8_t *y, repacked_results out, constants k) {\
    const int many = AT_ONCE(TYPE_##NAME, n);                                                                    \
    const int64_t in_turn = WEIGHTS_IN_TURN / format_of_repacked(TYPE_##NAME).weights;                           \
    tile_parts acc = zero_parts();                                                                               \
    for (; blocks > 0; blocks -= in_turn) {                                                                      \
      ROLLED for (int part = 0; part < PARTS(many); part++) {                                                    \
        tile_sums sums = part_of(&acc, part, many, n);                                                           \
        product(TYPE_##NAME, x, part, blocks < in_turn ? blocks : in_turn, y, n, &sums, &k, dot);                \
        put_part(&acc, part, many, n, &sums);                                                                    \
      }                                                                                                          \
      x += (size_t)in_turn * format_of_repacked(TYPE_##NAME).block * TILE_ROWS;                                  \
      y += 4 * record_bytes(TYPE_##NAME, WEIGHTS_IN_TURN, dot);                                                  \
    }                                                                                                            \
    store_parts(&acc, many, n, out);                                                                             \
  }
#define DEFINE_FOR_DOTS(NAME, name, multiply, n)                                                                 \
  DEFINE(NAME, multiply_repacked_##name, multiply, n, NO_DOT)                                                    \
  DEFINE(NAME, multiply_repacked_##name##_dot, multiply, n, UNSIGNED_DOT)                                        \
  DEFINE(NAME, multiply_repacked_##name##_signed_dot, multiply, n, SIGNED_DOT)
#define DEFINE_MULTIPLIES(NAME, name, quants, scales, record, subtracted, codes, apart, gemv, multiply)          \
  DEFINE_FOR_DOTS(NAME, name, multiply, 2)                                                                       \
  DEFINE_FOR_DOTS(NAME, name, multiply, 3)                                                                       \
  DEFINE_FOR_DOTS(NAME, name, multiply, 4)
REPACKED_FORMATS(DEFINE_MULTIPLIES)
#undef DEFINE

// Rows of repacked weights (whole tiles, `row_bytes` each) × a group of up to four columns.
NOINLINE void multiply_repacked(int32_t type, const uint8_t *x, size_t row_bytes, int64_t rows, int64_t k, const uint8_t *record,
                                repacked_results out, constants c) {
  const int64_t blocks = k / format_of_repacked(type).weights;
// Where the machine has a dot product, three columns take what four do, which keeps the code small.
#define CALL(name)                                                                                               \
  if (out.columns <= 2) name##_2(x, blocks, record, out, c);                                                     \
  else if (out.columns == 3 && c.dot == NO_DOT) name##_3(x, blocks, record, out, c);                             \
  else name##_4(x, blocks, record, out, c)
#define CASE(NAME, name, quants, scales, kind, subtracted, codes, apart, ...) \
  case TYPE_##NAME: BY_DOT(apart, CALL, multiply_repacked_##name) break;
  for (int64_t row = 0; row < rows; row += TILE_ROWS, x += TILE_ROWS * row_bytes, out.first += TILE_ROWS) {
    switch (type) {
      REPACKED_FORMATS(CASE)
    }
  }
#undef CASE
#undef CALL
}
