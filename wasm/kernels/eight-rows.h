// Sums of half a tile of repacked weights, eight rows, and two to four columns: what the formats in repacked-multiply.h share.
#pragma once
#include "repacked-gemv.h"

// Where results go: [column][row].
typedef struct {
  float *first;
  size_t column_bytes;
  int columns; // that are there, of the ones computed
} repacked_results;

// [half of the eight rows][column]
typedef struct {
  vec half[2][4];
} eight_rows;

#define EACH_COLUMN _Pragma("clang loop unroll(full)") for (int j = 0; j < n; j++)
#define EACH_HALF _Pragma("clang loop unroll(full)") for (int h = 0; h < 2; h++)

INLINE void begin_sums(eight_rows *sums, int n, vec of_columns) {
  EACH_COLUMN sums->half[0][j] = sums->half[1][j] = splat_number(of_columns, j);
}

// One step; `y`: four activations of each of four columns.
INLINE void add_step(eight_rows *sums, int n, vec y, vec low, vec high, int dot) {
  EACH_COLUMN {
    const vec column = splat_number(y, j);
    sums->half[0][j] = add_products(sums->half[0][j], column, low, dot);
    sums->half[1][j] = add_products(sums->half[1][j], column, high, dot);
  }
}

// 32 weights of four bits.
INLINE void add_32(eight_rows *sums, int n, const uint8_t *y, const uint8_t *x, int coded, const constants *k, int dot) {
#define WEIGHTS(half, packed) weights_of_nibbles(half##_nibbles(packed, k), coded, k)
  UNROLLED for (int pair = 0; pair < 4; pair++, x += TILE_STEP, y += 32) {
    const vec first = load(x), second = load(x + 16);
    add_step(sums, n, load(y), WEIGHTS(low, first), WEIGHTS(low, second), dot);
    IN_ORDER(k);
    add_step(sums, n, load(y + 16), WEIGHTS(high, first), WEIGHTS(high, second), dot);
    IN_ORDER(k);
  }
#undef WEIGHTS
}

INLINE void store_rows(const eight_rows *sums, int n, repacked_results out) {
  EACH_COLUMN if (j < out.columns) {
    float *to = (float *)((uint8_t *)out.first + (size_t)j * out.column_bytes);
    store(to, sums->half[0][j]);
    store(to + 4, sums->half[1][j]);
  }
}

INLINE eight_rows zero_rows(void) {
  const vec z = ZERO_F32;
  return (eight_rows){{{z, z, z, z}, {z, z, z, z}}};
}

// Adds totals times the scales of their rows, `d`, and of their columns.
INLINE void add_floats(eight_rows *acc, int n, const eight_rows *totals, const vec d[2], vec scales) {
  EACH_COLUMN {
    const vec scale = splat_number(scales, j);
    EACH_HALF acc->half[h][j] = madd(to_f32(totals->half[h][j]), wasm_f32x4_mul(d[h], scale), acc->half[h][j]);
  }
}

// The halves of eight rows of blocks of 32 weights, to be taken before the sums: those leave no register to a branch.
typedef struct {
  vec d[2];
} eight_halves;

INLINE eight_halves halves_of_blocks(vec halves, const constants *k) {
  const vec first = unscaled_halves(halves, 0, k), second = unscaled_halves(halves, 1, k);
  if (any_subnormal(exponents_of_halves(halves, k))) return (eight_halves){{scaled_halves(first, k), scaled_halves(second, k)}};
  return (eight_halves){{wasm_f32x4_mul(first, k->f16_scale), wasm_f32x4_mul(second, k->f16_scale)}};
}

// The same of MXFP4, whose rows have powers of two.
INLINE eight_halves powers_of_blocks(const uint8_t *x, int part, const constants *k) {
  const vec exponents = wasm_u32x4_shr(halved_exponents(x, k), 16 * part);
  return (eight_halves){{powers_of_quartet(exponents, 0, k), powers_of_quartet(exponents, 1, k)}};
}

INLINE void add_scaled(eight_rows *totals, int n, const eight_rows *sums, const vec scale[2], int dot) {
  EACH_COLUMN EACH_HALF totals->half[h][j] = add_scaled_sums(totals->half[h][j], sums->half[h][j], scale[h], dot);
}
