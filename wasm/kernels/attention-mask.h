// The attention mask: which cells of the KV cache each token of a step sees. llama.cpp checks each cell for each token, in
// several fields and bit sets; here the positions of a sequence's cells are gathered once, and then compared, eight at a time,
// with the first and the last position that a token sees.
#pragma once
#include "gpu-commands.h"
#include "halves.h"
#include "tensor.h"

// enum llama_swa_type, enum llama_non_causal_type
enum { NO_WINDOW = 0, STANDARD_WINDOW = 1, CHUNKED_WINDOW = 2, SYMMETRIC_WINDOW = 3, ONLY_WINDOWS_ARE_NOT_CAUSAL = 1 };
enum { MOST_SEQUENCES = 256, SET_BYTES = MOST_SEQUENCES / 8, CELLS_BYTES = 6272, EMPTY_CELL = -1 };
// Position of a cell that does not belong to the sequence: greater than that of any token.
enum { NO_POSITION = INT32_MAX, PIECE = 8 };

// Place of a cell or a token in its image.
typedef struct { int32_t x, y, unused; } place_in_image;

typedef struct {
  const int32_t *positions; // of a sequence's cells, padded to a multiple of PIECE
  int64_t cells;
  int32_t own, first, last; // positions of the token, and of the first and last token that it sees
  int is_half, is_alibi;
} mask_row;

extern void original_kq_mask(void *context, tensor *out, const uint8_t *step, int32_t is_causal);

static void gather_positions(int32_t *to, const uint8_t *cells, uint32_t sequence, int64_t count) {
  const int32_t *positions = FIELD(const int32_t *, cells, AT_LLAMA_KV_CELLS_POS);
  const uint8_t *sets = FIELD(const uint8_t *, cells, AT_LLAMA_KV_CELLS_SEQ) + sequence / 8;
  for (int64_t i = 0; i < count; i++) {
    const int has = positions[i] != EMPTY_CELL && sets[i * SET_BYTES] >> sequence % 8 & 1;
    to[i] = has ? positions[i] : NO_POSITION;
  }
}

INLINE vec is_seen(vec positions, const mask_row *row) {
  return wasm_v128_and(wasm_i32x4_ge(positions, wasm_i32x4_splat(row->first)), wasm_i32x4_le(positions, wasm_i32x4_splat(row->last)));
}

INLINE vec alibi_of(vec positions, const mask_row *row) {
  return to_f32(wasm_i32x4_neg(wasm_i32x4_abs(wasm_i32x4_sub(positions, wasm_i32x4_splat(row->own)))));
}

// The mask of eight cells as floats, or as halves in the first of the vectors.
INLINE void mask_piece(vec out[2], const int32_t *positions, const mask_row *row) {
  const vec a = load(positions), b = load(positions + 4), seen_a = is_seen(a, row), seen_b = is_seen(b, row);
  vec values_a = ZERO_F32, values_b = ZERO_F32;
  if (row->is_alibi) values_a = alibi_of(a, row), values_b = alibi_of(b, row);
  if (row->is_half) {
    const vec seen = wasm_i16x8_narrow_i32x4(seen_a, seen_b);
    const vec values = row->is_alibi ? wasm_i16x8_narrow_i32x4(halves_of_f32(values_a), halves_of_f32(values_b)) : ZERO_I16;
    out[0] = wasm_v128_bitselect(values, wasm_i16x8_const_splat((int16_t)0xfc00), seen);
    return;
  }
  const vec unseen = wasm_f32x4_const_splat(-__builtin_inff());
  out[0] = wasm_v128_bitselect(values_a, unseen, seen_a);
  out[1] = wasm_v128_bitselect(values_b, unseen, seen_b);
}

INLINE void fill_mask_row(uint8_t *to, mask_row row) {
  const int64_t whole = row.cells / PIECE * PIECE, bytes = row.is_half ? 2 : 4;
  vec values[2];
  for (int64_t i = 0; i < whole; i += PIECE) {
    mask_piece(values, row.positions + i, &row);
    store(to + i * bytes, values[0]);
    if (!row.is_half) store(to + i * bytes + sizeof(vec), values[1]);
  }
  if (whole == row.cells) return;
  mask_piece(values, row.positions + whole, &row);
  __builtin_memcpy(to + whole * bytes, values, (uint64_t)((row.cells - whole) * bytes));
}

// Tokens of an image have the same position; each sees those above it and to its left.
static void hide_later_places(uint8_t *to, const mask_row *row, const place_in_image *places, int32_t x, int32_t y) {
  const vec own = wasm_i32x4_splat(row->own);
  for (int64_t i = 0; i < row->cells; i += 4) {
    if (!wasm_v128_any_true(wasm_i32x4_eq(load(row->positions + i), own))) continue;
    for (int64_t j = i; j < i + 4 && j < row->cells; j++) {
      const int is_later = places[j].y > y || (places[j].y == y && places[j].x > x);
      if (row->positions[j] != row->own || !is_later) continue;
      if (row->is_half) ((uint16_t *)to)[j] = 0xfc00;
      else ((float *)to)[j] = -__builtin_inff();
    }
  }
}

INLINE int32_t within_i32(int64_t number) {
  return number < INT32_MIN ? INT32_MIN : number >= NO_POSITION ? NO_POSITION - 1 : (int32_t)number;
}

// Sets the range of positions that a token sees.
INLINE void set_range(mask_row *row, int32_t window, int32_t window_tokens, int is_causal) {
  const int64_t own = row->own;
  int64_t first = INT32_MIN, last = is_causal ? own : NO_POSITION;
  if (window == STANDARD_WINDOW) first = own - window_tokens + 1;
  if (window == CHUNKED_WINDOW) first = own - own % window_tokens;
  if (window == SYMMETRIC_WINDOW) {
    first = own - window_tokens / 2;
    if (last > own + window_tokens / 2) last = own + window_tokens / 2;
  }
  row->first = within_i32(first), row->last = within_i32(last);
}

typedef struct { const uint8_t *begin, *end; } cells_list;

// Fills the rows of all tokens; returns 0 for input that is not supported.
static int fill_mask(const uint8_t *cache, tensor *out, const uint8_t *step, int is_causal, int32_t *positions) {
  const cells_list streams = *FIELD(const cells_list *, cache, AT_LLAMA_KV_CACHE_V_CELLS);
  const uint32_t *stream_of = FIELD(const uint32_t *, cache, AT_LLAMA_KV_CACHE_SEQ_TO_STREAM);
  const int32_t window = FIELD(int32_t, cache, AT_LLAMA_KV_CACHE_SWA_TYPE);
  const int32_t window_tokens = FIELD(int32_t, cache, AT_LLAMA_KV_CACHE_N_SWA);
  const int32_t tokens = FIELD(int32_t, step, AT_LLAMA_UBATCH_N_TOKENS);
  const int32_t *own = FIELD(const int32_t *, step, AT_LLAMA_UBATCH_POS);
  const uint32_t *const *sequences = FIELD(const uint32_t *const *, step, AT_LLAMA_UBATCH_SEQ_ID);
  const int is_2d = is_causal && FIELD(uint32_t, step, AT_LLAMA_UBATCH_N_POS) >= 3;
  const uint8_t *hparams = FIELD(const uint8_t *, cache, AT_LLAMA_KV_CACHE_HPARAMS);
  mask_row row = { .positions = positions, .cells = out->ne[0], .is_half = out->type == TYPE_F16,
                   .is_alibi = FIELD(uint8_t, hparams, AT_LLAMA_HPARAMS_USE_ALIBI) };
  const uint8_t *cells = 0;
  uint32_t gathered = MOST_SEQUENCES;
  for (int32_t i = 0; i < tokens; i++) {
    const uint32_t sequence = *sequences[i];
    if (sequence >= MOST_SEQUENCES || own[i] < 0) return 0;
    if (sequence != gathered) {
      const uint64_t stream = stream_of[sequence];
      if (stream >= (uint64_t)(streams.end - streams.begin) / CELLS_BYTES) return 0;
      cells = streams.begin + stream * CELLS_BYTES;
      gather_positions(positions, cells, gathered = sequence, row.cells);
    }
    uint8_t *to = out->data + i * row.cells * (row.is_half ? 2 : 4);
    row.own = own[i];
    set_range(&row, window, window_tokens, is_causal);
    // Copies of the loop, specialized for what they write.
    if (row.is_alibi) fill_mask_row(to, row);
    else if (row.is_half) row.is_alibi = 0, row.is_half = 1, fill_mask_row(to, row);
    else row.is_alibi = 0, row.is_half = 0, fill_mask_row(to, row);
    if (is_2d) hide_later_places(to, &row, FIELD(const place_in_image *, cells, AT_LLAMA_KV_CELLS_EXT), own[i + 2 * tokens], own[i + tokens]);
  }
  return 1;
}

// llama_kv_cache_context::set_input_kq_mask
void kernel_kq_mask(void *context, tensor *out, const uint8_t *step, int32_t is_causal) {
  const uint8_t *cache = FIELD(const uint8_t *, context, AT_LLAMA_KV_CACHE_CONTEXT_KV);
  const int32_t window = FIELD(int32_t, cache, AT_LLAMA_KV_CACHE_SWA_TYPE);
  const int is_known = (out->type == TYPE_F16 || out->type == TYPE_F32) && (uint32_t)window <= SYMMETRIC_WINDOW &&
    (window == NO_WINDOW || FIELD(int32_t, cache, AT_LLAMA_KV_CACHE_N_SWA) > 0) &&
    (uint64_t)out->ne[3] > 0 && FIELD(int32_t, step, AT_LLAMA_UBATCH_N_TOKENS) % out->ne[3] == 0;
  const uint64_t places = (uint64_t)(out->ne[0] + PIECE - 1) / PIECE * PIECE;
  int32_t *positions = is_known ? try_to_allocate(places * sizeof *positions) : 0;
  int is_done = 0;
  if (positions) {
    for (uint64_t i = (uint64_t)out->ne[0]; i < places; i++) positions[i] = NO_POSITION;
    const uint8_t *hparams = FIELD(const uint8_t *, cache, AT_LLAMA_KV_CACHE_HPARAMS);
    const int only_windows = FIELD(int32_t, hparams, AT_LLAMA_HPARAMS_NON_CAUSAL_TYPE) == ONLY_WINDOWS_ARE_NOT_CAUSAL;
    is_done = fill_mask(cache, out, step, is_causal || (only_windows && window == NO_WINDOW), positions);
    free_memory(positions);
  }
  if (!is_done) original_kq_mask(context, out, step, is_causal);
}
