// Elementwise operators: sums and products of two tensors, scaling, activations. For F32, as all tensors between matrix
// products are, and contiguous rows.
#pragma once
#include "exponential.h"
#include "halves.h"
#include "rows.h"


// --- two tensors, the second one repeated where it is smaller -----------------------------------------------------

INLINE vec combined(int op, vec a, vec b) {
  if (op == OP_ADD) return wasm_f32x4_add(a, b);
  if (op == OP_SUB) return wasm_f32x4_sub(a, b);
  return op == OP_MUL ? wasm_f32x4_mul(a, b) : wasm_f32x4_div(a, b);
}

INLINE void combine_rows(int op, float *out, const float *a, const float *b, int64_t count) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) store(out + i, combined(op, load(a + i), load(b + i)));
  for (; i < count; i++) {
    out[i] = wasm_f32x4_extract_lane(combined(op, wasm_f32x4_splat(a[i]), wasm_f32x4_splat(b[i])), 0);
  }
}

INLINE void combine_with_one(int op, float *out, const float *a, vec b, int64_t count) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) store(out + i, combined(op, load(a + i), b));
  for (; i < count; i++) out[i] = wasm_f32x4_extract_lane(combined(op, wasm_f32x4_splat(a[i]), b), 0);
}

INLINE int combination_fits(const tensor *out) {
  const tensor *a = out->src[0], *b = out->src[1];
  return has_float_rows(out) && has_float_rows(a) && b->type == TYPE_F32 && (b->nb[0] == sizeof(float) || b->ne[0] == 1) &&
         same_shape(out, a);
}

INLINE void combine(int op, const compute_params *params, const tensor *out) {
  const tensor *a = out->src[0], *b = out->src[1];
  const int64_t rows = rows_of(out), width = b->ne[0];
  for (int64_t r = first_row(params, rows); r < behind_last_row(params, rows); r++) {
    const row_index at = row_at(out, r);
    float *to = (float *)row_data(out, at);
    const float *from = (const float *)row_data(a, at), *other = (const float *)row_data(b, repeated(b, at));
    if (width == 1) {
      combine_with_one(op, to, from, wasm_f32x4_splat(*other), out->ne[0]);
      continue;
    }
    for (int64_t i = 0; i < out->ne[0]; i += width) combine_rows(op, to + i, from + i, other, width);
  }
}

NOINLINE void combine_tensors(const compute_params *params, const tensor *out) {
  if (out->op == OP_ADD) combine(OP_ADD, params, out);
  else if (out->op == OP_SUB) combine(OP_SUB, params, out);
  else if (out->op == OP_MUL) combine(OP_MUL, params, out);
  else combine(OP_DIV, params, out);
}

// --- one tensor -----------------------------------------------------------------------------------------------------

// Skips a term of 0, as llama.cpp does, because adding it would turn -0 into 0.
INLINE vec scaled(vec x, vec factor, vec term, int adds) {
  const vec product = wasm_f32x4_mul(x, factor);
  return adds ? wasm_f32x4_add(product, term) : product;
}

// op_params: the factor and the term.
NOINLINE void scale_tensor(const compute_params *params, const tensor *out) {
  const vec factor = wasm_f32x4_splat(float_parameter(out, 0)), term = wasm_f32x4_splat(float_parameter(out, 1));
  const int adds = float_parameter(out, 1) != 0;
  const int64_t rows = rows_of(out), count = out->ne[0];
  for (int64_t r = first_row(params, rows); r < behind_last_row(params, rows); r++) {
    const row_index at = row_at(out, r);
    const float *from = (const float *)row_data(out->src[0], at);
    float *to = (float *)row_data(out, at);
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) store(to + i, scaled(load(from + i), factor, term, adds));
    for (; i < count; i++) to[i] = wasm_f32x4_extract_lane(scaled(wasm_f32x4_splat(from[i]), factor, term, adds), 0);
  }
}

// x / (1 + e^-x). Below -88, where the exponential is at its bound, the result is 0: what is left out is less than 1e-36.
INLINE vec silu(vec x) {
  const vec result = wasm_f32x4_div(x, wasm_f32x4_add(wasm_f32x4_const_splat(1), exp_f32x4(wasm_f32x4_neg(x))));
  return wasm_v128_andnot(result, wasm_f32x4_lt(x, wasm_f32x4_const_splat(-88)));
}

// ggml_table_gelu_f16: GELU of each half, as a half. It was computed with a tangent in floats; a more exact computation would
// differ in the last digits.
#define GELU_TABLE ((const uint16_t *)ADDRESS_OF_GELU_TABLE)

INLINE vec gelu(vec x) {
  const vec halves = wasm_v128_and(halves_of_f32(x), wasm_i32x4_const_splat(0xffff));
  const vec found = wasm_i32x4_make(GELU_TABLE[wasm_i32x4_extract_lane(halves, 0)], GELU_TABLE[wasm_i32x4_extract_lane(halves, 1)],
                                    GELU_TABLE[wasm_i32x4_extract_lane(halves, 2)], GELU_TABLE[wasm_i32x4_extract_lane(halves, 3)]);
  const vec bounded = wasm_v128_bitselect(x, f32_of_halves(found), wasm_f32x4_ge(x, wasm_f32x4_const_splat(10)));
  return wasm_v128_andnot(bounded, wasm_f32x4_le(x, wasm_f32x4_const_splat(-10)));
}

// The activation of gpt-oss (SWIGLU_OAI), with a number that is otherwise unused: a sharper SiLU of clamped numbers, whose
// gate is 1 at 0.
enum { BOUNDED_SILU = 100 };

typedef struct {
  vec sharpness, most; // of BOUNDED_SILU
} activation_bounds;

INLINE vec sigmoid(vec x) {
  const vec one = wasm_f32x4_const_splat(1);
  return wasm_f32x4_div(one, wasm_f32x4_add(one, exp_f32x4(wasm_f32x4_neg(x))));
}

INLINE vec activated(int activation, vec x, vec gate, activation_bounds b) {
  if (activation == BOUNDED_SILU) {
    const vec one = wasm_f32x4_const_splat(1), bounded = wasm_f32x4_pmin(x, b.most);
    const vec power = exp_f32x4(wasm_f32x4_mul(b.sharpness, wasm_f32x4_neg(bounded)));
    const vec open = wasm_f32x4_pmin(wasm_f32x4_pmax(gate, wasm_f32x4_neg(b.most)), b.most);
    return wasm_f32x4_mul(wasm_f32x4_div(bounded, wasm_f32x4_add(one, power)), wasm_f32x4_add(open, one));
  }
  const vec y = activation == UNARY_GELU ? gelu(x) : activation == UNARY_SILU ? silu(x) : activation == UNARY_SIGMOID ? sigmoid(x)
                                                                            : wasm_v128_and(x, wasm_f32x4_gt(x, ZERO_F32));
  return wasm_f32x4_mul(y, gate);
}

// Without a gate, numbers are multiplied by 1, which changes none.
INLINE void activate_row(int activation, float *to, const float *from, const float *gate, int64_t count, activation_bounds b) {
  const vec one = wasm_f32x4_const_splat(1);
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) store(to + i, activated(activation, load(from + i), gate ? load(gate + i) : one, b));
  for (; i < count; i++) {
    const vec last_gate = gate ? wasm_f32x4_splat(gate[i]) : one;
    to[i] = wasm_f32x4_extract_lane(activated(activation, wasm_f32x4_splat(from[i]), last_gate, b), 0);
  }
}

// The activation of a node, or -1 for one that is left to llama.cpp.
INLINE int activation_of(const tensor *out) {
  const int kind = out->op_params[0];
  if (out->op == OP_UNARY) return kind == UNARY_RELU || kind == UNARY_SIGMOID || kind == UNARY_GELU || kind == UNARY_SILU ? kind : -1;
  switch (kind) {
  case GATED_REGLU: return UNARY_RELU;
  case GATED_GEGLU: return UNARY_GELU;
  case GATED_SWIGLU: return UNARY_SILU;
  case GATED_SWIGLU_OAI: return BOUNDED_SILU;
  default: return -1;
  }
}

INLINE int activation_fits(const tensor *out) {
  const tensor *x = out->src[0], *gate = out->src[1];
  return activation_of(out) >= 0 && has_float_rows(out) && has_float_rows(x) && (out->op == OP_UNARY || !gate || has_float_rows(gate));
}

// The gate is a separate tensor, or follows the numbers in each row; op_params[1]: precedes them. The bounds follow in
// op_params.
INLINE void activate(int activation, const compute_params *params, const tensor *out) {
  const tensor *numbers = out->src[0], *gates = out->op == OP_GLU ? out->src[1] ? out->src[1] : numbers : 0;
  const int64_t rows = rows_of(out), count = out->ne[0];
  const int swapped = out->op_params[1] != 0, together = gates == numbers;
  const activation_bounds bounds = {wasm_f32x4_splat(float_parameter(out, 2)), wasm_f32x4_splat(float_parameter(out, 3))};
  for (int64_t r = first_row(params, rows); r < behind_last_row(params, rows); r++) {
    const row_index at = row_at(out, r);
    const float *x = (const float *)row_data(numbers, at), *gate = gates ? (const float *)row_data(gates, at) : 0;
    if (together && swapped) x += count;
    else if (together) gate += count;
    activate_row(activation, (float *)row_data(out, at), x, gate, count, bounds);
  }
}

NOINLINE void activate_tensor(const compute_params *params, const tensor *out) {
  switch (activation_of(out)) {
  case UNARY_GELU: activate(UNARY_GELU, params, out); break;
  case UNARY_SILU: activate(UNARY_SILU, params, out); break;
  case UNARY_SIGMOID: activate(UNARY_SIGMOID, params, out); break;
  case BOUNDED_SILU: activate(BOUNDED_SILU, params, out); break;
  default: activate(UNARY_RELU, params, out); break;
  }
}
