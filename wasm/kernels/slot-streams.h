// The state of a slot as llama.cpp writes it, and its form in a file. A file may be damaged, so sizes, positions and counts
// are checked here before llama.cpp reads the state.
#pragma once
#include "steps.h"

typedef struct {
  uint8_t unused_a[AT_LLAMA_KV_CACHE_HPARAMS];
  const uint8_t *parameters;
  uint8_t unused_b[AT_LLAMA_KV_CACHE_N_SWA - AT_LLAMA_KV_CACHE_HPARAMS - 8];
  int32_t window; // tokens
  uint8_t unused_c[AT_LLAMA_KV_CACHE_SWA_TYPE - AT_LLAMA_KV_CACHE_N_SWA - 4];
  int32_t window_type; // 1: it moves with each token
} kv_cache;

_Static_assert(offsetof(kv_cache, window) == AT_LLAMA_KV_CACHE_N_SWA, "llama_kv_cache.n_swa");
_Static_assert(offsetof(kv_cache, window_type) == AT_LLAMA_KV_CACHE_SWA_TYPE, "llama_kv_cache.swa_type");

// llama_kv_cache_iswa: one cache for layers that see all tokens, and one for those that see a window.
typedef struct {
  uint8_t unused[AT_LLAMA_KV_CACHE_ISWA_KV_BASE];
  const kv_cache *whole;
  kv_cache *window;
} window_caches;

typedef struct {
  const uint8_t *at, *end;
  int is_good;
} state_reader;

INLINE const uint8_t *take(state_reader *reader, uint64_t bytes) {
  const uint8_t *from = reader->at;
  if (!reader->is_good || bytes > (uint64_t)(reader->end - from)) {
    reader->is_good = 0;
    return 0;
  }
  reader->at += bytes;
  return from;
}

INLINE uint32_t take_u32(state_reader *reader) {
  uint32_t value = 0;
  const uint8_t *from = take(reader, sizeof value);
  if (from) __builtin_memcpy(&value, from, sizeof value);
  return value;
}

INLINE uint64_t take_u64(state_reader *reader) {
  const uint64_t low = take_u32(reader);
  return low | (uint64_t)take_u32(reader) << 32;
}

// Keys or values of all layers, a row for each cell.
static void skip_rows(state_reader *reader, uint32_t layers, uint32_t cells) {
  for (uint32_t layer = 0; layer < layers && reader->is_good; layer++) {
    take_u32(reader); // the type, which llama.cpp compares with the model's, as it does the size
    const uint64_t row = take_u64(reader);
    if (row > UINT32_MAX) reader->is_good = 0;
    take(reader, row * cells);
  }
}

// Values whose rows are those of an element for all cells.
static void skip_columns(state_reader *reader, uint32_t layers, uint32_t cells) {
  for (uint32_t layer = 0; layer < layers && reader->is_good; layer++) {
    take_u32(reader);
    const uint64_t element = take_u32(reader), rows = take_u32(reader);
    if (element > UINT8_MAX) reader->is_good = 0;
    take(reader, element * rows * cells);
  }
}

// Bytes of a cell besides its position: the place in an image, or the token.
static uint64_t extra_bytes(const kv_cache *cache) {
  enum { EXTRA = 12, IMAGE_ROPE = 8, INTERLEAVED = 32 };
  const int32_t rope = *(const int32_t *)(cache->parameters + AT_LLAMA_HPARAMS_ROPE_TYPE);
  const int32_t ngrams = *(const int32_t *)(cache->parameters + AT_LLAMA_HPARAMS_TOKEN_NGRAMS);
  return (rope & ~INTERLEAVED) == IMAGE_ROPE || ngrams ? EXTRA : 0;
}

enum { MOST_STREAMS = 64 }; // as many as there may be slots

// The part of a state that one cache has written, from the number of its cells on; nothing when it has none.
typedef struct {
  const uint8_t *begin, *end;
} cell_span;

// Reads one cache's part: at most `tokens` cells, in one of its streams, each at a position of its own prompt.
static cell_span check_cache(state_reader *reader, const kv_cache *cache, uint32_t tokens, int is_whole) {
  enum { MOST_LAYERS = 4096 };
  const uint64_t extra = extra_bytes(cache);
  const uint32_t streams = take_u32(reader);
  cell_span span = {reader->at, reader->at};
  if (streams > MOST_STREAMS) reader->is_good = 0;
  uint32_t all = 0;
  for (uint32_t stream = 0; stream < streams && reader->is_good; stream++) {
    const uint8_t *begin = reader->at;
    const uint32_t cells = take_u32(reader);
    if (cells == 0) continue;
    if (all > 0 || cells > tokens) reader->is_good = 0;
    all = cells;
    for (uint32_t cell = 0; cell < cells && reader->is_good; cell++) {
      const uint32_t position = take_u32(reader), sequences = take_u32(reader);
      if (position >= tokens || sequences != 1) reader->is_good = 0;
      take(reader, extra + sizeof(int32_t));
    }
    const uint32_t has_columns = take_u32(reader), layers = take_u32(reader);
    if (has_columns > 1 || layers > MOST_LAYERS) reader->is_good = 0;
    skip_rows(reader, layers, cells);
    if (has_columns) skip_columns(reader, layers, cells);
    else skip_rows(reader, layers, cells);
    span = (cell_span){begin, reader->at};
  }
  if (is_whole && all != tokens) reader->is_good = 0;
  return span;
}

// The caches of a context, one or two.
INLINE int caches_of(const llama_context *context, const kv_cache *caches[2]) {
  if (*context->memory != ADDRESS_OF_KV_CACHE_ISWA_CLASS) {
    caches[0] = (const kv_cache *)context->memory;
    return 1;
  }
  const window_caches *both = (const window_caches *)context->memory;
  caches[0] = both->whole;
  caches[1] = both->window;
  return 2;
}

// A context has one stream for all slots, or one for each. In a file there is only that of the slot.
enum { STATE_HEADER = 8 }; // a mark, which llama.cpp compares, and the number of the slot

// Removes other streams than the slot's from a state that llama.cpp has written. Returns its size; 0: it could not be restored.
static int64_t without_streams(const llama_context *context, uint8_t *state, int64_t size, uint32_t tokens) {
  state_reader reader = {state, state + size, size > 0};
  take(&reader, STATE_HEADER);
  uint8_t *to = state + STATE_HEADER;
  const kv_cache *caches[2];
  const int count = caches_of(context, caches);
  for (int each = 0; each < count; each++) {
    const cell_span span = check_cache(&reader, caches[each], tokens, each == 0);
    if (!reader.is_good) return 0;
    const uint64_t bytes = (uint64_t)(span.end - span.begin);
    const uint32_t head[2] = {1, 0};
    __builtin_memcpy(to, head, bytes > 0 ? sizeof *head : sizeof head);
    if (bytes > 0) __builtin_memmove(to + sizeof *head, span.begin, bytes);
    to += bytes > 0 ? sizeof *head + bytes : sizeof head;
  }
  return reader.at == reader.end ? to - state : 0;
}

// llama.cpp writes only the last window of a conversation, but needs one more token to continue, and the chat's next turn may
// have the end of the answer in other tokens. So the window is a little larger while it writes.
INLINE void widen_window(const llama_context *context, int32_t by) {
  if (*context->memory != ADDRESS_OF_KV_CACHE_ISWA_CLASS) return;
  kv_cache *window = ((const window_caches *)context->memory)->window;
  if (window->window_type == 1) window->window += by;
}

enum { WIDER = 32 }; // tokens; a cache has room for a step more than its window

INLINE int64_t written_size(llama_context *context, int32_t sequence) {
  widen_window(context, WIDER);
  const int64_t bytes = (int64_t)state_size(context, sequence, 0);
  widen_window(context, -WIDER);
  return bytes;
}

INLINE int64_t write_state(llama_context *context, uint8_t *to, int64_t size, int32_t sequence) {
  widen_window(context, WIDER);
  const int64_t bytes = (int64_t)get_state(context, to, (uint64_t)size, sequence, 0);
  widen_window(context, -WIDER);
  return bytes;
}

// Converts it back into a state for a context with so many streams, if it is valid. Uses spare bytes after it. Returns its
// size; 0: it is damaged.
static int64_t with_streams(const llama_context *context, uint8_t *state, int64_t size, uint32_t tokens, uint32_t streams) {
  state_reader reader = {state, state + size, size > 0};
  take(&reader, STATE_HEADER);
  const kv_cache *caches[2];
  const int count = caches_of(context, caches);
  uint8_t *at[3];
  for (int each = 0; each < count; each++) {
    at[each] = (uint8_t *)reader.at;
    check_cache(&reader, caches[each], tokens, each == 0);
    uint32_t written = 0;
    if (reader.is_good) __builtin_memcpy(&written, at[each], sizeof written);
    if (written != 1) return 0;
  }
  if (reader.at != reader.end) return 0;
  at[count] = state + size;
  const uint64_t added = (streams - 1) * sizeof(uint32_t);
  for (int each = count - 1; each >= 0; each--) {
    uint8_t *const to = at[each] + (uint64_t)each * added;
    const uint64_t bytes = (uint64_t)(at[each + 1] - at[each]);
    __builtin_memmove(to, at[each], bytes);
    __builtin_memcpy(to, &streams, sizeof streams);
    __builtin_memset(to + bytes, 0, added);
  }
  return size + count * (int64_t)added;
}
