// Panels for the GEMM (gemm-panel.h) from repacked weights, whose bytes stand in a panel's order already.
#pragma once
#include "repacked-layout.h"

// Eight halves at `x`, as floats. Subnormal ones go another way, because arithmetic with subnormal floats is slow.
typedef struct {
  vec half[2];
} eight_floats;

INLINE vec halves_to_floats(vec halves, const constants *k) {
  const vec magnitude = wasm_v128_and(halves, wasm_i32x4_const_splat(0x7fff)), shifted = wasm_i32x4_shl(magnitude, 13);
  const vec normal = wasm_f32x4_mul(shifted, k->f16_scale);
  const vec offset = wasm_f32x4_const_splat(0x1p-14f);
  const vec subnormal = wasm_f32x4_sub(wasm_i32x4_add(shifted, offset), offset);
  const vec is_normal = wasm_i32x4_gt(magnitude, wasm_i32x4_const_splat(0x3ff));
  return wasm_v128_or(wasm_i32x4_relaxed_laneselect(normal, subnormal, is_normal),
                      wasm_v128_and(halves, wasm_i32x4_const_splat((int32_t)0x80000000)));
}

INLINE eight_floats load_8_halves(const uint8_t *x, const constants *k) {
  const vec halves = load(x);
  return (eight_floats){{halves_to_floats(wasm_i32x4_extend_low_i16x8(halves), k),
                         halves_to_floats(wasm_i32x4_extend_high_i16x8(halves), k)}};
}

// Bytes of four groups each, a row in 32 bits: [groups 0..3 or 4..7][half].
typedef struct {
  vec scales[2][2], mins[2][2];
} scales_of_rows;

INLINE scales_of_rows read_scales_q4_K(const uint8_t *x, const constants *k) {
  scales_of_rows to;
  _Pragma("clang loop unroll(full)") for (int h = 0; h < 2; h++) {
    const uint8_t *words = x + SCALES_Q4_K + 16 * h;
    const vec a = load(words), b = load(words + 32), c = load(words + 64), six = wasm_i8x16_const_splat(0x3f);
    to.scales[0][h] = wasm_v128_and(a, six);
    to.scales[1][h] = wasm_v128_or(low_nibbles(c, k), wasm_v128_and(wasm_u16x8_shr(a, 2), k->high_pair));
    to.mins[0][h] = wasm_v128_and(b, six);
    to.mins[1][h] = wasm_v128_or(high_nibbles(c, k), wasm_v128_and(wasm_u16x8_shr(b, 2), k->high_pair));
  }
  return to;
}

// Σ of minimum × sum of the activations, which stand in the order of SUM_ORDER, for four rows.
INLINE vec minimums_q4_K(const scales_of_rows *of, int half, vec sums) {
  const vec even = wasm_i16x8_const_splat(0xff), low = of->mins[0][half], high = of->mins[1][half];
  return wasm_i32x4_add(wasm_i32x4_add(wasm_i32x4_dot_i16x8(wasm_v128_and(low, even), splat_lane(sums, 0)),
                                       wasm_i32x4_dot_i16x8(wasm_u16x8_shr(low, 8), splat_lane(sums, 1))),
                        wasm_i32x4_add(wasm_i32x4_dot_i16x8(wasm_v128_and(high, even), splat_lane(sums, 2)),
                                       wasm_i32x4_dot_i16x8(wasm_u16x8_shr(high, 8), splat_lane(sums, 3))));
}

// What takes byte i of each 32 bits as two i16, and what takes it as their upper halves.
INLINE vec twice_byte(int i) {
  const int8_t b = (int8_t)i;
  return wasm_i8x16_make(b, -1, b, -1, b + 4, -1, b + 4, -1, b + 8, -1, b + 8, -1, b + 12, -1, b + 12, -1);
}
INLINE vec twice_byte_high(int i) {
  const int8_t b = (int8_t)i;
  return wasm_i8x16_make(-1, b, -1, b, -1, b + 4, -1, b + 4, -1, b + 8, -1, b + 8, -1, b + 12, -1, b + 12);
}

// Nibbles of 32 weights of four rows.
INLINE void panel_of_nibbles(const uint8_t *x, uint8_t *to, const constants *k) {
  for (int pair = 0; pair < 4; pair++, x += 32, to += 32) {
    store(to, low_nibbles(load(x), k));
    store(to + 16, high_nibbles(load(x), k));
  }
}

// High bits of one of four steps, moved to bits 4 and 5: see HIGH_BITS_AT.
INLINE vec high_bits_of_step(vec bits, int step, const constants *k) {
  const vec moved = step == 0 ? bits : step == 1 ? wasm_i16x8_shl(bits, 4) : step == 2 ? wasm_i16x8_shl(bits, 2)
                                                                                       : wasm_u16x8_shr(bits, 2);
  return wasm_v128_and(moved, k->high_pair);
}

INLINE void panel_of_q4_0(const uint8_t *x, int half, int64_t blocks, panel p, constants k) {
  for (int64_t b = 0; b < blocks; b++, x += 16 + REPACKED_Q4) {
    const vec scale = load_8_halves(x, &k).half[half];
    store(p.scales + 4 * b, scale);
    store(p.corrections + 4 * b, wasm_f32x4_mul(scale, wasm_f32x4_const_splat(8)));
    panel_of_nibbles(x + 16 + 16 * half, p.quants + 128 * b, &k);
  }
}

INLINE vec byte_as_f32(vec words, int i) { return to_f32(wasm_u32x4_shr(wasm_i32x4_shl(words, 24 - 8 * i), 24)); }
INLINE vec signed_byte_as_f32(vec words, int i) { return to_f32(wasm_i32x4_shr(wasm_i32x4_shl(words, 24 - 8 * i), 24)); }

INLINE void panel_of_q4_K(const uint8_t *x, int half, int64_t super_blocks, panel p, constants k) {
  for (int64_t s = 0; s < super_blocks; s++, x += BYTES_Q4_K * REPACKED_ROWS) {
    const vec d = load_8_halves(x, &k).half[half], dmin = load_8_halves(x + 16, &k).half[half];
    const scales_of_rows of = read_scales_q4_K(x, &k);
    for (int g = 0; g < GROUPS; g++, p.scales += 4, p.corrections += 4, p.quants += 128) {
      store(p.scales, wasm_f32x4_mul(d, byte_as_f32(of.scales[g / 4][half], g % 4)));
      store(p.corrections, wasm_f32x4_mul(dmin, byte_as_f32(of.mins[g / 4][half], g % 4)));
      panel_of_nibbles(x + QUANTS_Q4_K + REPACKED_Q4 * g + 16 * half, p.quants, &k);
    }
  }
}

INLINE void panel_of_q6_K(const uint8_t *x, int half, int64_t super_blocks, panel p, constants k) {
  for (int64_t s = 0; s < super_blocks; s++, x += BYTES_Q6_K * REPACKED_ROWS) {
    const vec d = load_8_halves(x, &k).half[half];
    for (int i = 0; i < 16; i++, p.scales += 4, p.corrections += 4, p.quants += 64) {
      const vec scale = wasm_f32x4_mul(d, signed_byte_as_f32(load(x + SCALES_Q6_K + 32 * (i / 4) + 16 * half), i % 4));
      store(p.scales, scale);
      store(p.corrections, wasm_f32x4_mul(scale, wasm_f32x4_const_splat(32)));
      const uint8_t *quants = x + QUANTS_Q6_K + REPACKED_Q6_16 * i + 16 * half;
      const vec bits = load(quants + 64);
      for (int step = 0; step < 4; step++) {
        const vec packed = load(quants + 32 * (step / 2));
        store(p.quants + 16 * step, wasm_v128_or(step % 2 ? high_nibbles(packed, &k) : low_nibbles(packed, &k),
                                                 high_bits_of_step(bits, step, &k)));
      }
    }
  }
}

// Four of the eight rows at `x`.
NOINLINE void panel_of_repacked(int32_t type, const uint8_t *x, int half, int64_t k, panel p, constants c) {
  const int64_t blocks = k / weights_of_block(type);
  switch (type) {
  case TYPE_Q4_0: panel_of_q4_0(x, half, blocks, p, c); break;
  case TYPE_Q4_K: panel_of_q4_K(x, half, blocks, p, c); break;
  case TYPE_Q6_K: panel_of_q6_K(x, half, blocks, p, c); break;
  }
}
