import { expect } from "vitest";

/** Final fields of an answer with PLAIN_TEXT. */
export const SUMMARY = {
  done_reason: "stop",
  total_duration_ms: expect.any(Number),
  prompt_tokens: 5,
  cached_tokens: 0,
  completion_tokens: 2,
  tokens_per_second: 100,
};
