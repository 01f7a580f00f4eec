// Rows of tensors: how threads share them, and where they lie.
#pragma once
#include "simd.h"
#include "tensor.h"

typedef struct {
  size_t i[3]; // in the dimensions behind the row's own
} row_index;

INLINE int64_t rows_of(const tensor *t) { return t->ne[1] * t->ne[2] * t->ne[3]; }
INLINE int64_t first_row(const compute_params *p, int64_t rows) { return rows * p->ith / p->nth; }
INLINE int64_t behind_last_row(const compute_params *p, int64_t rows) { return rows * (p->ith + 1) / p->nth; }

INLINE row_index row_at(const tensor *t, int64_t row) {
  const size_t rest = (size_t)(row / t->ne[1]);
  return (row_index){{(size_t)(row % t->ne[1]), rest % (size_t)t->ne[2], rest / (size_t)t->ne[2]}};
}

INLINE uint8_t *row_data(const tensor *t, row_index at) {
  return t->data + at.i[0] * t->nb[1] + at.i[1] * t->nb[2] + at.i[2] * t->nb[3];
}

// The row that stands for another one where a smaller tensor is repeated.
INLINE row_index repeated(const tensor *t, row_index at) {
  for (int d = 0; d < 3; d++) at.i[d] = t->ne[d + 1] == 1 ? 0 : at.i[d] % (size_t)t->ne[d + 1];
  return at;
}

INLINE int has_float_rows(const tensor *t) { return t->type == TYPE_F32 && t->nb[0] == sizeof(float); }

INLINE int same_shape(const tensor *a, const tensor *b) {
  return a->ne[0] == b->ne[0] && a->ne[1] == b->ne[1] && a->ne[2] == b->ne[2] && a->ne[3] == b->ne[3];
}

INLINE float float_parameter(const tensor *t, int at) {
  float value;
  __builtin_memcpy(&value, t->op_params + at, sizeof value);
  return value;
}
