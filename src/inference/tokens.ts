import type { Engine } from "../engine/engine.ts";
import type { TokenIds, TokenPieces } from "../engine/protocol/tokens.ts";
import { ServiceError } from "../errors/service-error.ts";

/** A token and what it stands for: a part of a character cannot be a text. */
export interface Piece {
  readonly id: number;
  readonly bytes: Uint8Array;
}

export function splitPieces(ids: TokenIds, { bytes, ends }: TokenPieces): Piece[] {
  return Array.from(ids, (id, at) => ({ id, bytes: bytes.subarray(ends[at - 1] ?? 0, ends[at]) }));
}

/** Ids as the engine takes them; it says itself which of them its vocabulary does not have. */
export function toTokenIds(ids: readonly number[], param: string): TokenIds {
  const tokens = Int32Array.from(ids);
  const wrong = ids.find((id, at) => tokens[at] !== id);
  if (wrong === undefined) return tokens;
  throw new ServiceError("invalid_parameter", `There is no token ${wrong}.`, { param });
}

/**
 * The text that the engine turns into exactly these tokens: prompts go to llama.cpp as text, to which its tokeniser
 * adds what the vocabulary asks for at the beginning, a token or a blank. So a text without those is tried as well,
 * and each is tokenised and compared. Tokens that no text gives are refused rather than replaced by others.
 * @throws ServiceError invalid_parameter with param prompt
 */
export async function exactPrompt(
  engine: Pick<Engine, "tokenize" | "pieces">,
  ids: readonly number[],
  signal: AbortSignal,
): Promise<string> {
  const tokens = toTokenIds(ids, "prompt");
  const pieces = splitPieces(tokens, await engine.pieces(tokens, signal).catch(blamePrompt));
  const [added] = await engine.tokenize("", { addSpecial: true, parseSpecial: true }, signal);
  const isBegun = added !== undefined && tokens[0] === added;
  const text = decode(isBegun ? pieces.slice(1) : pieces);
  const candidates = text === undefined ? [] : text.startsWith(" ") ? [text, text.slice(1)] : [text];
  for (const prompt of candidates) {
    const back = await engine.tokenize(prompt, { addSpecial: true, parseSpecial: true }, signal);
    if (isEqual(back, tokens)) return prompt;
    // The vocabulary has every prompt begin with this token, which the tokens given do not.
    if (added !== undefined && !isBegun && back[0] === added && isEqual(back.subarray(1), tokens))
      return prompt;
  }
  throw new ServiceError(
    "invalid_parameter",
    "These token ids are not what the model's tokeniser makes of any text, and a prompt reaches the model as text; " +
      "send the text itself.",
    { param: "prompt" },
  );
}

/** To the engine they are tokens, to the client its prompt. */
function blamePrompt(error: unknown): never {
  if (!(error instanceof ServiceError) || error.param === undefined) throw error;
  throw new ServiceError(error.code, error.message, { param: "prompt", cause: error });
}

function decode(pieces: readonly Piece[]): string | undefined {
  try {
    const whole = Buffer.concat(pieces.map(({ bytes }) => bytes));
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(whole);
  } catch {
    return undefined; // a part of a character is at one of the ends
  }
}

function isEqual(some: Int32Array, others: Int32Array): boolean {
  return some.length === others.length && some.every((token, at) => token === others[at]);
}
