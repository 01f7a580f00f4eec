// Reuses prompts: a request starts with the longest prefix of its prompt in any slot or in the prompt cache, and waits for a
// slot that is still evaluating the same prefix.
#pragma once
#include "slot-prompts.h"

// Bits of the slots that were idle when the step began; 0 between steps.
#define IDLE_SLOTS (*(uint64_t *)IDLE_SLOTS_CELL)

enum { LEAST_AWAITED = 16 }; // tokens: fewer are evaluated as quickly as they are awaited

extern int32_t original_tokenize_input(server_context *server, server_task *task);
extern int32_t original_process_single_task(server_context *server, server_task *task, int32_t is_yielding);

// True if a request may reuse prefixes of other requests.
INLINE int is_reused(const server_task *task) { return TYPE_OF_TASK(task) == TASK_COMPLETION && REUSES_PROMPT(task); }

// True if an earlier slot is evaluating a longer prefix of this slot's prompt than this slot has.
static int is_awaiting(server_context *server, server_slot *slot) {
  const server_tokens *tokens = &TOKENS_OF_TASK(slot->task);
  const uint64_t adapters = ADAPTERS_OF_SLOT(slot);
  const int64_t own = common_beginning(&slot->prompt, tokens);
  for (int64_t i = 0; i < count_slots(server); i++) {
    server_slot *other = slot_at(server, i);
    const int32_t state = other->state;
    if (state < SLOT_WAITS || state > SLOT_READS_PROMPT || other->task->id >= slot->task->id) continue;
    if (TYPE_OF_TASK(other->task) != TASK_COMPLETION || ADAPTERS_OF_SLOT(other) != adapters) continue;
    const int64_t shared = common_beginning(&TOKENS_OF_TASK(other->task), tokens);
    if (shared >= own + LEAST_AWAITED && common_beginning(&other->prompt, tokens) < shared) return 1;
  }
  return 0;
}

// Sets the slot that a request names where llama.cpp reads it, because only llama.cpp's HTTP server sets it. The daemon waits
// until the slot is idle (src/inference/engine-queues.ts): llama.cpp would defer a request for a busy one forever.
INLINE void name_slot(const server_context *server, server_task *task) {
  const int32_t slot = task->asked_slot - 1;
  if ((uint32_t)TYPE_OF_TASK(task) > LAST_TASK_WITH_SLOT || slot < 0 || slot >= count_slots(server)) return;
  if (slot_at(server, slot)->state == SLOT_IDLE) SLOT_OF_TASK(task) = slot;
}

// Prevents llama.cpp, which chooses a slot if our kernels do not, from choosing a reserved one.
static void avoid_reserved(server_context *server, server_task *task) {
  if (RESERVED_SLOTS == 0 || (uint32_t)TYPE_OF_TASK(task) > LAST_TASK_WITH_SLOT || SLOT_OF_TASK(task) != -1) return;
  server_slot *oldest = 0;
  for (int64_t i = 0; i < count_slots(server); i++) {
    server_slot *slot = slot_at(server, i);
    if (is_open(slot) && (!oldest || slot->last_used < oldest->last_used)) oldest = slot;
  }
  if (oldest) SLOT_OF_TASK(task) = oldest->id;
}

// Chooses the slot of a request, and copies the longest known prefix of the prompt into it.
static void prepare_slot(server_context *server, server_task *task) {
  const uint64_t *memory = server->context->memory;
  const server_tokens *tokens = &TOKENS_OF_TASK(task);
  if ((uint32_t)TYPE_OF_TASK(task) > LAST_TASK_WITH_SLOT || tokens->media > 0) return;
  if (!memory || !is_kv_cache(*memory) || slot_at(server, 0)->draft) return;
  const uint64_t adapters = adapters_of_task(server, task);
  const int32_t asked = SLOT_OF_TASK(task);
  server_slot *slot = asked == -1 ? choose_slot(server, tokens, adapters, is_reused(task))
                                  : asked_slot(server, asked, tokens, adapters, is_reused(task));
  if (!slot) return; // all are busy: llama.cpp tries again later
  SLOT_OF_TASK(task) = slot->id;
  if (ADAPTERS_OF_SLOT(slot) != adapters) {
    original_prompt_clear(slot);
    set_adapters(server, slot, task);
  }
  if (is_reused(task)) fetch_prompt(server, slot, tokens, adapters);
}

// server_context_impl::tokenize_cli_input(), with which llama.cpp begins a request whose prompt is a text.
int32_t kernel_tokenize_input(server_context *server, server_task *task) {
  const int32_t result = original_tokenize_input(server, task);
  if (!result) return result;
  name_slot(server, task);
  if (STORE_LIMIT > 0) prepare_slot(server, task);
  avoid_reserved(server, task);
  return result;
}

// server_context_impl::process_single_task(), which gives a request a slot.
int32_t kernel_process_single_task(server_context *server, server_task *task, int32_t is_yielding) {
  name_slot(server, task);
  if (STORE_LIMIT > 0 && !is_yielding && !IS_TEXT_OF_TASK(task)) prepare_slot(server, task);
  if (!IS_TEXT_OF_TASK(task)) avoid_reserved(server, task);
  if (STORE_LIMIT == 0 || is_yielding) return original_process_single_task(server, task, is_yielding);
  const int32_t id = task->id;
  const int32_t result = original_process_single_task(server, task, is_yielding);
  for (int64_t i = 0; i < count_slots(server); i++) {
    server_slot *slot = slot_at(server, i);
    if (slot->state != SLOT_STARTED || slot->task->id != id) continue;
    if (is_reused(slot->task) && is_awaiting(server, slot)) slot->state = SLOT_WAITS;
  }
  return result;
}

// Called before a step: starts slots that have waited long enough. Slots that llama.cpp lets wait are children of a request.
static void begin_step(server_context *server) {
  uint64_t idle = 0;
  for (int64_t i = 0; i < count_slots(server); i++) {
    server_slot *slot = slot_at(server, i);
    if (slot->state == SLOT_IDLE) idle |= 1ull << i;
    if (slot->state != SLOT_WAITS || PARENT_OF_TASK(slot->task) != -1 || is_awaiting(server, slot)) continue;
    fetch_prompt(server, slot, &TOKENS_OF_TASK(slot->task), ADAPTERS_OF_SLOT(slot));
    slot->state = SLOT_STARTED;
  }
  IDLE_SLOTS = idle;
}

// True if llama.cpp clears an idle slot because the context is full; it clears others because they failed.
INLINE int is_emptied_for_room(const server_slot *slot) { return IDLE_SLOTS >> slot->id & 1; }
