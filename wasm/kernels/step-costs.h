// What steps cost, which is measured while one request generates alone. How much longer a step of several tokens takes than one of
// a single token differs with processor, GPU, threads and model: a mixture of experts reads more weights for each, a dot product
// of bytes makes one nearly free.
//
// What disturbs a step, as other programs do, only makes it longer. So a figure follows quick steps soon and slow ones late, and a
// step counts as at most twice as slow and at least half as slow as is known: the figures are those of steps that were not disturbed.
#pragma once
#include "server.h"
#include "step-sums.h"

extern double now_ms(void);

typedef struct {
  float plain;          // a step of one token, in ms
  float token;          // each further one, in hundredths of that; 0: not known
  int32_t plain_steps;  // that have been measured, up to FIRST_STEPS
  int32_t guess_steps;  // since the last one of those
  int32_t is_alone;     // one slot generates, and all others are idle
  uint8_t seen[8];      // steps of so many guessed tokens, by the logarithm of that, up to COLD_STEPS
} step_costs;

#define COSTS ((step_costs *)STEP_COSTS_CELL)
#define IS_REHEARSAL (*(uint32_t *)GPU_REHEARSAL_CELL)
// A step of the draft model, in hundredths of a plain one. src/engine/core/draft-cost.ts tells it from the sizes of files.
#define COST_OF_DRAFT (*(float *)COST_OF_DRAFT_CELL)

// In hundredths of the step of one token.
enum {
  COST_OF_GUESS = 10,      // a step with guesses
  FIRST_COST_OF_TOKEN = 52, // and each of those, as far as is known: see scripts/bench/steps.ts
  LEAST_COST = 1,
  MOST_COST_OF_TOKEN = 200,
  MOST_COST_OF_DRAFT = 1000,
};

enum {
  FIRST_STEPS = 4,   // the quickest counts: what runs for the first time is compiled
  COLD_STEPS = 2,    // of each length, which do not count at all
  MOST_GUESSES = 64, // steps with guesses, then a plain one is measured again: it takes longer as a text grows
};

INLINE float between(float least, float value, float most) {
  return value < least ? least : value > most ? most : value;
}

INLINE float moved(float known, float seen) {
  return known + (between(known / 2, seen, known * 2) - known) * (seen < known ? 0.25f : 0.0625f);
}

INLINE int32_t cost_of_token(void) { return COSTS->token > 0 ? (int32_t)(COSTS->token + 0.5f) : FIRST_COST_OF_TOKEN; }
INLINE int32_t cost_of_draft(void) { return (int32_t)(COST_OF_DRAFT + 0.5f); }

// Whether the next step is to be of one token, so that it is known what that costs.
INLINE int is_plain_due(void) {
  return COSTS->is_alone && (COSTS->plain_steps < FIRST_STEPS || COSTS->guess_steps >= MOST_GUESSES);
}

INLINE void note_who_runs(const server_context *server) {
  int32_t generating = 0, others = 0;
  for (int64_t i = 0; i < count_slots(server); i++) {
    const int32_t state = slot_at(server, i)->state;
    generating += state == SLOT_GENERATES;
    others += state != SLOT_IDLE && state != SLOT_GENERATES;
  }
  // What is rehearsed for a GPU is not computed.
  COSTS->is_alone = generating == 1 && others == 0 && !IS_REHEARSAL;
}

// Whether steps like one with so many guesses have been made before.
INLINE int is_warm(int64_t guessed) {
  uint8_t *const seen = &COSTS->seen[63 - __builtin_clzll((uint64_t)guessed) & 7];
  return *seen >= COLD_STEPS || ++*seen > COLD_STEPS;
}

// Learns from a step of the model: so many tokens, all but one of them guessed.
static void learn_step(int64_t tokens, int64_t guessed, float ms) {
  if (!COSTS->is_alone || SUMS_OF_ONE_TOKEN || tokens != 1 + guessed || ms <= 0) return;
  const int is_first = COSTS->plain_steps < FIRST_STEPS;
  if (guessed > 0) {
    COSTS->guess_steps++;
    if (!is_warm(guessed) || is_first) return;
    const float known = COSTS->token > 0 ? COSTS->token : FIRST_COST_OF_TOKEN;
    const float cost = (100 * (ms / COSTS->plain - 1) - COST_OF_GUESS) / (float)guessed;
    COSTS->token = moved(known, between(LEAST_COST, cost, MOST_COST_OF_TOKEN));
    return;
  }
  COSTS->guess_steps = 0;
  if (!is_first) COSTS->plain = moved(COSTS->plain, ms);
  else if (COSTS->plain_steps++ == 0 || ms < COSTS->plain) COSTS->plain = ms;
}

// Learns from steps of the draft model.
static void learn_draft(int64_t steps, float ms) {
  if (!COSTS->is_alone || COSTS->plain_steps < FIRST_STEPS || steps <= 0 || ms <= 0) return;
  const float cost = 100 * ms / ((float)steps * COSTS->plain);
  COST_OF_DRAFT = moved(COST_OF_DRAFT, between(LEAST_COST, cost, MOST_COST_OF_DRAFT));
}
