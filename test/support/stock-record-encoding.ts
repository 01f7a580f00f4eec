import type { TokenLogprob } from "../../src/engine/protocol/generation.ts";

/**
 * Log-probabilities in a seventh of the size of their JSON, as precisely as llama.cpp computes them: tokens are
 * numbers of a table that all share.
 */

/** Text and, as far as the engine reports them, bytes. */
export type SpokenToken = readonly [token: string, bytes: readonly number[] | null];

/** Stands for the number of a token. */
export const UNRECORDED = -1;

/** Alternatives at each position. */
const ALTERNATIVES = 20;
/** The chosen token comes first. */
const TOKENS_AT_POSITION = 1 + ALTERNATIVES;
/** A token's number in 16 bits, its log-probability in 32. */
const TOKEN_BYTES = 6;

/** The tokens that are spoken of, each once. */
export class TokenTable {
  readonly tokens: SpokenToken[] = [];
  readonly #numbers = new Map<string, number>();

  constructor(tokens: readonly SpokenToken[] = []) {
    for (const token of tokens) this.numberOf(token);
  }

  numberOf(token: SpokenToken): number {
    const key = JSON.stringify(token);
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#numbers.set(key, this.tokens.length);
    return this.tokens.push(token) - 1;
  }
}

/**
 * Base64 of one position after another; tokens that the table lacks are added to it.
 * @throws RangeError when a position has not twenty alternatives
 */
export function encodeLogprobs(said: readonly TokenLogprob[], table: TokenTable): string {
  const bytes = Buffer.alloc(said.length * TOKENS_AT_POSITION * TOKEN_BYTES);
  let at = 0;
  for (const { top, ...chosen } of said) {
    if (top.length !== ALTERNATIVES)
      throw new RangeError(`${top.length} alternatives to ${JSON.stringify(chosen.token)}`);
    for (const each of [chosen, ...top]) {
      at = bytes.writeUInt16LE(table.numberOf([each.token, each.bytes]), at);
      at = bytes.writeFloatLE(each.logprob, at);
    }
  }
  return bytes.toString("base64");
}

/** The opposite of {@link encodeLogprobs}. */
export function decodeLogprobs(encoded: string, tokens: readonly SpokenToken[]): TokenLogprob[] {
  const buffer = Buffer.from(encoded, "base64");
  const each = Array.from({ length: buffer.length / TOKEN_BYTES }, (_, index) => {
    const at = index * TOKEN_BYTES;
    const [token, bytes] = tokens[buffer.readUInt16LE(at)]!;
    return {
      id: UNRECORDED,
      token,
      bytes: bytes === null ? null : [...bytes],
      logprob: buffer.readFloatLE(at + 2),
    };
  });
  return Array.from({ length: each.length / TOKENS_AT_POSITION }, (_, position) => {
    const [chosen, ...top] = each.slice(position * TOKENS_AT_POSITION, (position + 1) * TOKENS_AT_POSITION);
    return { ...chosen!, top };
  });
}
