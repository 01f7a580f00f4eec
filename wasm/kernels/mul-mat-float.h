// The operator mul_mat with F32, F16 or BF16 weights: models that are not quantised, and attention without flash
// attention (keys and values are F16 there, one matrix for each head, shared by the heads of a group).
#pragma once
#include "mul-mat-quantised.h"

enum { FLOAT_CHUNK = 64, FLOAT_GEMM_COLUMNS = 4 };

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

NOINLINE tile multiply_floats(const float *panel, int64_t k, const float *y0, const float *y1, const float *y2,
                              const float *y3) {
  vec f0 = ZERO_F32, f1 = ZERO_F32, f2 = ZERO_F32, f3 = ZERO_F32;
  for (int64_t i = 0; i < k; i += 4, panel += 16) {
    const vec a = load(y0 + i), b = load(y1 + i), c = load(y2 + i), d = load(y3 + i);
#define LANE(l)                                                                                                  \
  {                                                                                                              \
    const vec w = load(panel + 4 * l);                                                                           \
    f0 = madd(w, splat_lane(a, l), f0), f1 = madd(w, splat_lane(b, l), f1);                                      \
    f2 = madd(w, splat_lane(c, l), f2), f3 = madd(w, splat_lane(d, l), f3);                                      \
  }
    LANE(0) LANE(1) LANE(2) LANE(3)
#undef LANE
  }
  return (tile){{f0, f1, f2, f3}};
}

// Four neighbouring rows times one column.
NOINLINE vec gemv_floats(int32_t type, const uint8_t *x, size_t row_bytes, int64_t k, const float *y, constants c) {
  vec a0 = ZERO_F32, a1 = ZERO_F32, a2 = ZERO_F32, a3 = ZERO_F32;
  const size_t step = 4 * (type == TYPE_F32 ? 4 : 2);
  if (type == TYPE_F16) {
    // The scaling of halves is left to the end: one multiplication for each row instead of one for each load.
    for (int64_t i = 0; i < k; i += 4, x += step) {
      const vec v = load(y + i);
#define HALVES(r) f16_bits_to_f32(wasm_i32x4_load16x4(x + r * row_bytes), c.f16_bits)
      a0 = madd(HALVES(0), v, a0), a1 = madd(HALVES(1), v, a1), a2 = madd(HALVES(2), v, a2), a3 = madd(HALVES(3), v, a3);
#undef HALVES
    }
    return wasm_f32x4_mul(sums_f32x4(a0, a1, a2, a3), c.f16_scale);
  }
  for (int64_t i = 0; i < k; i += 4, x += step) {
    const vec v = load(y + i);
    a0 = madd(load_weights(type, x, &c), v, a0), a1 = madd(load_weights(type, x + row_bytes, &c), v, a1);
    a2 = madd(load_weights(type, x + 2 * row_bytes, &c), v, a2), a3 = madd(load_weights(type, x + 3 * row_bytes, &c), v, a3);
  }
  return sums_f32x4(a0, a1, a2, a3);
}

INLINE int float_fits(const tensor *out, const tensor *w, const tensor *x) {
  const int is_f32 = w->type == TYPE_F32;
  return (is_f32 || w->type == TYPE_F16 || w->type == TYPE_BF16) && x->type == TYPE_F32 && out->type == TYPE_F32 &&
         w->ne[0] % 4 == 0 && w->ne[1] % 4 == 0 && w->ne[3] == 1 && x->ne[3] == 1 && x->ne[2] % w->ne[2] == 0 &&
         w->nb[0] == (is_f32 ? 4 : 2) && x->nb[0] == sizeof(float) && out->nb[0] == sizeof(float);
}

// False when the work buffer is too small; nothing has happened then.
INLINE int mul_mat_float(const compute_params *params, tensor *out, const tensor *w, const tensor *x) {
  const int64_t k = w->ne[0], rows = w->ne[1], columns = x->ne[1], heads_per_matrix = x->ne[2] / w->ne[2];
  const size_t panel_bytes = align_up((size_t)(FLOAT_CHUNK * k) * sizeof(float));
  if (columns >= FLOAT_GEMM_COLUMNS && CACHE_LINE + panel_bytes * (size_t)params->nth > params->work_size) return 0;
  const constants c = make_constants(ZERO_I32);
  float *panels = (float *)(align_up((size_t)params->work) + panel_bytes * (size_t)params->ith);
  const int64_t chunks = (rows + FLOAT_CHUNK - 1) / FLOAT_CHUNK;
  for (int64_t item = params->ith; item < w->ne[2] * chunks; item += params->nth) {
    const int64_t matrix = item / chunks, first = item % chunks * FLOAT_CHUNK;
    const int64_t count = rows - first < FLOAT_CHUNK ? rows - first : FLOAT_CHUNK;
    const uint8_t *weights = w->data + (size_t)matrix * w->nb[2] + (size_t)first * w->nb[1];
    if (columns >= FLOAT_GEMM_COLUMNS) {
      for (int64_t r = 0; r < count; r += 4) pack_floats(w->type, weights + (size_t)r * w->nb[1], w->nb[1], k, panels + r * k, c);
    }
    for (int64_t head = matrix * heads_per_matrix; head < (matrix + 1) * heads_per_matrix; head++) {
      const uint8_t *ys = x->data + (size_t)head * x->nb[2];
      uint8_t *outs = out->data + (size_t)head * out->nb[2] + (size_t)first * sizeof(float);
      if (columns < FLOAT_GEMM_COLUMNS) {
        for (int64_t j = 0; j < columns; j++) {
          const float *y = (const float *)(ys + (size_t)j * x->nb[1]);
          float *to = (float *)(outs + (size_t)j * out->nb[1]);
          for (int64_t r = 0; r < count; r += 4) store(to + r, gemv_floats(w->type, weights + (size_t)r * w->nb[1], w->nb[1], k, y, c));
        }
        continue;
      }
      for (int64_t j = 0; j < columns; j += 4) {
        const int64_t n = columns - j < 4 ? columns - j : 4;
#define COLUMN(i) ((const float *)(ys + (size_t)(j + ((i) < n ? (i) : 0)) * x->nb[1]))
        for (int64_t r = 0; r < count; r += 4) {
          const tile result = multiply_floats(panels + r * k, k, COLUMN(0), COLUMN(1), COLUMN(2), COLUMN(3));
          for (int64_t i = 0; i < n; i++) store((float *)(outs + (size_t)(j + i) * out->nb[1]) + r, result.column[i]);
        }
#undef COLUMN
      }
    }
  }
  return 1;
}
