// The operator mul_mat_id: columns of activations, each times the matrices of the experts that were chosen for it. What
// llama.cpp does row by row and column by column is a product of each expert's matrix and its columns here: repacked weights
// and formats in blocks meet one column, or up to four at a time, which are quantized into the order of the experts; floats
// meet activations where they are. Threads take chunks of rows of one expert after the other from a shared counter.
#pragma once
#include "expert-columns.h"
#include "mul-mat-float.h"
#include "mul-mat-repacked.h"

// Rows of one piece of work, which stay in the caches while all columns of the expert pass over them.
enum { EXPERT_CHUNK = GEMV_CHUNK };

typedef struct {
  int32_t *next_chunk;
  uint8_t *sorting; // of this thread
  uint8_t *quants;  // records for repacked weights, else columns for GEMV with scales and sums
  float *scales;
  float *sums;
  size_t column_bytes;
  int64_t granules; // scales of a column
  size_t size;      // of all, in bytes
  format_traits traits;
} expert_area;

INLINE int is_float(int32_t type) { return type == TYPE_F32 || type == TYPE_F16 || type == TYPE_BF16; }

INLINE expert_area lay_out_experts(const tensor *out, uint8_t *work, int32_t ith, int32_t nth, int dot) {
  const tensor *w = out->src[0], *ids = out->src[2];
  const int64_t k = w->ne[0], columns = ids->ne[0] * ids->ne[1], filled = most_filled_columns(columns, w->ne[2]);
  const int repacked = w->flags & FLAG_REPACKED;
  const size_t sorting = bytes_of_sorting(columns, w->ne[2]);
  uint8_t *const base = (uint8_t *)align_up((size_t)work);
  expert_area area = {.next_chunk = (int32_t *)base, .sorting = base + CACHE_LINE + sorting * (size_t)ith, .traits = traits_of(w->type)};
  area.quants = base + CACHE_LINE + sorting * (size_t)nth;
  if (repacked) area.column_bytes = record_bytes(w->type, k, dot);
  else if (!is_float(w->type)) {
    area.column_bytes = column_bytes(area.traits, k);
    area.granules = k / 32;
  }
  const size_t quants = align_up((size_t)filled * area.column_bytes);
  // GEMV reads four scales at a time, also where there is one column.
  const size_t scales = align_up((size_t)(filled * area.granules + 4) * sizeof(float));
  area.scales = (float *)(area.quants + quants);
  area.sums = (float *)(area.quants + quants + scales);
  area.size = (size_t)(area.quants - base) + quants + 2 * scales + CACHE_LINE;
  return area;
}

// Bytes of work buffer, on any machine.
INLINE size_t expert_work_size(const tensor *out, int32_t threads) { return lay_out_experts(out, 0, 0, threads, NO_DOT).size; }

// True when this operator can be done here.
INLINE int experts_fit(const tensor *out) {
  const tensor *w = out->src[0], *x = out->src[1], *ids = out->src[2];
  return (traits_of(w->type).supported || (is_float(w->type) && w->ne[0] % 4 == 0 && w->nb[0] == (w->type == TYPE_F32 ? 4 : 2))) &&
         x->type == TYPE_F32 && out->type == TYPE_F32 && ids->type == TYPE_I32 && w->ne[1] % 4 == 0 && w->ne[3] == 1 &&
         x->ne[3] == 1 && ids->ne[2] == 1 && ids->ne[3] == 1 && x->ne[2] == ids->ne[1] && x->nb[0] == sizeof(float) &&
         out->nb[0] == sizeof(float);
}

// One column of an expert, or up to four.
typedef struct {
  float_columns columns;
  int lanes; // columns that are computed: 1 or 4
  uint8_t *quants;
  float *scales;
  float *sums;
} expert_group;

// The group that begins with the column `j` of an expert's.
INLINE expert_group group_of_expert(const tensor *out, const expert_columns *sorted, const expert_share *share, int64_t j,
                                    const expert_area *area) {
  const tensor *x = out->src[1];
  const int n = (int)(share->count - j < 4 ? share->count - j : 4);
  const size_t place = (size_t)(share->place + j), scale = place * (size_t)area->granules;
  expert_group group = {.columns = {.n = n}, .lanes = n == 1 ? 1 : 4, .quants = area->quants + place * area->column_bytes,
                        .scales = area->scales + scale, .sums = area->sums + scale};
  for (int i = 0; i < 4; i++) {
    // Pads the group with its first column.
    const int32_t column = sorted->columns[share->first + j + (i < n ? i : 0)];
    const size_t token = (size_t)(column / sorted->used), which = (size_t)(column % sorted->used);
    group.columns.y[i] = (const float *)(x->data + token * x->nb[2] + which % (size_t)x->ne[1] * x->nb[1]);
    group.columns.to[i] = (float *)(out->data + token * out->nb[2] + which * out->nb[1]);
  }
  return group;
}

INLINE void quantize_group(const tensor *w, const expert_group *group, const expert_area *area, int dot) {
  const format_traits traits = area->traits;
  const int64_t k = w->ne[0];
  for (int lane = 0; lane < group->lanes; lane++) {
    const float *column = group->columns.y[lane];
    uint8_t *quants = group->quants + (size_t)lane * area->column_bytes;
    if (w->flags & FLAG_REPACKED) quantize_record(w->type, column, k, (activation_place){group->quants, group->lanes, lane}, dot);
    else if (traits.per_256) quantize_column_256(column, k, quants);
    else quantize_column_32(column, k, traits.wide, quants, group->scales + lane, group->sums + lane, group->lanes, (float)traits.offset);
  }
}

// Rows of an expert's matrix, of which `x` is the first, times a group of its columns.
INLINE void multiply_group(const tensor *w, const uint8_t *x, int64_t first, int64_t rows, const expert_group *group,
                           const expert_area *area, constants c) {
  const float_columns *columns = &group->columns;
  const int64_t k = w->ne[0];
  if (is_float(w->type)) {
    for (int64_t r = 0; r < rows; r += 4) {
      const tile result = gemv_floats_of(w->type, x + (size_t)r * w->nb[1], w->nb[1], k, columns->y, columns->n, c);
      for (int i = 0; i < columns->n; i++) store(columns->to[i] + first + r, result.column[i]);
    }
    return;
  }
  const int repacked = w->flags & FLAG_REPACKED;
  if (repacked && columns->n == 1) {
    gemv_repacked(w->type, x, w->nb[1], rows, k, group->quants, columns->to[0] + first, c);
    return;
  }
  // The kernels put columns at equal distances; those of an expert lie anywhere.
  float results[4][EXPERT_CHUNK];
  if (repacked) {
    multiply_repacked(w->type, x, w->nb[1], rows, k, group->quants, (repacked_results){results[0], sizeof results[0], columns->n}, c);
  } else {
    const gemv_columns y = {group->quants, area->column_bytes, group->scales, group->sums, group->lanes};
    gemv(w->type, area->traits.per_256, x, w->nb[1], k, rows, y, columns->n, (gemv_results){results[0], 0, sizeof results[0]}, c);
  }
  for (int i = 0; i < columns->n; i++) {
    for (int64_t r = 0; r < rows; r += 4) store(columns->to[i] + first + r, load(results[i] + r));
  }
}

// Returns false, without effect, when the work buffer is too small.
INLINE int mul_mat_id(const compute_params *params, tensor *out) {
  const tensor *w = out->src[0];
  const constants c = w->flags & FLAG_REPACKED ? constants_for_repacked(w->type) : make_constants(codes_of(w->type));
  const expert_area area = lay_out_experts(out, params->work, params->ith, params->nth, c.dot);
  if (area.size > params->work_size) return 0;
  if (params->ith == 0) __atomic_store_n(area.next_chunk, 0, __ATOMIC_RELAXED);
  const expert_columns sorted = sort_by_expert(out->src[2], w->ne[2], area.sorting);
  if (!is_float(w->type)) {
    int64_t turn = params->ith;
    for (int64_t s = 0; s < sorted.count; s++) {
      for (int64_t j = 0; j < sorted.shares[s].count; j += 4) {
        if (turn++ % params->nth != 0) continue;
        const expert_group group = group_of_expert(out, &sorted, &sorted.shares[s], j, &area);
        quantize_group(w, &group, &area, c.dot);
      }
    }
  }
  ggml_barrier(params->threadpool);
  const int64_t rows = w->ne[1], chunks = (rows + EXPERT_CHUNK - 1) / EXPERT_CHUNK;
  for (;;) {
    const int64_t item = __atomic_fetch_add(area.next_chunk, 1, __ATOMIC_RELAXED);
    if (item >= sorted.count * chunks) return 1;
    const expert_share *share = &sorted.shares[item / chunks];
    const int64_t first = item % chunks * EXPERT_CHUNK, count = rows - first < EXPERT_CHUNK ? rows - first : EXPERT_CHUNK;
    const uint8_t *x = w->data + (size_t)share->expert * w->nb[2] + (size_t)first * w->nb[1];
    for (int64_t j = 0; j < share->count; j += 4) {
      const expert_group group = group_of_expert(out, &sorted, share, j, &area);
      multiply_group(w, x, first, count, &group, &area, c);
    }
  }
}
