// Repacked weights × two to four columns: eight rows at a time, with sums as in repacked-gemv.h. A step takes four weights
// of each row (two vectors) and four activations of each column (one, splat four times): 128 products in 8 vpmaddubsw.
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
#define UNROLLED _Pragma("clang loop unroll(full)")

INLINE void begin_sums(eight_rows *sums, int n, vec of_columns) {
  EACH_COLUMN sums->half[0][j] = sums->half[1][j] = splat_number(of_columns, j);
}

// One step; `y`: four activations of each of four columns.
INLINE void add_step(eight_rows *sums, int n, vec y, vec low, vec high) {
  EACH_COLUMN {
    const vec column = splat_number(y, j);
    sums->half[0][j] = wasm_i16x8_add(sums->half[0][j], dot_i8_u7(column, low));
    sums->half[1][j] = wasm_i16x8_add(sums->half[1][j], dot_i8_u7(column, high));
  }
}

// 32 weights of four bits.
INLINE void add_32(eight_rows *sums, int n, const uint8_t *y, const uint8_t *x, const constants *k) {
  ROLLED for (int pair = 0; pair < 4; pair++, x += 32, y += 32) {
    const vec low = load(x), high = load(x + 16);
    add_step(sums, n, load(y), low_nibbles(low, k), low_nibbles(high, k));
    add_step(sums, n, load(y + 16), high_nibbles(low, k), high_nibbles(high, k));
  }
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

INLINE void multiply_repacked_q4_0(const uint8_t *x, int64_t groups, int64_t blocks, const uint8_t *record, int n,
                                   repacked_results out, constants k) {
    for (; groups > 0; groups--, out.first += REPACKED_ROWS) {
    const uint8_t *y = record;
    eight_rows acc = zero_rows();
    for (int64_t b = 0; b < blocks; b++, x += 16 + REPACKED_Q4, y += RECORD_Q4_0 * 4) {
      eight_rows sums;
      begin_sums(&sums, n, load(y + 144));
      add_32(&sums, n, y, x + 16, &k);
      const vec halves = load(x), scales = load(y + 128);
      const vec d[2] = {wasm_f32x4_mul(f16_bits_to_f32(wasm_i32x4_extend_low_i16x8(halves), k.f16_bits), k.f16_scale),
                        wasm_f32x4_mul(f16_bits_to_f32(wasm_i32x4_extend_high_i16x8(halves), k.f16_bits), k.f16_scale)};
      EACH_COLUMN {
        const vec scale = splat_number(scales, j);
        EACH_HALF acc.half[h][j] = madd(to_f32(pair_sums_i32(sums.half[h][j])), wasm_f32x4_mul(d[h], scale), acc.half[h][j]);
      }
    }
    store_rows(&acc, n, out);
  }
}

INLINE void add_scaled(eight_rows *totals, int n, const eight_rows *sums, const vec scale[2]) {
  EACH_COLUMN EACH_HALF totals->half[h][j] = wasm_i32x4_add(totals->half[h][j], wasm_i32x4_dot_i16x8(sums->half[h][j], scale[h]));
}

INLINE void add_floats(eight_rows *acc, int n, const eight_rows *totals, eight_floats d, vec scales) {
  EACH_COLUMN {
    const vec scale = splat_number(scales, j);
    EACH_HALF acc->half[h][j] = madd(to_f32(totals->half[h][j]), wasm_f32x4_mul(d.half[h], scale), acc->half[h][j]);
  }
}

INLINE void multiply_repacked_q4_K(const uint8_t *x, int64_t groups, int64_t super_blocks, const uint8_t *record, int n,
                                   repacked_results out, constants k) {
    const vec take[4] = {opaque(twice_byte(0)), opaque(twice_byte(1)), opaque(twice_byte(2)), opaque(twice_byte(3))};
  for (; groups > 0; groups--, out.first += REPACKED_ROWS) {
    const uint8_t *y = record;
    eight_rows acc = zero_rows();
    for (int64_t s = 0; s < super_blocks; s++, y += RECORD_K * 4) {
      const scales_of_rows sc = read_scales_q4_K(x, &k);
      eight_rows totals = zero_rows();
      const uint8_t *quants = x + QUANTS_Q4_K;
      vec scale[GROUPS][2];
      UNROLLED for (int g = 0; g < GROUPS; g++) {
        EACH_HALF scale[g][h] = wasm_i8x16_relaxed_swizzle(sc.scales[g / 4][h], take[g % 4]);
      }
      const uint8_t *yq = y;
      ROLLED for (int g = 0; g < GROUPS; g++, quants += REPACKED_Q4, yq += 128) {
        eight_rows sums = zero_rows();
        add_32(&sums, n, yq, quants, &k);
        add_scaled(&totals, n, &sums, scale[g]);
      }
      const uint8_t *behind = y + SUPER_BLOCK * 4;
      const vec of_columns = load(behind);
      add_floats(&acc, n, &totals, load_8_halves(x, &k), of_columns);
      eight_rows minimums;
      EACH_COLUMN {
        const vec of_column = load(behind + 16 + 16 * j);
        EACH_HALF minimums.half[h][j] = minimums_q4_K(&sc, h, of_column);
      }
      add_floats(&acc, n, &minimums, load_8_halves(x + 16, &k), wasm_f32x4_neg(of_columns));
      x += BYTES_Q4_K * REPACKED_ROWS;
    }
    store_rows(&acc, n, out);
  }
}

// 16 weights of six bits.
INLINE void add_16(eight_rows *sums, int n, const uint8_t *y, const uint8_t *x, const constants *k) {
  const vec bits[2] = {load(x + 64), load(x + 80)};
  UNROLLED for (int step = 0; step < 4; step++) {
    vec w[2];
    EACH_HALF {
      const vec packed = load(x + 32 * (step / 2) + 16 * h);
      w[h] = wasm_v128_or(step % 2 ? high_nibbles(packed, k) : low_nibbles(packed, k), high_bits_of_step(bits[h], step, k));
    }
    add_step(sums, n, load(y + 16 * step), w[0], w[1]);
  }
}

INLINE void multiply_repacked_q6_K(const uint8_t *x, int64_t groups, int64_t super_blocks, const uint8_t *record, int n,
                                   repacked_results out, constants k) {
    const vec take[4] = {opaque(twice_byte_high(0)), opaque(twice_byte_high(1)), opaque(twice_byte_high(2)), opaque(twice_byte_high(3))};
  for (; groups > 0; groups--, out.first += REPACKED_ROWS) {
    const uint8_t *y = record;
    eight_rows acc = zero_rows();
    for (int64_t s = 0; s < super_blocks; s++, y += RECORD_K * 4) {
      const uint8_t *quants = x + QUANTS_Q6_K, *yq = y, *behind = y + SUPER_BLOCK * 4, *offsets = behind + 16;
      eight_rows totals = zero_rows();
      vec scale[16][2];
      UNROLLED for (int i = 0; i < 16; i++) {
        EACH_HALF scale[i][h] = wasm_i16x8_shr(wasm_i8x16_relaxed_swizzle(load(x + SCALES_Q6_K + 32 * (i / 4) + 16 * h), take[i % 4]), 8);
      }
      ROLLED for (int i = 0; i < 16; i++, quants += REPACKED_Q6_16, yq += 64, offsets += 16) {
        eight_rows sums;
        begin_sums(&sums, n, load(offsets));
        add_16(&sums, n, yq, quants, &k);
        add_scaled(&totals, n, &sums, scale[i]);
      }
      add_floats(&acc, n, &totals, load_8_halves(x, &k), load(behind));
      x += BYTES_Q6_K * REPACKED_ROWS;
    }
    store_rows(&acc, n, out);
  }
}

#define DEFINE_REPACKED(name, n)                                                                                 \
  NOINLINE void name##_##n(const uint8_t *x, int64_t groups, int64_t blocks, const uint8_t *record,              \
                           repacked_results out, constants k) {                                                  \
    name(x, groups, blocks, record, n, out, k);                                                                  \
  }
#define DEFINE_REPACKED_FOR_COLUMNS(name) DEFINE_REPACKED(name, 2) DEFINE_REPACKED(name, 4)
DEFINE_REPACKED_FOR_COLUMNS(multiply_repacked_q4_0)
DEFINE_REPACKED_FOR_COLUMNS(multiply_repacked_q4_K)
DEFINE_REPACKED_FOR_COLUMNS(multiply_repacked_q6_K)

// Rows of repacked weights (a multiple of eight) × a group of up to four columns.
NOINLINE void multiply_repacked(int32_t type, const uint8_t *x, int64_t rows, int64_t k, const uint8_t *record,
                                repacked_results out, constants c) {
  const int64_t groups = rows / REPACKED_ROWS, blocks = k / weights_of_block(type);
#define CASE(TYPE, name)                                                                                         \
  case TYPE:                                                                                                     \
    if (out.columns <= 2) name##_2(x, groups, blocks, record, out, c);                                           \
    else name##_4(x, groups, blocks, record, out, c);                                                            \
    break;
  switch (type) {
    CASE(TYPE_Q4_0, multiply_repacked_q4_0)
    CASE(TYPE_Q4_K, multiply_repacked_q4_K)
    CASE(TYPE_Q6_K, multiply_repacked_q6_K)
  }
#undef CASE
}
