import type { GenerationEvent, Timings, Usage } from "../engine/protocol/generation.ts";
import { firstTokens, isTextDelta, tokenTexts } from "../engine/protocol/piece.ts";
import type { EventReader } from "./stream-filters.ts";

interface RepetitionOptions {
  /** Called once, when an answer is stopped. */
  readonly onRepetition: () => void;
  /** Milliseconds since any origin. */
  readonly now: () => number;
}

/**
 * Ends an answer that runs in circles, as if it had reached its length. Has to be the first reader, so that it sees every
 * token: text, reasoning and calls alike.
 */
export function stopRepetition({ onRepetition, now }: RepetitionOptions): EventReader {
  const finder = new RepetitionFinder();
  const startedAt = now();
  let firstAt: number | undefined;
  const usage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
  let isOver = false;
  return (event) => {
    if (isOver) return [];
    if (event.type === "prompt-progress") {
      usage.promptTokens = event.total;
      usage.cachedTokens = event.cached ?? 0;
    }
    if (!isTextDelta(event)) return [event];
    firstAt ??= now();
    for (const [at, text] of tokenTexts(event).entries()) {
      usage.completionTokens += 1;
      if (event.type === "reasoning-delta") usage.reasoningTokens += 1;
      if (!finder.add(text)) continue;
      isOver = true;
      onRepetition();
      const timings = { promptMs: firstAt - startedAt, completionMs: now() - firstAt };
      return [firstTokens(event, at + 1), ended(usage, timings)];
    }
    return [event];
  };
}

function ended(usage: Usage, timings: Timings): GenerationEvent {
  return { type: "done", reason: "length", usage: { ...usage }, timings };
}

/** A repetition is looked for where so many tokens come a second time. */
const WINDOW = 16;

/** Fewer than this many times is emphasis or a coincidence. */
const LEAST_REPEATS = 4;

/** Tables and code have equal lines, but not for so many tokens; a loop that has lasted so long does not end by itself. */
const LEAST_TOKENS = 512;

/** Of a few tokens, such as blanks and line breaks, a text has no long row. */
const FEW = 4;
const LEAST_TOKENS_OF_FEW = 256;

/** Data may have one: zeros in an array, a mask, a table of bytes. */
const LEAST_TOKENS_OF_DATA = 4096;

/** Numbers and marks, perhaps with single letters, as in hexadecimal numbers. */
const DIGIT = /\d/;
const WORD = /\p{L}{2}/u;

const HASH_FACTOR = 0x01_00_01_93;

interface Candidate {
  /** Tokens from one repeat to the next. */
  readonly period: number;
  /** Tokens that are part of the repetition. */
  tokens: number;
  /** With so many it is a loop; known once there are enough for the shortest loop. */
  least: number | undefined;
}

/**
 * Notices when the tokens of a text repeat exactly and do not stop: a span of any length at least four times, in 512 tokens
 * at least; in 256 if the span has up to four, in 4096 if it is numbers without words. Takes constant time for each token: where 16 tokens are the same as 16 before,
 * the distance is the period, and the tokens that follow confirm or refute it.
 */
export class RepetitionFinder {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];
  readonly #tokens: number[] = [];
  /** Where a window of tokens was last, by its hash. */
  readonly #places = new Map<number, number>();
  #hash = 0;
  readonly #factorOfFirst = power(HASH_FACTOR, WINDOW);
  #candidate: Candidate | undefined;

  /** Takes the next token's text; true when the text runs in circles. */
  add(text: string): boolean {
    const at = this.#tokens.length;
    this.#tokens.push(this.#numberOf(text));
    const place = this.#placeOfWindow(at);
    this.#candidate = this.#continued(at) ?? (place === undefined ? undefined : this.#begun(at, at - place));
    return this.#candidate !== undefined && this.#isLoop(at, this.#candidate);
  }

  #numberOf(text: string): number {
    let number = this.#numbers.get(text);
    if (number === undefined) {
      number = this.#texts.push(text) - 1;
      this.#numbers.set(text, number);
    }
    return number;
  }

  /** Where the last tokens were before; their hash may deceive. */
  #placeOfWindow(at: number): number | undefined {
    const leaving = at >= WINDOW ? this.#tokens[at - WINDOW]! + 1 : 0;
    this.#hash =
      (Math.imul(this.#hash, HASH_FACTOR) + this.#tokens[at]! + 1 - Math.imul(leaving, this.#factorOfFirst)) |
      0;
    if (at + 1 < WINDOW) return undefined;
    const place = this.#places.get(this.#hash);
    this.#places.set(this.#hash, at);
    return place;
  }

  #continued(at: number): Candidate | undefined {
    const candidate = this.#candidate;
    if (!candidate || this.#tokens[at] !== this.#tokens[at - candidate.period]) return undefined;
    candidate.tokens += 1;
    return candidate;
  }

  #begun(at: number, period: number): Candidate | undefined {
    for (let back = 0; back < WINDOW; back++) {
      if (this.#tokens[at - back] !== this.#tokens[at - back - period]) return undefined;
    }
    return { period, tokens: WINDOW + period, least: undefined };
  }

  /** Reads the span's text only once, and not before there are several of it. */
  #isLoop(at: number, candidate: Candidate): boolean {
    const { tokens, period } = candidate;
    if (tokens < Math.max(LEAST_TOKENS_OF_FEW, LEAST_REPEATS * period)) return false;
    candidate.least ??= this.#leastOf(at, period);
    return tokens >= candidate.least;
  }

  #leastOf(at: number, period: number): number {
    const span = this.#tokens.slice(at + 1 - period, at + 1).map((token) => this.#texts[token]);
    const text = span.join("");
    const isData = DIGIT.test(text) && !WORD.test(text);
    const least = period <= FEW ? LEAST_TOKENS_OF_FEW : LEAST_TOKENS;
    return Math.max(isData ? LEAST_TOKENS_OF_DATA : least, LEAST_REPEATS * period);
  }
}

function power(base: number, exponent: number): number {
  let result = 1;
  for (let count = 0; count < exponent; count++) result = Math.imul(result, base);
  return result;
}
