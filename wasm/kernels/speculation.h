// Speculative decoding: draft tokens that the model verifies in one step; llama.cpp's server accepts those that the model would
// have generated itself. Drafts come from earlier occurrences of the text's end (n-gram look-up), or from a draft model.
//
// The benefit of drafts is measured while a slot generates. A rejected token costs a part of a step; when drafts cost more
// than they save, they pause for a while, and then longer. For look-up, the next request starts anew, but carefully if the
// last one paused; for a draft model, the measurements are kept (draft-model.h).
#pragma once
#include "given-tokens.h"
#include "grammar-tokens.h"
#include "steps.h"

#define RECORDS (*(guess_record **)GUESS_RECORDS_CELL)

// llama.cpp's common_speculative_draft_params: the request for drafts of a slot.
typedef struct {
  uint8_t is_wanted;
  int32_t most, past, last;    // maximum draft tokens, position of the last token, that token
  const cpp_vector *text;      // all tokens before it
  cpp_vector *guess;
} guess_wish;

_Static_assert(sizeof(guess_wish) == 32, "common_speculative_draft_params");

INLINE int64_t text_length(const guess_wish *wish) {
  return (const int32_t *)wish->text->end - (const int32_t *)wish->text->begin;
}

// llama.cpp's common_params_speculative.
typedef struct {
  int32_t *kinds, *kinds_end, *kinds_room;
  uint8_t unused[AT_COMMON_PARAMS_SPECULATIVE_DRAFT_N_MAX - 24];
  int32_t most; // tokens of a draft, draft.n_max
} speculative_params;

extern void *original_speculative_init(speculative_params *params, uint32_t slots);

// Measurements of the drafts for a slot.
typedef struct {
  int32_t task;    // number of the request
  int32_t length;  // tokens of its text at the last draft
  int32_t guessed; // tokens of that draft
  int32_t spent;   // cost of making it, in hundredths
  int32_t most;    // maximum tokens of the next draft
  int32_t rest;    // remaining steps without drafts
  int32_t pause;   // length of the last pause in steps; 0: none, or it no longer counts
  int32_t beside;  // generating requests when the pause began
  int32_t credit;  // tokens saved, in hundredths
} guess_record;

enum { BY_LOOK_UP, BY_DRAFT, KINDS };

// In hundredths of the step of one token.
enum {
  MOST_CREDIT = 900,   // from which the length of a draft is unlimited
  ADVANCE = 200,       // that a rejected draft may cost beyond the credit
  FORGIVING_CREDIT = 300,
  CREDIT_AFTER_REST = 50,
};

// Enough for two rejected drafts.
INLINE int32_t first_credit(int kind) { return kind == BY_DRAFT ? 150 : 100; }

enum {
  FIRST_GUESS = 1,
  LEAST_MATCH = 4,  // shorter matches are coincidence
  MOST_MATCH = 64,
  LONGEST_PAUSE = 1024,
  MOST_GUESS = 64,
  STEPS_BEFORE_END = 4,
};

// Longer for a draft model, which would have to evaluate the missed tokens.
INLINE int32_t first_pause(int kind) { return kind == BY_DRAFT ? 256 : 32; }

// Draft tokens that may be added to the next step. They must fit into one batch, and into the free cells of a shared cache:
// otherwise llama.cpp would split the batch, and cannot split drafts. The engine's script, which ends answers when the context
// is full (src/engine/core/shared-context.ts), sees drafts only after they were verified; until it has ended an answer, each
// slot continues for a few tokens.
static int64_t room_for_guesses(const server_context *server) {
  const llama_context *context = server->context;
  const int64_t slots = count_slots(server);
  const int64_t batch = context->batch - slots;
  if (slots == 1 || context->tokens != context->slot_tokens) return batch;
  int64_t room = context->tokens - STEPS_BEFORE_END * slots;
  for (int64_t i = 0; i < slots; i++) {
    const server_slot *slot = slot_at(server, i);
    room -= length_of(&slot->prompt);
    if (slot->state != SLOT_IDLE && slot->state != SLOT_GENERATES) room -= context->batch;
  }
  return room < batch ? room : batch;
}

static void begin_request(guess_record *known, int32_t task, int kind) {
  if (known->task == task) return;
  known->task = task;
  known->length = known->guessed = known->spent = 0;
  if (kind == BY_DRAFT) return;
  known->most = FIRST_GUESS;
  known->rest = 0;
  known->credit = known->pause > 0 ? CREDIT_AFTER_REST : first_credit(kind);
  if (known->pause > 0) known->pause = first_pause(kind);
}

// Updates the record after the step that verified the last draft; the model's own token does not count.
static void learn(guess_record *known, int64_t length, int kind) {
  const int64_t kept = length - known->length - 1, guessed = known->guessed, spent = known->spent;
  known->guessed = known->spent = 0;
  if (guessed + spent == 0 || kept < 0 || kept > guessed) return;
  int64_t credit = known->credit + 100 * kept - spent;
  if (guessed > 0) {
    credit -= COST_OF_GUESS + cost_of_token() * guessed;
    if (kept < guessed) known->most = (int32_t)kept + 1;
    else if (known->most <= 2 * guessed) known->most = (int32_t)(2 * guessed < MOST_GUESS ? 2 * guessed + 1 : MOST_GUESS);
  }
  known->credit = (int32_t)(credit < MOST_CREDIT ? credit : MOST_CREDIT);
  if (credit >= FORGIVING_CREDIT) known->pause = 0;
  if (credit >= 0) return;
  known->pause = known->pause == 0 ? first_pause(kind) : known->pause < LONGEST_PAUSE ? 2 * known->pause : LONGEST_PAUSE;
  known->rest = known->pause;
  known->beside = requests_now();
  known->credit = CREDIT_AFTER_REST;
}

// Maximum draft tokens for a slot now.
static int64_t guess_limit(guess_record *known, const guess_wish *wish, const server_slot *slot, int kind) {
  const server_task *task = slot->task;
  const int64_t length = text_length(wish);
  begin_request(known, task->id, kind);
  learn(known, length, kind);
  known->length = (int32_t)length;
  // Drafts that are not worth their cost with many requests may be worth it with fewer.
  if (known->rest > 0 && requests_now() < known->beside) known->rest = 0;
  if (known->rest > 0) {
    known->rest--;
    return 0;
  }
  if (is_plain_due()) return 0;
  int64_t limit = task->most_guessed;
  if (limit > wish->most) limit = wish->most;
  if (limit > known->most) limit = known->most;
  const int64_t cost = kind == BY_DRAFT ? cost_of_token() + cost_of_draft() : cost_of_token();
  const int64_t affordable = (known->credit + ADVANCE - COST_OF_GUESS) / cost;
  if (known->credit < MOST_CREDIT && limit > affordable) limit = affordable;
  // Products take tokens in groups of four (mul-mat-repacked.h), and one of them is not a draft.
  return limit < 4 ? limit : limit - (limit + 1) % 4;
}

// Token at an index of the text, followed by the last token and the draft so far.
INLINE int32_t token_at(const guess_wish *wish, int64_t length, int64_t at, const int32_t *guess) {
  return at < length ? ((const int32_t *)wish->text->begin)[at] : at == length ? wish->last : guess[at - length - 1];
}

// Index after the longest earlier match of the text's end; the latest of several. 0: no match.
static int64_t look_up(const guess_wish *wish, int64_t length) {
  const int32_t *text = wish->text->begin;
  int64_t best = LEAST_MATCH - 1, found = 0;
  for (int64_t at = length - 1; at >= best && best < MOST_MATCH; at--) {
    if (text[at] != wish->last) continue;
    int64_t match = 1;
    while (match <= at && match < MOST_MATCH && text[at - match] == text[length - match]) match++;
    if (match <= best) continue;
    best = match;
    found = at + 1;
  }
  return found;
}

// Memory for the tokens of a draft.
static int32_t *place_of_guess(cpp_vector *guess, int64_t count) {
  if ((int32_t *)guess->capacity - (int32_t *)guess->begin < count) {
    if (guess->begin) free_memory(guess->begin);
    guess->begin = allocate_memory(MOST_GUESS * sizeof(int32_t));
    guess->capacity = (int32_t *)guess->begin + MOST_GUESS;
  }
  guess->end = (int32_t *)guess->begin + count;
  return guess->begin;
}

static int64_t guess_by_look_up(const guess_wish *wish, int64_t limit) {
  const int64_t length = text_length(wish);
  const int64_t from = look_up(wish, length);
  if (from == 0) return 0;
  int32_t *tokens = place_of_guess(wish->guess, limit);
  for (int64_t i = 0; i < limit; i++) tokens[i] = token_at(wish, length, from + i, tokens);
  return limit;
}

// Drafts forced tokens, which are certain: as many as fit into one step.
static int64_t guess_given(const guess_wish *wish, const given_tokens *given, int64_t room) {
  enum { MOST_GIVEN = MOST_GUESS - 1 }; // with the last token, a multiple of four
  int64_t count = given->one_by_one ? 0 : given->count - given->at;
  if (count > MOST_GIVEN) count = MOST_GIVEN;
  if (count > wish->most) count = wish->most;
  if (count > room) count = room;
  if (count <= 0) return 0;
  int32_t *tokens = place_of_guess(wish->guess, count);
  for (int64_t i = 0; i < count; i++) tokens[i] = given->tokens[given->at + i];
  SUMS_OF_ONE_TOKEN = 1;
  return count;
}

// common_speculative_init. Enables drafts in llama.cpp's server by setting their kinds, unless the load settings allow none;
// a maximum of one more token than a draft may have means that there is a draft model.
void *kernel_speculative_init(speculative_params *params, uint32_t slots) {
  enum { DRAFT_SIMPLE = 1, NGRAM_SIMPLE = 6 };
  if (params->most > 0) {
    params->kinds = allocate_memory(2 * sizeof(int32_t));
    params->kinds[0] = NGRAM_SIMPLE;
    params->kinds[1] = DRAFT_SIMPLE;
    params->kinds_end = params->kinds_room = params->kinds + (params->most > MOST_GUESS ? 2 : 1);
  }
  return original_speculative_init(params, slots);
}

// Record of a kind of drafts for a slot.
INLINE guess_record *record_of(int64_t slots, int64_t slot, int kind) {
  if (!RECORDS) {
    RECORDS = allocate_memory((uint64_t)slots * KINDS * sizeof(guess_record));
    for (int64_t i = 0; i < slots * KINDS; i++) {
      RECORDS[i] = (guess_record){.task = -1, .most = FIRST_GUESS, .credit = first_credit((int)(i % KINDS))};
    }
  }
  return &RECORDS[slot * KINDS + kind];
}

// common_speculative_impl_ngram_simple::draft, which drafts for all slots.
void kernel_ngram_draft(void *self, const cpp_vector *wishes) {
  enum { CAN_TAKE_BACK = 1 };
  (void)self;
  const server_context *server = SERVER;
  // Other memories would have to be saved before each draft.
  if (server->removal != CAN_TAKE_BACK) return;
  guess_wish *const first = wishes->begin;
  const int64_t slots = (guess_wish *)wishes->end - first;
  int64_t room = room_for_guesses(server);
  for (int64_t i = 0; i < slots; i++) {
    const guess_wish *wish = &first[i];
    if (!wish->is_wanted) continue;
    const given_tokens *given = given_to(slot_at(server, i)->task);
    if (given) {
      const int64_t count = guess_given(wish, given, room);
      GUESSED_TOKENS += (int32_t)count;
      room -= count;
      continue;
    }
    guess_record *known = record_of(slots, i, BY_LOOK_UP);
    int64_t limit = guess_limit(known, wish, slot_at(server, i), BY_LOOK_UP);
    if (limit > room) limit = room;
    if (limit <= 0) continue;
    const int64_t guessed = guess_by_look_up(wish, limit);
    known->guessed = (int32_t)guessed;
    GUESSED_TOKENS += (int32_t)guessed;
    room -= guessed;
  }
}
