// The quantized formats that the kernels multiply: the one table of them in C; wasm/quantizations.ts has the same names.
//
//   X(NAME, name, type, bytes, wide, granule, planes, offset, ...)
//
//   type      number of ggml_type
//   bytes     of a block of 32 weights, or of a super-block of 256
//   wide      1: GEMV wants activations as i16
//   granule   weights that share a scale: 32 or 16
//   planes    bytes of a panel for each weight
//   offset    of formats in blocks: what is subtracted from the unsigned quants; -1 where a minimum is added instead
//
// A format needs gemv_name_1 to _4, pack_name, and FORMAT_NAME (blocks) or SUPER_NAME (super-blocks). What llama.cpp calls
// follows from the group that it is in: dot products, and floats of a row.
#pragma once

// Blocks of 32 with unsigned quants; at last what the quants stand for.
#define UNSIGNED_FORMATS(X)                              \
  X(Q4_0, q4_0, 2, 18, 0, 32, 1, 8, ZERO_I32)            \
  X(Q4_1, q4_1, 3, 20, 0, 32, 1, -1, ZERO_I32)           \
  X(Q5_0, q5_0, 6, 22, 0, 32, 1, 16, ZERO_I32)           \
  X(Q5_1, q5_1, 7, 24, 0, 32, 1, -1, ZERO_I32)           \
  X(MXFP4, mxfp4, 39, 17, 0, 32, 1, 12, codes_mxfp4())

// Blocks of 32 with signed quants, or nibbles that stand for some; at last: whether it is Q8_0, and what they stand for.
#define SIGNED_FORMATS(X)                                \
  X(Q8_0, q8_0, 8, 34, 1, 32, 2, 0, 1, ZERO_I32)         \
  X(IQ4_NL, iq4_nl, 20, 18, 1, 32, 2, 0, 0, codes_iq4_nl())

// Super-blocks of 256.
#define SUPER_FORMATS(X)                                 \
  X(Q2_K, q2_K, 10, 84, 0, 16, 1, 0)                     \
  X(Q3_K, q3_K, 11, 110, 0, 16, 1, 0)                    \
  X(Q4_K, q4_K, 12, 144, 0, 32, 1, 0)                    \
  X(Q5_K, q5_K, 13, 176, 0, 32, 1, 0)                    \
  X(Q6_K, q6_K, 14, 210, 0, 16, 1, 0)                    \
  X(IQ4_XS, iq4_xs, 23, 136, 0, 32, 2, 0)

#define BLOCK_FORMATS(X) UNSIGNED_FORMATS(X) SIGNED_FORMATS(X)
#define FORMATS(X) BLOCK_FORMATS(X) SUPER_FORMATS(X)

// Formats whose weights are repacked, and those that a KV cache may have.
#define REPACKED_FORMATS(X) X(Q4_0) X(IQ4_NL) X(MXFP4) X(Q8_0) X(Q4_K) X(Q5_K) X(Q6_K) X(IQ4_XS)
#define CACHE_FORMATS(X) X(Q4_0, q4_0) X(Q4_1, q4_1) X(Q5_0, q5_0) X(Q5_1, q5_1) X(Q8_0, q8_0)

enum {
#define NUMBER(NAME, name, type, ...) TYPE_##NAME = type,
  FORMATS(NUMBER)
#undef NUMBER
#define BYTES(NAME, name, type, bytes, ...) BYTES_##NAME = bytes,
  FORMATS(BYTES)
#undef BYTES
};
