// Answers that begin with forced tokens, because another engine generated them: the sampler chooses as usual, so that its
// counts and random numbers are in the right state, and its choice is then replaced by the forced token. The tokens are
// passed as drafts (speculation.h), so that many are evaluated in one step, like a prompt.
//
// The engine's script adds the lists of tokens (src/engine/core/answer-numbers.ts) and reads chosen ones (loop-request.ts).
#pragma once
#include "server.h"

#define FIRST_GIVEN (*(given_tokens **)GIVEN_TOKENS_CELL)
#define CHOSEN_TOKENS (*(chosen_token **)CHOSEN_TOKENS_CELL)
#define CHOSEN_COUNT (*(uint32_t *)CHOSEN_COUNT_CELL)

// Allocated and freed by the script.
typedef struct given_tokens {
  struct given_tokens *next;
  int32_t number; // of the request
  int32_t count;
  int32_t at;         // number of tokens that have been emitted
  int32_t one_by_one; // 1: without drafts, because llama.cpp has no log-probabilities for them
  int32_t tokens[];
} given_tokens;

typedef struct {
  int32_t number; // of the request
  int32_t token;  // inverted if the model would have chosen another one
} chosen_token;

// More than the tokens of a step, after which the script reads them: 64 slots with 64 draft tokens and one more each.
enum { MOST_CHOSEN = 8192 };

#define SAMPLER_OF_SLOT(slot) FIELD(void *, slot, AT_SERVER_SLOT_SMPL)

extern int32_t original_sampler_sample(void *sampler, llama_context *context, int32_t place, int32_t grammar_first);

// The forced tokens of a request that are not emitted yet, or 0.
static given_tokens *given_to(const server_task *task) {
  if (!task || task->number == 0) return 0;
  for (given_tokens *given = FIRST_GIVEN; given; given = given->next)
    if (given->number == task->number) return given->at < given->count ? given : 0;
  return 0;
}

// The request of this sampler, if the script reads its tokens; the draft model has other samplers.
static const server_task *task_of_sampler(const void *sampler) {
  enum { CAN_TAKE_BACK = 1 };
  const server_context *server = SERVER;
  for (int64_t i = 0; server && i < count_slots(server); i++) {
    server_slot *slot = slot_at(server, i);
    if (SAMPLER_OF_SLOT(slot) != sampler) continue;
    // If draft tokens cannot be removed from memory, llama.cpp samples tokens twice.
    const int is_counted = slot->task && slot->task->number > 0 && (!slot->draft || server->removal == CAN_TAKE_BACK);
    return is_counted ? slot->task : 0;
  }
  return 0;
}

// common_sampler_sample, which chooses the next token of an answer, or checks a draft token.
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
