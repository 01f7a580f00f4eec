// Weights for the GEMM are repacked, four rows at a time, into a panel of unsigned bytes that the micro-kernel reads
// front to back: for each 32 weights [step 0..7][row 0..3][4 weights], with a scale and a correction for each row and
// granule (32 weights, or 16 where the format has scales for 16):
//
//     row · column = Σ over granules: scale × activation scale × Σ(u × y)  -  correction × activation scale × Σ y
//
// Quants above 63 do not fit the byte dot product's range and are split into two planes of nibbles, the low plane
// before the high one in each step.
#pragma once
#include "super-block-formats.h"

typedef struct {
  uint8_t *quants;
  float *scales;      // [granule][row]
  float *corrections; // [granule][row]
} panel;

// Four 4×4 blocks of bytes: row a, b, c, d → steps 0..3, each [row][4 weights].
INLINE void store_steps(vec a, vec b, vec c, vec d, uint8_t *to, size_t step_bytes) {
  const vec ab = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), cd = wasm_i32x4_shuffle(c, d, 0, 4, 1, 5);
  const vec ab2 = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7), cd2 = wasm_i32x4_shuffle(c, d, 2, 6, 3, 7);
  store(to, wasm_i64x2_shuffle(ab, cd, 0, 2));
  store(to + step_bytes, wasm_i64x2_shuffle(ab, cd, 1, 3));
  store(to + 2 * step_bytes, wasm_i64x2_shuffle(ab2, cd2, 0, 2));
  store(to + 3 * step_bytes, wasm_i64x2_shuffle(ab2, cd2, 1, 3));
}

INLINE void store_plane(bytes32 a, bytes32 b, bytes32 c, bytes32 d, uint8_t *to) {
  store_steps(a.low, b.low, c.low, d.low, to, 16);
  store_steps(a.high, b.high, c.high, d.high, to + 64, 16);
}

// Signed bytes, moved up by 128 and split into nibbles.
INLINE void store_two_planes(bytes32 a, bytes32 b, bytes32 c, bytes32 d, uint8_t *to, const constants *k) {
  const vec bias = wasm_i8x16_const_splat(-128);
#define BIASED(v) wasm_v128_xor(v, bias)
  const vec rows[8] = {BIASED(a.low),  BIASED(b.low),  BIASED(c.low),  BIASED(d.low),
                       BIASED(a.high), BIASED(b.high), BIASED(c.high), BIASED(d.high)};
#undef BIASED
  for (int half = 0; half < 2; half++) {
    const vec *r = rows + 4 * half;
    store_steps(low_nibbles(r[0], k), low_nibbles(r[1], k), low_nibbles(r[2], k), low_nibbles(r[3], k),
                to + 128 * half, 32);
    store_steps(high_nibbles(r[0], k), high_nibbles(r[1], k), high_nibbles(r[2], k), high_nibbles(r[3], k),
                to + 128 * half + 16, 32);
  }
}

// --- formats in blocks of 32 ------------------------------------------------------------------------------------

INLINE void pack_unsigned(const uint8_t *x, size_t row_bytes, int64_t blocks, panel p, constants k, block_format format) {
  for (int64_t b = 0; b < blocks; b++, x += format.bytes) {
    const vec scale = format.is_mxfp4 ? exponents_of_rows(x, row_bytes) : f16_of_rows(x, row_bytes, &k);
    store(p.scales + 4 * b, scale);
    store(p.corrections + 4 * b, format.has_minimum ? wasm_f32x4_neg(f16_of_rows(x + 2, row_bytes, &k))
                                                    : wasm_f32x4_mul(scale, wasm_f32x4_splat(format.offset)));
    store_plane(unpack_unsigned(x, format, &k), unpack_unsigned(x + row_bytes, format, &k),
                unpack_unsigned(x + 2 * row_bytes, format, &k), unpack_unsigned(x + 3 * row_bytes, format, &k),
                p.quants + 128 * b);
  }
}
NOINLINE void pack_q4_0(const uint8_t *x, size_t row_bytes, int64_t blocks, panel p, constants k) {
  pack_unsigned(x, row_bytes, blocks, p, k, FORMAT_Q4_0);
}
NOINLINE void pack_q4_1(const uint8_t *x, size_t row_bytes, int64_t blocks, panel p, constants k) {
  pack_unsigned(x, row_bytes, blocks, p, k, FORMAT_Q4_1);
}
NOINLINE void pack_q5_0(const uint8_t *x, size_t row_bytes, int64_t blocks, panel p, constants k) {
  pack_unsigned(x, row_bytes, blocks, p, k, FORMAT_Q5_0);
}
NOINLINE void pack_q5_1(const uint8_t *x, size_t row_bytes, int64_t blocks, panel p, constants k) {
  pack_unsigned(x, row_bytes, blocks, p, k, FORMAT_Q5_1);
}

INLINE void pack_signed(const uint8_t *x, size_t row_bytes, int64_t blocks, panel p, constants k, block_format format,
                        int is_q8_0) {
  for (int64_t b = 0; b < blocks; b++, x += format.bytes) {
    const vec scale = f16_of_rows(x, row_bytes, &k);
    store(p.scales + 4 * b, scale);
    store(p.corrections + 4 * b, wasm_f32x4_mul(scale, wasm_f32x4_const_splat(128)));
#define ROW(r) unpack_signed(x + r * row_bytes, is_q8_0, format.quants_at, &k)
    store_two_planes(ROW(0), ROW(1), ROW(2), ROW(3), p.quants + 256 * b, &k);
#undef ROW
  }
}
NOINLINE void pack_q8_0(const uint8_t *x, size_t row_bytes, int64_t blocks, panel p, constants k) {
  pack_signed(x, row_bytes, blocks, p, k, FORMAT_Q8_0, 1);
}
NOINLINE void pack_iq4_nl(const uint8_t *x, size_t row_bytes, int64_t blocks, panel p, constants k) {
  pack_signed(x, row_bytes, blocks, p, k, FORMAT_IQ4_NL, 0);
}

NOINLINE void pack_mxfp4(const uint8_t *x, size_t row_bytes, int64_t blocks, panel p, constants k) {
  pack_unsigned(x, row_bytes, blocks, p, k, FORMAT_MXFP4);
}

// --- k-quants with a scale for each 32 --------------------------------------------------------------------------

INLINE vec byte_of_rows(const uint64_t *rows, int g) {
  const int shift = 8 * g;
  return to_f32(wasm_i32x4_make((int32_t)(rows[0] >> shift & 63), (int32_t)(rows[1] >> shift & 63),
                                (int32_t)(rows[2] >> shift & 63), (int32_t)(rows[3] >> shift & 63)));
}

INLINE void pack_q45_K(const uint8_t *x, size_t row_bytes, int64_t super_blocks, panel p, constants k, int five_bits) {
  for (int64_t s = 0; s < super_blocks; s++, x += five_bits ? BYTES_Q5_K : BYTES_Q4_K) {
    const vec d = f16_of_rows(x, row_bytes, &k), dmin = f16_of_rows(x + 2, row_bytes, &k);
    uint64_t scales[4], mins[4];
    for (int r = 0; r < 4; r++) {
      const packed_scales packed = scales_q4_K(x + r * row_bytes + 4);
      scales[r] = packed.scales, mins[r] = packed.mins;
    }
#define ROW(r, g) (five_bits ? group_q5_K(x + r * row_bytes, g, &k) : group_q4_K(x + r * row_bytes + 16, g, &k))
#define GROUP(g)                                                                                                 \
  store(p.scales + 4 * g, wasm_f32x4_mul(d, byte_of_rows(scales, g)));                                           \
  store(p.corrections + 4 * g, wasm_f32x4_mul(dmin, byte_of_rows(mins, g)));                                     \
  store_plane(ROW(0, g), ROW(1, g), ROW(2, g), ROW(3, g), p.quants + 128 * g);
    GROUP(0) GROUP(1) GROUP(2) GROUP(3) GROUP(4) GROUP(5) GROUP(6) GROUP(7)
#undef GROUP
#undef ROW
    p.scales += 32, p.corrections += 32, p.quants += 1024;
  }
}
NOINLINE void pack_q4_K(const uint8_t *x, size_t row_bytes, int64_t super_blocks, panel p, constants k) {
  pack_q45_K(x, row_bytes, super_blocks, p, k, 0);
}
NOINLINE void pack_q5_K(const uint8_t *x, size_t row_bytes, int64_t super_blocks, panel p, constants k) {
  pack_q45_K(x, row_bytes, super_blocks, p, k, 1);
}

NOINLINE void pack_iq4_xs(const uint8_t *x, size_t row_bytes, int64_t super_blocks, panel p, constants k) {
  for (int64_t s = 0; s < super_blocks; s++, x += BYTES_IQ4_XS) {
    const vec d = f16_of_rows(x, row_bytes, &k);
    for (int g = 0; g < GROUPS; g++) {
      const vec scale = wasm_f32x4_mul(
          d, to_f32(wasm_i32x4_make(scale_iq4_xs(x, g), scale_iq4_xs(x + row_bytes, g),
                                    scale_iq4_xs(x + 2 * row_bytes, g), scale_iq4_xs(x + 3 * row_bytes, g))));
      store(p.scales, scale);
      store(p.corrections, wasm_f32x4_mul(scale, wasm_f32x4_const_splat(128)));
      store_two_planes(group_iq4_xs(x, g, &k), group_iq4_xs(x + row_bytes, g, &k),
                       group_iq4_xs(x + 2 * row_bytes, g, &k), group_iq4_xs(x + 3 * row_bytes, g, &k), p.quants, &k);
      p.scales += 4, p.corrections += 4, p.quants += 256;
    }
  }
}

// --- k-quants with a scale for each 16 --------------------------------------------------------------------------

// Scale (and correction) of 16-group `j` of four rows, whose scales lie as 16 bytes each.
INLINE vec i8_of_rows(const int8_t rows[4][16], int j) {
  return to_f32(wasm_i32x4_make(rows[0][j], rows[1][j], rows[2][j], rows[3][j]));
}

#define DEFINE_PACK_16(name, bytes, d_at, read_scales, correct, unpack)                                          \
  NOINLINE void name(const uint8_t *x, size_t row_bytes, int64_t super_blocks, panel p, constants k) {           \
    for (int64_t s = 0; s < super_blocks; s++, x += bytes) {                                                     \
      const vec d = f16_of_rows(x + d_at, row_bytes, &k);                                                        \
      int8_t scales[4][16], mins[4][16];                                                                         \
      for (int r = 0; r < 4; r++) {                                                                              \
        const uint8_t *row = x + r * row_bytes;                                                                  \
        read_scales                                                                                              \
      }                                                                                                          \
      for (int j = 0; j < 16; j++) {                                                                             \
        const vec scale = wasm_f32x4_mul(d, i8_of_rows(scales, j));                                              \
        store(p.scales + 4 * j, scale);                                                                          \
        store(p.corrections + 4 * j, correct);                                                                   \
      }                                                                                                          \
      (void)mins;                                                                                                \
      UNPACK_EIGHT(unpack)                                                                                       \
      p.scales += 64, p.corrections += 64, p.quants += 1024;                                                     \
    }                                                                                                            \
  }
#define UNPACK_EIGHT(unpack)                                                                                     \
  UNPACK_GROUP(unpack, 0) UNPACK_GROUP(unpack, 1) UNPACK_GROUP(unpack, 2) UNPACK_GROUP(unpack, 3)                \
  UNPACK_GROUP(unpack, 4) UNPACK_GROUP(unpack, 5) UNPACK_GROUP(unpack, 6) UNPACK_GROUP(unpack, 7)
#define UNPACK_GROUP(unpack, g)                                                                                  \
  store_plane(unpack(x, g), unpack(x + row_bytes, g), unpack(x + 2 * row_bytes, g), unpack(x + 3 * row_bytes, g), \
              p.quants + 128 * g);

#define GROUP_Q6_K(row, g) group_q6_K(row, g, &k)
DEFINE_PACK_16(pack_q6_K, BYTES_Q6_K, 208, store(scales[r], load(row + 192));,
               wasm_f32x4_mul(scale, wasm_f32x4_const_splat(32)), GROUP_Q6_K)
DEFINE_PACK_16(pack_q3_K, BYTES_Q3_K, 108, store(scales[r], scales_q3_K(row + 96));,
               wasm_f32x4_mul(scale, wasm_f32x4_const_splat(4)), group_q3_K)
DEFINE_PACK_16(pack_q2_K, BYTES_Q2_K, 80,
               store(scales[r], low_nibbles(load(row), &k)); store(mins[r], high_nibbles(load(row), &k));,
               wasm_f32x4_mul(f16_of_rows(x + 82, row_bytes, &k), i8_of_rows(mins, j)), group_q2_K)
