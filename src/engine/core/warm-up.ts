import { ServiceError } from "../../errors/service-error.ts";
import type { GenerationEvent, GenerationRequest, MediaPart } from "../protocol/generation.ts";
import type { EngineCore } from "./engine-core.ts";
import { type EngineSettings, maxStepTokens } from "./load-parameters.ts";

/** A text that is a single token in almost every vocabulary. */
const WORD = " a";

/** Tokens to generate: the first one is computed with the prompt, the second one in a decode step. */
const GENERATED_TOKENS = 2;

/**
 * Steps of these numbers of tokens are compiled, too: llama.cpp has a shader for each small number of tokens in a step,
 * and one for all larger numbers. Small steps are common when several slots decode.
 */
const SMALL_STEPS = [1, 2, 3, 4, 5, 6];

/** A text with more tokens than the small steps, for embedding models and rerankers. */
const LONGER_TEXT = WORD.repeat(12);

/** If the first step, including compilation, is shorter than this, the step is not measured again. */
const SHORT_STEP_MS = 1000;

/** A gray PNG of 16 × 16 pixels. */
const IMAGE =
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAAAAAA6mKC9AAAAD0lEQVR42mNoQAMMI1sAAAUMgAHjM1mKAAAAAElFTkSuQmCC";

/** Ten milliseconds of silence as a WAV file of 16 bits and 16,000 Hz. */
const SOUND = `UklGRmABAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YTwBAAAAAAAA${"A".repeat(416)}`;

type WarmUpSettings = Pick<EngineSettings, "purpose" | "batchSize" | "slots">;

/** The part of EngineCore that deferred steps use. */
type WarmUpEngine = Pick<EngineCore, "generate" | "slots"> & {
  readonly info: Pick<EngineCore["info"], "contextSize">;
};

/** A part of the warm-up that may run after the first requests. */
export type DeferredStep = (options: DeferredStepOptions) => Promise<unknown>;

interface DeferredStepOptions {
  readonly signal: AbortSignal;
  /** The slot to use; absent: any. */
  readonly slot?: number | undefined;
}

const NEVER = new AbortController().signal;

/**
 * Makes the GPU's driver compile the shaders of a single request; otherwise the first request would wait for that. Also
 * shows if the model fits into GPU memory.
 * @param onProgress called between requests
 * @returns duration of a full prefill step in milliseconds; undefined for embedding models and rerankers
 */
export async function warmUpBeforeRequests(
  engine: EngineCore,
  settings: WarmUpSettings,
  onProgress: () => void = () => {},
): Promise<number | undefined> {
  const maxTokens = maxPromptTokens(engine);
  const { purpose } = settings;
  if (purpose !== "generate") {
    for (const text of [WORD, LONGER_TEXT].filter(({ length }) => length / WORD.length < maxTokens)) {
      await (purpose === "embed" ? engine.embed(text, NEVER) : engine.rerank(WORD, text, NEVER));
      onProgress();
    }
    return undefined;
  }
  const stepTokens = Math.min(maxStepTokens(settings), maxTokens);
  // Precompiling leaves prompts in the slots that were never computed, so the slots have to be emptied. The stock
  // engine cannot erase slots, so it does not precompile.
  if (await emptySlots(engine, slotNumbers(settings))) {
    await engine.precompile(() => measurePromptMs(engine, stepTokens));
    await emptySlots(engine, slotNumbers(settings));
    onProgress();
  }
  const firstMs = await measurePromptMs(engine, stepTokens);
  onProgress();
  for (const part of sampleMedia(engine)) {
    await processMedia(engine, part);
    onProgress();
  }
  const stepMs = firstMs < SHORT_STEP_MS ? firstMs : await measurePromptMs(engine, stepTokens, 1);
  await emptySlots(engine, slotNumbers(settings));
  onProgress();
  return stepMs;
}

/**
 * Erases the prompts of the warm-up, which must not be saved with the conversations of clients or reused. Reusing even
 * their first token would divide the next prompt into other steps, whose results are rounded differently.
 * @returns false for the stock engine, which cannot erase slots
 */
async function emptySlots(engine: WarmUpEngine, slots: readonly number[]): Promise<boolean> {
  try {
    for (const slot of slots) await engine.slots({ action: "erase", slot }, NEVER);
    return true;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return false;
  }
}

/** Returns the part of the warm-up for several slots and for drafts: steps with small numbers of tokens. */
export function deferredSteps(engine: WarmUpEngine, settings: WarmUpSettings): DeferredStep[] {
  if (settings.purpose !== "generate") return [];
  const stepTokens = Math.min(maxStepTokens(settings), maxPromptTokens(engine));
  return SMALL_STEPS.filter((count) => count < stepTokens).map((count) => async (options) => {
    try {
      await measurePromptMs(engine, count, 1, options);
    } finally {
      // Without a slot, the step ran before any conversation, so all slots may be erased.
      await emptySlots(engine, options.slot === undefined ? slotNumbers(settings) : [options.slot]);
    }
  });
}

function slotNumbers({ slots }: WarmUpSettings): readonly number[] {
  return Array.from({ length: slots }, (_, slot) => slot);
}

function maxPromptTokens({ info }: WarmUpEngine): number {
  return info.contextSize - GENERATED_TOKENS - 1;
}

/** Returns a sample of each kind of media that the model supports. */
function sampleMedia({ info }: EngineCore): MediaPart[] {
  return [
    ...(info.hasImageInput ? [{ type: "image", data: bytesOf(IMAGE) } as const] : []),
    ...(info.hasAudioInput ? [{ type: "audio", data: bytesOf(SOUND) } as const] : []),
  ];
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** Processes an image or a recording, because the projector has its own shaders. */
async function processMedia(engine: EngineCore, part: MediaPart): Promise<void> {
  const input: GenerationRequest["input"] = {
    kind: "chat",
    messages: [
      {
        role: "user",
        content: [part, { type: "text", text: WORD }],
      },
    ],
    tools: [],
    toolChoice: "none",
    parallelToolCalls: false,
  };
  try {
    await engine.generate({ ...request(0, GENERATED_TOKENS), input }, () => undefined, NEVER);
  } catch (error) {
    // The template rejects this chat, or the context is too small for it. Requests will report that.
    if (ServiceError.from(error).type !== "invalid_request") throw error;
  }
}

/** Runs a prompt of this many tokens. @returns duration of the prompt in milliseconds */
async function measurePromptMs(
  engine: WarmUpEngine,
  tokens: number,
  generated = GENERATED_TOKENS,
  { signal, slot }: DeferredStepOptions = { signal: NEVER },
): Promise<number> {
  let milliseconds = 0;
  try {
    const onEvent = (event: GenerationEvent): void => {
      if (event.type === "done") milliseconds = event.timings.promptMs;
    };
    await engine.generate({ ...request(tokens, generated), slot }, onEvent, signal);
  } catch (error) {
    // The word is several tokens in this vocabulary, so fewer words are needed.
    if (tokens === 1 || ServiceError.from(error).code !== "context_length_exceeded") throw error;
    return await measurePromptMs(engine, Math.floor(tokens / 2), generated, { signal, slot });
  }
  return milliseconds;
}

function request(tokens: number, maxTokens: number): GenerationRequest {
  return {
    input: { kind: "prompt", prompt: WORD.repeat(tokens) },
    maxTokens,
    stop: [],
    sampling: { temperature: 0, ignoreEos: true },
    format: { type: "text" },
    cachePrompt: false,
  };
}
