// Draft tokens of a draft model: a small one with the same vocabulary that often generates the same tokens.
//
// llama.cpp's server evaluates the draft model on all tokens that the model evaluates, even if no drafts are requested, and
// again on its own drafts. Here it evaluates prompts together with the model, and other tokens only before it drafts.
//
// Agreement of two models rarely changes between requests. So a useful draft model starts the next request with drafts of the
// same length, and a useless one stays paused beyond the end of a request, and does not evaluate prompts meanwhile. If its
// pause ends in the middle of a text, evaluating the missed tokens would cost more than drafts may lose: it waits for the next
// prompt.
#pragma once
#include "speculation.h"

// llama.cpp's common_speculative_impl_draft_simple.
typedef struct {
  uint8_t unused_a[AT_COMMON_SPECULATIVE_IMPL_DRAFT_SIMPLE_PARAMS_CTX_DFT];
  llama_context *context;
  uint8_t unused_b[AT_COMMON_SPECULATIVE_IMPL_DRAFT_SIMPLE_BATCH - AT_COMMON_SPECULATIVE_IMPL_DRAFT_SIMPLE_PARAMS_CTX_DFT - 8];
  uint8_t batch[8];
} draft_model;

// A token of a batch.
typedef struct {
  int32_t id; // -1: a part of an image or of sound
  int32_t position;
  uint8_t unused_a[12];
  int32_t slot;
  uint8_t unused_b[BYTES_OF_TOKEN - 24];
} batch_token;

_Static_assert(sizeof(batch_token) == BYTES_OF_TOKEN, "common_batch's tokens");

enum { MOST_LACKED = 512 }; // tokens: evaluating more would delay other requests

extern int32_t original_draft_process(draft_model *draft, const cpp_vector *tokens);
extern void original_draft(draft_model *draft, const cpp_vector *wishes);
extern void batch_clear(void *batch);
extern int32_t batch_add(void *batch, int32_t token, int32_t position, int32_t slot, int32_t is_asked);
extern const llama_batch *batch_part(void *batch, int32_t tokens);
extern void remove_tokens(llama_context *context, int32_t slot, int32_t from, int32_t to);
extern int32_t last_position(const void *memory, int32_t slot);
extern int32_t last_position_iswa(const void *memory, int32_t slot);

// Number of a slot's tokens that the draft model has evaluated; -1: drafts cannot be removed from its memory.
static int64_t tokens_read(const llama_context *context, int32_t slot) {
  if (!context->memory) return -1;
  if (*context->memory == ADDRESS_OF_KV_CACHE_CLASS) return last_position(context->memory, slot) + 1;
  if (*context->memory == ADDRESS_OF_KV_CACHE_ISWA_CLASS) return last_position_iswa(context->memory, slot) + 1;
  return -1;
}

// common_speculative_impl_draft_simple::process, for the tokens that the model has just evaluated.
int32_t kernel_draft_process(draft_model *draft, const cpp_vector *tokens) {
  enum { DONE = 1 };
  const batch_token *first = tokens->begin, *end = tokens->end;
  if (first == end) return DONE;
  const server_slot *slot = slot_at(SERVER, first->slot);
  if (!slot->task || slot->task->most_guessed == 0 || slot->state == SLOT_GENERATES) return DONE;
  if (record_of(count_slots(SERVER), first->slot, BY_DRAFT)->rest > 0) return DONE;
  for (const batch_token *one = first; one != end; one++)
    if (one->id < 0 || one->slot != first->slot) return DONE;
  return tokens_read(draft->context, first->slot) == first->position ? original_draft_process(draft, tokens) : DONE;
}

// Cost of evaluating so many tokens at once in the draft model.
INLINE int64_t cost_of_reading(int64_t tokens) {
  return tokens > 0 ? cost_of_draft() * (100 + cost_of_token_alone() * (tokens - 1)) / 100 : 0;
}

// Evaluates a slot's text up to the last token in the draft model, and removes other tokens, if that costs at most
// `most_spent`. Returns 0 if not.
static int catch_up(draft_model *draft, const guess_wish *wish, int32_t slot, int64_t most_spent) {
  enum { TYPE_OF_PROCESS = 1 };
  const int64_t length = text_length(wish);
  int64_t at = tokens_read(draft->context, slot);
  if (at < 0 || length != wish->past || length - at > MOST_LACKED || cost_of_reading(length - at) > most_spent) return 0;
  if (at > length) remove_tokens(draft->context, slot, (int32_t)length, -1);
  while (at < length) {
    const int64_t to = length - at < draft->context->batch ? length : at + draft->context->batch;
    const int32_t count = (int32_t)(to - at);
    batch_clear(draft->batch);
    for (; at < to; at++) batch_add(draft->batch, ((const int32_t *)wish->text->begin)[at], (int32_t)at, slot, at + 1 == to);
    if (kernel_process(draft->context, TYPE_OF_PROCESS, batch_part(draft->batch, count)) != 0) return 0;
  }
  return 1;
}

// common_speculative_impl_draft_simple::draft, which drafts for all slots for which look-up found nothing.
void kernel_draft(draft_model *draft, const cpp_vector *wishes) {
  guess_wish *const first = wishes->begin;
  const int64_t slots = (guess_wish *)wishes->end - first;
  int64_t room = room_for_guesses(SERVER) - GUESSED_TOKENS;
  int32_t wanted = 0;
  for (int64_t i = 0; i < slots; i++) {
    guess_wish *wish = &first[i];
    if (!wish->is_wanted) continue;
    guess_record *known = record_of(slots, i, BY_DRAFT);
    const server_slot *slot = slot_at(SERVER, i);
    // Evaluating the rest of a prompt counts as time to the first token.
    const int is_begin = known->task != slot->task->id;
    int64_t limit = guess_limit(known, wish, slot, BY_DRAFT);
    if (limit > room) limit = room;
    const int64_t lacked = text_length(wish) - tokens_read(draft->context, (int32_t)i);
    wish->is_wanted = limit > 0 && catch_up(draft, wish, (int32_t)i, is_begin ? INT64_MAX : known->credit);
    if (!wish->is_wanted) continue;
    known->spent = is_begin ? 0 : (int32_t)cost_of_reading(lacked);
    wish->most = (int32_t)limit;
    room -= limit;
    wanted++;
  }
  if (wanted == 0) return;
  const double begin = now_ms();
  original_draft(draft, wishes);
  const float ms = (float)(now_ms() - begin);
  for (int64_t i = 0; i < slots; i++) {
    const cpp_vector *guess = first[i].guess;
    if (!first[i].is_wanted) continue;
    guess_record *known = record_of(slots, i, BY_DRAFT);
    const int32_t guessed = (int32_t)((int32_t *)guess->end - (int32_t *)guess->begin);
    known->guessed = guessed;
    // It evaluated one more token, of which it was not sure enough.
    const int32_t steps = guessed < first[i].most ? guessed + 1 : guessed;
    known->spent += cost_of_draft() * steps;
    if (wanted == 1) learn_draft(steps, ms);
    GUESSED_TOKENS += guessed;
  }
}
