// What steps cost, which is measured while no prompt is read. How much longer a step of several tokens takes differs with processor,
// GPU, threads and model: a mixture of experts reads more weights for each, a dot product of bytes makes one nearly free. And it
// differs with the number of requests that generate: what they share of a step is less for each of them, so that a token saved
// saves less, and a checked one costs more beside it.
//
// What disturbs a step, as other programs do, only makes it longer. So a figure follows quick steps soon and slow ones late, and a
// step counts as at most twice as slow and at least half as slow as is known: the figures are those of steps that were not disturbed.
#pragma once
#include "server.h"
#include "step-sums.h"

extern double now_ms(void);

enum { MOST_MEASURED = 8 }; // requests that generate at once; with more, nothing is learned

typedef struct {
  float plain;         // a step without guesses, in ms
  float token;         // a checked token, in hundredths of a request's share of that; 0: not known
  int32_t plain_steps; // that have been measured, up to FIRST_STEPS
  int32_t guess_steps; // since the last one of those
} cost_figures;

typedef struct {
  cost_figures of[MOST_MEASURED]; // for one request, two, and so on
  int32_t generating;             // requests that generate in this step
  int32_t is_measured;            // and no other is anything but idle
  uint8_t seen[8];                // steps with guesses, by the logarithm of their tokens but one, up to COLD_STEPS
} step_costs;
_Static_assert(sizeof(step_costs) == 144, "stepCosts in memory-cells.ts");

#define COSTS ((step_costs *)STEP_COSTS_CELL)
#define IS_REHEARSAL (*(uint32_t *)GPU_REHEARSAL_CELL)
// A step of the draft model, in hundredths of one of the model for one request. src/engine/core/kernel-controls.ts tells it from the sizes of files.
#define COST_OF_DRAFT (*(float *)COST_OF_DRAFT_CELL)

// In hundredths of a request's share of a step.
enum {
  COST_OF_GUESS = 10,       // a step with guesses
  FIRST_COST_OF_TOKEN = 52, // and each of those, as far as is known of one request: see scripts/bench/steps.ts
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

// What a checked token costs beside so many requests. Until that is measured, it is as much as a token of another request.
INLINE float known_cost(int32_t requests) {
  const float measured = requests <= MOST_MEASURED ? COSTS->of[requests - 1].token : 0;
  const float alone = COSTS->of->token > 0 ? COSTS->of->token : FIRST_COST_OF_TOKEN;
  return measured > 0 ? measured : (float)requests * alone / (1 + alone * (float)(requests - 1) / 100);
}

INLINE int32_t requests_now(void) { return COSTS->generating > 0 ? COSTS->generating : 1; }
INLINE int32_t cost_of_token(void) { return (int32_t)(known_cost(requests_now()) + 0.5f); }
INLINE int32_t cost_of_token_alone(void) { return (int32_t)(known_cost(1) + 0.5f); }
INLINE int32_t cost_of_draft(void) { return (int32_t)(COST_OF_DRAFT + 0.5f); }

// Whether the next step is to have no guesses, so that it is known what that costs.
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
  // What is rehearsed for a GPU is not computed.
  COSTS->is_measured = generating > 0 && generating <= MOST_MEASURED && others == 0 && !IS_REHEARSAL;
}

// Whether steps like one with so many more tokens than one have been made before.
INLINE int is_warm(int64_t more) {
  uint8_t *const seen = &COSTS->seen[63 - __builtin_clzll((uint64_t)more) & 7];
  return *seen >= COLD_STEPS || ++*seen > COLD_STEPS;
}

// Learns from a step of the model: so many tokens, of which all but one of each request are guessed.
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

// Learns from steps of the draft model, while one request generates.
static void learn_draft(int64_t steps, float ms) {
  const int is_known = COSTS->is_measured && COSTS->generating == 1 && COSTS->of->plain_steps == FIRST_STEPS;
  if (!is_known || steps <= 0 || ms <= 0) return;
  const float cost = 100 * ms / ((float)steps * COSTS->of->plain);
  COST_OF_DRAFT = moved(COST_OF_DRAFT, between(LEAST_COST, cost, MOST_COST_OF_DRAFT));
}
