import { ServiceError } from "../../errors/service-error.ts";
import type { GenerationEvent, GenerationRequest, MediaPart } from "../protocol/generation.ts";
import type { EngineCore } from "./engine-core.ts";
import { type EngineSettings, fullStep } from "./load-parameters.ts";

/** A single token in almost every vocabulary. */
const WORD = " a";

/** The first token comes with the prompt; later steps are all alike, so the first request alone has one. */
const GENERATED_TOKENS = 2;

/**
 * llama.cpp has a shader for each small number of tokens in a step, and one for all larger numbers. Small steps are
 * common when several slots decode.
 */
const SMALL_STEPS = [1, 2, 3, 4, 5, 6];

/** Longer than the small steps, for models that process whole texts. */
const LONGER_TEXT = WORD.repeat(12);

/** A first step within this time, including compilation, is short enough, so the step is not measured again. */
const SHORT_STEP_MS = 1000;

/** A gray PNG of 16 × 16 pixels. */
const IMAGE =
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAAAAAA6mKC9AAAAD0lEQVR42mNoQAMMI1sAAAUMgAHjM1mKAAAAAElFTkSuQmCC";

/** Ten milliseconds of silence as a WAV file of 16 bits and 16,000 Hz. */
const SOUND = `UklGRmABAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YTwBAAAAAAAA${"A".repeat(416)}`;

type WarmUpSettings = Pick<EngineSettings, "purpose" | "batchSize" | "slots">;

/** What later steps need of the engine. */
type LaterEngine = Pick<EngineCore, "generate" | "slots"> & {
  readonly info: Pick<EngineCore["info"], "contextSize">;
};

/** A part of the warm-up that requests need not wait for. */
export type LaterStep = (options: LaterOptions) => Promise<unknown>;

interface LaterOptions {
  readonly signal: AbortSignal;
  /** The slot to use; absent: any. */
  readonly slot?: number | undefined;
}

const NEVER = new AbortController().signal;

/**
 * Makes the GPU's driver compile the shaders that requests need; otherwise the first requests would wait for it.
 * @param onProgress called between requests
 * @returns duration of a full prefill step in milliseconds; undefined for embedding models and rerankers
 */
export async function warmUp(
  engine: EngineCore,
  settings: WarmUpSettings,
  onProgress: () => void = () => {},
): Promise<number | undefined> {
  const stepMs = await warmUpFirst(engine, settings, onProgress);
  for (const step of laterSteps(engine, settings)) await step({ signal: NEVER });
  return stepMs;
}

/** The part of {@link warmUp} that a single request needs, and that shows whether the model fits and how long steps take. */
export async function warmUpFirst(
  engine: EngineCore,
  settings: WarmUpSettings,
  onProgress: () => void = () => {},
): Promise<number | undefined> {
  const room = roomOf(engine);
  const { purpose } = settings;
  if (purpose !== "generate") {
    for (const text of [WORD, LONGER_TEXT].filter(({ length }) => length / WORD.length < room)) {
      await (purpose === "embed" ? engine.embed(text, NEVER) : engine.rerank(WORD, text, NEVER));
      onProgress();
    }
    return undefined;
  }
  const full = Math.min(fullStep(settings), room);
  // Slots do not know that what they have of a rehearsal was never computed: others would begin with it.
  if (await emptySlots(engine, slotsOf(settings))) {
    await engine.rehearse(() => promptMs(engine, full));
    await emptySlots(engine, slotsOf(settings));
    onProgress();
  }
  const first = await promptMs(engine, full);
  onProgress();
  for (const part of mediaOf(engine)) {
    await perceive(engine, part);
    onProgress();
  }
  const stepMs = first < SHORT_STEP_MS ? first : await promptMs(engine, full, 1);
  await emptySlots(engine, slotsOf(settings));
  onProgress();
  return stepMs;
}

/**
 * What has been read is nobody's conversation: it must not be saved with those of clients, and no prompt may go on from
 * it. They have a first token in common at least, and without that one a prompt is read in other steps, which round
 * otherwise.
 * @returns false for the stock engine, which cannot, and saves none
 */
async function emptySlots(engine: LaterEngine, slots: readonly number[]): Promise<boolean> {
  try {
    for (const slot of slots) await engine.slots({ action: "erase", slot }, NEVER);
    return true;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return false;
  }
}

/** The rest of {@link warmUp}: steps that several slots make, and guesses. */
export function laterSteps(engine: LaterEngine, settings: WarmUpSettings): LaterStep[] {
  if (settings.purpose !== "generate") return [];
  const full = Math.min(fullStep(settings), roomOf(engine));
  return SMALL_STEPS.filter((count) => count < full).map((count) => async (options) => {
    try {
      await promptMs(engine, count, 1, options);
    } finally {
      // Without a slot of its own, it is done before any conversation.
      await emptySlots(engine, options.slot === undefined ? slotsOf(settings) : [options.slot]);
    }
  });
}

function slotsOf({ slots }: WarmUpSettings): readonly number[] {
  return Array.from({ length: slots }, (_, slot) => slot);
}

/** Tokens that a prompt may have. */
function roomOf({ info }: LaterEngine): number {
  return info.contextSize - GENERATED_TOKENS - 1;
}

/** A sample of each kind of media that the model takes. */
function mediaOf({ info }: EngineCore): MediaPart[] {
  return [
    ...(info.hasImageInput ? [{ type: "image", data: bytesOf(IMAGE) } as const] : []),
    ...(info.hasAudioInput ? [{ type: "audio", data: bytesOf(SOUND) } as const] : []),
  ];
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** Processes an image or a recording: the projector has its own shaders. */
async function perceive(engine: EngineCore, part: MediaPart): Promise<void> {
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
    // The template rejects this chat, or the context is too small for it: requests will get that error.
    if (ServiceError.from(error).type !== "invalid_request") throw error;
  }
}

/** Generates after a prompt of this many tokens; returns the duration of the prompt in milliseconds. */
async function promptMs(
  engine: LaterEngine,
  tokens: number,
  generated = GENERATED_TOKENS,
  { signal, slot }: LaterOptions = { signal: NEVER },
): Promise<number> {
  let milliseconds = 0;
  try {
    const onEvent = (event: GenerationEvent): void => {
      if (event.type === "done") milliseconds = event.timings.promptMs;
    };
    await engine.generate({ ...request(tokens, generated), slot }, onEvent, signal);
  } catch (error) {
    // The word is several tokens in this vocabulary: try with fewer words.
    if (tokens === 1 || ServiceError.from(error).code !== "context_length_exceeded") throw error;
    return await promptMs(engine, Math.floor(tokens / 2), generated, { signal, slot });
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
