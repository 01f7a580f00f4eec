// Guesses of a draft model: a small one that has the same tokens and says much of what the model would say.
//
// llama.cpp's server has it read whatever the model reads, whether it is asked for guesses or not, and again what it has
// guessed itself. Here it reads prompts along with the model, and apart from that only what it lacks when it is asked.
//
// Models that agree, or do not, do so in the next request as well. So a draft model that was a help goes on with as long guesses,
// and one that was none rests on beyond the end of a request, and reads no prompts then. When it may be asked again in the middle
// of a text, it has missed so much that reading it would cost more than what guesses may lose: it waits for the next prompt.
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

enum { MOST_LACKED = 512 }; // tokens: more would keep others waiting

extern int32_t original_draft_process(draft_model *draft, const cpp_vector *tokens);
extern void original_draft(draft_model *draft, const cpp_vector *wishes);
extern void batch_clear(void *batch);
extern int32_t batch_add(void *batch, int32_t token, int32_t position, int32_t slot, int32_t is_asked);
extern const llama_batch *batch_part(void *batch, int32_t tokens);
extern void remove_tokens(llama_context *context, int32_t slot, int32_t from, int32_t to);
extern int32_t last_position(const void *memory, int32_t slot);
extern int32_t last_position_iswa(const void *memory, int32_t slot);

// Tokens of a slot that the draft model has read; -1: its memory is none from which guesses can be taken back.
static int64_t tokens_read(const llama_context *context, int32_t slot) {
  if (!context->memory) return -1;
  if (*context->memory == ADDRESS_OF_KV_CACHE_CLASS) return last_position(context->memory, slot) + 1;
  if (*context->memory == ADDRESS_OF_KV_CACHE_ISWA_CLASS) return last_position_iswa(context->memory, slot) + 1;
  return -1;
}

// common_speculative_impl_draft_simple::process, for what the model has just read.
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

// What it costs the draft model to read so many tokens at once.
INLINE int64_t cost_of_reading(int64_t tokens) {
  return tokens > 0 ? cost_of_draft() * (100 + cost_of_token_alone() * (tokens - 1)) / 100 : 0;
}

// Has the draft model read a slot's text up to the last token, and nothing else, if that costs at most so much. 0: it does not.
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

// common_speculative_impl_draft_simple::draft, which guesses for all slots for which nothing was found by look-up.
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
    // What it lacks of a prompt belongs to the time until the first token.
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
    // Of one token more it was not sure.
    const int32_t steps = guessed < first[i].most ? guessed + 1 : guessed;
    known->spent += cost_of_draft() * steps;
    if (wanted == 1) learn_draft(steps, ms);
    GUESSED_TOKENS += guessed;
  }
}
