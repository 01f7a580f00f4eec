// Chooses the slot of a request, and copies the longest prefix of its prompt from any slot or the prompt cache into it.
// llama.cpp's server then removes tokens after the common prefix from the slot, as usual.
#pragma once
#include "prompt-store.h"

#define SLOTS_SHARE_CONTEXT (*(uint8_t *)SHARED_CONTEXT_CELL)
// Bits of the reserved slots: only requests that name such a slot get it.
#define RESERVED_SLOTS (*(uint64_t *)RESERVED_SLOTS_CELL)

enum {
  LEAST_GAIN = 8, // tokens from which copying a prompt is worth it
  TEMPLATE_TOKENS = 8, // tokens that a template may append to a chat to begin an answer, but omit from its history
};

// Contexts of a model and its draft model; here only the first is set.
typedef struct { llama_context *context, *draft; } common_memory;

extern void original_prompt_clear(server_slot *slot);
extern void copy_sequence(const common_memory *memory, int32_t from, int32_t to);

// Hash of the scales of all LoRA adapters: a KV cache that was computed with other scales cannot be reused.
#define NO_ADAPTERS 14695981039346656037ull
INLINE uint64_t mix(uint64_t hash, uint32_t bits) { return (hash ^ bits) * 1099511628211u; }

INLINE int64_t count_adapters(const record_list *adapters) {
  return (adapters->end - adapters->begin) / BYTES_OF_ADAPTER;
}

INLINE uint32_t scale_at(const record_list *adapters, int64_t index) {
  return FIELD(uint32_t, adapters->begin, index * BYTES_OF_ADAPTER + SCALE_IN_ADAPTER);
}

NOINLINE uint64_t adapters_of(const record_list *adapters) {
  uint64_t hash = NO_ADAPTERS;
  for (int64_t i = 0; i < count_adapters(adapters); i++) hash = mix(hash, scale_at(adapters, i));
  return hash;
}

#define LOADED_ADAPTERS(server) FIELD(record_list, server, AT_SERVER_CONTEXT_IMPL_LORA_ADAPTERS)
#define ADAPTERS_OF_SLOT(slot) adapters_of(&FIELD(record_list, slot, AT_SERVER_SLOT_LORA))

// A node of a std::map from an adapter's number to its scale.
typedef struct scale_node {
  struct scale_node *left, *right, *parent;
  uint8_t is_black;
  int32_t adapter;
  uint32_t scale;
} scale_node;

// Scale of an adapter in a task: 0 for adapters that it does not name; the loaded scale if it names none.
static uint32_t scale_of_task(server_context *server, server_task *task, int64_t index) {
  const scale_node *node = FIELD(scale_node *, task, AT_SERVER_TASK_PARAMS_LORA);
  if (!node) return scale_at(&LOADED_ADAPTERS(server), index);
  while (node && node->adapter != index) node = index < node->adapter ? node->left : node->right;
  return node ? node->scale : 0;
}

NOINLINE uint64_t adapters_of_task(server_context *server, server_task *task) {
  uint64_t hash = NO_ADAPTERS;
  for (int64_t i = 0; i < count_adapters(&LOADED_ADAPTERS(server)); i++) hash = mix(hash, scale_of_task(server, task, i));
  return hash;
}

// Gives an idle slot a list with a scale for each loaded adapter. A slot that has not answered yet has no list. Only addresses
// and scales matter, so the names stay empty.
static record_list *list_adapters(server_context *server, server_slot *slot) {
  enum { ADAPTER_IN_RECORD = 80 };
  record_list *own = &FIELD(record_list, slot, AT_SERVER_SLOT_LORA);
  const record_list *loaded = &LOADED_ADAPTERS(server);
  const int64_t bytes = loaded->end - loaded->begin;
  if (own->begin != own->end || bytes == 0) return own;
  own->begin = allocate_memory(bytes);
  own->end = own->limit = own->begin + bytes;
  __builtin_memset(own->begin, 0, bytes);
  for (int64_t at = ADAPTER_IN_RECORD; at < bytes; at += BYTES_OF_ADAPTER)
    FIELD(uint64_t, own->begin, at) = FIELD(uint64_t, loaded->begin, at);
  return own;
}

// Gives an idle slot the scales of a task. llama.cpp does it later, but clears the slot's prompt if the scales change.
static void set_adapters(server_context *server, server_slot *slot, server_task *task) {
  const record_list *adapters = list_adapters(server, slot);
  for (int64_t i = 0; i < count_adapters(adapters); i++)
    FIELD(uint32_t, adapters->begin, i * BYTES_OF_ADAPTER + SCALE_IN_ADAPTER) = scale_of_task(server, task, i);
}

// True if a request that names no slot may use this one.
INLINE int is_open(const server_slot *slot) { return slot->state == SLOT_IDLE && !(RESERVED_SLOTS >> slot->id & 1); }

// Caches the prompt that a slot is about to lose, unless it was not for an answer; a slot without a task was restored.
NOINLINE void keep_slot(server_slot *slot) {
  const server_task *last = slot->last_task;
  if (!last || TYPE_OF_TASK(last) == TASK_COMPLETION) keep_prompt(slot, ADAPTERS_OF_SLOT(slot));
}

// Clears an idle slot with tokens, if slots share the context.
static int empty_one(server_context *server, const server_slot *except) {
  if (!SLOTS_SHARE_CONTEXT) return 0;
  for (int64_t i = 0; i < count_slots(server); i++) {
    server_slot *slot = slot_at(server, i);
    if (slot == except || slot->state != SLOT_IDLE || length_of(&slot->prompt) == 0) continue;
    keep_slot(slot);
    original_prompt_clear(slot);
    return 1;
  }
  return 0;
}

// Longest prefix of a prompt in the prompt cache and in busy slots.
NOINLINE int64_t shared_elsewhere(server_context *server, const server_tokens *tokens, uint64_t adapters) {
  int64_t most;
  find_prompt(tokens, adapters, &most);
  for (int64_t i = 0; i < count_slots(server); i++) {
    server_slot *slot = slot_at(server, i);
    if (slot->state == SLOT_IDLE || ADAPTERS_OF_SLOT(slot) != adapters) continue;
    const int64_t same = common_beginning(&slot->prompt, tokens);
    if (same > most) most = same;
  }
  return most;
}

// True if a slot loses more than its last answer, which the chat's next turn may have in other tokens or not at all.
static int loses_chat(server_slot *slot, int64_t kept) {
  server_task *last = slot->last_task;
  const int64_t asked = length_of(last ? &TOKENS_OF_TASK(last) : &slot->prompt);
  return length_of(&slot->prompt) - kept >= LEAST_KEPT && kept + TEMPLATE_TOKENS < asked;
}

// Chooses the idle slot for a prompt, and caches what it loses: the slot with the longest prefix, or else an empty one or the
// least recently used one. Returns 0 if none is available.
static server_slot *choose_slot(server_context *server, const server_tokens *tokens, uint64_t adapters, int is_reused) {
  server_slot *own = 0, *empty = 0, *oldest = 0;
  int64_t most = 0;
  for (int64_t i = 0; i < count_slots(server); i++) {
    server_slot *slot = slot_at(server, i);
    if (!is_open(slot)) continue;
    const int64_t length = length_of(&slot->prompt);
    if (length == 0 && !empty) empty = slot;
    if (!oldest || slot->last_used < oldest->last_used) oldest = slot;
    const int64_t same = ADAPTERS_OF_SLOT(slot) == adapters ? common_beginning(&slot->prompt, tokens) : 0;
    if (same > most || (own && same == most && length < length_of(&own->prompt))) own = slot, most = same;
  }
  if (is_reused && most >= LEAST_GAIN && most + LEAST_GAIN > shared_elsewhere(server, tokens, adapters)) {
    if (!loses_chat(own, most)) return own;
    if (SLOTS_SHARE_CONTEXT && empty) return empty;
    keep_slot(own);
    return own;
  }
  server_slot *chosen = empty ? empty : oldest;
  if (chosen) keep_slot(chosen);
  return chosen;
}

// Returns the idle slot that a request names, and caches what it loses.
static server_slot *asked_slot(server_context *server, int32_t id, const server_tokens *tokens, uint64_t adapters,
                               int is_reused) {
  server_slot *slot = slot_at(server, id);
  const int64_t same = is_reused && ADAPTERS_OF_SLOT(slot) == adapters ? common_beginning(&slot->prompt, tokens) : 0;
  if (loses_chat(slot, same)) keep_slot(slot);
  return slot;
}

// Copies the prefix of a prompt from the prompt cache or another slot into a slot, if it is longer than the slot's own.
NOINLINE void fetch_prompt(server_context *server, server_slot *slot, const server_tokens *tokens, uint64_t adapters) {
  int64_t shared;
  stored_prompt *stored = find_prompt(tokens, adapters, &shared);
  server_slot *source = 0;
  for (int64_t i = 0; i < count_slots(server); i++) {
    server_slot *other = slot_at(server, i);
    if (other == slot || ADAPTERS_OF_SLOT(other) != adapters) continue;
    const int64_t same = common_beginning(&other->prompt, tokens);
    if (same > shared) source = other, shared = same;
  }
  const int64_t own = ADAPTERS_OF_SLOT(slot) == adapters ? common_beginning(&slot->prompt, tokens) : 0;
  if (shared < own + LEAST_GAIN) return;
  if (source && SLOTS_SHARE_CONTEXT) {
    original_prompt_clear(slot);
    add_tokens(slot, source->prompt.list.begin, length_of(&source->prompt));
    const common_memory memory = {server->context, 0};
    copy_sequence(&memory, source->id, slot->id);
    return;
  }
  if (source && !keep_prompt(source, adapters)) return;
  original_prompt_clear(slot);
  for (;;) {
    stored = find_prompt(tokens, adapters, &shared); // again, because caching may have evicted it
    if (!stored || shared < LEAST_GAIN) return;
    if (set_state(server->context, state_of(stored), stored->state_bytes, slot->id, 0)) break;
    if (!empty_one(server, slot)) return;
  }
  add_tokens(slot, stored->tokens.list.begin, length_of(&stored->tokens));
}
