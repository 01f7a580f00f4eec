// Answers that follow a grammar. llama.cpp's own code decodes invalid UTF-8 (overlong forms, surrogates, code points above
// U+10FFFF, a lead byte without its continuation) as characters, and generates an arbitrary token when none fits; if that is
// the end token, it aborts, and all requests fail.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "grammar-tokens.h"

// std::string of the module's C++ library: the last byte distinguishes a short text, stored in place, from a long one.
typedef union {
  struct {
    const uint8_t *bytes;
    uint64_t size;
    uint64_t capacity;
  } heap;
  struct {
    uint8_t bytes[23];
    int8_t size;
  } inplace;
} cpp_string;

_Static_assert(sizeof(cpp_string) == 24, "std::string");

// The code points of a token's text, with a final 0, and an incomplete character at its end.
typedef struct {
  uint32_t *points, *end, *capacity;
  uint32_t value;
  int32_t remaining; // bytes; less than 0: the text is none
} decoded_text;

extern void original_decode_utf8(decoded_text *out, const cpp_string *piece, uint32_t value, int32_t remaining);

// True if a byte may come next in a character of which `remaining` bytes are missing. `value` holds the bits so far; the
// length of the character follows from them, because shorter ones of the same value have been rejected before.
static int continues(uint8_t byte, uint32_t value, int32_t remaining) {
  uint8_t low = 0x80, high = 0xbf;
  if (remaining == 3 && value == 0) low = 0x90;    // F0: below lies what three bytes hold
  if (remaining == 3 && value == 4) high = 0x8f;   // F4: above lies what is not a character
  if (remaining == 2 && value == 0) low = 0xa0;    // E0: below lies what two bytes hold
  if (remaining == 2 && value == 0xd) high = 0x9f; // ED: above lie surrogates
  return low <= byte && byte <= high;
}

static int is_text(const uint8_t *bytes, uint64_t size, uint32_t value, int32_t remaining) {
  for (uint64_t i = 0; i < size; i++) {
    const uint8_t byte = bytes[i];
    if (remaining > 0) {
      if (!continues(byte, value, remaining)) return 0;
      value = value << 6 | (byte & 0x3f);
      remaining--;
    } else if (byte >= 0x80) {
      if (byte < 0xc2 || byte > 0xf4) return 0;
      remaining = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
      value = byte & (0x3f >> remaining);
    } else if (byte == 0) {
      return 0; // llama.cpp reads no further
    }
  }
  return 1;
}

// decode_utf8 of llama.cpp's grammars.
void kernel_decode_utf8(decoded_text *out, const cpp_string *piece, uint32_t value, int32_t remaining) {
  original_decode_utf8(out, piece, value, remaining);
  const int is_long = piece->inplace.size < 0;
  const uint8_t *bytes = is_long ? piece->heap.bytes : piece->inplace.bytes;
  const uint64_t size = is_long ? piece->heap.size : (uint64_t)piece->inplace.size;
  if (is_text(bytes, size, value, remaining)) return;
  out->points[0] = 0; // there is always room for it
  out->end = out->points + 1;
  out->value = 0;
  out->remaining = -1;
}

// Work of llama.cpp for a grammar since the last token, in calls of advance_stack: it compares new states with all others,
// and copies deep ones.
#define GRAMMAR_WORK (*(uint32_t *)(GRAMMAR_WORK_CELL))
enum { MOST_WORK_TO_RULE_OUT = 50000, MOST_WORK_TO_ACCEPT = 10000, COMPARED_PER_CALL = 512, DEPTH_PER_CALL = 16 };
// Each state is compared with every token of the vocabulary.
enum { MOST_GRAMMAR_STATES = 2048 };

// Stage of the work: parsing the grammar (see recursion.h), limited by its length, then token by token.
#define GRAMMAR_STAGE (*(uint32_t *)(GRAMMAR_STAGE_CELL))
enum { GRAMMAR_BEGINS, GRAMMAR_RULES_OUT, GRAMMAR_ACCEPTS };

extern void original_advance_stack(const void *rules, const cpp_vector *stack, cpp_vector *stacks);

static uint64_t vector_count(const cpp_vector *stacks) {
  return (uint64_t)((const cpp_vector *)stacks->end - (const cpp_vector *)stacks->begin);
}

// llama_grammar_advance_stack, which adds the states that may follow one. With an ambiguous grammar their number grows with
// every character. Beyond the limit only the end state is added, and after a token none: there are too many states then, which
// ends the request before the next token.
void kernel_advance_stack(const void *rules, const cpp_vector *stack, cpp_vector *stacks) {
  const int rules_out = GRAMMAR_STAGE == GRAMMAR_RULES_OUT;
  const uint32_t most = rules_out ? MOST_WORK_TO_RULE_OUT : MOST_WORK_TO_ACCEPT;
  if (GRAMMAR_STAGE != GRAMMAR_BEGINS && GRAMMAR_WORK >= most) {
    const cpp_vector end = {0};
    if (rules_out) original_advance_stack(rules, &end, stacks);
    return;
  }
  const uint64_t before = vector_count(stacks);
  original_advance_stack(rules, stack, stacks);
  const uint64_t after = vector_count(stacks);
  const uint64_t depth = (uint64_t)((const void *const *)stack->end - (const void *const *)stack->begin);
  const uint64_t work = GRAMMAR_WORK + 1 + depth / DEPTH_PER_CALL + (after - before) * after / COMPARED_PER_CALL;
  GRAMMAR_WORK = work < most ? (uint32_t)work : most;
}

extern void original_grammar_apply(grammar *g, candidates *all);
extern void free_memory(void *memory);

// llama_grammar_apply_impl, which rejects tokens that do not fit, and here also tokens that an answer would omit. When no
// token is left, or the check is too much work, the grammar gets no state and one token: llama.cpp throws while it accepts
// that token, which ends only this request, with an error.
void kernel_grammar_apply(grammar *g, candidates *all) {
  GRAMMAR_WORK = 0;
  GRAMMAR_STAGE = GRAMMAR_RULES_OUT;
  int is_too_much = !g->awaits_trigger && vector_count(&g->stacks) > MOST_GRAMMAR_STATES;
  if (!is_too_much) original_grammar_apply(g, all);
  else if (all->size == 1) all->list[0].logit = -__builtin_inff();
  is_too_much |= GRAMMAR_WORK >= MOST_WORK_TO_RULE_OUT;
  GRAMMAR_WORK = 0;
  GRAMMAR_STAGE = GRAMMAR_ACCEPTS;
  if (g->awaits_trigger) return;
  refuse_silent(g, all);
  if (all->size < 2) return; // a single one is a question
  for (uint64_t i = 0; i < all->size && !is_too_much; i++)
    if (all->list[i].logit != -__builtin_inff()) return;
  cpp_vector *const stacks = g->stacks.begin;
  for (cpp_vector *stack = stacks; stack != (cpp_vector *)g->stacks.end; stack++)
    if (stack->begin) free_memory(stack->begin);
  g->stacks.end = stacks;
  for (uint64_t i = 0; i < all->size; i++) {
    if (!is_plain(g->vocabulary, all->list[i].id)) continue;
    all->list[i].logit = 0;
    return;
  }
}
