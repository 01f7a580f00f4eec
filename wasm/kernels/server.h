// Structures of llama.cpp's server that our kernels read and write: its slots, their prompts and tasks.
#pragma once
#include "simd.h"
#include "llama-cpp-build.h"

// A field of one of llama.cpp's structures.
#define FIELD(type, of, at) (*(type *)((uint8_t *)(of) + (at)))

// Parts of llama.cpp's own structures.
typedef struct {
  uint8_t unused_a[AT_LLAMA_CONTEXT_CPARAMS_N_CTX];
  int32_t tokens;      // of the cache, cparams.n_ctx
  int32_t slot_tokens; // of them for each slot, cparams.n_ctx_seq
  int32_t batch;       // tokens of a step, cparams.n_batch
  int32_t micro_batch; // cparams.n_ubatch; the context is made with both the same
  uint8_t unused_b[AT_LLAMA_CONTEXT_MEMORY - AT_LLAMA_CONTEXT_CPARAMS_N_BATCH - 8];
  uint64_t *memory;   // whose first word is the table of its class
} llama_context;

typedef struct {
  uint8_t unused_a[AT_SERVER_CONTEXT_IMPL_CTX_TGT];
  llama_context *context;
  uint8_t unused_b[AT_SERVER_CONTEXT_IMPL_CTX_TGT_SEQ_RM_TYPE - AT_SERVER_CONTEXT_IMPL_CTX_TGT - 8];
  int32_t removal; // how tokens can be taken out of the cache, ctx_tgt_seq_rm_type
  uint8_t unused_c[AT_SERVER_CONTEXT_IMPL_SLOTS - AT_SERVER_CONTEXT_IMPL_CTX_TGT_SEQ_RM_TYPE - 4];
  uint8_t *slots, *slots_end; // BYTES_OF_SLOT each
} server_context;

typedef struct {
  int32_t id;
  uint8_t unused[AT_SERVER_TASK_PARAMS_N_KEEP - 8];
  // Parts of params.sse_ping_interval, which is unused without HTTP. src/engine/core/build-request.ts sets them.
  uint8_t most_guessed; // maximum tokens of a draft
  uint8_t asked_slot;   // one more than its number; 0: any
  uint16_t number;      // the script's number for the request; 0: the script does not read its tokens
} server_task;

// A std::vector.
typedef struct { int32_t *begin, *end, *limit; } token_list;
typedef struct { uint8_t *begin, *end, *limit; } record_list;

// server_tokens, from the count of its pieces that are not text.
typedef struct { uint64_t media; token_list list; } server_tokens;

typedef struct {
  int32_t id;
  uint8_t unused_a[AT_SERVER_SLOT_CTX_TGT - 4];
  llama_context *context, *draft;
  uint8_t unused_b[AT_SERVER_SLOT_TASK - AT_SERVER_SLOT_CTX_DFT - 8];
  server_task *task, *last_task;
  int64_t last_used;    // in microseconds of llama.cpp's clock; -1: never
  int32_t context_size; // tokens that it may have
  uint8_t unused_c[AT_SERVER_SLOT_STATE - AT_SERVER_SLOT_N_CTX - 4];
  int32_t state;
  uint8_t unused_d[AT_SERVER_SLOT_PROMPT_TOKENS_MAP_IDX_TO_MEDIA - AT_SERVER_SLOT_STATE - 4];
  server_tokens prompt; // what it has in the cache
} server_slot;

// enum slot_state
enum { SLOT_IDLE = 0, SLOT_WAITS = 1, SLOT_STARTED = 2, SLOT_READS_PROMPT = 3, SLOT_GENERATES = 5 };

// enum server_task_type; those up to the last one here get a slot.
enum { TASK_COMPLETION = 0, LAST_TASK_WITH_SLOT = 4 };

enum { BYTES_OF_SLOT = 3296, BYTES_OF_ADAPTER = 88, SCALE_IN_ADAPTER = 24 };

_Static_assert(offsetof(llama_context, batch) == AT_LLAMA_CONTEXT_CPARAMS_N_BATCH, "llama_context.cparams.n_batch");
_Static_assert(offsetof(llama_context, memory) == AT_LLAMA_CONTEXT_MEMORY, "llama_context.memory");
_Static_assert(offsetof(server_context, slots) == AT_SERVER_CONTEXT_IMPL_SLOTS, "server_context_impl.slots");
_Static_assert(offsetof(server_slot, draft) == AT_SERVER_SLOT_CTX_DFT, "server_slot.ctx_dft");
_Static_assert(offsetof(server_slot, last_task) == AT_SERVER_SLOT_TASK_PREV, "server_slot.task_prev");
_Static_assert(offsetof(server_slot, last_used) == AT_SERVER_SLOT_T_LAST_USED, "server_slot.t_last_used");
_Static_assert(offsetof(server_slot, context_size) == AT_SERVER_SLOT_N_CTX, "server_slot.n_ctx");
_Static_assert(offsetof(server_slot, state) == AT_SERVER_SLOT_STATE, "server_slot.state");
_Static_assert(offsetof(server_slot, prompt.list) == AT_SERVER_SLOT_PROMPT_TOKENS_TOKENS, "server_slot.prompt.tokens.tokens");


#define SERVER (*(server_context **)SERVER_CELL) // since its first step

#define SLOT_OF_TASK(task) FIELD(int32_t, task, AT_SERVER_TASK_ID_SLOT)
#define TYPE_OF_TASK(task) FIELD(int32_t, task, AT_SERVER_TASK_TYPE)
#define PARENT_OF_TASK(task) FIELD(int32_t, task, AT_SERVER_TASK_ID_PARENT)
#define IS_TEXT_OF_TASK(task) FIELD(uint8_t, task, AT_SERVER_TASK_CLI)
#define REUSES_PROMPT(task) FIELD(uint8_t, task, AT_SERVER_TASK_PARAMS_CACHE_PROMPT)
#define TOKENS_OF_TASK(task) FIELD(server_tokens, task, AT_SERVER_TASK_TOKENS_TOKENS - 8)

// True for memories that can remove tokens from their end: llama_kv_cache and llama_kv_cache_iswa. A recurrent state, such as
// Mamba's, cannot.
INLINE int is_kv_cache(uint64_t memory_class) {
  return memory_class == ADDRESS_OF_KV_CACHE_CLASS || memory_class == ADDRESS_OF_KV_CACHE_ISWA_CLASS;
}

extern void *allocate_memory(uint64_t size);

INLINE int64_t count_slots(const server_context *server) { return (server->slots_end - server->slots) / BYTES_OF_SLOT; }

INLINE server_slot *slot_at(const server_context *server, int64_t index) {
  return (server_slot *)(server->slots + index * BYTES_OF_SLOT);
}

INLINE int64_t length_of(const server_tokens *tokens) { return tokens->list.end - tokens->list.begin; }

// Length of the common prefix of two lists of tokens; 0 with media, whose positions are not those of their tokens.
NOINLINE int64_t common_beginning(const server_tokens *a, const server_tokens *b) {
  const int64_t n = length_of(a) < length_of(b) ? length_of(a) : length_of(b);
  if (a->media > 0 || b->media > 0) return 0;
  int64_t same = 0;
  while (same < n && a->list.begin[same] == b->list.begin[same]) same++;
  return same;
}
