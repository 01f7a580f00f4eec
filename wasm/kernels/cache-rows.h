// Keys and values of a KV cache as rows of floats or halves. A quantized cache is unpacked once, with about two instructions
// per number, for all queries that share it.
#pragma once
#include "block-formats.h"
#include "tensor.h"

typedef struct {
  int32_t type; // F32 or F16
  const uint8_t *data;
  size_t row_bytes;
} cache_rows;

INLINE void store_bytes_scaled(float *to, vec bytes, vec scale, vec offset) {
  const vec low = wasm_i16x8_extend_low_i8x16(bytes), high = wasm_i16x8_extend_high_i8x16(bytes);
  store(to, madd(to_f32(wasm_i32x4_extend_low_i16x8(low)), scale, offset));
  store(to + 4, madd(to_f32(wasm_i32x4_extend_high_i16x8(low)), scale, offset));
  store(to + 8, madd(to_f32(wasm_i32x4_extend_low_i16x8(high)), scale, offset));
  store(to + 12, madd(to_f32(wasm_i32x4_extend_high_i16x8(high)), scale, offset));
}

INLINE void unpack_row(const uint8_t *x, int64_t count, float *to, block_format format, int is_q8_0, const constants *c) {
  for (int64_t i = 0; i < count; i += 32, x += format.bytes, to += 32) {
    const bytes32 quants = is_q8_0 ? unpack_signed(x, 1, format.quants_at, c) : unpack_unsigned(x, format, c);
    const float d = f16_to_f32(x), offset = format.has_minimum ? f16_to_f32(x + 2) : -d * format.offset;
    store_bytes_scaled(to, quants.low, wasm_f32x4_splat(d), wasm_f32x4_splat(offset));
    store_bytes_scaled(to + 16, quants.high, wasm_f32x4_splat(d), wasm_f32x4_splat(offset));
  }
}

INLINE int is_cache_type(int32_t type) {
  return type == TYPE_F32 || type == TYPE_F16 || type == TYPE_Q4_0 || type == TYPE_Q4_1 || type == TYPE_Q5_0 ||
         type == TYPE_Q5_1 || type == TYPE_Q8_0;
}

// `rows` rows of a head's cache; those of a quantized one are unpacked to `scratch`.
NOINLINE cache_rows rows_of_cache(const tensor *cache, const uint8_t *data, int64_t rows, float *scratch, constants c) {
  if (cache->type == TYPE_F32 || cache->type == TYPE_F16) return (cache_rows){cache->type, data, cache->nb[1]};
  const int64_t width = cache->ne[0];
  for (int64_t r = 0; r < rows; r++, data += cache->nb[1]) {
    float *to = scratch + r * width;
    switch (cache->type) {
    case TYPE_Q4_0: unpack_row(data, width, to, FORMAT_Q4_0, 0, &c); break;
    case TYPE_Q4_1: unpack_row(data, width, to, FORMAT_Q4_1, 0, &c); break;
    case TYPE_Q5_0: unpack_row(data, width, to, FORMAT_Q5_0, 0, &c); break;
    case TYPE_Q5_1: unpack_row(data, width, to, FORMAT_Q5_1, 0, &c); break;
    default: unpack_row(data, width, to, FORMAT_Q8_0, 1, &c); break;
    }
  }
  return (cache_rows){TYPE_F32, (const uint8_t *)scratch, (size_t)width * sizeof(float)};
}
