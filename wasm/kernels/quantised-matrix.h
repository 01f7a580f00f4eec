// What the operators need to know of each quantised format, by type number. Functions cannot be chosen through
// pointers here: the linker has no indirect call table to put them in.
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
} format_traits;

INLINE format_traits traits_of(int32_t type) {
  switch (type) {
  case TYPE_Q4_0: case TYPE_Q4_1: case TYPE_Q5_0: case TYPE_Q5_1: return (format_traits){1, 0, 0, 32, 1};
  case TYPE_MXFP4: return (format_traits){1, 0, 1, 32, 1};
  case TYPE_Q8_0: case TYPE_IQ4_NL: return (format_traits){1, 0, 1, 32, 2};
  case TYPE_Q4_K: case TYPE_Q5_K: return (format_traits){1, 1, 0, 32, 1};
  case TYPE_IQ4_XS: return (format_traits){1, 1, 0, 32, 2};
  case TYPE_Q2_K: case TYPE_Q3_K: case TYPE_Q6_K: return (format_traits){1, 1, 0, 16, 1};
  default: return (format_traits){0, 0, 0, 0, 0};
  }
}

// Bytes of one quantised column for GEMV, without the scales.
INLINE size_t column_bytes(format_traits traits, int64_t k) {
  if (traits.per_256) return (size_t)(k / SUPER_BLOCK * Q8_K_BYTES);
  return (size_t)(traits.wide ? 2 * k : k);
}

// out[r] for `rows` rows (a multiple of 4) of the weights at `x` times one column.
NOINLINE void gemv(int32_t type, const uint8_t *x, size_t row_bytes, int64_t k, int64_t rows, column32 y, float *out,
                   constants c) {
  const int64_t quarter = rows / 4, half = rows / 2, blocks = k / 32, supers = k / SUPER_BLOCK;
#define BY_FOUR(call) for (int64_t i = 0; i < quarter; i++) call(x + i * row_bytes, row_bytes * quarter, blocks, y, out + i, quarter, c)
#define BY_TWO(call) for (int64_t i = 0; i < half; i++) call(x + i * row_bytes, row_bytes * half, supers, y.quants, out + i, half, c)
  switch (type) {
  case TYPE_Q4_0: BY_FOUR(gemv_q4_0); break;
  case TYPE_Q4_1: BY_FOUR(gemv_q4_1); break;
  case TYPE_Q5_0: BY_FOUR(gemv_q5_0); break;
  case TYPE_Q5_1: BY_FOUR(gemv_q5_1); break;
  case TYPE_Q8_0: BY_FOUR(gemv_q8_0); break;
  case TYPE_IQ4_NL: BY_FOUR(gemv_iq4_nl); break;
  case TYPE_MXFP4: BY_FOUR(gemv_mxfp4); break;
  case TYPE_Q2_K: BY_TWO(gemv_q2_K); break;
  case TYPE_Q3_K: BY_TWO(gemv_q3_K); break;
  case TYPE_Q4_K: BY_TWO(gemv_q4_K); break;
  case TYPE_Q5_K: BY_TWO(gemv_q5_K); break;
  case TYPE_Q6_K: BY_TWO(gemv_q6_K); break;
  case TYPE_IQ4_XS: BY_TWO(gemv_iq4_xs); break;
  }
#undef BY_FOUR
#undef BY_TWO
}

// Repacks four rows.
NOINLINE void pack_panel(int32_t type, const uint8_t *x, size_t row_bytes, int64_t k, panel p, constants c) {
  const int64_t blocks = k / 32, supers = k / SUPER_BLOCK;
  switch (type) {
  case TYPE_Q4_0: pack_q4_0(x, row_bytes, blocks, p, c); break;
  case TYPE_Q4_1: pack_q4_1(x, row_bytes, blocks, p, c); break;
  case TYPE_Q5_0: pack_q5_0(x, row_bytes, blocks, p, c); break;
  case TYPE_Q5_1: pack_q5_1(x, row_bytes, blocks, p, c); break;
  case TYPE_Q8_0: pack_q8_0(x, row_bytes, blocks, p, c); break;
  case TYPE_IQ4_NL: pack_iq4_nl(x, row_bytes, blocks, p, c); break;
  case TYPE_MXFP4: pack_mxfp4(x, row_bytes, blocks, p, c); break;
  case TYPE_Q2_K: pack_q2_K(x, row_bytes, supers, p, c); break;
  case TYPE_Q3_K: pack_q3_K(x, row_bytes, supers, p, c); break;
  case TYPE_Q4_K: pack_q4_K(x, row_bytes, supers, p, c); break;
  case TYPE_Q5_K: pack_q5_K(x, row_bytes, supers, p, c); break;
  case TYPE_Q6_K: pack_q6_K(x, row_bytes, supers, p, c); break;
  case TYPE_IQ4_XS: pack_iq4_xs(x, row_bytes, supers, p, c); break;
  }
}

// Four rows × four columns.
INLINE tile multiply(int32_t type, panel p, int64_t granules, column_group y, constants c) {
  switch (type) {
  case TYPE_Q8_0: case TYPE_IQ4_NL: case TYPE_IQ4_XS: return multiply_two_planes(p, granules, y, c.sixteen);
  case TYPE_Q5_0: case TYPE_Q5_1: case TYPE_Q5_K: case TYPE_MXFP4: return multiply_5_bits(p, granules, y);
  case TYPE_Q6_K: return multiply_6_bits_16(p, granules, y);
  case TYPE_Q2_K: case TYPE_Q3_K: return multiply_3_bits_16(p, granules, y);
  default: return multiply_4_bits(p, granules, y);
  }
}
