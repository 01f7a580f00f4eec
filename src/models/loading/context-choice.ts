import type { LoadSettings } from "../../config/load-settings.ts";
import type { ContextSource, GgufSummary } from "../model.ts";

/** The minimum of an engine, as in its schema. */
const SMALLEST_CONTEXT = 16;

/** What every model gets, as far as it was trained for it: chats fit into it, and its cache is small. */
export const BASE_CONTEXT = 4096;

/**
 * Most tokens that are chosen without being asked for. Coding agents begin with 10,000 to 25,000; the cache of more would
 * be memory that few use.
 */
const MOST_AUTOMATIC_CONTEXT = 32_768;

/** Tokens of context, and where that number comes from. */
export interface ContextChoice {
  readonly contextSize: number;
  readonly source: ContextSource;
}

/** Everything that may say how much context a model gets; what comes first wins. */
interface ContextWishes {
  readonly asked: number | undefined;
  readonly ofModel: number | undefined;
  /** 0: automatic. */
  readonly configured: number;
  /** Of the caller, for a model of which nobody has said anything; undefined: automatic. */
  readonly fallback: number | undefined;
}

/** Tokens of context that a model was trained for, or those that RoPE is told to stretch them to; 0: unknown. */
export function reachableContext(
  { contextLength }: Pick<GgufSummary, "contextLength">,
  { ropeFreqScale = 1 }: Pick<LoadSettings, "ropeFreqScale">,
): number {
  return Math.floor(contextLength / ropeFreqScale);
}

/**
 * The contexts to try for a model, the largest first; the last one is used however much memory it takes. What a request
 * or a Modelfile asks for is used as it is; any other choice is at most what the model was trained for.
 */
export function contextChoices(
  { contextLength: trained, purpose }: Pick<GgufSummary, "contextLength" | "purpose">,
  { asked, ofModel, configured, fallback }: ContextWishes,
): readonly [ContextChoice, ...ContextChoice[]] {
  if (asked !== undefined) return [{ contextSize: asked, source: "request" }];
  if (ofModel !== undefined) return [{ contextSize: ofModel, source: "modelfile" }];
  const upToTrained = (contextSize: number, source: ContextSource): ContextChoice =>
    trained > 0 && trained <= contextSize
      ? { contextSize: Math.max(SMALLEST_CONTEXT, trained), source: "trained" }
      : { contextSize, source };
  if (configured > 0) return [upToTrained(configured, "configuration")];
  if (fallback !== undefined) return [upToTrained(fallback, "default")];
  // An encoder reads a text in one step, so its context decides on the memory of that step; and nobody knows what a model
  // whose header does not say it was trained for makes of more.
  const most =
    trained > 0 && purpose === "generate"
      ? upToTrained(MOST_AUTOMATIC_CONTEXT, "automatic")
      : upToTrained(BASE_CONTEXT, "automatic");
  const smaller: ContextChoice[] = [];
  for (let size = MOST_AUTOMATIC_CONTEXT / 2; size >= BASE_CONTEXT; size /= 2) {
    if (size < most.contextSize) smaller.push({ contextSize: size, source: "memory" });
  }
  return [most, ...smaller];
}

/** Share of the memory that a model with the base context leaves free which a larger one may take. */
const LARGER_CONTEXT_SHARE = 1 / 2;

/** Most bytes that it may take, of the machine's memory and the GPU's together: they are written when the model is loaded. */
const MOST_LARGER_BYTES = 4 * 1024 ** 3;

/**
 * Whether a larger context takes little enough memory to be chosen without being asked for.
 * @param bytes what the engine needs with it
 * @param baseBytes what it needs with the base context
 * @param freeBytes what all engines together may use, less what the others have
 */
export function isAffordable(bytes: number, baseBytes: number, freeBytes: number): boolean {
  const more = bytes - baseBytes;
  return more <= Math.min(MOST_LARGER_BYTES, (freeBytes - baseBytes) * LARGER_CONTEXT_SHARE);
}
