import { z } from "zod";
import type { GenerationEvent } from "../engine/protocol/generation.ts";

/** As in llama.cpp's server, in every API that can report it. */
export const returnProgressField = z
  .boolean()
  .nullish()
  .describe("With stream: report how much of the prompt has been processed. Default: false.");

export const promptProgressSchema = z
  .object({
    total: z.int().describe("Tokens of the prompt."),
    cache: z.int().describe("Of these, the tokens that were in the KV cache already."),
    processed: z.int().describe("Tokens of the prompt that are in the KV cache by now."),
    time_ms: z.int().describe("Milliseconds since the engine began with it."),
  })
  .meta({ id: "PromptProgress" });

export function toPromptProgress({
  total,
  cached,
  processed,
  elapsedMs,
}: Extract<GenerationEvent, { type: "prompt-progress" }>): z.output<typeof promptProgressSchema> {
  return { total, cache: cached ?? 0, processed, time_ms: Math.round(elapsedMs ?? 0) };
}
