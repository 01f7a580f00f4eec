import { mapInTimeSlices } from "../async/timers.ts";
import type { Engine } from "../engine/engine.ts";
import type { TokenIds, TokenPieces } from "../engine/protocol/calls.ts";
import { ServiceError } from "../errors/service-error.ts";

/** Tokens processed before the event loop runs; they take some milliseconds. */
const TOKENS_PER_TIME_SLICE = 4096;

/** Token id and the UTF-8 bytes of its text, which may be part of a character. */
export interface TokenText {
  readonly id: number;
  readonly bytes: Uint8Array;
}

/** Splits bytes into those of each token, in several slices of time, as there may be a million tokens. */
export async function splitTokenTexts(ids: TokenIds, { bytes, ends }: TokenPieces): Promise<TokenText[]> {
  return await mapInTimeSlices([...ids], TOKENS_PER_TIME_SLICE, (id, at) => ({
    id,
    bytes: bytes.subarray(ends[at - 1] ?? 0, ends[at]),
  }));
}

/**
 * Converts ids for the engine, which refuses those outside its vocabulary.
 * @throws ServiceError invalid_parameter with this param for a number that is not an int32
 */
export function toTokenIds(ids: readonly number[] | TokenIds, param: string): TokenIds {
  if (ids instanceof Int32Array) return ids;
  const tokens = Int32Array.from(ids);
  const wrong = ids.find((id, at) => tokens[at] !== id);
  if (wrong === undefined) return tokens;
  throw new ServiceError("invalid_parameter", `${wrong} is not a token id.`, { param });
}

/**
 * Finds a text that llama.cpp tokenizes to exactly these tokens. The tokenizer may add special tokens or a leading
 * space, so the text without them is tried as well; each candidate is tokenized and compared.
 * @param param request field with the tokens
 * @throws ServiceError invalid_parameter with this param if there is no such text
 */
export async function promptFromTokens(
  engine: Pick<Engine, "tokenize" | "pieces">,
  ids: readonly number[] | TokenIds,
  param: string,
  signal: AbortSignal,
): Promise<string> {
  const tokens = toTokenIds(ids, param);
  const tokenize = (text: string): Promise<TokenIds> =>
    engine.tokenize(text, { addSpecial: true, parseSpecial: true }, signal);
  const added = await tokenize("");
  const plain = withoutAdded(tokens, added);
  const { bytes } = await engine.pieces(plain, signal).catch(withParam(param));
  const text = decodeWhole(bytes);
  const candidates = text === undefined ? [] : text.startsWith(" ") ? [text, text.slice(1)] : [text];
  for (const prompt of candidates) {
    if (isEqual(withoutAdded(await tokenize(prompt), added), plain)) return prompt;
  }
  throw new ServiceError(
    "invalid_parameter",
    "These token ids are not what the model's tokenizer makes of any text, and a prompt reaches the model as text; " +
      "send the text itself.",
    { param },
  );
}

/** Removes the special tokens that the vocabulary adds to every text: one in front, or one on each side. */
function withoutAdded(tokens: TokenIds, added: TokenIds): TokenIds {
  const [first, last] = added;
  const begin = first !== undefined && tokens[0] === first ? 1 : 0;
  const end = last !== undefined && tokens.length > begin && tokens.at(-1) === last ? -1 : undefined;
  return tokens.subarray(begin, end);
}

/** Rethrows an error of the engine with the client's name of the field. */
function withParam(param: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof ServiceError) || error.param === undefined) throw error;
    throw new ServiceError(error.code, error.message, { param, cause: error });
  };
}

/** Decodes UTF-8; undefined if a character at one of the ends is incomplete. */
export function decodeWhole(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function isEqual(left: Int32Array, right: Int32Array): boolean {
  return left.length === right.length && left.every((token, at) => token === right[at]);
}
