import type { Engine } from "../engine/engine.ts";
import type { EmbeddingResult } from "../engine/protocol/calls.ts";
import { ServiceError } from "../errors/service-error.ts";

type CuttingEngine = Pick<Engine, "embed" | "tokenize" | "pieces" | "info" | "spec">;

/** Characters per usable token that are certainly enough. */
const CHARACTERS_PER_TOKEN = 64;
/** Share of a text to try next, if tokens cannot be counted. */
const SHORTER = 0.75;

/**
 * Embeds a text, or as many of its first tokens as the engine can process at once. A truncated text may have one token more
 * than counted in the whole text; then a little less is tried.
 */
export async function embedTruncated(
  engine: CuttingEngine,
  text: string,
  signal: AbortSignal,
): Promise<EmbeddingResult> {
  const whole = await embedIfFits(engine, text, signal);
  if (whole) return whole;
  const cut = await embedFirstTokens(engine, text, signal).catch((error: unknown) => {
    // The stock WASM has no tokenizer to truncate with.
    if (!(error instanceof ServiceError) || error.code !== "unsupported_feature") throw error;
    return embedFirstCharacters(engine, text, signal);
  });
  if (cut) return cut;
  throw new ServiceError("context_length_exceeded", "The text does not fit, not even its beginning.");
}

async function embedFirstTokens(
  engine: CuttingEngine,
  text: string,
  signal: AbortSignal,
): Promise<EmbeddingResult | undefined> {
  const limit = Math.min(engine.info.contextSize, engine.spec.batchSize);
  const begin = text.slice(0, limit * CHARACTERS_PER_TOKEN);
  const ids = await engine.tokenize(begin, { addSpecial: false, parseSpecial: true }, signal);
  const { bytes, ends } = await engine.pieces(ids.subarray(0, limit), signal);
  const added = await engine.tokenize("", { addSpecial: true, parseSpecial: true }, signal);
  for (let kept = limit - added.length, less = 1; kept > 0; kept -= less, less *= 2) {
    // Decoded as a part of a stream, so that half a character at the end is left out.
    const part = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, ends[kept - 1]), {
      stream: true,
    });
    const result = await embedIfFits(engine, part, signal);
    if (result) return result;
  }
  return undefined;
}

async function embedFirstCharacters(
  engine: CuttingEngine,
  text: string,
  signal: AbortSignal,
): Promise<EmbeddingResult | undefined> {
  const longest = Math.min(engine.info.contextSize, engine.spec.batchSize) * CHARACTERS_PER_TOKEN;
  for (let length = Math.min(text.length, longest); length > 0; length = Math.floor(length * SHORTER)) {
    const result = await embedIfFits(engine, text.slice(0, length).toWellFormed(), signal);
    if (result) return result;
  }
  return undefined;
}

async function embedIfFits(
  engine: Pick<Engine, "embed">,
  text: string,
  signal: AbortSignal,
): Promise<EmbeddingResult | undefined> {
  try {
    return await engine.embed(text, signal);
  } catch (error) {
    if (error instanceof ServiceError && error.code === "context_length_exceeded") return undefined;
    throw error;
  }
}
