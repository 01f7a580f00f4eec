// Matrix × one to four columns for the formats in blocks of 32: four rows at a time share each load of the activations,
// and the columns share what is unpacked of the rows.
//
// Q4_0 and its like, per block and four rows: 4 × (load, two nibble extractions), and for each column 4 × (two byte dot
// products and their sum), then 7 shuffles and sums that leave one lane for each row, so that one conversion, one FMA
// for the scale and one for the offset do for four rows. Registers: 8 of weights, 2 of activations, 3 of sums, scale,
// mask; the accumulators of more than one column are spilled, one load and one store each.
// The four rows are `row_bytes` apart; the caller chooses rows far from each other, because four streams that are
// far apart make better use of the memory than four neighbors.
#pragma once
#include "block-formats.h"
#include "quantize-activations.h"

enum { MOST_GEMV_COLUMNS = 4 };

INLINE void scatter(float *out, int64_t stride, vec v) {
  out[0] = wasm_f32x4_extract_lane(v, 0);
  out[stride] = wasm_f32x4_extract_lane(v, 1);
  out[2 * stride] = wasm_f32x4_extract_lane(v, 2);
  out[3 * stride] = wasm_f32x4_extract_lane(v, 3);
}

// Columns of activations, from quantize_column_32 or quantize_column_256.
typedef struct {
  const uint8_t *quants;
  size_t bytes;        // from a column's quants to the next one's
  const float *scales; // [block][column]
  const float *sums;   // [block][column], times what the format subtracts from its quants
  int64_t columns;     // in all
} gemv_columns;

// Destination of the results of four or two rows.
typedef struct {
  float *first;
  int64_t row_stride; // in floats
  size_t column_bytes;
} gemv_results;

INLINE float *result_of(gemv_results out, int column) {
  return (float *)((uint8_t *)out.first + (size_t)column * out.column_bytes);
}

// Lane r of the result is the sum of the eight i16 of row r. `half_range`: sums of four lanes fit an i16.
INLINE vec totals_of_rows(vec a, vec b, vec c, vec d, int half_range) {
  const vec ab = wasm_i16x8_add(wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), wasm_i32x4_shuffle(a, b, 2, 6, 3, 7));
  const vec cd = wasm_i16x8_add(wasm_i32x4_shuffle(c, d, 0, 4, 1, 5), wasm_i32x4_shuffle(c, d, 2, 6, 3, 7));
  const vec even = wasm_i64x2_shuffle(ab, cd, 0, 2), odd = wasm_i64x2_shuffle(ab, cd, 1, 3);
  if (half_range) return pair_sums_i32(wasm_i16x8_add(even, odd));
  return wasm_i32x4_add(pair_sums_i32(even), pair_sums_i32(odd));
}

// Q4_0, Q4_1, Q5_0, Q5_1, MXFP4. Products of a pair of nibbles with activations reach 2·15·127 = 3810, and eight times
// that fits an i16; of 5 bits four times 7874 does.
INLINE void gemv_unsigned(const uint8_t *x, size_t row_bytes, int64_t blocks, gemv_columns y, int n, gemv_results out,
                          constants k, block_format format) {
  vec acc[MOST_GEMV_COLUMNS] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  for (int64_t b = 0; b < blocks; b++, x += format.bytes, y.quants += 32, y.scales += y.columns, y.sums += y.columns) {
    const bytes32 w0 = unpack_unsigned(x, format, &k), w1 = unpack_unsigned(x + row_bytes, format, &k);
    const bytes32 w2 = unpack_unsigned(x + 2 * row_bytes, format, &k), w3 = unpack_unsigned(x + 3 * row_bytes, format, &k);
    const vec d = format.is_mxfp4 ? exponents_of_rows(x, row_bytes) : f16_of_rows(x, row_bytes, &k);
    const vec correction = format.has_minimum ? f16_of_rows(x + 2, row_bytes, &k) : d;
    const vec scales = load(y.scales), sums = load(y.sums);
    _Pragma("clang loop unroll(full)") for (int j = 0; j < n; j++) {
      const uint8_t *yq = y.quants + (size_t)j * y.bytes;
      const vec low = load(yq), high = load(yq + 16);
#define DOTS(w) wasm_i16x8_add(dot_i8_u7(low, w.low), dot_i8_u7(high, w.high))
      const vec totals = totals_of_rows(DOTS(w0), DOTS(w1), DOTS(w2), DOTS(w3), !format.five_bits);
#undef DOTS
      acc[j] = madd(to_f32(totals), wasm_f32x4_mul(d, splat_number(scales, j)), acc[j]);
      acc[j] = nmadd(correction, splat_number(sums, j), acc[j]);
    }
  }
  for (int j = 0; j < n; j++) scatter(result_of(out, j), out.row_stride, acc[j]);
}

// One function for each number of columns.
#define DEFINE_GEMV_UNSIGNED(name, format, n)                                                                    \
  NOINLINE void name##_##n(const uint8_t *x, size_t row_bytes, int64_t blocks, gemv_columns y, gemv_results out, \
                           constants k) {                                                                        \
    gemv_unsigned(x, row_bytes, blocks, y, n, out, k, format);                                                   \
  }
#define DEFINE_FOR_COLUMNS(DEFINE, ...) DEFINE(__VA_ARGS__, 1) DEFINE(__VA_ARGS__, 2) DEFINE(__VA_ARGS__, 3) DEFINE(__VA_ARGS__, 4)
DEFINE_FOR_COLUMNS(DEFINE_GEMV_UNSIGNED, gemv_q4_0, FORMAT_Q4_0)
DEFINE_FOR_COLUMNS(DEFINE_GEMV_UNSIGNED, gemv_q4_1, FORMAT_Q4_1)
DEFINE_FOR_COLUMNS(DEFINE_GEMV_UNSIGNED, gemv_q5_0, FORMAT_Q5_0)
DEFINE_FOR_COLUMNS(DEFINE_GEMV_UNSIGNED, gemv_q5_1, FORMAT_Q5_1)
DEFINE_FOR_COLUMNS(DEFINE_GEMV_UNSIGNED, gemv_mxfp4, FORMAT_MXFP4)

// 32 weights as i16.
typedef struct {
  vec part[4];
} words32;

INLINE words32 widen_block(const uint8_t *block, block_format format, int is_q8_0, const constants *k) {
  if (is_q8_0) {
    return (words32){{wasm_i16x8_load8x8(block + 2), wasm_i16x8_load8x8(block + 10), wasm_i16x8_load8x8(block + 18),
                      wasm_i16x8_load8x8(block + 26)}};
  }
  const bytes32 w = unpack_signed(block, 0, format.quants_at, k);
  return (words32){{wasm_i16x8_extend_low_i8x16(w.low), wasm_i16x8_extend_high_i8x16(w.low),
                    wasm_i16x8_extend_low_i8x16(w.high), wasm_i16x8_extend_high_i8x16(w.high)}};
}

INLINE vec dots_of_words(words32 w, const uint8_t *y) {
  const vec low = wasm_i32x4_add(wasm_i32x4_dot_i16x8(w.part[0], load(y)), wasm_i32x4_dot_i16x8(w.part[1], load(y + 16)));
  return wasm_i32x4_add(low, wasm_i32x4_add(wasm_i32x4_dot_i16x8(w.part[2], load(y + 32)),
                                            wasm_i32x4_dot_i16x8(w.part[3], load(y + 48))));
}

// Q8_0 and IQ4_NL: quants may take all of a signed byte, so both sides are widened to i16. Two rows at a time meet the
// columns: 8 registers of weights.
INLINE void gemv_signed(const uint8_t *x, size_t row_bytes, int64_t blocks, gemv_columns y, int n, gemv_results out,
                        constants k, block_format format, int is_q8_0) {
  vec acc[MOST_GEMV_COLUMNS] = {ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32};
  for (int64_t b = 0; b < blocks; b++, x += format.bytes, y.quants += 64, y.scales += y.columns) {
    vec pairs[2][MOST_GEMV_COLUMNS];
    _Pragma("clang loop unroll(full)") for (int half = 0; half < 2; half++) {
      const uint8_t *block = x + 2 * (size_t)half * row_bytes;
      const words32 even = widen_block(block, format, is_q8_0, &k);
      const words32 odd = widen_block(block + row_bytes, format, is_q8_0, &k);
      _Pragma("clang loop unroll(full)") for (int j = 0; j < n; j++) {
        const uint8_t *yq = y.quants + (size_t)j * y.bytes;
        const vec e = dots_of_words(even, yq), o = dots_of_words(odd, yq);
        pairs[half][j] = wasm_i32x4_add(wasm_i32x4_shuffle(e, o, 0, 4, 1, 5), wasm_i32x4_shuffle(e, o, 2, 6, 3, 7));
      }
    }
    const vec d = f16_of_rows(x, row_bytes, &k), scales = load(y.scales);
    _Pragma("clang loop unroll(full)") for (int j = 0; j < n; j++) {
      const vec totals = wasm_i32x4_add(wasm_i64x2_shuffle(pairs[0][j], pairs[1][j], 0, 2),
                                        wasm_i64x2_shuffle(pairs[0][j], pairs[1][j], 1, 3));
      acc[j] = madd(to_f32(totals), wasm_f32x4_mul(d, splat_number(scales, j)), acc[j]);
    }
  }
  for (int j = 0; j < n; j++) scatter(result_of(out, j), out.row_stride, acc[j]);
}

#define DEFINE_GEMV_SIGNED(name, format, is_q8_0, n)                                                      \
  NOINLINE void name##_##n(const uint8_t *x, size_t row_bytes, int64_t blocks, gemv_columns y, gemv_results out, \
                           constants k) {                                                                        \
    gemv_signed(x, row_bytes, blocks, y, n, out, k, format, is_q8_0);                                            \
  }
DEFINE_FOR_COLUMNS(DEFINE_GEMV_SIGNED, gemv_q8_0, FORMAT_Q8_0, 1)
DEFINE_FOR_COLUMNS(DEFINE_GEMV_SIGNED, gemv_iq4_nl, FORMAT_IQ4_NL, 0)
