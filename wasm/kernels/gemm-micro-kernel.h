// The GEMM's inner loop: two panels of 4 rows (or the two planes of one) × 4 columns of activations.
//
// A step takes 4 weights of each row (two loads) and 4 activations of each column (one load, splat four times): 128
// products in 8 vpmaddubsw. Sums stay in i16 as long as they fit: 8 steps for nibbles (8·2·2·127·15/2 < 2^15 per lane),
// 4 for 5 bits, 2 for 6 bits. Registers: 8 × i16 sums, 2 of weights, activations, splat, product: 13 of 16. The 8 × f32
// accumulators are spilled, once for each granule.
// Figures of all kernels are in docs/benchmarks.md.
#pragma once
#include "gemm-panel.h"

typedef struct {
  const uint8_t *quants; // of quantize_for_gemm, one group of four columns
  const float *scales;   // [granule][column]
  const float *sums;     // [granule][column]
} column_group;

typedef struct {
  vec column[4]; // each: 4 rows
} tile;

typedef struct {
  tile a, b;
} tile_pair;

// Scales one granule's integer sums (i32 in s0..s3) and adds them to the columns of `f`.
#define FINISH_GRANULE(f, p, s0, s1, s2, s3)                                                                     \
  {                                                                                                              \
    const vec scale = load(p.scales), correction = load(p.corrections);                                          \
    f.column[0] = madd(to_f32(s0), wasm_f32x4_mul(scale, splat_lane(ys, 0)), f.column[0]);                       \
    f.column[1] = madd(to_f32(s1), wasm_f32x4_mul(scale, splat_lane(ys, 1)), f.column[1]);                       \
    f.column[2] = madd(to_f32(s2), wasm_f32x4_mul(scale, splat_lane(ys, 2)), f.column[2]);                       \
    f.column[3] = madd(to_f32(s3), wasm_f32x4_mul(scale, splat_lane(ys, 3)), f.column[3]);                       \
    f.column[0] = nmadd(correction, splat_lane(yc, 0), f.column[0]);                                             \
    f.column[1] = nmadd(correction, splat_lane(yc, 1), f.column[1]);                                             \
    f.column[2] = nmadd(correction, splat_lane(yc, 2), f.column[2]);                                             \
    f.column[3] = nmadd(correction, splat_lane(yc, 3), f.column[3]);                                             \
    p.scales += 4, p.corrections += 4;                                                                           \
  }

#define STEP(iw, iy)                                                                                                 \
  {                                                                                                              \
    const vec wa = load(a.quants + 16 * (iw)), wb = load(b.quants + 16 * (iw));                                   \
    const vec quants = load(y.quants + 16 * (iy));                                                               \
    vec column = splat_lane(quants, 0);                                                                          \
    a0 = wasm_i16x8_add(a0, dot_i8_u7(column, wa)), b0 = wasm_i16x8_add(b0, dot_i8_u7(column, wb));              \
    column = splat_lane(quants, 1);                                                                              \
    a1 = wasm_i16x8_add(a1, dot_i8_u7(column, wa)), b1 = wasm_i16x8_add(b1, dot_i8_u7(column, wb));              \
    column = splat_lane(quants, 2);                                                                              \
    a2 = wasm_i16x8_add(a2, dot_i8_u7(column, wa)), b2 = wasm_i16x8_add(b2, dot_i8_u7(column, wb));              \
    column = splat_lane(quants, 3);                                                                              \
    a3 = wasm_i16x8_add(a3, dot_i8_u7(column, wa)), b3 = wasm_i16x8_add(b3, dot_i8_u7(column, wb));              \
  }
#define ADVANCE(steps) a.quants += 16 * steps, b.quants += 16 * steps, y.quants += 16 * steps

#define CLEAR_SUMS                                                                                               \
  vec a0 = ZERO_I16, a1 = ZERO_I16, a2 = ZERO_I16, a3 = ZERO_I16;                                                \
  vec b0 = ZERO_I16, b1 = ZERO_I16, b2 = ZERO_I16, b3 = ZERO_I16;

// `steps`: how many fit an i16 sum; `sums`: how many such sums make a granule.
INLINE tile_pair multiply_plane(panel a, panel b, int64_t granules, column_group y, int steps, int sums) {
  tile fa = {{ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32}}, fb = fa;
  for (int64_t g = 0; g < granules; g++) {
    vec s[8];
    for (int sum = 0; sum < sums; sum++) {
      CLEAR_SUMS
      // Two steps at a time: LLVM computes the columns of more one after the other, and spills the operands.
      _Pragma("clang loop unroll(disable)") for (int step = 0; step < steps; step += 2) {
        STEP(0, 0) STEP(1, 1)
        ADVANCE(2);
      }
      const vec parts[8] = {a0, a1, a2, a3, b0, b1, b2, b3};
      for (int i = 0; i < 8; i++) {
        s[i] = sum ? wasm_i32x4_add(s[i], pair_sums_i32(parts[i])) : pair_sums_i32(parts[i]);
      }
    }
    const vec ys = load(y.scales), yc = load(y.sums);
    FINISH_GRANULE(fa, a, s[0], s[1], s[2], s[3])
    FINISH_GRANULE(fb, b, s[4], s[5], s[6], s[7])
    y.scales += 4, y.sums += 4;
  }
  return (tile_pair){fa, fb};
}

// Functions of one shape, for the table of formats. Panel `b` may be `a` itself.
#define DEFINE_MULTIPLY(name, steps, sums)                                                                        \
  NOINLINE tile_pair name(panel a, panel b, int64_t granules, column_group y, vec sixteen) {                      \
    (void)sixteen;                                                                                               \
    return multiply_plane(a, b, granules, y, steps, sums);                                                       \
  }
DEFINE_MULTIPLY(multiply_4_bits, 8, 1)
DEFINE_MULTIPLY(multiply_5_bits, 4, 2)
DEFINE_MULTIPLY(multiply_6_bits_16, 2, 2)
DEFINE_MULTIPLY(multiply_3_bits_16, 4, 1)

// Two planes of nibbles: sums of the low plane (a) plus 16 times those of the high one (b).
NOINLINE tile multiply_two_planes(panel p, int64_t granules, column_group y, vec sixteen) {
  tile f = {{ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32}};
  for (int64_t g = 0; g < granules; g++) {
    CLEAR_SUMS
    panel a = p, b = {p.quants + 16, 0, 0};
    _Pragma("clang loop unroll(disable)") for (int step = 0; step < 8; step += 2) {
      STEP(0, 0) STEP(2, 1)
      a.quants += 64, b.quants += 64, y.quants += 32;
    }
    p.quants += 256;
    const vec ys = load(y.scales), yc = load(y.sums);
#define WHOLE(a, b) wasm_i32x4_add(pair_sums_i32(a), wasm_i32x4_dot_i16x8(b, sixteen))
    FINISH_GRANULE(f, p, WHOLE(a0, b0), WHOLE(a1, b1), WHOLE(a2, b2), WHOLE(a3, b3))
#undef WHOLE
    y.scales += 4, y.sums += 4;
  }
  return f;
}

INLINE tile_pair multiply_8_bits(panel a, panel b, int64_t granules, column_group y, vec sixteen) {
  return (tile_pair){multiply_two_planes(a, granules, y, sixteen), multiply_two_planes(b, granules, y, sixteen)};
}
