// Prompt cache: prompts that are no longer in a slot, each with its tokens and their KV cache, in memory that the script
// limits (src/engine/core/kernel-controls.ts). Ordered by last use; the last one is evicted first.
#pragma once
#include "server.h"

#define STORE_LIMIT (*(int64_t *)PROMPT_STORE_BYTES_CELL) // 0: no prompts are cached, and llama.cpp's own code runs
#define STORE_USED (*(int64_t *)PROMPT_STORE_USED_CELL)
#define STORE_FIRST (*(stored_prompt **)PROMPT_STORE_FIRST_CELL)

enum { LEAST_KEPT = 16 }; // tokens: fewer are evaluated as quickly as they are found

typedef struct stored_prompt {
  struct stored_prompt *next;
  uint64_t adapters; // with which it was computed
  int64_t bytes;     // of all this
  int64_t state_bytes;
  server_tokens tokens; // within this block, the state behind them
} stored_prompt;

extern void *try_to_allocate(uint64_t bytes);
extern void free_memory(void *memory);
extern void push_token(void *tokens, int32_t token);
extern uint64_t state_size(llama_context *context, int32_t sequence, int32_t flags);
extern uint64_t get_state(llama_context *context, uint8_t *to, uint64_t bytes, int32_t sequence, int32_t flags);
extern uint64_t set_state(llama_context *context, const uint8_t *from, uint64_t bytes, int32_t sequence, int32_t flags);

INLINE uint8_t *state_of(stored_prompt *prompt) { return (uint8_t *)prompt + prompt->bytes - prompt->state_bytes; }

// Removes a prompt from the list; `link` points to it.
static stored_prompt *unlink_prompt(stored_prompt **link) {
  stored_prompt *prompt = *link;
  *link = prompt->next;
  return prompt;
}

static void use_prompt(stored_prompt **link) {
  stored_prompt *prompt = unlink_prompt(link);
  prompt->next = STORE_FIRST;
  STORE_FIRST = prompt;
}

static void drop_prompt(stored_prompt **link) {
  stored_prompt *prompt = unlink_prompt(link);
  STORE_USED -= prompt->bytes;
  free_memory(prompt);
}

// Drops the least recently used prompts until so many bytes are free.
static void make_room(int64_t bytes) {
  while (STORE_FIRST && STORE_USED + bytes > STORE_LIMIT) {
    stored_prompt **last = &STORE_FIRST;
    while ((*last)->next) last = &(*last)->next;
    drop_prompt(last);
  }
}

// Finds the prompt with the longest common prefix, whose length is stored in *shared.
NOINLINE stored_prompt *find_prompt(const server_tokens *tokens, uint64_t adapters, int64_t *shared) {
  stored_prompt *best = 0;
  *shared = 0;
  for (stored_prompt *each = STORE_FIRST; each; each = each->next) {
    const int64_t same = each->adapters == adapters ? common_beginning(&each->tokens, tokens) : 0;
    if (same > *shared) best = each, *shared = same;
  }
  return best;
}

// Caches the prompt of a slot. Returns 0 if that is not worth it or memory is short.
NOINLINE stored_prompt *keep_prompt(server_slot *slot, uint64_t adapters) {
  const int64_t count = length_of(&slot->prompt);
  if (count < LEAST_KEPT || slot->prompt.media > 0) return 0;
  for (stored_prompt **link = &STORE_FIRST; *link;) {
    stored_prompt *each = *link;
    const int64_t length = length_of(&each->tokens);
    const int64_t same = each->adapters == adapters ? common_beginning(&each->tokens, &slot->prompt) : 0;
    if (same == count) {
      use_prompt(link);
      return each;
    }
    if (same == length) drop_prompt(link); // the new one contains it
    else link = &each->next;
  }
  llama_context *context = slot->context;
  const int64_t state_bytes = state_size(context, slot->id, 0);
  const int64_t bytes = sizeof(stored_prompt) + (count + 1) / 2 * 8 + state_bytes;
  if (state_bytes == 0 || bytes > STORE_LIMIT) return 0;
  make_room(bytes);
  stored_prompt *prompt = try_to_allocate(bytes);
  if (!prompt) return 0;
  prompt->adapters = adapters;
  prompt->bytes = bytes;
  prompt->state_bytes = state_bytes;
  int32_t *tokens = (int32_t *)(prompt + 1);
  prompt->tokens = (server_tokens){0, {tokens, tokens + count, tokens + count}};
  __builtin_memcpy(tokens, slot->prompt.list.begin, count * sizeof(int32_t));
  if ((int64_t)get_state(context, state_of(prompt), state_bytes, slot->id, 0) != state_bytes) {
    free_memory(prompt);
    return 0;
  }
  STORE_USED += bytes;
  prompt->next = STORE_FIRST;
  STORE_FIRST = prompt;
  return prompt;
}

// Adds the tokens of a prompt to a slot whose part of the KV cache is empty.
NOINLINE void add_tokens(server_slot *slot, const int32_t *tokens, int64_t count) {
  uint8_t *const list = (uint8_t *)slot + AT_SERVER_SLOT_PROMPT_TOKENS_TOKENS - AT_SERVER_TOKENS_TOKENS;
  for (int64_t i = 0; i < count; i++) push_token(list, tokens[i]);
}
