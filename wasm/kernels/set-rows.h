// The operator SET_ROWS: rows of floats become rows of a KV cache, in the cache's type. A cache of values without flash
// attention lies across, so that its rows are single numbers.
#pragma once
#include "cache-rows.h"
#include "halves.h"
#include "rows.h"

#define QUANTIZE(NAME, name) extern void quantize_row_##name(const float *x, uint8_t *y, int64_t k);
CACHE_FORMATS(QUANTIZE)
#undef QUANTIZE

INLINE void set_row(int32_t type, uint8_t *to, const float *from, int64_t count) {
  switch (type) {
  case TYPE_F32: __builtin_memcpy(to, from, (size_t)count * sizeof(float)); break;
  case TYPE_F16: store_as_halves((uint16_t *)to, from, count); break;
#define ROW(NAME, name) case TYPE_##NAME: quantize_row_##name(from, to, count); break;
  CACHE_FORMATS(ROW)
#undef ROW
  default: __builtin_unreachable();
  }
}

INLINE int set_rows_fits(const tensor *out) {
  const tensor *numbers = out->src[1];
  return has_float_rows(out->src[0]) && is_cache_type(out->type) && (numbers->type == TYPE_I64 || numbers->type == TYPE_I32);
}

INLINE int64_t row_number(const tensor *numbers, row_index at, int64_t rows) {
  const uint8_t *p = numbers->data + at.i[0] * numbers->nb[0] + at.i[1] % (size_t)numbers->ne[1] * numbers->nb[1] +
                     at.i[2] % (size_t)numbers->ne[2] * numbers->nb[2];
  const int64_t number = numbers->type == TYPE_I64 ? *(const int64_t *)p : *(const int32_t *)p;
  if (number < 0 || number >= rows) __builtin_trap();
  return number;
}

// Single numbers as halves, four at a time.
INLINE void set_halves(const tensor *out, const tensor *x, row_index first, int64_t count) {
  for (int64_t i = 0; i < count; i += 4) {
    float some[4];
    const int64_t left = count - i < 4 ? count - i : 4;
    row_index at = first;
    for (int64_t n = 0; n < left; n++, at.i[0]++) some[n] = *(const float *)row_data(x, at);
    uint16_t halves[4];
    store_as_halves(halves, some, left);
    for (int64_t n = 0; n < left; n++, first.i[0]++) {
      const size_t row = (size_t)row_number(out->src[1], first, out->ne[1]);
      *(uint16_t *)row_data(out, (row_index){{row, first.i[1], first.i[2]}}) = halves[n];
    }
  }
}

NOINLINE void set_rows(const compute_params *params, const tensor *out) {
  const tensor *x = out->src[0];
  const int64_t first = first_row(params, x->ne[1]), behind_last = behind_last_row(params, x->ne[1]);
  const int32_t type = out->type;
  for (int64_t batch = 0; batch < x->ne[2] * x->ne[3]; batch++) {
    row_index at = {{(size_t)first, (size_t)(batch % x->ne[2]), (size_t)(batch / x->ne[2])}};
    if (type == TYPE_F16 && x->ne[0] == 1) {
      set_halves(out, x, at, behind_last - first);
      continue;
    }
    for (; (int64_t)at.i[0] < behind_last; at.i[0]++) {
      const size_t row = (size_t)row_number(out->src[1], at, out->ne[1]);
      set_row(type, row_data(out, (row_index){{row, at.i[1], at.i[2]}}), (const float *)row_data(x, at), x->ne[0]);
    }
  }
}
