import type { Engine } from "../engine/engine.ts";
import type { TokenIds } from "../engine/protocol/calls.ts";
import type { GenerationRequest, TokenLogprob } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import { decodeWhole, type TokenText, promptFromTokens, splitTokenTexts, toTokenIds } from "./tokens.ts";

/** Limit on tokens per prompt: each takes a decode step and about ten characters of the grammar that forces them. */
const MAX_SCORED_TOKENS = 16_384;

/** Most tokens that one character may be split into. */
const MAX_TOKENS_OF_A_CHARACTER = 8;

/** Largest bias of a request, which outweighs all other logits. */
const MAX_BIAS = 100;

export type ScoringEngine = Pick<Engine, "generate" | "tokenize" | "pieces" | "info">;

/** Token of a prompt. */
export interface PromptToken extends TokenText {
  /** Undefined for the first token, and for all but the last token of a character of several tokens. */
  readonly score: TokenLogprob | undefined;
}

/**
 * Computes the log-probability of each token of a prompt given the ones before it. llama.cpp's server only reports
 * log-probabilities of generated tokens, so a grammar forces it to generate exactly this prompt; the reported values
 * are those before the grammar is applied. Takes one decode step per token. A grammar cannot contain special tokens: a
 * bias forces each of them, and a new grammar begins after it.
 * @param prompt text, or token ids from the client
 * @param alternatives number to report for each token; absent: nothing is scored
 * @returns the prompt's tokens, without the BOS token unless the client sent it
 * @throws ServiceError context_length_exceeded, or invalid_parameter for tokens that no text is tokenized to
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

  /** Returns the shortest prefix of the tokens that is the tokenization of a text. */
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

  /** @returns number of tokens scored so far: up to the first special one, or all */
  async #scoreUnits(prompt: string, from: number): Promise<number> {
    const units = scoredUnits(this.#pieces.slice(from));
    const remaining = units.values();
    let reached = from;
    let next: ScoredUnit | undefined = remaining.next().value;
    if (!next) return this.#pieces.length;
    const collect = (score: TokenLogprob): void => {
      if (!next || score.id !== next.tokens.at(-1)) return;
      reached += next.tokens.length;
      this.#scores[reached - 1] = score;
      next = remaining.next().value;
    };
    const maxTokens = units.reduce((sum, { tokens }) => sum + tokens.length, 0);
    const bias = units.filter(({ tokens }) => tokens.length > 1).flatMap(({ tokens }) => tokens);
    try {
      await this.#generate(prompt, collect, {
        maxTokens,
        format: { type: "grammar", grammar: grammarOf(units) },
        sampling: { temperature: 0, logitBias: [...new Set(bias)].map(certainBias) },
      });
    } catch (error) {
      // A special token, which a grammar cannot contain, ends the generation with this error.
      if (!(error instanceof ServiceError) || error.code !== "inference_failed" || !next) throw error;
    }
    // Only an incomplete character at the end is left.
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
      sampling: { temperature: 0, logitBias: [certainBias(id)] },
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

function certainBias(token: number): { token: number; bias: number } {
  return { token, bias: MAX_BIAS };
}

/** Shortest run of tokens that is valid UTF-8: almost always one token. */
interface ScoredUnit {
  readonly tokens: readonly number[];
  readonly text: string;
}

/** Groups tokens into units; the tokens of an incomplete character at the end are left out. */
function scoredUnits(pieces: readonly TokenText[]): ScoredUnit[] {
  const units: ScoredUnit[] = [];
  let open: TokenText[] = [];
  for (const piece of pieces) {
    open.push(piece);
    const text = decodeWhole(Uint8Array.from(open.flatMap(({ bytes }) => [...bytes])));
    if (text === undefined) continue;
    units.push({ tokens: open.map(({ id }) => id), text });
    open = [];
  }
  return units;
}

/**
 * Writes a GBNF grammar that allows exactly these tokens. A character of several tokens is written as text, because
 * GBNF cannot match such tokens one by one.
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
