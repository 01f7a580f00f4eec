// Steps of llama.cpp's server: how many tokens one may have, and how one is left before its end. Both are told by the engine's
// script, src/engine/core/step-control.ts, in cells that wasm/memory-cells.ts lists.
//
// A step that is left fails as one whose computation failed: the server tells the request so and forgets the slot's prompt.
// What was in the cache before the step is right, though, so the prompt is only cut back to that.
#pragma once
#include "barrier.h"

#define HOLD_STEP (*(volatile uint8_t *)HOLD_STEP_CELL)
#define STEP_TOKENS ((int32_t *)STEP_TOKENS_CELL) // most tokens of a step; 0: as many as the context was made for
#define LEAVE_STEP ((int32_t *)LEAVE_STEP_CELL)
#define LEFT_TOKENS ((int32_t *)LEFT_TOKENS_CELL) // of the step that was left
#define SERVER (*(server_context **)SERVER_CELL)
#define GUESSED_TOKENS (*(int32_t *)GUESSED_TOKENS_CELL) // in the current step

// The parts of llama.cpp's own structures that are needed.
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
  int32_t most_guessed; // params.sse_ping_interval, which means nothing without HTTP
} server_task;

typedef struct {
  int32_t id;
  uint8_t unused_a[AT_SERVER_SLOT_CTX_TGT - 4];
  llama_context *context, *draft;
  uint8_t unused_b[AT_SERVER_SLOT_TASK - AT_SERVER_SLOT_CTX_DFT - 8];
  const server_task *task;
  uint8_t unused_c[AT_SERVER_SLOT_T_LAST_USED - AT_SERVER_SLOT_TASK - 8];
  int64_t last_used;    // in microseconds of llama.cpp's clock; -1: never
  int32_t context_size; // tokens that it may have
  uint8_t unused_d[AT_SERVER_SLOT_STATE - AT_SERVER_SLOT_N_CTX - 4];
  int32_t state; // 0: idle
  uint8_t unused_e[AT_SERVER_SLOT_PROMPT_TOKENS_MAP_IDX_TO_MEDIA - AT_SERVER_SLOT_STATE - 4];
  uint64_t media; // pieces of the prompt that are not text
  int32_t *tokens, *tokens_end;
} server_slot;

typedef struct {
  uint8_t unused[AT_LLAMA_BATCH_EXT_TOKENS];
  uint8_t *tokens, *tokens_end; // BYTES_OF_TOKEN each
} llama_batch;

enum { BYTES_OF_TOKEN = 80, BYTES_OF_SLOT = 3296 };

_Static_assert(offsetof(llama_context, batch) == AT_LLAMA_CONTEXT_CPARAMS_N_BATCH, "llama_context.cparams.n_batch");
_Static_assert(offsetof(server_slot, draft) == AT_SERVER_SLOT_CTX_DFT, "server_slot.ctx_dft");
_Static_assert(offsetof(server_slot, context_size) == AT_SERVER_SLOT_N_CTX, "server_slot.n_ctx");
_Static_assert(offsetof(server_slot, state) == AT_SERVER_SLOT_STATE, "server_slot.state");
_Static_assert(offsetof(server_context, slots) == AT_SERVER_CONTEXT_IMPL_SLOTS, "server_context_impl.slots");
_Static_assert(offsetof(llama_context, memory) == AT_LLAMA_CONTEXT_MEMORY, "llama_context.memory");
_Static_assert(offsetof(server_slot, tokens) == AT_SERVER_SLOT_PROMPT_TOKENS_TOKENS, "server_slot.prompt.tokens.tokens");

// Memories from whose end tokens can be taken away: llama_kv_cache and llama_kv_cache_iswa. A state that was computed from
// all tokens, as Mamba's, cannot be taken back.
INLINE int is_kv_cache(uint64_t memory_class) {
  return memory_class == ADDRESS_OF_KV_CACHE_CLASS || memory_class == ADDRESS_OF_KV_CACHE_ISWA_CLASS;
}

extern void original_update_slots(server_context *server);
extern int32_t original_process(llama_context *context, int32_t type, const llama_batch *batch);
extern void original_prompt_clear(server_slot *slot);

// server_context_impl::update_slots(), one step of all slots. The worker's script asks for a result only together with a
// step; while it has HOLD_STEP set, it gets what has been computed already.
void kernel_update_slots(server_context *server) {
  if (HOLD_STEP) return;
  SERVER = server;
  GUESSED_TOKENS = 0;
  llama_context *context = server->context;
  const int32_t asked = *STEP_TOKENS, most = context->micro_batch;
  if (asked > 0) context->batch = asked < most ? asked : most;
  *LEFT_TOKENS = 0;
  original_update_slots(server);
}

// What is asked of the first thread before each node: whether the step is to be left.
INLINE int is_step_left(void) { return __atomic_load_n(LEAVE_STEP, __ATOMIC_RELAXED) != 0; }

// All threads leave the graph behind node `number`, as if llama.cpp's own callback had asked for it.
INLINE void leave_step(threadpool *pool, int32_t number) {
  enum { ABORTED = 1 };
  __atomic_store_n(&pool->left_at, number + 1, __ATOMIC_SEQ_CST);
  pool->status = ABORTED;
}

// llama_process, which decodes a batch. llama.cpp answers 2 for a graph that was left; its server would take that for a lack
// of room and try half of the batch.
int32_t kernel_process(llama_context *context, int32_t type, const llama_batch *batch) {
  enum { LEFT = 2, FAILED = -3 };
  int32_t result = original_process(context, type, batch);
  // The step of a draft model, which is not part of what may be left: the model's own step is over.
  while (result == LEFT && SERVER && context != SERVER->context) {
    __atomic_store_n(LEAVE_STEP, 0, __ATOMIC_RELAXED);
    result = original_process(context, type, batch);
  }
  if (result != LEFT) return result;
  const uint64_t memory_class = context->memory ? *context->memory : 0;
  if (is_kv_cache(memory_class)) *LEFT_TOKENS = (int32_t)((batch->tokens_end - batch->tokens) / BYTES_OF_TOKEN);
  return FAILED;
}

// server_slot::prompt_clear(), which forgets what a slot has in the cache. The script leaves a step only while one slot is in
// use, of whose tokens the batch then consists; llama.cpp has taken those out of the cache.
void kernel_prompt_clear(server_slot *slot) {
  const int64_t left = *LEFT_TOKENS;
  *LEFT_TOKENS = 0;
  // Positions of media are not those of their tokens.
  if (left == 0 || slot->media > 0 || slot->tokens_end - slot->tokens < left) original_prompt_clear(slot);
  else slot->tokens_end -= left;
}
