// Traits of each quantized format, by type number, and dispatch to its functions. Function pointers are impossible: the
// linker has no indirect call table for them.
#pragma once
#include "gemm-micro-kernel.h"
#include "gemv-super-blocks.h"
#include "tensor.h"

typedef struct {
  int supported;
  int per_256; // activations in super-blocks of 256
  int wide;    // GEMV wants activations as i16
  int granule; // weights that share a scale: 32 or 16
  int planes;  // bytes of a panel for each weight
  int offset;  // of formats in blocks: what is subtracted from the unsigned quants; -1 where a minimum is added instead
} format_traits;

INLINE format_traits traits_of(int32_t type) {
  switch (type) {
#define BLOCK_TRAITS(NAME, name, type, bytes, wide, granule, planes, multiply, offset, ...) \
  case TYPE_##NAME: return (format_traits){1, 0, wide, granule, planes, offset};
#define SUPER_TRAITS(NAME, name, type, bytes, wide, granule, planes, multiply, offset) \
  case TYPE_##NAME: return (format_traits){1, 1, wide, granule, planes, offset};
  BLOCK_FORMATS(BLOCK_TRAITS)
  SUPER_FORMATS(SUPER_TRAITS)
#undef BLOCK_TRAITS
#undef SUPER_TRAITS
  default: return (format_traits){0, 0, 0, 0, 0, 0};
  }
}

INLINE vec codes_of(int32_t type) {
  if (type == TYPE_MXFP4) return codes_mxfp4();
  return codes_iq4_nl();
}

// Bytes of one quantized column for GEMV, without the scales.
INLINE size_t column_bytes(format_traits traits, int64_t k) {
  if (traits.per_256) return (size_t)(k / SUPER_BLOCK * Q8_K_BYTES);
  return (size_t)(traits.wide ? 2 * k : k);
}

// `rows` rows (a multiple of 4) of the weights at `x` times `n` columns, one to four.
NOINLINE void gemv(int32_t type, int per_256, const uint8_t *x, size_t row_bytes, int64_t k, int64_t rows, gemv_columns y,
                   int n, gemv_results out, constants c) {
  const int64_t step = per_256 ? rows / 2 : rows / 4, blocks = per_256 ? k / SUPER_BLOCK : k / 32;
  const size_t stride = row_bytes * (size_t)step;
  out.row_stride = step;
#define CALL(name, columns) case columns: name##_##columns(x, stride, blocks, y, out, c); break;
#define CASE(NAME, name, ...) \
  case TYPE_##NAME: switch (n) { CALL(gemv_##name, 1) CALL(gemv_##name, 2) CALL(gemv_##name, 3) CALL(gemv_##name, 4) } break;
  for (int64_t i = 0; i < step; i++, x += row_bytes, out.first++) {
    switch (type) {
      FORMATS(CASE)
    }
  }
#undef CASE
#undef CALL
}

// Repacks four rows.
NOINLINE void pack_panel(int32_t type, const uint8_t *x, size_t row_bytes, int64_t k, panel p, constants c) {
  const int64_t blocks = k / 32, supers = k / SUPER_BLOCK;
#define IN_BLOCKS(NAME, name, ...) case TYPE_##NAME: pack_##name(x, row_bytes, blocks, p, c); break;
#define IN_SUPER_BLOCKS(NAME, name, ...) case TYPE_##NAME: pack_##name(x, row_bytes, supers, p, c); break;
  switch (type) {
    BLOCK_FORMATS(IN_BLOCKS)
    SUPER_FORMATS(IN_SUPER_BLOCKS)
  }
#undef IN_BLOCKS
#undef IN_SUPER_BLOCKS
}

// Four rows × four columns, twice. Panel `b` may be `a` itself.
INLINE tile_pair multiply(int32_t type, panel a, panel b, int64_t granules, column_group y, constants c) {
#define CASE(NAME, name, type, bytes, wide, granule, planes, multiply, ...) \
  case TYPE_##NAME: return multiply(a, b, granules, y, c.sixteen);
  switch (type) {
    FORMATS(CASE)
  default: __builtin_unreachable();
  }
#undef CASE
}
