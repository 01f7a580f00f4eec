// Activations are quantized to signed bytes before they meet quantized weights, as llama.cpp does: in blocks of 32
// (scale = max / 127, rounded to a half) for formats in blocks, in super-blocks of 256 for the k-quants.
#pragma once
#include "simd.h"
#include "super-block-formats.h"

// llama.cpp's block_q8_K: float d, 256 × i8, sums of each 16 as i16.
enum { Q8_K_BYTES = 292, Q8_K_QUANTS = 4, Q8_K_SUMS = 260 };

INLINE vec round_to_i32(const float *x, vec inverse) {
  return wasm_i32x4_relaxed_trunc_f32x4(wasm_f32x4_nearest(wasm_f32x4_mul(load(x), inverse)));
}

INLINE vec round_to_bytes(const float *x, vec inverse) {
  return wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(round_to_i32(x, inverse), round_to_i32(x + 4, inverse)),
                                 wasm_i16x8_narrow_i32x4(round_to_i32(x + 8, inverse), round_to_i32(x + 12, inverse)));
}

INLINE int32_t sum_bytes(vec bytes) { return sum_i32(pair_sums_i32(wasm_i16x8_extadd_pairwise_i8x16(bytes))); }

INLINE float max_magnitude_32(const float *x) {
  vec m = wasm_f32x4_abs(load(x));
  for (int i = 4; i < 32; i += 4) m = wasm_f32x4_max(m, wasm_f32x4_abs(load(x + i)));
  return max_f32(m);
}

// 127 / max with the sign that makes the value of largest magnitude -127, as llama.cpp's q8_K has it.
INLINE float inverse_scale_256(const float *x) {
  vec high = load(x), low = high;
  for (int i = 4; i < SUPER_BLOCK; i += 4) {
    const vec v = load(x + i);
    high = wasm_f32x4_max(high, v);
    low = wasm_f32x4_min(low, v);
  }
  const float largest = max_f32(high), smallest = -max_f32(wasm_f32x4_neg(low));
  const float extreme = largest >= -smallest ? largest : smallest;
  return extreme != 0 ? -127.f / extreme : 0.f;
}

typedef struct {
  bytes32 quants;
  float scale;
} quantized32;

INLINE quantized32 quantize_32(const float *x) {
  const float scale = max_magnitude_32(x) / 127.f;
  const vec inverse = wasm_f32x4_splat(scale != 0 ? 1.f / scale : 0.f);
  return (quantized32){{round_to_bytes(x, inverse), round_to_bytes(x + 16, inverse)}, round_to_f16(scale)};
}

// --- one column for GEMV ----------------------------------------------------------------------------------------

// Blocks of 32: bytes (or i16 when `wide`, for formats with signed quants), scales, and scale × sum of the block times
// `sum_factor`, both `stride` apart.
NOINLINE void quantize_column_32(const float *x, int64_t columns, int wide, uint8_t *quants, float *scales, float *sums,
                                 int64_t stride, float sum_factor) {
  for (int64_t b = 0; b < columns / 32; b++) {
    const quantized32 q = quantize_32(x + 32 * b);
    if (wide) {
      uint8_t *to = quants + 64 * b;
      store(to, wasm_i16x8_extend_low_i8x16(q.quants.low));
      store(to + 16, wasm_i16x8_extend_high_i8x16(q.quants.low));
      store(to + 32, wasm_i16x8_extend_low_i8x16(q.quants.high));
      store(to + 48, wasm_i16x8_extend_high_i8x16(q.quants.high));
    } else {
      store(quants + 32 * b, q.quants.low);
      store(quants + 32 * b + 16, q.quants.high);
    }
    scales[b * stride] = q.scale;
    sums[b * stride] = sum_factor * q.scale * (float)(sum_bytes(q.quants.low) + sum_bytes(q.quants.high));
  }
}

// Super-blocks of 256, in llama.cpp's own layout.
NOINLINE void quantize_column_256(const float *x, int64_t columns, uint8_t *y) {
  for (int64_t s = 0; s < columns / SUPER_BLOCK; s++, y += Q8_K_BYTES, x += SUPER_BLOCK) {
    const float inverse = inverse_scale_256(x);
    const vec inverses = wasm_f32x4_splat(inverse);
    const float scale = inverse != 0 ? 1.f / inverse : 0.f;
    __builtin_memcpy(y, &scale, sizeof scale);
    for (int i = 0; i < SUPER_BLOCK / 16; i++) {
      const vec bytes = round_to_bytes(x + 16 * i, inverses);
      store(y + Q8_K_QUANTS + 16 * i, bytes);
      const int16_t sum = (int16_t)sum_bytes(bytes);
      __builtin_memcpy(y + Q8_K_SUMS + 2 * i, &sum, sizeof sum);
    }
  }
}

// --- four columns for GEMM --------------------------------------------------------------------------------------

// Four consecutive quants of one column stand beside those of the three other columns: [k / 4][column][4].
INLINE void store_interleaved(uint8_t *to, vec bytes) {
  wasm_v128_store32_lane(to, bytes, 0);
  wasm_v128_store32_lane(to + 16, bytes, 1);
  wasm_v128_store32_lane(to + 32, bytes, 2);
  wasm_v128_store32_lane(to + 48, bytes, 3);
}

// One column of a group of four. `quants`, `scales` and `sums` point at this column's lane of the group; scales and
// sums stand for `granule` weights, 32 or 16, whichever the weights' own scales do.
NOINLINE void quantize_for_gemm(const float *x, int64_t columns, int per_256, int granule, uint8_t *quants,
                                float *scales, float *sums) {
  float inverse = 0, scale = 0;
  for (int64_t b = 0; b < columns / 32; b++) {
    bytes32 q;
    if (per_256) {
      if (b % GROUPS == 0) {
        inverse = inverse_scale_256(x + 32 * b);
        scale = inverse != 0 ? 1.f / inverse : 0.f;
      }
      const vec inverses = wasm_f32x4_splat(inverse);
      q = (bytes32){round_to_bytes(x + 32 * b, inverses), round_to_bytes(x + 32 * b + 16, inverses)};
    } else {
      const quantized32 quantized = quantize_32(x + 32 * b);
      q = quantized.quants;
      scale = quantized.scale;
    }
    store_interleaved(quants + 128 * b, q.low);
    store_interleaved(quants + 128 * b + 64, q.high);
    const int32_t low = sum_bytes(q.low), high = sum_bytes(q.high);
    if (granule == 32) {
      scales[4 * b] = scale;
      sums[4 * b] = scale * (float)(low + high);
    } else {
      scales[8 * b] = scales[8 * b + 4] = scale;
      sums[8 * b] = scale * (float)low;
      sums[8 * b + 4] = scale * (float)high;
    }
  }
}
