// The operator soft_max: attention scores, scaled and masked, become shares of 1, in three passes, four scores at a time. All
// rows are divided among the threads, also the one row that each head has while a token is generated.
#pragma once
#include "exponential.h"
#include "tensor.h"

typedef struct {
  const float *scores;
  const uint8_t *mask; // F16 or F32; null: none
  float *out;
} softmax_row;

// Four numbers of the mask. Unlike weights, it may contain infinity, which hides tokens from each other.
INLINE vec load_mask(const uint8_t *mask, int is_f16, const constants *c) {
  if (!is_f16) return load(mask);
  const vec value = wasm_f32x4_mul(f16_bits_to_f32(wasm_i32x4_load16x4(mask), c->f16_bits), c->f16_scale);
  const vec infinite = wasm_f32x4_ge(wasm_f32x4_abs(value), wasm_f32x4_const_splat(0x1p16f));
  return wasm_v128_or(value, wasm_v128_and(infinite, wasm_i32x4_const_splat(0x7f800000)));
}

// Scaled and masked scores of a whole number of fours; the result is their maximum in each lane.
INLINE vec mask_scores(softmax_row row, int64_t count, vec scale, int is_f16, vec most, const constants *c) {
  for (int64_t i = 0; i < count; i += 4) {
    vec v = wasm_f32x4_mul(load(row.scores + i), scale);
    if (row.mask) v = wasm_f32x4_add(v, load_mask(row.mask + (is_f16 ? 2 : 4) * i, is_f16, c));
    store(row.out + i, v);
    most = wasm_f32x4_max(most, v);
  }
  return most;
}

// Sums of many numbers lose digits, so they are added in parts.
enum { SUM_PIECE = 1024 };

INLINE double exponentials(float *values, int64_t count, float most) {
  const vec maximum = wasm_f32x4_splat(most);
  double sum = 0;
  for (int64_t from = 0; from < count; from += SUM_PIECE) {
    const int64_t to = count - from < SUM_PIECE ? count : from + SUM_PIECE;
    vec piece = ZERO_F32;
    for (int64_t i = from; i < to; i += 4) {
      const vec e = exp_f32x4(wasm_f32x4_sub(load(values + i), maximum));
      store(values + i, e);
      piece = wasm_f32x4_add(piece, e);
    }
    sum += (double)sum_f32(piece);
  }
  return sum;
}

// The last one to three scores of a row, in a vector that is padded with scores without a share.
typedef struct {
  float scores[4], masks[4], out[4];
} softmax_rest;

INLINE void softmax(softmax_row row, int64_t count, float scale, int is_f16, const float *sink, const constants *c) {
  const vec scales = wasm_f32x4_splat(scale), nothing = wasm_f32x4_const_splat(-__builtin_inff());
  const int64_t whole = count / 4 * 4, left = count - whole;
  softmax_rest rest;
  vec maximums = mask_scores(row, whole, scales, is_f16, nothing, c);
  if (left) {
    store(rest.scores, nothing);
    store(rest.masks, ZERO_F32);
    uint16_t *halves = (uint16_t *)rest.masks;
    for (int64_t i = 0; i < left; i++) {
      rest.scores[i] = row.scores[whole + i];
      if (!row.mask) continue;
      if (is_f16) halves[i] = ((const uint16_t *)row.mask)[whole + i];
      else rest.masks[i] = ((const float *)row.mask)[whole + i];
    }
    // A scale of 0 or less must not give the padding a share.
    const softmax_row last = {rest.scores, row.mask ? (const uint8_t *)rest.masks : 0, rest.out};
    mask_scores(last, 4, scales, is_f16, nothing, c);
    for (int64_t i = left; i < 4; i++) rest.out[i] = -__builtin_inff();
    maximums = wasm_f32x4_max(maximums, load(rest.out));
  }
  float most = max_f32(maximums);
  if (sink && *sink > most) most = *sink;
  double sum = exponentials(row.out, whole, most);
  if (left) sum += exponentials(rest.out, 4, most);
  if (sink) sum += (double)exp_f32(*sink - most);
  const float share = (float)(1 / sum);
  const vec shares = wasm_f32x4_splat(share);
  for (int64_t i = 0; i < whole; i += 4) store(row.out + i, wasm_f32x4_mul(load(row.out + i), shares));
  for (int64_t i = 0; i < left; i++) row.out[whole + i] = rest.out[i] * share;
}

// op_params: the scale, and how strongly distance counts (ALiBi), which is left to llama.cpp.
INLINE int softmax_fits(const tensor *out) {
  const tensor *scores = out->src[0], *mask = out->src[1], *sinks = out->src[2];
  return out->op_params[1] == 0 && scores->type == TYPE_F32 && out->type == TYPE_F32 && scores->nb[0] == sizeof(float) &&
         out->nb[0] == sizeof(float) && (!sinks || sinks->type == TYPE_F32) &&
         (!mask || (mask->type == TYPE_F32 && mask->nb[0] == sizeof(float)) || (mask->type == TYPE_F16 && mask->nb[0] == 2));
}

NOINLINE void soft_max(const compute_params *params, tensor *out) {
  const tensor *scores = out->src[0], *mask = out->src[1], *sinks = out->src[2];
  const constants c = make_constants(ZERO_I32);
  const int64_t tokens = scores->ne[1], heads = scores->ne[2], rows = tokens * heads * scores->ne[3];
  const int is_f16 = mask && mask->type == TYPE_F16;
  float scale;
  __builtin_memcpy(&scale, out->op_params, sizeof scale);
  for (int64_t i = rows * params->ith / params->nth; i < rows * (params->ith + 1) / params->nth; i++) {
    const size_t token = (size_t)(i % tokens), head = (size_t)(i / tokens % heads), batch = (size_t)(i / tokens / heads);
    softmax_row row = {(const float *)(scores->data + token * scores->nb[1] + head * scores->nb[2] + batch * scores->nb[3]), 0,
                       (float *)(out->data + token * out->nb[1] + head * out->nb[2] + batch * out->nb[3])};
    if (mask) {
      row.mask = mask->data + token * mask->nb[1] + head % (size_t)mask->ne[2] * mask->nb[2] + batch % (size_t)mask->ne[3] * mask->nb[3];
    }
    softmax(row, scores->ne[0], scale, is_f16, sinks ? (const float *)sinks->data + head : 0, &c);
  }
}
