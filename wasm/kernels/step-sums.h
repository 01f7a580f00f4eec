// The order in which products are summed up. Many columns meet weights that are unpacked into panels first, and their sums are
// made in another order than those of one column, so that they may differ in the last bit. Tokens that an answer is given
// (given-tokens.h) are read many in a step; what is computed of them is to be what it would be token by token.
#pragma once
#include "simd.h"
#include "llama-cpp-build.h"

#define SUMS_OF_ONE_TOKEN (*(uint8_t *)SUMS_OF_ONE_TOKEN_CELL) // in the current step

// Of a product's columns, those that decide how it is computed.
INLINE int64_t deciding_columns(int64_t columns, int64_t of_one_token) { return SUMS_OF_ONE_TOKEN ? of_one_token : columns; }
