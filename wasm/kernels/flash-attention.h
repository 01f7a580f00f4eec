// The operator flash_attn_ext: attention in one pass over the cache, without the matrix of all scores. Keys and values
// are F32, F16 or, with a quantized cache, unpacked here. All queries that share a head of the cache (the heads of its
// group, times the tokens of the step) meet CHUNK tokens of it at a time: scores, their exponentials against the largest
// score so far, and the values weighted by these; what was summed before is scaled down when a larger score appears.
// Chunks that the mask hides from every query are skipped: the future in a prompt, and other slots' tokens.
//
// For few queries registers hold 4 queries × 8 numbers of a value, two numbers of it and a share; more than five meet panels as
// in mul-mat-float.h.
#pragma once
#include "cache-rows.h"
#include "mul-mat-float.h"
#include "softmax.h"

enum { CHUNK = 64, MOST_QUERIES = 64 };

// --- the queries that share a head of the cache --------------------------------------------------------------------

typedef struct {
  int64_t count, deciding;
  const float *query[MOST_QUERIES];
  float *out[MOST_QUERIES];
  const uint8_t *mask[MOST_QUERIES]; // halves; null without a mask
} queries;

// Work area of a thread. Scores are [query][CHUNK], sums [query][width of a value].
typedef struct {
  float *panels, *unpacked, *scores, *sums, *most, *totals;
} attention_area;

// Up to four queries from `first` on, the last ones repeated.
INLINE void four_of(const queries *q, int64_t first, const float *of[4]) {
  for (int64_t i = 0; i < 4; i++) of[i] = q->query[first + i < q->count ? first + i : q->count - 1];
}

INLINE int few(const queries *q) { return q->deciding < FLOAT_GEMM_COLUMNS; }

NOINLINE void score_chunk(const queries *q, cache_rows keys, int64_t width, int64_t rows, attention_area area, constants c) {
  if (!few(q)) {
    for (int64_t r = 0; r < rows; r += 4) {
      pack_floats(keys.type, keys.data + (size_t)r * keys.row_bytes, keys.row_bytes, width, area.panels + r * width, c);
    }
  }
  for (int64_t first = 0; first < q->count; first += 4) {
    const int64_t left = q->count - first, n = left < 4 ? left : 4;
    const float *y[4];
    four_of(q, first, y);
    float *to = area.scores + first * CHUNK;
    for (int64_t r = 0; r < rows; r += few(q) ? 4 : 8) {
      if (few(q)) {
        const tile scores = gemv_floats_of(keys.type, keys.data + (size_t)r * keys.row_bytes, keys.row_bytes, width, y, (int)n, c);
        for (int64_t i = 0; i < n; i++) store(to + i * CHUNK + r, scores.column[i]);
      } else {
        const int64_t second = r + 4 < rows ? r + 4 : r;
        const tile_pair scores = multiply_floats(area.panels + r * width, area.panels + second * width, width, y[0], y[1], y[2], y[3]);
        for (int64_t i = 0; i < n; i++) {
          store(to + i * CHUNK + r, scores.a.column[i]);
          store(to + i * CHUNK + second, scores.b.column[i]);
        }
      }
    }
  }
}

// Scores become shares against the largest score so far; sums of what came before are scaled down to it.
NOINLINE void share_chunk(const queries *q, int64_t at, int64_t rows, float scale, int64_t value_width, attention_area area,
                          constants c) {
  const vec scales = wasm_f32x4_splat(scale);
  for (int64_t i = 0; i < q->count; i++) {
    float *scores = area.scores + i * CHUNK;
    const softmax_row row = {scores, q->mask[i] ? q->mask[i] + 2 * at : 0, scores};
    const float before = area.most[i];
    const float most = max_f32(mask_scores(row, rows, scales, 1, wasm_f32x4_splat(before), &c));
    // This query has not seen any token yet. A NaN does not count as such.
    if (most == -__builtin_inff()) {
      for (int64_t r = 0; r < rows; r += 4) store(scores + r, ZERO_F32);
      continue;
    }
    const double sum = exponentials(scores, rows, most);
    const float shrunk = exp_f32(before - most);
    area.totals[i] = area.totals[i] * shrunk + (float)sum;
    area.most[i] = most;
    if (shrunk == 1) continue;
    float *sums = area.sums + i * value_width;
    for (int64_t k = 0; k < value_width; k += 4) store(sums + k, wasm_f32x4_mul(load(sums + k), wasm_f32x4_splat(shrunk)));
  }
}

// Eight numbers of all values of a chunk, weighted, for one to four queries.
INLINE void weigh_eight(int32_t type, const uint8_t *values, size_t row_bytes, int64_t rows, const float *shares, int n,
                        float *sums, int64_t width, const constants *c) {
  vec low[4], high[4];
  for (int i = 0; i < n; i++) low[i] = load(sums + i * width), high[i] = load(sums + i * width + 4);
  const size_t size = type == TYPE_F32 ? 4 : 2;
  for (int64_t r = 0; r < rows; r += 4, shares += 4) {
    vec share[4];
    for (int i = 0; i < n; i++) share[i] = load(shares + i * CHUNK);
    _Pragma("clang loop unroll(full)") for (int lane = 0; lane < 4; lane++, values += row_bytes) {
      const vec a = load_weights(type, values, c), b = load_weights(type, values + 4 * size, c);
      for (int i = 0; i < n; i++) {
        const vec of_all = splat_number(share[i], lane);
        low[i] = madd(a, of_all, low[i]), high[i] = madd(b, of_all, high[i]);
      }
    }
  }
  for (int i = 0; i < n; i++) store(sums + i * width, low[i]), store(sums + i * width + 4, high[i]);
}

#define DEFINE_WEIGH(type, n)                                                                                    \
  NOINLINE void weigh_##type##_##n(cache_rows values, int64_t width, int64_t rows, const float *shares, float *sums, constants c) { \
    const size_t size = type == TYPE_F32 ? 4 : 2;                                                                \
    for (int64_t k = 0; k < width; k += 8) {                                                                     \
      weigh_eight(type, values.data + (size_t)k * size, values.row_bytes, rows, shares, n, sums + k, width, &c); \
    }                                                                                                            \
  }
#define DEFINE_WEIGH_OF(type) DEFINE_WEIGH(type, 1) DEFINE_WEIGH(type, 2) DEFINE_WEIGH(type, 3) DEFINE_WEIGH(type, 4)
DEFINE_WEIGH_OF(TYPE_F32)
DEFINE_WEIGH_OF(TYPE_F16)

INLINE void weigh_few(cache_rows values, int64_t width, int64_t rows, const float *shares, int n, float *sums, constants c) {
#define BY_QUERIES(type)                                                                                         \
  switch (n) {                                                                                                   \
  case 1: weigh_##type##_1(values, width, rows, shares, sums, c); return;                                        \
  case 2: weigh_##type##_2(values, width, rows, shares, sums, c); return;                                        \
  case 3: weigh_##type##_3(values, width, rows, shares, sums, c); return;                                        \
  default: weigh_##type##_4(values, width, rows, shares, sums, c); return;                                       \
  }
  if (values.type == TYPE_F16) BY_QUERIES(TYPE_F16)
  BY_QUERIES(TYPE_F32)
#undef BY_QUERIES
}

NOINLINE void weigh_chunk(const queries *q, cache_rows values, int64_t width, int64_t rows, attention_area area, constants c) {
  if (few(q)) {
    for (int64_t first = 0; first < q->count; first += 4) {
      const int64_t left = q->count - first;
      weigh_few(values, width, rows, area.scores + first * CHUNK, (int)(left < 4 ? left : 4), area.sums + first * width, c);
    }
    return;
  }
  // Panels of four numbers of all values: [number / 4][value][4].
  const size_t step = values.type == TYPE_F32 ? 16 : 8;
  for (int64_t r = 0; r < rows; r++) {
    const uint8_t *value = values.data + (size_t)r * values.row_bytes;
    for (int64_t k = 0; k < width; k += 4, value += step) {
      store(area.panels + k * rows + 4 * r, load_weights(values.type, value, &c));
    }
  }
  for (int64_t first = 0; first < q->count; first += 4) {
    const int64_t left = q->count - first, n = left < 4 ? left : 4;
    const float *shares[4];
    for (int64_t i = 0; i < 4; i++) shares[i] = area.scores + (first + (i < n ? i : 0)) * CHUNK;
    for (int64_t k = 0; k < width; k += 8) {
      const float *panel = area.panels + k * rows;
      const tile_pair result = multiply_floats(panel, panel + 4 * rows, rows, shares[0], shares[1], shares[2], shares[3]);
      for (int64_t i = 0; i < n; i++) {
        float *to = area.sums + (first + i) * width + k;
        store(to, wasm_f32x4_add(load(to), result.a.column[i]));
        store(to + 4, wasm_f32x4_add(load(to + 4), result.b.column[i]));
      }
    }
  }
}

// Reads a head's keys or values ahead, which lie apart in the cache; see read_lines.
INLINE int32_t read_chunk(const tensor *cache, const uint8_t *data, int64_t rows) {
  const size_t bytes = cache->type == TYPE_F32 || cache->type == TYPE_F16
                           ? (size_t)cache->ne[0] * cache->nb[0]
                           : (size_t)cache->ne[0] / 32 * cache->nb[0];
  return bytes < cache->nb[1] ? read_lines(data, cache->nb[1], rows, bytes) : 0;
}

// True when no query may see any of the `rows` tokens, a multiple of four, from `at` on.
INLINE int is_hidden(const queries *q, int64_t at, int64_t rows) {
  const vec never = wasm_i16x8_const_splat((int16_t)0xfc00);
  for (int64_t i = 0; i < q->count; i++) {
    if (!q->mask[i]) return 0;
    if (i > 0 && q->mask[i] == q->mask[i - 1]) continue;
    const uint8_t *mask = q->mask[i] + 2 * at;
    for (int64_t r = 0; r < rows; r += 4) {
      if (!wasm_i16x8_all_true(wasm_i16x8_eq(wasm_v128_load64_splat(mask + 2 * r), never))) return 0;
    }
  }
  return 1;
}

// --- the operator ---------------------------------------------------------------------------------------------------

INLINE size_t attention_bytes(const tensor *out) {
  const int64_t key = out->src[1]->ne[0], value = out->src[2]->ne[0], wider = key > value ? key : value;
  return align_up(sizeof(float) * (size_t)(2 * CHUNK * wider + MOST_QUERIES * (CHUNK + value + 2)));
}

// op_params: scale, ALiBi, a bound on scores; the last two are left to llama.cpp.
INLINE int attention_fits(const compute_params *params, const tensor *out) {
  const tensor *q = out->src[0], *k = out->src[1], *v = out->src[2], *mask = out->src[3], *sinks = out->src[4];
  return out->op_params[1] == 0 && out->op_params[2] == 0 && q->type == TYPE_F32 && q->nb[0] == sizeof(float) &&
         out->nb[0] == sizeof(float) && is_cache_type(k->type) && is_cache_type(v->type) &&
         k->ne[0] % (k->type == TYPE_F32 || k->type == TYPE_F16 ? 4 : 32) == 0 &&
         v->ne[0] % (v->type == TYPE_F32 || v->type == TYPE_F16 ? 8 : 32) == 0 && k->ne[1] % 4 == 0 &&
         k->ne[2] == v->ne[2] && q->ne[2] % k->ne[2] == 0 && k->ne[3] == q->ne[3] && v->ne[3] == q->ne[3] &&
         (!mask || (mask->type == TYPE_F16 && mask->nb[0] == 2)) && (!sinks || sinks->type == TYPE_F32) &&
         CACHE_LINE + attention_bytes(out) * (size_t)params->nth <= params->work_size;
}

// Queries `first` and up to MOST_QUERIES - 1 more of those that share head `kv` of slot `slot`: token by token, the heads
// of one token next to each other, so that those with one mask are neighbors.
INLINE queries queries_from(const tensor *out, int64_t slot, int64_t kv, int64_t first) {
  const tensor *q = out->src[0], *mask = out->src[3];
  const int64_t group = q->ne[2] / out->src[1]->ne[2], all = group * q->ne[1];
  queries some = {.count = all - first < MOST_QUERIES ? all - first : MOST_QUERIES};
  some.deciding = deciding_columns(some.count, group);
  for (int64_t i = 0; i < some.count; i++) {
    const size_t token = (size_t)((first + i) / group), head = (size_t)(kv * group + (first + i) % group), s = (size_t)slot;
    some.query[i] = (const float *)(q->data + token * q->nb[1] + head * q->nb[2] + s * q->nb[3]);
    some.out[i] = (float *)(out->data + head * out->nb[1] + token * out->nb[2] + s * out->nb[3]);
    some.mask[i] = mask ? mask->data + token * mask->nb[1] + head % (size_t)mask->ne[2] * mask->nb[2] + s % (size_t)mask->ne[3] * mask->nb[3] : 0;
  }
  return some;
}

NOINLINE void attend(const tensor *out, int64_t slot, int64_t kv, int64_t first, attention_area area, constants c) {
  const tensor *k = out->src[1], *v = out->src[2], *sinks = out->src[4];
  const queries q = queries_from(out, slot, kv, first);
  const int64_t group = out->src[0]->ne[2] / k->ne[2], width = v->ne[0];
  float scale;
  __builtin_memcpy(&scale, out->op_params, sizeof scale);
  for (int64_t i = 0; i < q.count; i++) {
    // A sink is a score without a value.
    area.most[i] = sinks ? ((const float *)sinks->data)[kv * group + (first + i) % group] : -__builtin_inff();
    area.totals[i] = sinks ? 1 : 0;
  }
  for (int64_t i = 0; i < q.count * width; i += 4) store(area.sums + i, ZERO_F32);
  for (int64_t at = 0; at < k->ne[1]; at += CHUNK) {
    const int64_t left = k->ne[1] - at, rows = left < CHUNK ? left : CHUNK;
    if (is_hidden(&q, at, rows)) continue;
    const size_t head = (size_t)kv, s = (size_t)slot, from = (size_t)at;
    const uint8_t *keys = k->data + from * k->nb[1] + head * k->nb[2] + s * k->nb[3];
    const uint8_t *values = v->data + from * v->nb[1] + head * v->nb[2] + s * v->nb[3];
    // The result is not needed, but this keeps the compiler from removing the reads.
    if (few(&q) && (read_chunk(k, keys, rows) | read_chunk(v, values, rows)) & c.never) __builtin_trap();
    score_chunk(&q, rows_of_cache(k, keys, rows, area.unpacked, c), k->ne[0], rows, area, c);
    share_chunk(&q, at, rows, scale, width, area, c);
    weigh_chunk(&q, rows_of_cache(v, values, rows, area.unpacked, c), width, rows, area, c);
  }
  for (int64_t i = 0; i < q.count; i++) {
    // A query that sees no token gets zeros, as in llama.cpp.
    const vec share = wasm_f32x4_splat(area.totals[i] == 0 ? 0 : 1 / area.totals[i]);
    for (int64_t n = 0; n < width; n += 4) store(q.out[i] + n, wasm_f32x4_mul(load(area.sums + i * width + n), share));
  }
}

NOINLINE void flash_attention(const compute_params *params, tensor *out) {
  const tensor *q = out->src[0], *k = out->src[1], *v = out->src[2];
  const constants c = make_constants(ZERO_I32);
  const int64_t wider = k->ne[0] > v->ne[0] ? k->ne[0] : v->ne[0];
  attention_area area;
  area.panels = (float *)(align_up((size_t)params->work) + attention_bytes(out) * (size_t)params->ith);
  area.unpacked = area.panels + CHUNK * wider;
  area.scores = area.unpacked + CHUNK * wider;
  area.sums = area.scores + MOST_QUERIES * CHUNK;
  area.most = area.sums + MOST_QUERIES * v->ne[0];
  area.totals = area.most + MOST_QUERIES;
  const int64_t all = q->ne[2] / k->ne[2] * q->ne[1], blocks = (all + MOST_QUERIES - 1) / MOST_QUERIES, heads = k->ne[2];
  for (int64_t item = params->ith; item < q->ne[3] * heads * blocks; item += params->nth) {
    attend(out, item / (heads * blocks), item / blocks % heads, item % blocks * MOST_QUERIES, area, c);
  }
}
