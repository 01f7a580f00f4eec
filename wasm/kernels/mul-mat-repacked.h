// The operator mul_mat with repacked weights and one column, or any number of them in groups of four. So the weights of a
// tile are unpacked anew for each group, which takes a twelfth of the instructions; panels (gemm-panel.h) would save that
// and cost more, because their bytes have to be loaded.
#pragma once
#include "mul-mat-quantized.h"
#include "repacked-product.h"

_Static_assert(GEMV_CHUNK % TILE_ROWS == 0, "chunks of repacked rows are whole tiles");

INLINE constants constants_for_repacked(int32_t type) {
  constants c = make_constants(ZERO_I32);
  const int dot = c.dot;
  switch (type) {
#define CASE(NAME, name, quants, scales, record, subtracted, of_nibbles, ...) case TYPE_##NAME: c.codes = opaque(of_nibbles); break;
    REPACKED_FORMATS(CASE)
#undef CASE
  }
  return c;
}

// Bytes of work buffer, on any machine.
INLINE size_t repacked_work_size(const tensor *w, const tensor *x) {
  const size_t columns = x->ne[1] == 1 ? 1 : (size_t)(x->ne[1] + 3) / 4 * 4;
  return 3 * CACHE_LINE + columns * record_bytes(w->type, w->ne[0], NO_DOT);
}

// Columns are taken in groups of four. One is never left alone: the last five are three and two.
INLINE int is_moved_on(int64_t column, int64_t columns) { return columns % 4 == 1 && column > 0 && column == columns - 2; }
INLINE int64_t group_of_column(int64_t column, int64_t columns) { return column / 4 + is_moved_on(column, columns); }
INLINE int64_t first_of_group(int64_t group, int64_t columns) {
  const int64_t first = 4 * group < columns ? 4 * group : columns;
  return first - (first < columns && is_moved_on(first - 1, columns));
}

INLINE void quantize_records(const compute_params *params, const tensor *w, const tensor *x, uint8_t *records, int dot) {
  const int64_t k = x->ne[0], columns = x->ne[1];
  const int lanes = columns == 1 ? 1 : 4;
  for (int64_t j = params->ith; j < columns; j += params->nth) {
    const float *column = (const float *)(x->data + (size_t)j * x->nb[1]);
    const int64_t group = group_of_column(j, columns);
    uint8_t *record = records + (size_t)(lanes * group) * record_bytes(w->type, k, dot);
    quantize_record(w->type, column, k, (activation_place){record, lanes, (int)(j - first_of_group(group, columns))}, dot);
  }
}

INLINE void mul_mat_repacked(const compute_params *params, tensor *out, const tensor *w, const tensor *x) {
  const int64_t rows = w->ne[1], columns = x->ne[1], k = w->ne[0];
  int32_t *next_chunk = (int32_t *)align_up((size_t)params->work);
  uint8_t *records = (uint8_t *)next_chunk + CACHE_LINE;
  if (params->ith == 0) __atomic_store_n(next_chunk, 0, __ATOMIC_RELAXED);
  const constants c = constants_for_repacked(w->type);
  quantize_records(params, w, x, records, c.dot);
  ggml_barrier(params->threadpool);
  // Rows of a chunk stay in the caches while further groups of columns pass over them.
  const int64_t chunk = params->nth == 1 && columns <= 4 ? rows : GEMV_CHUNK;
  for (;;) {
    const int64_t first = (int64_t)__atomic_fetch_add(next_chunk, 1, __ATOMIC_RELAXED) * chunk;
    if (first >= rows) return;
    const int64_t count = rows - first < chunk ? rows - first : chunk;
    const uint8_t *x_rows = w->data + (size_t)first * w->nb[1];
    float *to = (float *)out->data + first;
    if (columns == 1) {
      gemv_repacked(w->type, x_rows, w->nb[1], count, k, records, to, c);
      continue;
    }
    for (int64_t group = 0, j = 0; j < columns; group++) {
      const int64_t next = first_of_group(group + 1, columns);
      const repacked_results of_group = {(float *)((uint8_t *)to + (size_t)j * out->nb[1]), out->nb[1], (int)(next - j)};
      const uint8_t *record = records + (size_t)(4 * group) * record_bytes(w->type, k, c.dot);
      multiply_repacked(w->type, x_rows, w->nb[1], count, k, record, of_group, c);
      j = next;
    }
  }
}
