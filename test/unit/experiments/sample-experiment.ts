import type { Experiment } from "../../../src/experiments/experiments.ts";
import type { AnswerToken, ExperimentResult } from "../../../src/api/wire/native.ts";

export function token(id: number, text: string, logprob = -0.5): AnswerToken {
  return {
    id,
    token: text,
    logprob,
    top: [
      { id, token: text, logprob },
      { id: 99, token: " other", logprob: -3 },
    ],
  };
}

export const RESULT: ExperimentResult = {
  model: "daybreak-mini",
  text: "The sky is blue.",
  tokens: [token(1, "The"), token(2, " sky"), token(3, " is"), token(4, " blue"), token(5, ".")],
  done_reason: "stop",
  total_duration_ms: 12,
  prompt_tokens: 9,
  completion_tokens: 6,
  tokens_per_second: 500,
  prompt_ms: 3.5,
  completion_ms: 8.5,
  sampling: { temperature: 0, seed: 0 },
  where: "daemon",
  machine: "a machine",
  at: "2026-11-24T08:00:00.000Z",
  engine_sha256: "e".repeat(64),
};

export const EXPERIMENT: Experiment = {
  experiment: 1,
  title: "Colors",
  model: { name: "daybreak-mini", files: [{ role: "model", sha256: "a".repeat(64) }] },
  request: { messages: [{ role: "user", content: "What color is the sky?" }], temperature: 0, seed: 0 },
  result: RESULT,
};
