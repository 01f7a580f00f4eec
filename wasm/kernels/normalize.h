// Rows with a mean square of 1 (RMS_NORM), or with a variance of 1 around 0 (NORM). Sums are added in doubles, as
// llama.cpp's, in two of four lanes each.
#pragma once
#include "rows.h"


typedef struct {
  vec low, high; // of two doubles each
} double_sums;

INLINE double_sums add_doubles(double_sums s, vec x) {
  return (double_sums){wasm_f64x2_add(s.low, wasm_f64x2_promote_low_f32x4(x)),
                       wasm_f64x2_add(s.high, wasm_f64x2_promote_low_f32x4(wasm_i32x4_shuffle(x, x, 2, 3, 2, 3)))};
}

INLINE double sum_of_doubles(double_sums s) {
  const vec sum = wasm_f64x2_add(s.low, s.high);
  return wasm_f64x2_extract_lane(sum, 0) + wasm_f64x2_extract_lane(sum, 1);
}

INLINE double sum_of_row(const float *x, int64_t count, int squared, float less) {
  const vec mean = wasm_f32x4_splat(less);
  double_sums sums = {ZERO_F32, ZERO_F32};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const vec v = wasm_f32x4_sub(load(x + i), mean);
    sums = add_doubles(sums, squared ? wasm_f32x4_mul(v, v) : v);
  }
  double sum = sum_of_doubles(sums);
  for (; i < count; i++) {
    const float v = x[i] - less;
    sum += (double)(squared ? v * v : v);
  }
  return sum;
}

INLINE void scale_row(float *to, const float *from, const float *weights, int64_t count, float less, float factor) {
  const vec mean = wasm_f32x4_splat(less), factors = wasm_f32x4_splat(factor);
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const vec v = wasm_f32x4_mul(wasm_f32x4_sub(load(from + i), mean), factors);
    store(to + i, weights ? wasm_f32x4_mul(v, load(weights + i)) : v);
  }
  for (; i < count; i++) {
    const float v = (from[i] - less) * factor;
    to[i] = weights ? v * weights[i] : v;
  }
}

INLINE int norm_fits(const tensor *out) {
  return has_float_rows(out) && has_float_rows(out->src[0]) && same_shape(out, out->src[0]);
}

// True if the next node only multiplies the norm with weights, in place, so that both can be computed at once.
INLINE int multiplies_norm(const tensor *next, const tensor *norm) {
  const tensor *weights = next->src[1];
  return next->op == OP_MUL && next->flags & FLAG_COMPUTE && next->src[0] == norm && weights != norm && next->data == norm->data &&
         has_float_rows(next) && same_shape(next, norm) && next->nb[1] == norm->nb[1] && next->nb[2] == norm->nb[2] &&
         next->nb[3] == norm->nb[3] && has_float_rows(weights) && weights->ne[0] == norm->ne[0];
}

// op_params: what is added to the mean square.
NOINLINE void normalize(const compute_params *params, const tensor *out, const tensor *weights) {
  const int64_t rows = rows_of(out), count = out->ne[0];
  const float epsilon = float_parameter(out, 0);
  for (int64_t r = first_row(params, rows); r < behind_last_row(params, rows); r++) {
    const row_index at = row_at(out, r);
    const float *x = (const float *)row_data(out->src[0], at);
    const float less = out->op == OP_NORM ? (float)sum_of_row(x, count, 0, 0) / (float)count : 0;
    const float mean = (float)(sum_of_row(x, count, 1, less) / (double)count);
    const float factor = 1 / __builtin_sqrtf(mean + epsilon);
    const float *by = weights ? (const float *)row_data(weights, repeated(weights, at)) : 0;
    scale_row((float *)row_data(out, at), x, by, count, less, factor);
  }
}
