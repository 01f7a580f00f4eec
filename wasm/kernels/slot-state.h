// Saves and restores a slot: its tokens and their KV cache. The engine's script (src/engine/core/worker-verbs.ts) calls these
// functions between two steps, in this engine or in another one of the same model.
#pragma once
#include "slot-streams.h"

// Reasons why a slot cannot be saved or restored; src/engine/core/slots.ts has the same numbers.
enum { NO_SLOT = -1, BUSY = -2, HAS_MEDIA = -3, NOT_A_KV_CACHE = -4, DAMAGED = -5, NO_ROOM = -6 };

// A slot by its number, or 0.
INLINE server_slot *numbered_slot(int32_t number) {
  const server_context *server = *(server_context *const *)(uint64_t)ADDRESS_OF_SERVER;
  return server && number >= 0 && number < count_slots(server) ? slot_at(server, number) : 0;
}

// 0, or the reason why the slot can neither be saved nor restored.
INLINE int32_t refusal_of(server_slot *slot) {
  if (!slot) return NO_SLOT;
  if (slot->state != 0) return BUSY;
  const uint64_t memory_class = slot->context->memory ? *slot->context->memory : 0;
  return is_kv_cache(memory_class) && !slot->draft ? 0 : NOT_A_KV_CACHE;
}

// Tokens of a slot's prompt, also while it is busy.
int32_t daybreak_slot_tokens(int32_t number) {
  const server_slot *slot = numbered_slot(number);
  return slot ? (int32_t)(length_of(&slot->prompt)) : NO_SLOT;
}

int32_t daybreak_slot_is_busy(int32_t number) {
  server_slot *slot = numbered_slot(number);
  return slot && slot->state != 0;
}

// Reserves a slot for requests that name it. Returns whether another request still uses it.
int32_t daybreak_slot_reserve(int32_t number) {
  server_slot *slot = numbered_slot(number);
  if (!slot) return NO_SLOT;
  RESERVED_SLOTS |= 1ull << number;
  return slot->state != SLOT_IDLE;
}

int32_t daybreak_slot_release(int32_t number) {
  if (!numbered_slot(number)) return NO_SLOT;
  RESERVED_SLOTS &= ~(1ull << number);
  return 0;
}

// When a slot was used last, in microseconds of llama.cpp's clock; -1: never.
int64_t daybreak_slot_last_used(int32_t number) {
  server_slot *slot = numbered_slot(number);
  return slot ? slot->last_used : NO_SLOT;
}

// Size in bytes of an idle slot's state, or the reason why it cannot be saved.
int64_t daybreak_slot_size(int32_t number) {
  server_slot *slot = numbered_slot(number);
  const int32_t refusal = refusal_of(slot);
  if (refusal) return refusal;
  if (slot->prompt.media > 0) return HAS_MEDIA;
  return written_size(slot->context, number);
}

// Number of streams of a context, from the size of an empty slot's state: the number of streams, and a count of cells for each.
INLINE uint32_t streams_of(llama_context *context, int32_t number) {
  const kv_cache *caches[2];
  const uint64_t words = (state_size(context, number, 0) - STATE_HEADER) / (uint64_t)caches_of(context, caches) / sizeof(uint32_t);
  return (uint32_t)words - 1;
}

// Writes an idle slot's tokens and its state, of the size that daybreak_slot_size returned. Returns the bytes of the state,
// which may be fewer; rejects a state that could not be restored.
int64_t daybreak_slot_save(int32_t number, int32_t *tokens, uint8_t *state, int64_t size) {
  server_slot *slot = numbered_slot(number);
  const int32_t refusal = refusal_of(slot);
  if (refusal) return refusal;
  llama_context *context = slot->context;
  const int64_t length = length_of(&slot->prompt);
  for (int64_t i = 0; i < length; i++) tokens[i] = slot->prompt.list.begin[i];
  if (length == 0) return 0;
  const int64_t written = write_state(context, state, size, number);
  const int64_t kept = without_streams(context, state, written, (uint32_t)length);
  return kept > 0 ? kept : DAMAGED;
}

// The scales of the adapters with which a slot's state was computed. Returns how many there are, at most `most`.
int32_t daybreak_slot_scales(int32_t number, float *scales, int32_t most) {
  server_slot *slot = numbered_slot(number);
  if (!slot) return NO_SLOT;
  const record_list *adapters = &FIELD(record_list, slot, AT_SERVER_SLOT_LORA);
  const int64_t count = count_adapters(adapters) < most ? count_adapters(adapters) : most;
  for (int64_t i = 0; i < count; i++) ((uint32_t *)scales)[i] = scale_at(adapters, i);
  return (int32_t)count;
}

// Clears an idle slot and gives it a scale for each loaded adapter, before a state is restored that was computed with them.
int32_t daybreak_slot_adapt(int32_t number, const float *scales, int32_t count) {
  server_slot *slot = numbered_slot(number);
  const int32_t refusal = refusal_of(slot);
  if (refusal) return refusal;
  server_context *server = *(server_context **)(uint64_t)ADDRESS_OF_SERVER;
  if (count != count_adapters(&LOADED_ADAPTERS(server))) return DAMAGED;
  original_prompt_clear(slot);
  const record_list *adapters = list_adapters(server, slot);
  for (int32_t i = 0; i < count; i++)
    FIELD(uint32_t, adapters->begin, i * BYTES_OF_ADAPTER + SCALE_IN_ADAPTER) = ((const uint32_t *)scales)[i];
  return 0;
}

// Restores tokens and their state into an idle slot; SPARE_BYTES after the state are writable (worker-verbs.ts). After a
// failure the slot is empty. The caller has checked that the tokens are in the vocabulary.
int32_t daybreak_slot_restore(int32_t number, const int32_t *tokens, int32_t length, uint8_t *state, int64_t size) {
  server_slot *slot = numbered_slot(number);
  const int32_t refusal = refusal_of(slot);
  if (refusal) return refusal;
  if (length <= 0 || length > slot->context_size) return NO_ROOM;
  original_prompt_clear(slot);
  const uint32_t streams = streams_of(slot->context, number);
  if (streams == 0 || streams > MOST_STREAMS) return NOT_A_KV_CACHE;
  const int64_t whole = with_streams(slot->context, state, size, (uint32_t)length, streams);
  if (whole == 0) return DAMAGED;
  if (set_state(slot->context, state, (uint64_t)whole, number, 0) != (uint64_t)whole) {
    original_prompt_clear(slot);
    return NO_ROOM;
  }
  add_tokens(slot, tokens, length);
  if (slot->last_used < 0) slot->last_used = 0; // slots that were never used are taken first
  return 0;
}

// Clears an idle slot. Returns how many tokens it had.
int32_t daybreak_slot_erase(int32_t number) {
  server_slot *slot = numbered_slot(number);
  if (!slot) return NO_SLOT;
  if (slot->state != 0) return BUSY;
  const int32_t length = (int32_t)(length_of(&slot->prompt));
  original_prompt_clear(slot);
  return length;
}
