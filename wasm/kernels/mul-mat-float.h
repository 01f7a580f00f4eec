// The operator mul_mat with F32, F16 or BF16 weights: models that are not quantized, and attention without flash
// attention (keys and values are F16 there, one matrix for each head, shared by the heads of a group: all columns of
// all these heads meet what is unpacked once). Where each slot has a KV cache of its own, the fourth dimension counts the
// slots of a step.
#pragma once
#include "mul-mat-quantized.h"

// Number of columns from which unpacking the weights into panels is faster.
enum { FLOAT_CHUNK = 64, FLOAT_GEMM_COLUMNS = 6 };

// Four weights as floats. BF16 is the upper half of a float.
INLINE vec load_weights(int32_t type, const uint8_t *p, const constants *c) {
  if (type == TYPE_F16) return wasm_f32x4_mul(f16_bits_to_f32(wasm_i32x4_load16x4(p), c->f16_bits), c->f16_scale);
  if (type == TYPE_BF16) return wasm_i32x4_shl(wasm_u32x4_load16x4(p), 16);
  return load(p);
}

// Panel of four rows: [k][row].
NOINLINE void pack_floats(int32_t type, const uint8_t *x, size_t row_bytes, int64_t k, float *to, constants c) {
  const size_t step = 4 * (type == TYPE_F32 ? 4 : 2);
  for (int64_t i = 0; i < k; i += 4, x += step, to += 16) {
    store_steps(load_weights(type, x, &c), load_weights(type, x + row_bytes, &c), load_weights(type, x + 2 * row_bytes, &c),
                load_weights(type, x + 3 * row_bytes, &c), (uint8_t *)to, 16);
  }
}

// Two panels × four columns. Per element of k: 2 loads, 4 splats, 8 FMAs; registers: 8 sums, 2 of weights, a splat, 4 of
// activations.
NOINLINE tile_pair multiply_floats(const float *a, const float *b, int64_t k, const float *y0, const float *y1,
                                   const float *y2, const float *y3) {
  tile fa = {{ZERO_F32, ZERO_F32, ZERO_F32, ZERO_F32}}, fb = fa;
  for (int64_t i = 0; i < k; i += 4, a += 16, b += 16) {
    const vec columns[4] = {load(y0 + i), load(y1 + i), load(y2 + i), load(y3 + i)};
#define LANE(l)                                                                                                  \
  {                                                                                                              \
    const vec wa = load(a + 4 * l), wb = load(b + 4 * l);                                                        \
    for (int j = 0; j < 4; j++) {                                                                                \
      const vec v = splat_lane(columns[j], l);                                                                   \
      fa.column[j] = madd(wa, v, fa.column[j]), fb.column[j] = madd(wb, v, fb.column[j]);                        \
    }                                                                                                            \
  }
    LANE(0) LANE(1) LANE(2) LANE(3)
#undef LANE
  }
  return (tile_pair){fa, fb};
}

typedef struct {
  vec low, high;
} floats8;

// Eight weights as floats; halves are still to be scaled.
INLINE floats8 load_8_weights(int32_t type, const uint8_t *p, const constants *c) {
  if (type == TYPE_F32) return (floats8){load(p), load(p + 16)};
  const vec packed = load(p);
  const vec low = wasm_i16x8_shuffle(ZERO_I32, packed, 0, 8, 1, 9, 2, 10, 3, 11);
  const vec high = wasm_i16x8_shuffle(ZERO_I32, packed, 4, 12, 5, 13, 6, 14, 7, 15);
  if (type == TYPE_BF16) return (floats8){low, high};
  return (floats8){wasm_v128_and(wasm_i32x4_shr(low, 3), c->f16_bits), wasm_v128_and(wasm_i32x4_shr(high, 3), c->f16_bits)};
}

// Unscaled halves are 2^112 too small: their products with ordinary activations would be subnormal floats, which cost over
// 100 cycles on some machines. So the activations are scaled up, as far as the range of halves allows (to which stock
// llama.cpp rounds them), and the sums by the remaining factor.
// constants.half_up is 2^100, this the rest.
#define HALF_REST 0x1p12f

// Four neighboring rows times one to four columns, `at_once` rows in one pass: what fits the registers.
INLINE tile gemv_floats(int32_t type, const uint8_t *x, size_t row_bytes, int64_t k, const float *const *y, int n,
                        int at_once, constants c) {
  const size_t size = type == TYPE_F32 ? 4 : 2;
  vec acc[4][4];
  for (int first = 0; first < 4; first += at_once) {
    // A pointer for each stream: constant offsets then stay in the loads.
    const uint8_t *w[4];
    const float *v[4];
    for (int r = 0; r < at_once; r++) {
      w[r] = x + (size_t)(first + r) * row_bytes;
      for (int j = 0; j < n; j++) acc[first + r][j] = ZERO_F32;
    }
    for (int j = 0; j < n; j++) v[j] = y[j];
    int64_t left = k;
    for (; left >= 8; left -= 8) {
      vec low[4], high[4];
      for (int j = 0; j < n; j++) {
        low[j] = load(v[j]), high[j] = load(v[j] + 4);
        if (type == TYPE_F16) low[j] = wasm_f32x4_mul(low[j], c.half_up), high[j] = wasm_f32x4_mul(high[j], c.half_up);
        v[j] += 8;
      }
      _Pragma("clang loop unroll(full)") for (int r = 0; r < at_once; r++) {
        const floats8 weights = load_8_weights(type, w[r], &c);
        for (int j = 0; j < n; j++) {
          acc[first + r][j] = madd(weights.high, high[j], madd(weights.low, low[j], acc[first + r][j]));
        }
        w[r] += 8 * size;
      }
    }
    if (left == 0) continue;
    for (int j = 0; j < n; j++) {
      const vec values = type == TYPE_F16 ? wasm_f32x4_mul(load(v[j]), wasm_f32x4_const_splat(1 / HALF_REST)) : load(v[j]);
      for (int r = 0; r < at_once; r++) acc[first + r][j] = madd(load_weights(type, w[r], &c), values, acc[first + r][j]);
    }
  }
  tile result;
  for (int j = 0; j < n; j++) {
    const vec sums = sums_f32x4(acc[0][j], acc[1][j], acc[2][j], acc[3][j]);
    result.column[j] = type == TYPE_F16 ? wasm_f32x4_mul(sums, wasm_f32x4_const_splat(HALF_REST)) : sums;
  }
  return result;
}

#define DEFINE_GEMV_FLOATS(type, n, at_once)                                                                     \
  NOINLINE tile gemv_##type##_##n(const uint8_t *x, size_t row_bytes, int64_t k, const float *const *y, constants c) { \
    return gemv_floats(type, x, row_bytes, k, y, n, at_once, c);                                                 \
  }
#define DEFINE_GEMV_FLOATS_OF(type)                                                                              \
  DEFINE_GEMV_FLOATS(type, 1, 4) DEFINE_GEMV_FLOATS(type, 2, 4) DEFINE_GEMV_FLOATS(type, 3, 2) DEFINE_GEMV_FLOATS(type, 4, 2)
DEFINE_GEMV_FLOATS_OF(TYPE_F32)
DEFINE_GEMV_FLOATS_OF(TYPE_F16)
DEFINE_GEMV_FLOATS_OF(TYPE_BF16)

INLINE tile gemv_floats_of(int32_t type, const uint8_t *x, size_t row_bytes, int64_t k, const float *const *y, int n,
                           constants c) {
#define BY_COLUMNS(type)                                                                                         \
  switch (n) {                                                                                                   \
  case 1: return gemv_##type##_1(x, row_bytes, k, y, c);                                                         \
  case 2: return gemv_##type##_2(x, row_bytes, k, y, c);                                                         \
  case 3: return gemv_##type##_3(x, row_bytes, k, y, c);                                                         \
  default: return gemv_##type##_4(x, row_bytes, k, y, c);                                                        \
  }
  if (type == TYPE_F16) BY_COLUMNS(TYPE_F16)
  if (type == TYPE_BF16) BY_COLUMNS(TYPE_BF16)
  BY_COLUMNS(TYPE_F32)
#undef BY_COLUMNS
}

// Maximum bytes of rows that are read ahead: they must still be in a near cache when they are multiplied.
enum { MOST_READ_AHEAD = 64 << 10 };

// Short rows that lie apart, as keys and values of one head do.
INLINE int needs_reading_ahead(const tensor *w, int64_t rows) {
  const size_t bytes = (size_t)w->ne[0] * w->nb[0];
  return bytes < w->nb[1] && bytes * (size_t)rows <= MOST_READ_AHEAD;
}

// Reads a number of each cache line, so that lines are loaded in parallel. A processor's prefetchers do not follow such
// strides, and while rows are multiplied its out-of-order window is too short.
NOINLINE int32_t read_lines(const uint8_t *x, size_t row_bytes, int64_t rows, size_t bytes) {
  int32_t seen = 0;
  for (int64_t r = 0; r < rows; r++, x += row_bytes) {
    for (size_t at = 0; at < bytes; at += CACHE_LINE) seen |= *(const int32_t *)(x + at);
  }
  return seen;
}

INLINE int float_fits(const tensor *out, const tensor *w, const tensor *x) {
  const int is_f32 = w->type == TYPE_F32;
  return (is_f32 || w->type == TYPE_F16 || w->type == TYPE_BF16) && x->type == TYPE_F32 && out->type == TYPE_F32 &&
         w->ne[0] % 4 == 0 && w->ne[1] % 4 == 0 && w->ne[3] == x->ne[3] && x->ne[2] % w->ne[2] == 0 &&
         w->nb[0] == (is_f32 ? 4 : 2) && x->nb[0] == sizeof(float) && out->nb[0] == sizeof(float);
}

// Up to four of the columns that meet one matrix: those of all heads that share it, one head after the other.
typedef struct {
  int n;
  const float *y[4];
  float *to[4];
} float_columns;

INLINE float_columns columns_from(int64_t first, int64_t matrix, int64_t slot, const tensor *x, const tensor *out,
                                  int64_t heads) {
  const int64_t columns = x->ne[1], all = columns * heads;
  float_columns group = {.n = (int)(all - first < 4 ? all - first : 4)};
  for (int i = 0; i < 4; i++) {
    // Pads the last group with its first column.
    const int64_t at = i < group.n ? first + i : first;
    const size_t head = (size_t)(matrix * heads + at / columns), column = (size_t)(at % columns);
    group.y[i] = (const float *)(x->data + (size_t)slot * x->nb[3] + head * x->nb[2] + column * x->nb[1]);
    group.to[i] = (float *)(out->data + (size_t)slot * out->nb[3] + head * out->nb[2] + column * out->nb[1]);
  }
  return group;
}

// Returns false, without effect, when the work buffer is too small.
INLINE int mul_mat_float(const compute_params *params, tensor *out, const tensor *w, const tensor *x) {
  const int64_t k = w->ne[0], rows = w->ne[1], heads = x->ne[2] / w->ne[2], columns = x->ne[1] * heads;
  const size_t panel_bytes = align_up((size_t)(FLOAT_CHUNK * k) * sizeof(float));
  const int gemm = deciding_columns(columns, heads) >= FLOAT_GEMM_COLUMNS;
  if (gemm && CACHE_LINE + panel_bytes * (size_t)params->nth > params->work_size) return 0;
  const constants c = make_constants(ZERO_I32);
  float *panels = (float *)(align_up((size_t)params->work) + panel_bytes * (size_t)params->ith);
  const int64_t chunks = (rows + FLOAT_CHUNK - 1) / FLOAT_CHUNK, matrices = w->ne[2];
  for (int64_t item = params->ith; item < w->ne[3] * matrices * chunks; item += params->nth) {
    const int64_t slot = item / (matrices * chunks), matrix = item / chunks % matrices, first = item % chunks * FLOAT_CHUNK;
    const int64_t count = rows - first < FLOAT_CHUNK ? rows - first : FLOAT_CHUNK;
    const uint8_t *weights =
        w->data + (size_t)slot * w->nb[3] + (size_t)matrix * w->nb[2] + (size_t)first * w->nb[1];
    if (gemm) {
      for (int64_t r = 0; r < count; r += 4) pack_floats(w->type, weights + (size_t)r * w->nb[1], w->nb[1], k, panels + r * k, c);
    }
    // The result is not needed, but this keeps the compiler from removing the reads.
    if (!gemm && needs_reading_ahead(w, count) && read_lines(weights, w->nb[1], count, (size_t)k * w->nb[0]) & c.never) __builtin_trap();
    for (int64_t j = 0; j < columns; j += 4) {
      const float_columns group = columns_from(j, matrix, slot, x, out, heads);
      for (int64_t r = 0; r < count; r += gemm ? 8 : 4) {
        if (gemm) {
          const int64_t second = r + 4 < count ? r + 4 : r;
          const tile_pair result =
              multiply_floats(panels + r * k, panels + second * k, k, group.y[0], group.y[1], group.y[2], group.y[3]);
          for (int i = 0; i < group.n; i++) {
            store(group.to[i] + first + r, result.a.column[i]);
            store(group.to[i] + first + second, result.b.column[i]);
          }
        } else {
          const tile result = gemv_floats_of(w->type, weights + (size_t)r * w->nb[1], w->nb[1], k, group.y, group.n, c);
          for (int i = 0; i < group.n; i++) store(group.to[i] + first + r, result.column[i]);
        }
      }
    }
  }
  return 1;
}
