// Measures the cost of steps while no prompt is evaluated. The additional time for each token depends on processor, GPU, threads
// and model: a mixture of experts reads more weights for each token; a dot product of bytes makes a token nearly free. It also
// depends on the number of generating requests: each has a smaller share of a step, so that an accepted token saves less, and
// verifying one costs relatively more.
//
// Disturbances, such as other programs, only make a step longer. So an average follows fast steps quickly and slow ones slowly,
// and a step counts as at most twice and at least half the average: the results are those of undisturbed steps.
#pragma once
#include "server.h"
#include "step-sums.h"

extern double now_ms(void);

enum { MOST_MEASURED = 8 }; // generating requests; with more, nothing is measured

typedef struct {
  float plain;         // a step without drafts, in ms
  float token;         // a draft token, in hundredths of a request's share of that; 0: unknown
  int32_t plain_steps; // measured steps, up to FIRST_STEPS
  int32_t guess_steps; // steps with drafts since the last plain one
} cost_figures;

typedef struct {
  cost_figures of[MOST_MEASURED]; // for one request, two, and so on
  int32_t generating;             // requests that generate in this step
  int32_t is_measured;            // 1 if all other slots are idle
  uint8_t seen[8];                // steps with drafts, by the logarithm of their tokens but one, up to COLD_STEPS
} step_costs;
_Static_assert(sizeof(step_costs) == 144, "stepCosts in memory-cells.ts");

#define COSTS ((step_costs *)STEP_COSTS_CELL)
#define IS_REHEARSAL (*(uint32_t *)GPU_REHEARSAL_CELL)
// A step of the draft model, in hundredths of one of the model for one request; estimated from file sizes by
// src/engine/core/kernel-controls.ts.
#define COST_OF_DRAFT (*(float *)COST_OF_DRAFT_CELL)

// In hundredths of a request's share of a step.
enum {
  COST_OF_GUESS = 10,       // a step with drafts
  FIRST_COST_OF_TOKEN = 52, // each draft token, initially, for one request: see scripts/bench/steps.ts
  LEAST_COST = 1,
  MOST_COST_OF_TOKEN = 200,
  MOST_COST_OF_DRAFT = 1000,
};

enum {
  FIRST_STEPS = 4,   // of which the fastest counts, because the first ones include compilation
  COLD_STEPS = 2,    // of each length that do not count
  MOST_GUESSES = 64, // steps with drafts before a plain one is measured again, because it takes longer as a text grows
};

INLINE float between(float least, float value, float most) {
  return value < least ? least : value > most ? most : value;
}

INLINE float moved(float known, float seen) {
  return known + (between(known / 2, seen, known * 2) - known) * (seen < known ? 0.25f : 0.0625f);
}

// Cost of a draft token with so many requests. Until it is measured, that of a token of another request.
INLINE float known_cost(int32_t requests) {
  const float measured = requests <= MOST_MEASURED ? COSTS->of[requests - 1].token : 0;
  const float alone = COSTS->of->token > 0 ? COSTS->of->token : FIRST_COST_OF_TOKEN;
  return measured > 0 ? measured : (float)requests * alone / (1 + alone * (float)(requests - 1) / 100);
}

INLINE int32_t requests_now(void) { return COSTS->generating > 0 ? COSTS->generating : 1; }
INLINE int32_t cost_of_token(void) { return (int32_t)(known_cost(requests_now()) + 0.5f); }
INLINE int32_t cost_of_token_alone(void) { return (int32_t)(known_cost(1) + 0.5f); }
INLINE int32_t cost_of_draft(void) { return (int32_t)(COST_OF_DRAFT + 0.5f); }

// True if the next step should have no drafts, to measure its cost.
INLINE int is_plain_due(void) {
  if (!COSTS->is_measured) return 0;
  const cost_figures *figures = &COSTS->of[COSTS->generating - 1];
  return figures->plain_steps < FIRST_STEPS || figures->guess_steps >= MOST_GUESSES;
}

INLINE void note_who_runs(const server_context *server) {
  int32_t generating = 0, others = 0;
  for (int64_t i = 0; i < count_slots(server); i++) {
    const int32_t state = slot_at(server, i)->state;
    generating += state == SLOT_GENERATES;
    others += state != SLOT_IDLE && state != SLOT_GENERATES;
  }
  COSTS->generating = generating;
  // Warm-up steps for a GPU are not computed.
  COSTS->is_measured = generating > 0 && generating <= MOST_MEASURED && others == 0 && !IS_REHEARSAL;
}

// True if steps with about so many additional tokens have run before.
INLINE int is_warm(int64_t more) {
  uint8_t *const seen = &COSTS->seen[63 - __builtin_clzll((uint64_t)more) & 7];
  return *seen >= COLD_STEPS || ++*seen > COLD_STEPS;
}

// Records a step of the model: its tokens, of which all but one of each request are draft tokens.
static void learn_step(int64_t tokens, int64_t guessed, float ms) {
  const int32_t requests = COSTS->generating;
  if (!COSTS->is_measured || SUMS_OF_ONE_TOKEN || tokens != requests + guessed || ms <= 0) return;
  cost_figures *figures = &COSTS->of[requests - 1];
  const int is_first = figures->plain_steps < FIRST_STEPS;
  if (guessed > 0) {
    figures->guess_steps++;
    if (!is_warm(tokens - 1) || is_first) return;
    const float more = 100 * (float)requests * (ms / figures->plain - 1);
    const float cost = (more - COST_OF_GUESS) / (float)guessed;
    figures->token = moved(known_cost(requests), between(LEAST_COST, cost, MOST_COST_OF_TOKEN));
    return;
  }
  figures->guess_steps = 0;
  if (!is_first) figures->plain = moved(figures->plain, ms);
  else if (figures->plain_steps++ == 0 || ms < figures->plain) figures->plain = ms;
}

// Records steps of the draft model, while one request generates.
static void learn_draft(int64_t steps, float ms) {
  const int is_known = COSTS->is_measured && COSTS->generating == 1 && COSTS->of->plain_steps == FIRST_STEPS;
  if (!is_known || steps <= 0 || ms <= 0) return;
  const float cost = 100 * ms / ((float)steps * COSTS->of->plain);
  COST_OF_DRAFT = moved(COST_OF_DRAFT, between(LEAST_COST, cost, MOST_COST_OF_DRAFT));
}
