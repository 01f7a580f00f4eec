// The operator mul_mat with quantized weights: quantize the activations, then GEMV for a few columns and GEMM for
// more. Threads take chunks of rows from a shared counter, so that a slow core does not delay the others for long.
#pragma once
#include "quantized-matrix.h"
#include "step-sums.h"

extern void ggml_barrier(void *threadpool);

// Number of columns from which panels are faster: see docs/benchmarks.md.
enum { GEMM_COLUMNS = 12 };
INLINE int uses_panels(int64_t columns) { return deciding_columns(columns, 1) >= GEMM_COLUMNS; }

// Rows of one piece of work: a GEMM panel of 16 rows stays in the L1 and L2 caches while all columns pass over it.
enum { GEMM_CHUNK = 16, GEMV_CHUNK = 64 };
enum { CACHE_LINE = 64 };

INLINE size_t align_up(size_t size) { return (size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1); }

typedef struct {
  int32_t *next_chunk;
  uint8_t *quants;
  float *scales;
  float *sums;
  uint8_t *panels; // of this thread
  size_t column_bytes;
  int64_t granules;
  int64_t groups; // of four columns
} work_area;

// Lays out the work buffer; false when it is too small.
INLINE int lay_out(const compute_params *params, format_traits traits, int64_t k, int64_t columns, work_area *area) {
  const int gemm = uses_panels(columns);
  area->groups = (columns + 3) / 4;
  area->granules = k / (gemm ? traits.granule : 32);
  area->column_bytes = column_bytes(traits, k);
  const size_t quants = gemm ? align_up((size_t)(area->groups * k * 4)) : align_up((size_t)columns * area->column_bytes);
  // GEMV reads the scales of four columns at a time, also where fewer are left.
  const size_t scales = align_up((size_t)((gemm ? 4 * area->groups : columns) * area->granules + 4) * sizeof(float));
  const size_t panel_bytes =
      gemm ? align_up((size_t)(GEMM_CHUNK * (k * traits.planes + 2 * area->granules * (int64_t)sizeof(float)))) : 0;
  uint8_t *base = (uint8_t *)align_up((size_t)params->work);
  area->next_chunk = (int32_t *)base;
  area->quants = base + CACHE_LINE;
  area->scales = (float *)(area->quants + quants);
  area->sums = (float *)(area->quants + quants + scales);
  area->panels = area->quants + quants + 2 * scales + panel_bytes * (size_t)params->ith;
  return 2 * CACHE_LINE + quants + 2 * scales + panel_bytes * (size_t)params->nth <= params->work_size;
}

INLINE void quantize_columns(const compute_params *params, const tensor *x, format_traits traits, work_area area) {
  const int64_t k = x->ne[0], columns = x->ne[1];
  if (uses_panels(columns)) {
    for (int64_t j = params->ith; j < 4 * area.groups; j += params->nth) {
      // Pads the last group with copies of the last column.
      const float *column = (const float *)(x->data + (size_t)(j < columns ? j : columns - 1) * x->nb[1]);
      const int64_t group = j / 4, lane = j % 4, at = group * area.granules * 4 + lane;
      quantize_for_gemm(column, k, traits.per_256, traits.granule, area.quants + group * k * 4 + 4 * lane,
                        area.scales + at, area.sums + at);
    }
    return;
  }
  for (int64_t j = params->ith; j < columns; j += params->nth) {
    const float *column = (const float *)(x->data + (size_t)j * x->nb[1]);
    uint8_t *quants = area.quants + (size_t)j * area.column_bytes;
    if (traits.per_256) quantize_column_256(column, k, quants);
    else quantize_column_32(column, k, traits.wide, quants, area.scales + j, area.sums + j, columns,
                            (float)traits.offset);
  }
}

INLINE void gemv_chunk(const tensor *w, tensor *out, int64_t first, int64_t rows, int64_t columns, format_traits traits,
                       work_area area, constants c) {
  for (int64_t j = 0; j < columns; j += MOST_GEMV_COLUMNS) {
    const int n = (int)(columns - j < MOST_GEMV_COLUMNS ? columns - j : MOST_GEMV_COLUMNS);
    const gemv_columns y = {area.quants + (size_t)j * area.column_bytes, area.column_bytes, area.scales + j,
                            area.sums + j, columns};
    const gemv_results to = {(float *)(out->data + (size_t)j * out->nb[1]) + first, 0, out->nb[1]};
    gemv(w->type, traits.per_256, w->data + (size_t)first * w->nb[1], w->nb[1], w->ne[0], rows, y, n, to, c);
  }
}

INLINE void gemm_chunk(const tensor *w, tensor *out, int64_t first, int64_t rows, int64_t columns, format_traits traits,
                       work_area area, constants c) {
  const int64_t k = w->ne[0], panels = rows / 4;
  const size_t quants_bytes = (size_t)(4 * k * traits.planes);
  float *scales = (float *)(area.panels + quants_bytes * (GEMM_CHUNK / 4));
  float *corrections = scales + GEMM_CHUNK * area.granules;
#define PANEL(i) ((panel){area.panels + quants_bytes * (size_t)(i), scales + 4 * area.granules * (i), corrections + 4 * area.granules * (i)})
  for (int64_t i = 0; i < panels; i++) {
    const uint8_t *rows_at = w->data + (size_t)first * w->nb[1];
    pack_panel(w->type, rows_at + (size_t)(4 * i) * w->nb[1], w->nb[1], k, PANEL(i), c);
  }
  for (int64_t group = 0; group < area.groups; group++) {
    const column_group y = {area.quants + group * k * 4, area.scales + group * area.granules * 4,
                            area.sums + group * area.granules * 4};
    const int64_t left = columns - 4 * group, count = left < 4 ? left : 4;
    for (int64_t i = 0; i < panels; i += 2) {
      const int64_t second = i + 1 < panels ? i + 1 : i;
      const tile_pair result = multiply(w->type, PANEL(i), PANEL(second), area.granules, y, c);
      for (int64_t j = 0; j < count; j++) {
        float *to = (float *)(out->data + (size_t)(4 * group + j) * out->nb[1]) + first;
        store(to + 4 * i, result.a.column[j]);
        store(to + 4 * second, result.b.column[j]);
      }
    }
  }
#undef PANEL
}

// True when this operator can be done here.
INLINE int quantized_fits(const tensor *out, const tensor *w, const tensor *x) {
  return traits_of(w->type).supported && x->type == TYPE_F32 && out->type == TYPE_F32 && w->ne[2] == 1 &&
         w->ne[3] == 1 && x->ne[2] == 1 && x->ne[3] == 1 && x->nb[0] == sizeof(float) && out->nb[0] == sizeof(float) &&
         w->ne[1] % 4 == 0;
}

// Returns false, without effect, when the work buffer is too small.
INLINE int mul_mat_quantized(const compute_params *params, tensor *out, const tensor *w, const tensor *x) {
  const format_traits traits = traits_of(w->type);
  const int64_t rows = w->ne[1], columns = x->ne[1];
  work_area area;
  if (!lay_out(params, traits, w->ne[0], columns, &area)) return 0;
  if (params->ith == 0) __atomic_store_n(area.next_chunk, 0, __ATOMIC_RELAXED);
  quantize_columns(params, x, traits, area);
  ggml_barrier(params->threadpool);
  const constants c = make_constants(codes_of(w->type));
  const int gemm = uses_panels(columns);
  // One thread alone gains most from rows far apart: it takes all of them at once.
  const int64_t chunk = gemm ? GEMM_CHUNK : params->nth == 1 && columns <= MOST_GEMV_COLUMNS ? rows : GEMV_CHUNK;
  for (;;) {
    const int64_t first = (int64_t)__atomic_fetch_add(area.next_chunk, 1, __ATOMIC_RELAXED) * chunk;
    if (first >= rows) return 1;
    const int64_t count = rows - first < chunk ? rows - first : chunk;
    if (gemm) gemm_chunk(w, out, first, count, columns, traits, area, c);
    else gemv_chunk(w, out, first, count, columns, traits, area, c);
  }
}
