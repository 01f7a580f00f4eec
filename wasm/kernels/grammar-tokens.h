// Differences between tokens in a grammar and in an answer: a grammar matches the names of special tokens as text, but an
// answer omits them.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "llama-cpp-build.h"

typedef struct {
  int32_t id;
  float logit;
  float probability;
} candidate;

typedef struct {
  candidate *list;
  uint64_t size;
} candidates;

typedef struct {
  void *begin, *end, *capacity;
} cpp_vector;

typedef struct {
  const void *vocabulary;
  cpp_vector rules, stacks;
  uint32_t value;
  int32_t remaining;
  uint8_t is_lazy, awaits_trigger;
} grammar;

_Static_assert(offsetof(grammar, stacks) == AT_LLAMA_GRAMMAR_STACKS, "llama_grammar.stacks");
_Static_assert(offsetof(grammar, awaits_trigger) == AT_LLAMA_GRAMMAR_AWAITING_TRIGGER, "llama_grammar.awaiting_trigger");

typedef struct {
  uint32_t type, value;
} element;

enum { ELEMENT_CHARACTER = 3, ELEMENT_TOKEN = 8 };

extern int32_t vocabulary_is_end(const void *vocabulary, int32_t id);
extern int32_t vocabulary_piece(const void *vocabulary, int32_t id, char *piece, int32_t size, int32_t special);

// True for a token with printable text, for error messages.
static int is_plain(const void *vocabulary, int32_t id) {
  enum { LONGEST = 16 };
  char piece[LONGEST];
  if (vocabulary_is_end(vocabulary, id)) return 0;
  const int32_t size = vocabulary_piece(vocabulary, id, piece, LONGEST, 1);
  if (size < 1) return 0;
  for (int32_t i = 0; i < size; i++)
    if (piece[i] < 0x21 || piece[i] > 0x7e) return 0;
  return 1;
}

// Pairs of adjacent characters in a grammar's rules, as a hash set, and whether the rules have tokens by number. They save
// the search for most tokens.
typedef struct {
  uint64_t bits[64];
  int is_known, has_tokens;
} known_pairs;

static uint32_t pair_hash(uint32_t first, uint32_t second) {
  return (first * 0x9e3779b1u ^ second * 0x85ebca6bu) >> 20;
}

static void learn_pairs(const grammar *g, known_pairs *pairs) {
  for (int i = 0; i < 64; i++) pairs->bits[i] = 0;
  pairs->has_tokens = 0;
  for (const cpp_vector *rule = g->rules.begin; rule != g->rules.end; rule++) {
    const element *end = rule->end;
    for (const element *at = rule->begin; at + 1 < end; at++) {
      pairs->has_tokens |= at->type == ELEMENT_TOKEN;
      if (at[0].type != ELEMENT_CHARACTER || at[1].type != ELEMENT_CHARACTER) continue;
      const uint32_t hash = pair_hash(at[0].value, at[1].value);
      pairs->bits[hash >> 6] |= 1ull << (hash & 63);
    }
  }
  pairs->is_known = 1;
}

// The code points of a text that is UTF-8.
static int32_t code_points(const uint8_t *bytes, int32_t size, uint32_t *points) {
  int32_t count = 0;
  for (int32_t i = 0; i < size; i++) {
    const uint8_t byte = bytes[i];
    if (byte >= 0x80 && byte < 0xc0 && count) points[count - 1] = points[count - 1] << 6 | (byte & 0x3f);
    else points[count++] = byte < 0x80 ? byte : byte < 0xe0 ? byte & 0x1f : byte < 0xf0 ? byte & 0x0f : byte & 0x07;
  }
  return count;
}

// True if a grammar's rules name a token, by its number or by its text. Rules of tool calls name the tokens that mark a call,
// which answers show.
static int is_named(const grammar *g, int32_t id, known_pairs *pairs) {
  enum { LONGEST = 128 };
  uint8_t piece[LONGEST];
  uint32_t points[LONGEST];
  const int32_t size = vocabulary_piece(g->vocabulary, id, (char *)piece, LONGEST, 1);
  const int32_t count = code_points(piece, size, points); // none when the text is longer
  if (!pairs->is_known) learn_pairs(g, pairs);
  const uint32_t hash = count > 1 ? pair_hash(points[0], points[1]) : 0;
  const int may_be_spelt = count == 1 || (count > 1 && (pairs->bits[hash >> 6] >> (hash & 63) & 1));
  if (!may_be_spelt && !pairs->has_tokens) return 0;
  for (const cpp_vector *rule = g->rules.begin; rule != g->rules.end; rule++) {
    const element *end = rule->end;
    for (const element *at = rule->begin; at != end; at++) {
      if (at->type == ELEMENT_TOKEN && at->value == (uint32_t)id) return 1;
      if (count < 1 || end - at < count) continue;
      int32_t same = 0;
      while (same < count && at[same].type == ELEMENT_CHARACTER && at[same].value == points[same]) same++;
      if (same == count) return 1;
    }
  }
  return 0;
}

// Rejects tokens that an answer omits and the rules do not name: the answer would lack text that the grammar requires.
static void refuse_silent(const grammar *g, candidates *all) {
  known_pairs pairs;
  pairs.is_known = 0;
  for (uint64_t i = 0; i < all->size; i++) {
    candidate *const one = &all->list[i];
    if (one->logit == -__builtin_inff()) continue;
    // With a buffer of size 0, the result is 0 only for a token without text.
    if (vocabulary_piece(g->vocabulary, one->id, 0, 0, 0) != 0) continue;
    if (vocabulary_is_end(g->vocabulary, one->id) || is_named(g, one->id, &pairs)) continue;
    one->logit = -__builtin_inff();
  }
}
