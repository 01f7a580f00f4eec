// The GEMM's inner loop: a panel of 4 rows × 4 columns of activations.
//
// A step takes 4 weights of each row (one load) and 4 activations of each column (one load, splat four times):
// 64 products in 4 vpmaddubsw. Sums stay in i16 as long as they fit: 8 steps for nibbles (8·2·2·127·15/2 < 2^15 per
// lane), 4 for 5 bits, 2 for 6 bits. Registers: 4 × i16 and 4 × f32 accumulators, weights, activations, splat: 11 of 16.
// Unrolling further makes LLVM reorder the chains and spill: 40 instead of 49 GMAC/s.
#pragma once
#include "gemm-panel.h"

typedef struct {
  const uint8_t *quants; // of quantise_for_gemm, one group of four columns
  const float *scales;   // [granule][column]
  const float *sums;     // [granule][column]
} column_group;

typedef struct {
  vec column[4]; // each: 4 rows
} tile;

// Scales one granule's integer sums (i32 in s0..s3) and adds them to f0..f3.
#define FINISH_GRANULE(s0, s1, s2, s3)                                                                           \
  {                                                                                                              \
    const vec scale = load(p.scales), correction = load(p.corrections), ys = load(y.scales), yc = load(y.sums);  \
    f0 = madd(to_f32(s0), wasm_f32x4_mul(scale, splat_lane(ys, 0)), f0);                                         \
    f1 = madd(to_f32(s1), wasm_f32x4_mul(scale, splat_lane(ys, 1)), f1);                                         \
    f2 = madd(to_f32(s2), wasm_f32x4_mul(scale, splat_lane(ys, 2)), f2);                                         \
    f3 = madd(to_f32(s3), wasm_f32x4_mul(scale, splat_lane(ys, 3)), f3);                                         \
    f0 = nmadd(correction, splat_lane(yc, 0), f0);                                                               \
    f1 = nmadd(correction, splat_lane(yc, 1), f1);                                                               \
    f2 = nmadd(correction, splat_lane(yc, 2), f2);                                                               \
    f3 = nmadd(correction, splat_lane(yc, 3), f3);                                                               \
    p.scales += 4, p.corrections += 4, y.scales += 4, y.sums += 4;                                               \
  }

#define STEP                                                                                                     \
  {                                                                                                              \
    const vec w = load(p.quants), ys = load(y.quants);                                                           \
    a0 = wasm_i16x8_add(a0, dot_i8_u7(splat_lane(ys, 0), w));                                                    \
    a1 = wasm_i16x8_add(a1, dot_i8_u7(splat_lane(ys, 1), w));                                                    \
    a2 = wasm_i16x8_add(a2, dot_i8_u7(splat_lane(ys, 2), w));                                                    \
    a3 = wasm_i16x8_add(a3, dot_i8_u7(splat_lane(ys, 3), w));                                                    \
    p.quants += 16, y.quants += 16;                                                                              \
  }

// `steps`: how many fit an i16 sum; `sums`: how many such sums make a granule.
INLINE tile multiply_plane(panel p, int64_t granules, column_group y, int steps, int sums) {
  vec f0 = ZERO_F32, f1 = ZERO_F32, f2 = ZERO_F32, f3 = ZERO_F32;
  for (int64_t g = 0; g < granules; g++) {
    vec s0 = ZERO_I32, s1 = ZERO_I32, s2 = ZERO_I32, s3 = ZERO_I32;
    for (int sum = 0; sum < sums; sum++) {
      vec a0 = ZERO_I16, a1 = ZERO_I16, a2 = ZERO_I16, a3 = ZERO_I16;
      if (steps == 8) {
        _Pragma("clang loop unroll(disable)") for (int half = 0; half < 2; half++) { STEP STEP STEP STEP }
      } else if (steps == 4) {
        STEP STEP STEP STEP
      } else {
        STEP STEP
      }
      s0 = wasm_i32x4_add(s0, pair_sums_i32(a0)), s1 = wasm_i32x4_add(s1, pair_sums_i32(a1));
      s2 = wasm_i32x4_add(s2, pair_sums_i32(a2)), s3 = wasm_i32x4_add(s3, pair_sums_i32(a3));
    }
    FINISH_GRANULE(s0, s1, s2, s3)
  }
  return (tile){{f0, f1, f2, f3}};
}

NOINLINE tile multiply_4_bits(panel p, int64_t granules, column_group y) { return multiply_plane(p, granules, y, 8, 1); }
NOINLINE tile multiply_5_bits(panel p, int64_t granules, column_group y) { return multiply_plane(p, granules, y, 4, 2); }
NOINLINE tile multiply_6_bits_16(panel p, int64_t granules, column_group y) { return multiply_plane(p, granules, y, 2, 2); }
NOINLINE tile multiply_3_bits_16(panel p, int64_t granules, column_group y) { return multiply_plane(p, granules, y, 4, 1); }

// Two planes of nibbles: sums of the low plane plus 16 times those of the high one.
NOINLINE tile multiply_two_planes(panel p, int64_t granules, column_group y, vec sixteen) {
  vec f0 = ZERO_F32, f1 = ZERO_F32, f2 = ZERO_F32, f3 = ZERO_F32;
  for (int64_t g = 0; g < granules; g++) {
    vec a0 = ZERO_I16, a1 = ZERO_I16, a2 = ZERO_I16, a3 = ZERO_I16;
    vec b0 = ZERO_I16, b1 = ZERO_I16, b2 = ZERO_I16, b3 = ZERO_I16;
    _Pragma("clang loop unroll(disable)") for (int step = 0; step < 8; step++) {
      const vec low = load(p.quants), high = load(p.quants + 16), ys = load(y.quants);
      vec column = splat_lane(ys, 0);
      a0 = wasm_i16x8_add(a0, dot_i8_u7(column, low)), b0 = wasm_i16x8_add(b0, dot_i8_u7(column, high));
      column = splat_lane(ys, 1);
      a1 = wasm_i16x8_add(a1, dot_i8_u7(column, low)), b1 = wasm_i16x8_add(b1, dot_i8_u7(column, high));
      column = splat_lane(ys, 2);
      a2 = wasm_i16x8_add(a2, dot_i8_u7(column, low)), b2 = wasm_i16x8_add(b2, dot_i8_u7(column, high));
      column = splat_lane(ys, 3);
      a3 = wasm_i16x8_add(a3, dot_i8_u7(column, low)), b3 = wasm_i16x8_add(b3, dot_i8_u7(column, high));
      p.quants += 32, y.quants += 16;
    }
#define WHOLE(a, b) wasm_i32x4_add(pair_sums_i32(a), wasm_i32x4_dot_i16x8(b, sixteen))
    FINISH_GRANULE(WHOLE(a0, b0), WHOLE(a1, b1), WHOLE(a2, b2), WHOLE(a3, b3))
#undef WHOLE
  }
  return (tile){{f0, f1, f2, f3}};
}
