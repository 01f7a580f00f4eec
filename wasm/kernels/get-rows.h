// The operator GET_ROWS: rows of an embedding, or of activations, as floats. Rows of repacked weights are taken out of their
// tiles in repack-graph.h, and become floats here as well.
#pragma once
#include "halves.h"
#include "rows.h"

#define DEQUANTIZE(NAME, name, ...) extern void dequantize_row_##name(const uint8_t *x, float *y, int64_t k);
FORMATS(DEQUANTIZE)
#undef DEQUANTIZE

INLINE void floats_of_halves(float *to, const uint16_t *from, int64_t count) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) store(to + i, f32_of_halves(wasm_u32x4_load16x4(from + i)));
  for (; i < count; i++) to[i] = wasm_f32x4_extract_lane(f32_of_halves(wasm_i32x4_splat(from[i])), 0);
}

INLINE void floats_of_upper_halves(float *to, const uint16_t *from, int64_t count) {
  for (int64_t i = 0; i < count; i++) ((uint32_t *)to)[i] = (uint32_t)from[i] << 16;
}

// False for a type that is left to llama.cpp; nothing is done then.
INLINE int get_row(int32_t type, float *to, const uint8_t *from, int64_t count) {
  switch (type) {
  case TYPE_F32: __builtin_memcpy(to, from, (size_t)count * sizeof(float)); return 1;
  case TYPE_F16: floats_of_halves(to, (const uint16_t *)from, count); return 1;
  case TYPE_BF16: floats_of_upper_halves(to, (const uint16_t *)from, count); return 1;
#define ROW(NAME, name, ...) case TYPE_##NAME: dequantize_row_##name(from, to, count); return 1;
  FORMATS(ROW)
#undef ROW
  default: return 0;
  }
}

// False when it is left to llama.cpp, on each thread alike.
NOINLINE int get_rows(const compute_params *params, const tensor *out) {
  const tensor *w = out->src[0], *numbers = out->src[1];
  if (!has_float_rows(out) || numbers->type != TYPE_I32 || !get_row(w->type, 0, 0, 0)) return 0;
  const int64_t rows = rows_of(out);
  for (int64_t r = first_row(params, rows); r < behind_last_row(params, rows); r++) {
    const row_index at = row_at(out, r);
    const int32_t number = *(const int32_t *)(numbers->data + at.i[0] * numbers->nb[0] + at.i[1] * numbers->nb[1] + at.i[2] * numbers->nb[2]);
    if (number < 0 || number >= w->ne[1]) __builtin_trap();
    get_row(w->type, (float *)row_data(out, at), row_data(w, (row_index){{(size_t)number, at.i[1], at.i[2]}}), w->ne[0]);
  }
  return 1;
}
