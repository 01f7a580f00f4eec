// Depth limits for functions of llama.cpp that recurse as deeply as a grammar or an answer is nested. The stack overflows
// after some hundred or thousand levels, which would end the engine and all its requests.
#pragma once
#include <stdint.h>
#include "llama-cpp-build.h"

// Current depth of each function.
#define DEPTH(cell) (*(uint32_t *)(cell))

// Result of a parser; all zeros mean that the text does not match.
typedef struct {
  uint64_t type, start, end;
  void *nodes[3], *expected[3];
} parse_result;

extern void original_peg_parse(void *result, const void *grammar, void *context, uint64_t start);
extern void original_peg_rule(parse_result *result, const void *executor, const void *rule);

// common_peg_arena::parse, which starts to parse an answer. Resets the depth, because an exception may have left it.
void kernel_peg_parse(void *result, const void *grammar, void *context, uint64_t start) {
  DEPTH(RULE_DEPTH_CELL) = 0;
  original_peg_parse(result, grammar, context, start);
}

// Parses one rule; all nesting goes through rules.
void kernel_peg_rule(parse_result *result, const void *executor, const void *rule) {
  enum { DEEPEST = 1000 };
  if (DEPTH(RULE_DEPTH_CELL) >= DEEPEST) {
    *result = (parse_result){0};
    return;
  }
  DEPTH(RULE_DEPTH_CELL)++;
  original_peg_rule(result, executor, rule);
  DEPTH(RULE_DEPTH_CELL)--;
}

extern int32_t original_left_recursion(const void *rules, uint64_t rule, uint64_t **visited, void *open, void *empty);

// llama_grammar_detect_left_recursion. llama.cpp records the rules that it has checked, but checks them again: a grammar of
// thirty lines can take hours. A chain of rules that is too long counts as recursion.
int32_t kernel_left_recursion(const void *rules, uint64_t rule, uint64_t **visited, void *open, void *empty) {
  enum { LONGEST_CHAIN = 3000 }; // a repetition makes up to 2,000 rules
  if (visited[0][rule / 64] >> (rule % 64) & 1) return 0;
  if (DEPTH(LEFT_DEPTH_CELL) >= LONGEST_CHAIN) return 1;
  DEPTH(LEFT_DEPTH_CELL)++;
  const int32_t found = original_left_recursion(rules, rule, visited, open, empty);
  DEPTH(LEFT_DEPTH_CELL)--;
  return found;
}

extern const char *original_parse_alternates(void *parser, const char *text, const void *name, int32_t rule, int32_t is_group);

// llama_grammar_parser::parse_alternates, which parses a rule or a group in parentheses. At the limit it consumes nothing,
// which its caller rejects, because it expects the end of the group.
const char *kernel_parse_alternates(void *parser, const char *text, const void *name, int32_t rule, int32_t is_group) {
  enum { DEEPEST = 200 };
  if (!is_group) DEPTH(GROUP_DEPTH_CELL) = 0;
  if (!is_group) GRAMMAR_STAGE = GRAMMAR_BEGINS;
  if (DEPTH(GROUP_DEPTH_CELL) >= DEEPEST) return text;
  DEPTH(GROUP_DEPTH_CELL)++;
  const char *end = original_parse_alternates(parser, text, name, rule, is_group);
  DEPTH(GROUP_DEPTH_CELL)--;
  return end;
}
