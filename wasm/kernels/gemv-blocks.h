// Matrix × vector for the formats in blocks of 32: four rows at a time share each load of the activations.
//
// Registers: 4 accumulators, the correction, 2 (unsigned) or 4 (signed) of activations, scales, constants. Per block
// and row: one load, two nibble extractions, two byte dot products (vpmaddubsw), one widening, one FMA.
// The four rows are `row_bytes` apart; the caller chooses rows far from each other, because four streams that are
// far apart make better use of the memory than four neighbours.
#pragma once
#include "block-formats.h"
#include "quantise-activations.h"

INLINE void scatter(float *out, int64_t stride, vec v) {
  out[0] = wasm_f32x4_extract_lane(v, 0);
  out[stride] = wasm_f32x4_extract_lane(v, 1);
  out[2 * stride] = wasm_f32x4_extract_lane(v, 2);
  out[3 * stride] = wasm_f32x4_extract_lane(v, 3);
}

typedef struct {
  const uint8_t *quants; // of quantise_column_32
  const float *scales;
  const float *sums;
} column32;

#define FOR_FOUR_ROWS(BODY) BODY(0) BODY(1) BODY(2) BODY(3)

// Q4_0, Q4_1, Q5_0, Q5_1.
INLINE void gemv_unsigned(const uint8_t *x, size_t row_bytes, int64_t blocks, column32 y, float *out, int64_t stride,
                          constants k, block_format format) {
  vec acc0 = ZERO_F32, acc1 = ZERO_F32, acc2 = ZERO_F32, acc3 = ZERO_F32, correction = ZERO_F32;
  for (int64_t b = 0; b < blocks; b++, x += format.bytes) {
    const vec d = f16_of_rows(x, row_bytes, &k);
    const vec minimum = format.has_minimum ? f16_of_rows(x + 2, row_bytes, &k) : d;
    correction = madd(minimum, load_splat_f32(y.sums + b), correction);
    const vec scale = wasm_f32x4_mul(d, load_splat_f32(y.scales + b));
    const vec y_low = load(y.quants + 32 * b), y_high = load(y.quants + 32 * b + 16);
#define ROW(r)                                                                                                   \
  {                                                                                                              \
    const bytes32 w = unpack_unsigned(x + r * row_bytes, format, &k);                                            \
    const vec dots = wasm_i16x8_add(dot_i8_u7(y_low, w.low), dot_i8_u7(y_high, w.high));                         \
    acc##r = madd(to_f32(pair_sums_i32(dots)), splat_lane(scale, r), acc##r);                                    \
  }
    FOR_FOUR_ROWS(ROW)
#undef ROW
  }
  const vec sums = sums_f32x4(acc0, acc1, acc2, acc3);
  if (format.has_minimum) scatter(out, stride, wasm_f32x4_add(sums, correction));
  else scatter(out, stride, nmadd(correction, wasm_f32x4_splat(format.offset), sums));
}

NOINLINE void gemv_q4_0(const uint8_t *x, size_t row_bytes, int64_t blocks, column32 y, float *out, int64_t stride,
                        constants k) {
  gemv_unsigned(x, row_bytes, blocks, y, out, stride, k, FORMAT_Q4_0);
}
NOINLINE void gemv_q4_1(const uint8_t *x, size_t row_bytes, int64_t blocks, column32 y, float *out, int64_t stride,
                        constants k) {
  gemv_unsigned(x, row_bytes, blocks, y, out, stride, k, FORMAT_Q4_1);
}
NOINLINE void gemv_q5_0(const uint8_t *x, size_t row_bytes, int64_t blocks, column32 y, float *out, int64_t stride,
                        constants k) {
  gemv_unsigned(x, row_bytes, blocks, y, out, stride, k, FORMAT_Q5_0);
}
NOINLINE void gemv_q5_1(const uint8_t *x, size_t row_bytes, int64_t blocks, column32 y, float *out, int64_t stride,
                        constants k) {
  gemv_unsigned(x, row_bytes, blocks, y, out, stride, k, FORMAT_Q5_1);
}

// Eight signed bytes × eight i16: 4 × i32.
INLINE vec dot_signed(vec low_or_high_i16, vec activations_i16) {
  return wasm_i32x4_dot_i16x8(low_or_high_i16, activations_i16);
}

// Q8_0, IQ4_NL, MXFP4: quants may take all of a signed byte, so both sides are widened to i16.
INLINE void gemv_signed(const uint8_t *x, size_t row_bytes, int64_t blocks, column32 y, float *out, int64_t stride,
                        constants k, block_format format, int is_q8_0, int is_mxfp4, vec codes) {
  vec acc0 = ZERO_F32, acc1 = ZERO_F32, acc2 = ZERO_F32, acc3 = ZERO_F32;
  for (int64_t b = 0; b < blocks; b++, x += format.bytes) {
    const vec d = is_mxfp4 ? exponents_of_rows(x, row_bytes) : f16_of_rows(x, row_bytes, &k);
    const vec scale = wasm_f32x4_mul(d, load_splat_f32(y.scales + b));
    const uint8_t *yq = y.quants + 64 * b;
    const vec y0 = load(yq), y1 = load(yq + 16), y2 = load(yq + 32), y3 = load(yq + 48);
#define ROW(r)                                                                                                   \
  {                                                                                                              \
    const uint8_t *block = x + r * row_bytes;                                                                    \
    vec w0, w1, w2, w3;                                                                                          \
    if (is_q8_0) {                                                                                               \
      w0 = wasm_i16x8_load8x8(block + 2), w1 = wasm_i16x8_load8x8(block + 10);                                   \
      w2 = wasm_i16x8_load8x8(block + 18), w3 = wasm_i16x8_load8x8(block + 26);                                  \
    } else {                                                                                                     \
      const bytes32 w = unpack_signed(block, 0, format.quants_at, codes, &k);                                    \
      w0 = wasm_i16x8_extend_low_i8x16(w.low), w1 = wasm_i16x8_extend_high_i8x16(w.low);                         \
      w2 = wasm_i16x8_extend_low_i8x16(w.high), w3 = wasm_i16x8_extend_high_i8x16(w.high);                       \
    }                                                                                                            \
    const vec dots = wasm_i32x4_add(wasm_i32x4_add(dot_signed(w0, y0), dot_signed(w1, y1)),                      \
                                    wasm_i32x4_add(dot_signed(w2, y2), dot_signed(w3, y3)));                     \
    acc##r = madd(to_f32(dots), splat_lane(scale, r), acc##r);                                                   \
  }
    FOR_FOUR_ROWS(ROW)
#undef ROW
  }
  scatter(out, stride, sums_f32x4(acc0, acc1, acc2, acc3));
}

NOINLINE void gemv_q8_0(const uint8_t *x, size_t row_bytes, int64_t blocks, column32 y, float *out, int64_t stride,
                        constants k) {
  gemv_signed(x, row_bytes, blocks, y, out, stride, k, FORMAT_Q8_0, 1, 0, ZERO_I32);
}
NOINLINE void gemv_iq4_nl(const uint8_t *x, size_t row_bytes, int64_t blocks, column32 y, float *out, int64_t stride,
                          constants k) {
  gemv_signed(x, row_bytes, blocks, y, out, stride, k, FORMAT_IQ4_NL, 0, 0, codes_iq4_nl());
}
NOINLINE void gemv_mxfp4(const uint8_t *x, size_t row_bytes, int64_t blocks, column32 y, float *out, int64_t stride,
                         constants k) {
  gemv_signed(x, row_bytes, blocks, y, out, stride, k, FORMAT_MXFP4, 0, 1, codes_mxfp4());
}
