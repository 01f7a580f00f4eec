// Order of additions in products. With many columns, weights are unpacked into panels first, and sums are added in another
// order than with one column, so that they may differ in the last bit. Forced tokens (given-tokens.h) are evaluated many in a
// step, but must give the same results as one token at a time.
#pragma once
#include "simd.h"
#include "llama-cpp-build.h"

#define SUMS_OF_ONE_TOKEN (*(uint8_t *)SUMS_OF_ONE_TOKEN_CELL) // in the current step

// Number of columns that decides how a product is computed.
INLINE int64_t deciding_columns(int64_t columns, int64_t of_one_token) { return SUMS_OF_ONE_TOKEN ? of_one_token : columns; }
