import type { GenerationRequest } from "../protocol/generation.ts";
import type { EngineCore } from "./engine-core.ts";
import { type EngineSettings, fullStep } from "./load-parameters.ts";

/** One token in almost every vocabulary. */
const WORD = " a";

/** The first token comes with the prompt; the steps behind it are all alike. */
const GENERATED_TOKENS = 2;

/**
 * llama.cpp has a program for each small number of tokens in a step, and one for all larger numbers. Small steps are
 * the rest of a prompt and, more often, several slots that generate at once.
 */
const SMALL_STEPS = [1, 2, 3, 4, 5, 6];

/** More than the small numbers of tokens, for texts that are computed with as a whole. */
const LONGER_TEXT = WORD.repeat(12);

/**
 * Has a GPU compile the programs that requests need: llama.cpp does that when it first uses one, and the first
 * requests would pay for it.
 */
export async function warmUp(
  engine: EngineCore,
  settings: Pick<EngineSettings, "purpose" | "batchSize" | "slots">,
): Promise<void> {
  const room = engine.info.contextSize - GENERATED_TOKENS - 1;
  const never = new AbortController().signal;
  const { purpose } = settings;
  if (purpose !== "generate") {
    for (const text of [WORD, LONGER_TEXT].filter(({ length }) => length / WORD.length < room)) {
      await (purpose === "embed" ? engine.embed(text, never) : engine.rerank(WORD, text, never));
    }
    return;
  }
  const full = fullStep(settings);
  const steps = [full, ...SMALL_STEPS.filter((count) => count < full)];
  for (const tokens of steps.filter((count) => count <= room)) {
    await Array.fromAsync(engine.generate(request(tokens), never));
  }
}

function request(tokens: number): GenerationRequest {
  return {
    input: { kind: "prompt", prompt: WORD.repeat(tokens) },
    maxTokens: GENERATED_TOKENS,
    stop: [],
    sampling: { temperature: 0, ignoreEos: true },
    format: { type: "text" },
    cachePrompt: false,
  };
}
