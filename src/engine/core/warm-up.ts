import { ServiceError } from "../../errors/service-error.ts";
import type { GenerationEvent, GenerationRequest } from "../protocol/generation.ts";
import type { EngineCore } from "./engine-core.ts";
import { type EngineSettings, fullStep } from "./load-parameters.ts";

/** One token in almost every vocabulary. */
const WORD = " a";

/** The first token comes with the prompt; the steps after it are all alike. */
const GENERATED_TOKENS = 2;

/**
 * llama.cpp has a program for each small number of tokens in a step, and one for all larger numbers. Small steps are
 * the rest of a prompt and, more often, several slots that generate at once.
 */
const SMALL_STEPS = [1, 2, 3, 4, 5, 6];

/** More than the small numbers of tokens, for texts that are computed with as a whole. */
const LONGER_TEXT = WORD.repeat(12);

/** A first step that is over within this time, compiling included, is short enough however long the next are. */
const SHORT_STEP_MS = 1000;

/** A gray PNG of 16 by 16 pixels; a projector scales images to its own size. */
const IMAGE =
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAAAAAA6mKC9AAAAD0lEQVR42mNoQAMMI1sAAAUMgAHjM1mKAAAAAElFTkSuQmCC";

/**
 * Has a GPU compile the programs that requests need: llama.cpp does that when it first uses one, and the first
 * requests would pay for it.
 * @param onProgress called after each request
 * @returns longest time of a full prefill step in milliseconds; undefined for a model that is given whole texts
 */
export async function warmUp(
  engine: EngineCore,
  settings: Pick<EngineSettings, "purpose" | "batchSize" | "slots">,
  onProgress: () => void = () => {},
): Promise<number | undefined> {
  const room = engine.info.contextSize - GENERATED_TOKENS - 1;
  const never = new AbortController().signal;
  const { purpose } = settings;
  if (purpose !== "generate") {
    for (const text of [WORD, LONGER_TEXT].filter(({ length }) => length / WORD.length < room)) {
      await (purpose === "embed" ? engine.embed(text, never) : engine.rerank(WORD, text, never));
      onProgress();
    }
    return undefined;
  }
  const full = Math.min(fullStep(settings), room);
  const first = await promptMs(engine, full);
  for (const tokens of SMALL_STEPS.filter((count) => count < full)) {
    onProgress();
    await promptMs(engine, tokens);
  }
  if (engine.info.hasImageInput) {
    onProgress();
    await see(engine);
  }
  onProgress();
  return first < SHORT_STEP_MS ? first : await promptMs(engine, full);
}

/** Processes an image: the projector has its own programs. */
async function see(engine: EngineCore): Promise<void> {
  const data = Uint8Array.from(atob(IMAGE), (character) => character.charCodeAt(0));
  const input: GenerationRequest["input"] = {
    kind: "chat",
    messages: [
      {
        role: "user",
        content: [
          { type: "image", data },
          { type: "text", text: WORD },
        ],
      },
    ],
    tools: [],
    toolChoice: "none",
    parallelToolCalls: false,
  };
  try {
    await engine.generate({ ...request(0), input }, () => undefined, new AbortController().signal);
  } catch (error) {
    // A template that does not take this chat, or a context too small for an image: requests will be told so.
    if (ServiceError.from(error).type !== "invalid_request") throw error;
  }
}

/** Generates after a prompt of this many tokens; resolves to the prompt's milliseconds. */
async function promptMs(engine: EngineCore, tokens: number): Promise<number> {
  let milliseconds = 0;
  try {
    const onEvent = (event: GenerationEvent): void => {
      if (event.type === "done") milliseconds = event.timings.promptMs;
    };
    await engine.generate(request(tokens), onEvent, new AbortController().signal);
  } catch (error) {
    // A vocabulary in which the word is several tokens: with fewer words, a full step still fits into the context.
    if (tokens === 1 || ServiceError.from(error).code !== "context_length_exceeded") throw error;
    return await promptMs(engine, Math.floor(tokens / 2));
  }
  return milliseconds;
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
