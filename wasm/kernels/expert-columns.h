// Columns of activations by expert of a mixture. A router chooses a few experts for each token; sorted by expert, columns
// are multiplied with an expert's weights four at a time, like those of one matrix. Each thread sorts for itself, which is
// little work compared to a product, and saves a barrier.
#pragma once
#include "mul-mat-quantized.h"

// An expert that has columns.
typedef struct {
  int32_t expert;
  int32_t first; // of its columns, in their order by expert
  int32_t count;
  int32_t place; // of its first activations, in columns: groups of four are padded
} expert_share;

typedef struct {
  int64_t used;           // experts of each token
  const int32_t *columns; // token × used + which of its experts, by expert
  const expert_share *shares;
  int64_t count; // of shares
} expert_columns;

// Number of an expert's columns with padding: they are computed in groups of four, and a single last one alone.
INLINE int64_t filled_columns(int64_t count) { return count % 4 == 1 ? count : (count + 3) / 4 * 4; }

// Maximum of `columns` columns of all experts with padding: two and three of an expert are padded to four.
INLINE int64_t most_filled_columns(int64_t columns, int64_t experts) {
  return columns + 2 * (experts < columns / 2 ? experts : columns / 2);
}

INLINE size_t bytes_of_sorting(int64_t columns, int64_t experts) {
  const int64_t shares = experts < columns ? experts : columns;
  return align_up((size_t)experts * sizeof(int32_t)) + align_up((size_t)shares * sizeof(expert_share)) +
         align_up((size_t)columns * sizeof(int32_t));
}

INLINE int32_t expert_of(const tensor *ids, int64_t token, int64_t which, int64_t experts) {
  const int32_t expert = *(const int32_t *)(ids->data + (size_t)token * ids->nb[1] + (size_t)which * ids->nb[0]);
  if (expert < 0 || expert >= experts) __builtin_trap();
  return expert;
}

// `work`: bytes_of_sorting.
NOINLINE expert_columns sort_by_expert(const tensor *ids, int64_t experts, uint8_t *work) {
  const int64_t used = ids->ne[0], tokens = ids->ne[1];
  int32_t *next = (int32_t *)work;
  expert_share *shares = (expert_share *)(work + align_up((size_t)experts * sizeof(int32_t)));
  __builtin_memset(next, 0, (size_t)experts * sizeof(int32_t));
  for (int64_t token = 0; token < tokens; token++) {
    for (int64_t which = 0; which < used; which++) next[expert_of(ids, token, which, experts)]++;
  }
  int64_t count = 0, first = 0, place = 0;
  for (int64_t expert = 0; expert < experts; expert++) {
    const int32_t columns = next[expert];
    next[expert] = (int32_t)first;
    if (columns == 0) continue;
    shares[count++] = (expert_share){(int32_t)expert, (int32_t)first, columns, (int32_t)place};
    first += columns;
    place += filled_columns(columns);
  }
  int32_t *columns = (int32_t *)((uint8_t *)shares + align_up((size_t)(experts < first ? experts : first) * sizeof(expert_share)));
  for (int64_t token = 0; token < tokens; token++) {
    for (int64_t which = 0; which < used; which++) {
      columns[next[expert_of(ids, token, which, experts)]++] = (int32_t)(token * used + which);
    }
  }
  return (expert_columns){used, columns, shares, count};
}
