// Sums of a tile of repacked weights, sixteen rows, and two to four columns: what the formats in repacked-multiply.h share.
#pragma once
#include "repacked-gemv.h"

// Where results go: [column][row].
typedef struct {
  float *first;
  size_t column_bytes;
  int columns; // that are there, of the ones computed
} repacked_results;

// [quartet of rows][column]
typedef struct {
  vec of[QUARTETS][4];
} tile_sums;

#define EACH_COLUMN UNROLLED for (int j = 0; j < n; j++)
#define EACH_OF(many) UNROLLED for (int q = 0; q < (many); q++)

// Quartets whose sums the registers hold. With more than two columns a tile is done in two parts, which take turns after a few
// weights, so that weights come from memory in their order.
#define AT_ONCE(type, n) ((n) <= 2 && format_of_repacked(type).quants == TILE_Q4 ? 4 : 2)
enum { WEIGHTS_IN_TURN = SUPER_BLOCK };

INLINE tile_sums zero_tile(void) {
  const vec z = ZERO_F32;
  return (tile_sums){{{z, z, z, z}, {z, z, z, z}, {z, z, z, z}, {z, z, z, z}}};
}

#define PARTS(many) (QUARTETS / (many))
// The results of a tile while its parts take turns.
typedef struct {
  tile_sums part[2];
} tile_parts;

INLINE tile_parts zero_parts(void) { return (tile_parts){{zero_tile(), zero_tile()}}; }
INLINE tile_sums part_of(const tile_parts *parts, int part, int many, int n) {
  tile_sums sums;
  EACH_COLUMN EACH_OF(many) sums.of[q][j] = parts->part[part].of[q][j];
  return sums;
}
INLINE void put_part(tile_parts *parts, int part, int many, int n, const tile_sums *sums) {
  EACH_COLUMN EACH_OF(many) parts->part[part].of[q][j] = sums->of[q][j];
}
INLINE void store_parts(const tile_parts *parts, int many, int n, repacked_results out) {
  EACH_COLUMN if (j < out.columns) {
    float *to = (float *)((uint8_t *)out.first + (size_t)j * out.column_bytes);
    UNROLLED for (int part = 0; part < PARTS(many); part++) {
      EACH_OF(many) store(to + 4 * (many * part + q), parts->part[part].of[q][j]);
    }
  }
}

INLINE void begin_sums(tile_sums *sums, int many, int n, vec of_columns) {
  EACH_COLUMN {
    const vec first = splat_number(of_columns, j);
    EACH_OF(many) sums->of[q][j] = first;
  }
}

// One step of `many` quartets; `y`: four activations of each of four columns.
INLINE void add_step(tile_sums *sums, int many, int n, vec y, const vec *w, int dot) {
  EACH_COLUMN {
    const vec column = splat_number(y, j);
    EACH_OF(many) sums->of[q][j] = add_products(sums->of[q][j], column, w[q], dot);
  }
}

// 32 weights of four bits.
INLINE void add_32(tile_sums *sums, int many, int n, const uint8_t *y, const uint8_t *x, int coded, const constants *k, int dot) {
#define WEIGHTS(half, packed) weights_of_nibbles(half##_nibbles(packed, k), coded, k)
  UNROLLED for (int pair = 0; pair < 4; pair++, x += TILE_STEP, y += 32) {
    vec packed[4], w[4];
    if (many == 4) {
      // Two columns: there is room for the activations of both steps, and none for the weights of all rows.
      const vec first = load(y), second = load(y + 16);
      EACH_OF(many) {
        const vec both = load(x + 16 * q), low = WEIGHTS(low, both), high = WEIGHTS(high, both);
        EACH_COLUMN {
          sums->of[q][j] = add_products(sums->of[q][j], splat_number(first, j), low, dot);
          sums->of[q][j] = add_products(sums->of[q][j], splat_number(second, j), high, dot);
        }
      }
      IN_ORDER(k);
      continue;
    }
    EACH_OF(many) packed[q] = load(x + 16 * q);
    EACH_OF(many) w[q] = WEIGHTS(low, packed[q]);
    add_step(sums, many, n, load(y), w, dot);
    IN_ORDER(k);
    EACH_OF(many) w[q] = WEIGHTS(high, packed[q]);
    add_step(sums, many, n, load(y + 16), w, dot);
    IN_ORDER(k);
  }
#undef WEIGHTS
}

// Adds totals of a quartet times the scales of its rows, `d`, and of their columns.
INLINE void add_floats(vec *acc, int n, const vec *totals, vec d, vec scales) {
  EACH_COLUMN acc[j] = madd(to_f32(totals[j]), wasm_f32x4_mul(d, splat_number(scales, j)), acc[j]);
}

// The scales of the rows of a block of 32 weights, to be taken before the sums: those leave no register to a branch.
typedef struct {
  vec d[QUARTETS];
} block_scales;

INLINE block_scales halves_of_block(const uint8_t *x, int part, int many, const constants *k) {
  const vec first = load(x + 16 * part), second = many == 4 ? load(x + 16) : first;
  block_scales of;
  EACH_OF(many) of.d[q] = unscaled_halves(q < 2 ? first : second, q % 2, k);
  if (any_subnormal(wasm_u16x8_min(exponents_of_halves(first, k), exponents_of_halves(second, k)))) {
    EACH_OF(many) of.d[q] = scaled_halves(of.d[q], k);
  } else {
    EACH_OF(many) of.d[q] = wasm_f32x4_mul(of.d[q], k->f16_scale);
  }
  return of;
}

// The same of MXFP4, whose rows have powers of two.
INLINE block_scales powers_of_block(const uint8_t *x, int part, int many, const constants *k) {
  const vec exponents = wasm_u32x4_shr(halved_exponents(x, k), 16 * part);
  block_scales of;
  EACH_OF(many) of.d[q] = powers_of_quartet(exponents, q, k);
  return of;
}

INLINE void add_scaled(vec *totals, int n, const vec *sums, vec scale, int dot) {
  EACH_COLUMN totals[j] = add_scaled_sums(totals[j], sums[j], scale, dot);
}
