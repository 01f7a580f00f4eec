// Operators with which mixtures of experts choose, besides products, softmax and look-ups: sorting the experts' weights
// (ARGSORT), their sum (SUM_ROWS) within bounds (CLAMP), and adding the biases of the chosen experts (ADD_ID).
#pragma once
#include "elementwise.h"
#include "normalize.h"

// Longer rows, such as those of a vocabulary, are left to llama.cpp.
enum { MOST_SORTED = 1024 };

typedef struct {
  int32_t at[MOST_SORTED];
} sort_space;

// Sorts the indices of a row's numbers by value; stable.
INLINE void sort_row(int32_t *places, int32_t *spare, const float *x, int64_t count, int descending) {
  for (int64_t i = 0; i < count; i++) places[i] = (int32_t)i;
  for (int64_t width = 1; width < count; width *= 2) {
    for (int64_t from = 0; from < count; from += 2 * width) {
      const int64_t middle = from + width < count ? from + width : count, to = from + 2 * width < count ? from + 2 * width : count;
      for (int64_t i = from, a = from, b = middle; i < to; i++) {
        const int takes_b = a == middle || (b < to && (descending ? x[places[b]] > x[places[a]] : x[places[b]] < x[places[a]]));
        spare[i] = takes_b ? places[b++] : places[a++];
      }
    }
    __builtin_memcpy(places, spare, (size_t)count * sizeof *places);
  }
}

INLINE int sort_fits(const tensor *out) {
  return has_float_rows(out->src[0]) && out->type == TYPE_I32 && out->nb[0] == sizeof(int32_t) && out->ne[0] <= MOST_SORTED &&
         same_shape(out, out->src[0]);
}

// op_params: 1 for the largest first.
NOINLINE void sort_places(const compute_params *params, const tensor *out) {
  sort_space spare;
  const int64_t rows = rows_of(out);
  for (int64_t r = first_row(params, rows); r < behind_last_row(params, rows); r++) {
    const row_index at = row_at(out, r);
    sort_row((int32_t *)row_data(out, at), spare.at, (const float *)row_data(out->src[0], at), out->ne[0], out->op_params[0]);
  }
}

INLINE int sums_fit(const tensor *out) { return has_float_rows(out) && has_float_rows(out->src[0]) && out->ne[0] == 1; }

NOINLINE void sum_rows(const compute_params *params, const tensor *out) {
  const int64_t rows = rows_of(out);
  for (int64_t r = first_row(params, rows); r < behind_last_row(params, rows); r++) {
    const row_index at = row_at(out, r);
    *(float *)row_data(out, at) = (float)sum_of_row((const float *)row_data(out->src[0], at), out->src[0]->ne[0], 0, 0);
  }
}

INLINE int bounds_fit(const tensor *out) { return has_float_rows(out) && has_float_rows(out->src[0]); }

// op_params: the least and the greatest.
NOINLINE void clamp(const compute_params *params, const tensor *out) {
  const float least = float_parameter(out, 0), most = float_parameter(out, 1);
  const int64_t rows = rows_of(out), count = out->ne[0];
  for (int64_t r = first_row(params, rows); r < behind_last_row(params, rows); r++) {
    const row_index at = row_at(out, r);
    const float *from = (const float *)row_data(out->src[0], at);
    float *to = (float *)row_data(out, at);
    for (int64_t i = 0; i < count; i++) {
      const float bounded = from[i] < most ? from[i] : most;
      to[i] = bounded > least ? bounded : least;
    }
  }
}

INLINE int biases_fit(const tensor *out) {
  return has_float_rows(out) && has_float_rows(out->src[0]) && has_float_rows(out->src[1]) && out->src[2]->type == TYPE_I32 &&
         same_shape(out, out->src[0]) && out->ne[3] == 1;
}

NOINLINE void add_chosen(const compute_params *params, const tensor *out) {
  const tensor *x = out->src[0], *biases = out->src[1], *chosen = out->src[2];
  const int64_t rows = rows_of(out);
  for (int64_t r = first_row(params, rows); r < behind_last_row(params, rows); r++) {
    const row_index at = row_at(out, r);
    const int32_t bias = *(const int32_t *)(chosen->data + at.i[0] * chosen->nb[0] + at.i[1] * chosen->nb[1]);
    if (bias < 0 || bias >= biases->ne[1]) __builtin_trap();
    const float *added = (const float *)(biases->data + (size_t)bias * biases->nb[1]);
    combine_rows(OP_ADD, (float *)row_data(out, at), (const float *)row_data(x, at), added, out->ne[0]);
  }
}
