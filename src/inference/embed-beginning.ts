import type { Engine } from "../engine/engine.ts";
import type { EmbeddingResult } from "../engine/protocol/engine-spec.ts";
import { ServiceError } from "../errors/service-error.ts";

/** A text so long for each token that may be used holds more than enough of them. */
const CHARACTERS_PER_TOKEN = 64;

/**
 * Embeds a text, or of one that is too long as many of its first tokens as the engine takes at once. A text that is
 * cut may have a token more than was counted in the whole: then a little less is taken.
 */
export async function embedBeginning(
  engine: Pick<Engine, "embed" | "tokenize" | "pieces" | "info" | "spec">,
  text: string,
  signal: AbortSignal,
): Promise<EmbeddingResult> {
  const whole = await embedIfFits(engine, text, signal);
  if (whole) return whole;
  const limit = Math.min(engine.info.contextSize, engine.spec.batchSize);
  const begin = text.slice(0, limit * CHARACTERS_PER_TOKEN);
  const ids = await engine.tokenize(begin, { addSpecial: false, parseSpecial: true }, signal);
  const { bytes, ends } = await engine.pieces(ids.subarray(0, limit), signal);
  const added = await engine.tokenize("", { addSpecial: true, parseSpecial: true }, signal);
  for (let kept = limit - added.length, less = 1; kept > 0; kept -= less, less *= 2) {
    // As the piece of a stream, so that half a character at the end is left out.
    const part = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, ends[kept - 1]), {
      stream: true,
    });
    const result = await embedIfFits(engine, part, signal);
    if (result) return result;
  }
  throw new ServiceError("context_length_exceeded", `Not even the beginning of the text fits.`);
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
