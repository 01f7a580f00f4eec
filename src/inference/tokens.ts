import { mapInTimeSlices } from "../async/timers.ts";
import type { Engine } from "../engine/engine.ts";
import type { TokenIds, TokenPieces } from "../engine/protocol/calls.ts";
import { ServiceError } from "../errors/service-error.ts";

/** This many take some milliseconds. */
const PIECES_IN_A_TURN = 4096;

/** A token and its text, or its bytes if they are only part of a character. */
export interface TokenText {
  readonly id: number;
  readonly bytes: Uint8Array;
}

/** Splits bytes into those of each token, over several turns of the event loop, as there may be a million. */
export async function splitTokenTexts(ids: TokenIds, { bytes, ends }: TokenPieces): Promise<TokenText[]> {
  return await mapInTimeSlices([...ids], PIECES_IN_A_TURN, (id, at) => ({
    id,
    bytes: bytes.subarray(ends[at - 1] ?? 0, ends[at]),
  }));
}

/** Ids for the engine, which refuses those that are not in its vocabulary. */
export function toTokenIds(ids: readonly number[] | TokenIds, param: string): TokenIds {
  if (ids instanceof Int32Array) return ids;
  const tokens = Int32Array.from(ids);
  const wrong = ids.find((id, at) => tokens[at] !== id);
  if (wrong === undefined) return tokens;
  throw new ServiceError("invalid_parameter", `${wrong} is not a token id.`, { param });
}

/**
 * Finds a text that llama.cpp tokenizes to exactly these tokens. The tokenizer adds the tokens or the space that the
 * vocabulary requires, so the text without those is tried as well; each is tokenized and compared. Tokens that no text
 * produces are refused.
 * @param param the request's field that holds the tokens
 * @throws ServiceError invalid_parameter with this param
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
  const bare = withoutAdded(tokens, added);
  const { bytes } = await engine.pieces(bare, signal).catch(blame(param));
  const text = decode(bytes);
  const candidates = text === undefined ? [] : text.startsWith(" ") ? [text, text.slice(1)] : [text];
  for (const prompt of candidates) {
    if (isEqual(withoutAdded(await tokenize(prompt), added), bare)) return prompt;
  }
  throw new ServiceError(
    "invalid_parameter",
    "These token ids are not what the model's tokenizer makes of any text, and a prompt reaches the model as text; " +
      "send the text itself.",
    { param },
  );
}

/** Tokens without those that the vocabulary adds to every text: one in front, or one on each side. */
function withoutAdded(tokens: TokenIds, added: TokenIds): TokenIds {
  const [first, last] = added;
  const begin = first !== undefined && tokens[0] === first ? 1 : 0;
  const end = last !== undefined && tokens.length > begin && tokens.at(-1) === last ? -1 : undefined;
  return tokens.subarray(begin, end);
}

/** To the engine they are tokens, to the client its prompt or input. */
function blame(param: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof ServiceError) || error.param === undefined) throw error;
    throw new ServiceError(error.code, error.message, { param, cause: error });
  };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined; // there is part of a character at one of the ends
  }
}

function isEqual(some: Int32Array, others: Int32Array): boolean {
  return some.length === others.length && some.every((token, at) => token === others[at]);
}
