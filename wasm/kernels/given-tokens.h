// Answers that begin with tokens they are given, because they were begun by another engine: the sampler chooses as always, so
// that whatever it counts or draws is in the state that it would be in, and its choice is then replaced by the token that is
// given. The tokens are guessed (speculation.h), so that they are read like a prompt, many in a step.
//
// The engine's script gives tokens (src/engine/core/answer-numbers.ts), and takes those that answers have (loop-request.ts there).
#pragma once
#include "server.h"

#define FIRST_GIVEN (*(given_tokens **)GIVEN_TOKENS_CELL)
#define CHOSEN_TOKENS (*(chosen_token **)CHOSEN_TOKENS_CELL)
#define CHOSEN_COUNT (*(uint32_t *)CHOSEN_COUNT_CELL)

// Made by the script, which also takes it away.
typedef struct given_tokens {
  struct given_tokens *next;
  int32_t number; // of the request
  int32_t count;
  int32_t at;         // how many have been said
  int32_t one_by_one; // llama.cpp has no log-probabilities of tokens that were guessed
  int32_t tokens[];
} given_tokens;

typedef struct {
  int32_t number; // of the request
  int32_t token;  // its bits are turned over where the model would have chosen another one
} chosen_token;

// More than slots say in a step, after which the script reads them: 64 slots, 64 guesses and a token each.
enum { MOST_CHOSEN = 8192 };

#define SAMPLER_OF_SLOT(slot) FIELD(void *, slot, AT_SERVER_SLOT_SMPL)

extern int32_t original_sampler_sample(void *sampler, llama_context *context, int32_t place, int32_t grammar_first);

// What a request has been given and has not said yet, or 0.
static given_tokens *given_to(const server_task *task) {
  if (!task || task->number == 0) return 0;
  for (given_tokens *given = FIRST_GIVEN; given; given = given->next)
    if (given->number == task->number) return given->at < given->count ? given : 0;
  return 0;
}

// The request whose sampler this is, if the script asks for its tokens; the draft model has samplers of its own.
static const server_task *task_of_sampler(const void *sampler) {
  enum { CAN_TAKE_BACK = 1 };
  const server_context *server = SERVER;
  for (int64_t i = 0; server && i < count_slots(server); i++) {
    server_slot *slot = slot_at(server, i);
    if (SAMPLER_OF_SLOT(slot) != sampler) continue;
    // Where guesses of a draft model cannot be taken back, llama.cpp has tokens chosen twice.
    const int is_counted = slot->task && slot->task->number > 0 && (!slot->draft || server->removal == CAN_TAKE_BACK);
    return is_counted ? slot->task : 0;
  }
  return 0;
}

// common_sampler_sample, which chooses the next token of an answer, or checks one that was guessed.
int32_t kernel_sampler_sample(void *sampler, llama_context *context, int32_t place, int32_t grammar_first) {
  const int32_t chosen = original_sampler_sample(sampler, context, place, grammar_first);
  const server_task *task = task_of_sampler(sampler);
  if (!task) return chosen;
  given_tokens *given = given_to(task);
  const int32_t token = given ? given->tokens[given->at++] : chosen;
  if (!CHOSEN_TOKENS) CHOSEN_TOKENS = allocate_memory(MOST_CHOSEN * sizeof(chosen_token));
  CHOSEN_TOKENS[CHOSEN_COUNT++ % MOST_CHOSEN] = (chosen_token){task->number, token == chosen ? token : ~token};
  return token;
}
