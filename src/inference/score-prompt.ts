import type { Engine } from "../engine/engine.ts";
import type { TokenIds } from "../engine/protocol/calls.ts";
import type { GenerationRequest, TokenLogprob } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import { type TokenText, promptFromTokens, splitTokenTexts, toTokenIds } from "./tokens.ts";

/** Each takes a step, and the grammar that forces them grows by about ten characters. */
const MAX_SCORED_TOKENS = 16_384;

/** A first character may be spread over several tokens, which no text gives one by one. */
const MAX_TOKENS_OF_A_CHARACTER = 8;

/** The greatest bias that a request may have: no model is so sure of anything else. */
const CERTAIN = 100;

export type ScoringEngine = Pick<Engine, "generate" | "tokenize" | "pieces" | "info">;

/** A token of a prompt. */
export interface PromptToken extends TokenText {
  /** Undefined for the first, and where llama.cpp reports none: within a character that is spread over several tokens. */
  readonly score: TokenLogprob | undefined;
}

/**
 * Finds the log-probability of each token of a prompt after those before it. llama.cpp's server only reports those of tokens
 * that it generates, so it has to generate exactly these: a grammar allows nothing else, and the reported log-probabilities
 * are those before the grammar. It takes one step per token. A special token is not possible within a grammar: a bias makes
 * it certain, and a new grammar begins after it.
 * @param prompt a text, or tokens as the client has made them
 * @param alternatives how many to report for each token; absent: nothing is scored
 * @returns the prompt's tokens, without the one that the vocabulary puts before every text, unless the client sent it
 * @throws ServiceError context_length_exceeded, or invalid_parameter for tokens that no text gives
 */
export async function scorePrompt(
  engine: ScoringEngine,
  prompt: string | readonly number[],
  alternatives: number | undefined,
  signal: AbortSignal,
): Promise<{ shown: PromptToken[]; tokens: number }> {
  const tokenize = (text: string): Promise<TokenIds> =>
    engine.tokenize(text, { addSpecial: true, parseSpecial: true }, signal);
  const tokens = typeof prompt === "string" ? await tokenize(prompt) : toTokenIds(prompt, "prompt");
  checkLength(tokens.length, engine.info.contextSize);
  const [begin] = await tokenize("");
  const pieces = await splitTokenTexts(tokens, await engine.pieces(tokens, signal));
  const scores =
    alternatives === undefined ? [] : await new Scoring(engine, pieces, alternatives, signal).scores();
  const hidden = typeof prompt === "string" && begin !== undefined && tokens[0] === begin ? 1 : 0;
  const shown = pieces.map(({ id, bytes }, at) => ({
    id,
    bytes,
    score: at === hidden ? undefined : scores[at],
  }));
  return { shown: shown.slice(hidden), tokens: tokens.length };
}

function checkLength(count: number, contextSize: number): void {
  if (count >= contextSize) {
    throw new ServiceError(
      "context_length_exceeded",
      `The prompt has ${count} tokens and does not fit into the context of ${contextSize} tokens.`,
    );
  }
  if (count > MAX_SCORED_TOKENS) {
    throw new ServiceError(
      "invalid_parameter",
      `echo with logprobs takes at most ${MAX_SCORED_TOKENS} tokens, and the prompt has ${count}; send it in parts.`,
      { param: "prompt" },
    );
  }
}

class Scoring {
  readonly #engine: ScoringEngine;
  readonly #pieces: readonly TokenText[];
  readonly #tokens: TokenIds;
  readonly #alternatives: number;
  readonly #signal: AbortSignal;
  readonly #scores: (TokenLogprob | undefined)[];

  constructor(
    engine: ScoringEngine,
    pieces: readonly TokenText[],
    alternatives: number,
    signal: AbortSignal,
  ) {
    this.#engine = engine;
    this.#pieces = pieces;
    this.#tokens = Int32Array.from(pieces, ({ id }) => id);
    this.#alternatives = alternatives;
    this.#signal = signal;
    this.#scores = pieces.map(() => undefined);
  }

  async scores(): Promise<readonly (TokenLogprob | undefined)[]> {
    let { prompt, length } = await this.#beginning();
    while (length < this.#pieces.length) {
      const reached = await this.#scoreUnits(prompt, length);
      if (reached >= this.#pieces.length) break;
      await this.#scoreSpecial(await this.#textOf(reached), reached);
      length = reached + 1;
      if (length < this.#pieces.length) prompt = await this.#textOf(length);
    }
    return this.#scores;
  }

  /** The shortest prompt that the tokens begin with. */
  async #beginning(): Promise<{ prompt: string; length: number }> {
    for (let length = 1; ; length += 1) {
      try {
        return { prompt: await this.#textOf(length), length };
      } catch (error) {
        const isLast = length >= Math.min(MAX_TOKENS_OF_A_CHARACTER, this.#pieces.length);
        if (isLast || !(error instanceof ServiceError)) throw error;
      }
    }
  }

  #textOf(length: number): Promise<string> {
    return promptFromTokens(this.#engine, this.#tokens.subarray(0, length), "prompt", this.#signal);
  }

  /** @returns how many tokens are behind it: up to the first special one, or all */
  async #scoreUnits(prompt: string, from: number): Promise<number> {
    const units = scoredUnits(this.#pieces.slice(from));
    const waiting = units.values();
    let reached = from;
    let next: ScoredUnit | undefined = waiting.next().value;
    if (!next) return this.#pieces.length;
    const take = (score: TokenLogprob): void => {
      if (!next || score.id !== next.tokens.at(-1)) return;
      reached += next.tokens.length;
      this.#scores[reached - 1] = score;
      next = waiting.next().value;
    };
    const maxTokens = units.reduce((sum, { tokens }) => sum + tokens.length, 0);
    const bias = units.filter(({ tokens }) => tokens.length > 1).flatMap(({ tokens }) => tokens);
    try {
      await this.#generate(prompt, take, {
        maxTokens,
        format: { type: "grammar", grammar: grammarOf(units) },
        sampling: { temperature: 0, logitBias: [...new Set(bias)].map(certain) },
      });
    } catch (error) {
      // A token that is not possible in a grammar ends the generation with this.
      if (!(error instanceof ServiceError) || error.code !== "inference_failed" || !next) throw error;
    }
    // What is left is part of a character, at the end.
    return next ? reached : this.#pieces.length;
  }

  async #scoreSpecial(prompt: string, at: number): Promise<void> {
    const id = this.#tokens[at]!;
    const take = (score: TokenLogprob): void => {
      if (score.id === id) this.#scores[at] = score;
    };
    await this.#generate(prompt, take, {
      maxTokens: 1,
      format: { type: "text" },
      sampling: { temperature: 0, logitBias: [certain(id)] },
    });
  }

  async #generate(
    prompt: string,
    take: (score: TokenLogprob) => void,
    how: Pick<GenerationRequest, "maxTokens" | "format" | "sampling">,
  ): Promise<void> {
    const request: GenerationRequest = {
      input: { kind: "prompt", prompt },
      stop: [],
      logprobs: this.#alternatives,
      cachePrompt: true,
      ...how,
    };
    await this.#engine.generate(
      request,
      (event) => {
        if (event.type === "text-delta") event.logprobs?.forEach(take);
      },
      this.#signal,
    );
  }
}

function certain(token: number): { token: number; bias: number } {
  return { token, bias: CERTAIN };
}

/** Tokens that are whole characters together: almost always one. */
interface ScoredUnit {
  readonly tokens: readonly number[];
  readonly text: string;
}

/** The units of tokens in their order; those of a character that is cut off at the end are left out. */
function scoredUnits(pieces: readonly TokenText[]): ScoredUnit[] {
  const units: ScoredUnit[] = [];
  let open: TokenText[] = [];
  for (const piece of pieces) {
    open.push(piece);
    const text = wholeText(open);
    if (text === undefined) continue;
    units.push({ tokens: open.map(({ id }) => id), text });
    open = [];
  }
  return units;
}

/** Undefined while part of a character is missing. */
function wholeText(pieces: readonly TokenText[]): string | undefined {
  try {
    const bytes = pieces.flatMap((piece) => [...piece.bytes]);
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch {
    return undefined;
  }
}

/**
 * A grammar in llama.cpp's GBNF that allows exactly these tokens. A character of several tokens is spelled out, because
 * such tokens do not match one by one.
 */
function grammarOf(units: readonly ScoredUnit[]): string {
  const parts = units.map(({ tokens, text }) =>
    tokens.length === 1 ? `<[${tokens[0]}]>` : `"${Array.from(text, escaped).join("")}"`,
  );
  return `root ::= ${parts.join(" ")}`;
}

function escaped(character: string): string {
  return `\\U${character.codePointAt(0)!.toString(16).padStart(8, "0")}`;
}
