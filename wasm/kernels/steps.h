// Steps of llama.cpp's server: their maximum number of tokens, and how to abort one. The engine's script,
// src/engine/core/kernel-controls.ts, sets both in cells that wasm/memory-cells.ts lists.
//
// An aborted step fails like one whose computation failed: the server reports that to the request and clears the slot's prompt.
// But the cache is valid up to the beginning of the step, so the prompt is only truncated to that.
#pragma once
#include "barrier.h"
#include "held-clock.h"
#include "prompt-reuse.h"
#include "step-costs.h"

#define HOLD_STEP (*(volatile uint8_t *)HOLD_STEP_CELL)
#define STEP_TOKENS ((int32_t *)STEP_TOKENS_CELL) // maximum tokens of a step; 0: the context's batch size
#define LEAVE_STEP ((int32_t *)LEAVE_STEP_CELL)
#define LEFT_TOKENS ((int32_t *)LEFT_TOKENS_CELL) // tokens of the aborted step
#define GUESSED_TOKENS (*(int32_t *)GUESSED_TOKENS_CELL) // in the current step

typedef struct {
  uint8_t unused[AT_LLAMA_BATCH_EXT_TOKENS];
  uint8_t *tokens, *tokens_end; // BYTES_OF_TOKEN each
} llama_batch;

enum { BYTES_OF_TOKEN = 80 };

extern void original_update_slots(server_context *server);
extern int32_t original_process(llama_context *context, int32_t type, const llama_batch *batch);

// server_context_impl::update_slots(), one step of all slots. The worker's script can fetch a result only together with a step;
// while it sets HOLD_STEP, it gets available results without a step.
void kernel_update_slots(server_context *server) {
  if (HOLD_STEP) return;
  SERVER = server;
  GUESSED_TOKENS = 0;
  SUMS_OF_ONE_TOKEN = 0;
  CLOCK_IS_HELD = 0; // even if an exception has left a sampler
  llama_context *context = server->context;
  const int32_t asked = *STEP_TOKENS, most = context->micro_batch;
  if (asked > 0) context->batch = asked < most ? asked : most;
  *LEFT_TOKENS = 0;
  if (STORE_LIMIT > 0) begin_step(server);
  note_who_runs(server);
  original_update_slots(server);
  IDLE_SLOTS = 0;
}

// True if the step is to be aborted; the first thread checks it before each node.
INLINE int is_step_left(void) { return __atomic_load_n(LEAVE_STEP, __ATOMIC_RELAXED) != 0; }

// Makes all threads leave the graph after node `number`, like llama.cpp's own abort callback.
INLINE void leave_step(threadpool *pool, int32_t number) {
  enum { ABORTED = 1 };
  __atomic_store_n(&pool->left_at, number + 1, __ATOMIC_SEQ_CST);
  pool->status = ABORTED;
}

// llama_process, which decodes a batch. llama.cpp returns 2 for an aborted graph; its server would treat that as a full cache
// and try half of the batch.
int32_t kernel_process(llama_context *context, int32_t type, const llama_batch *batch) {
  enum { DONE = 0, LEFT = 2, FAILED = -3 };
  const int64_t tokens = (batch->tokens_end - batch->tokens) / BYTES_OF_TOKEN;
  const double begin = now_ms();
  int32_t result = original_process(context, type, batch);
  if (result == DONE && SERVER && context == SERVER->context) learn_step(tokens, GUESSED_TOKENS, (float)(now_ms() - begin));
  // A step of a draft model must not be aborted: the model's own step is complete.
  while (result == LEFT && SERVER && context != SERVER->context) {
    __atomic_store_n(LEAVE_STEP, 0, __ATOMIC_RELAXED);
    result = original_process(context, type, batch);
  }
  if (result != LEFT) return result;
  const uint64_t memory_class = context->memory ? *context->memory : 0;
  if (is_kv_cache(memory_class)) *LEFT_TOKENS = (int32_t)tokens;
  return FAILED;
}

// server_slot::prompt_clear(), which clears a slot's cache. The script aborts a step only while one slot is in use, so the
// batch has only tokens of that slot; llama.cpp has removed them from the cache.
void kernel_prompt_clear(server_slot *slot) {
  const int64_t left = *LEFT_TOKENS;
  *LEFT_TOKENS = 0;
  if (is_emptied_for_room(slot)) keep_slot(slot);
  // Positions of media are not those of their tokens.
  if (left == 0 || slot->prompt.media > 0 || length_of(&slot->prompt) < left) original_prompt_clear(slot);
  else slot->prompt.list.end -= left;
}
