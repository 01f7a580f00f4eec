import type { GenerationEvent, Timings, Usage } from "../engine/protocol/generation.ts";
import { firstTokens, isTextDelta, tokenTexts } from "../engine/protocol/text-delta.ts";
import type { EventFilter } from "./stream-filters.ts";

interface RepetitionOptions {
  /** Called once if the answer is stopped. */
  readonly onRepetition: () => void;
  /** Milliseconds since any origin. */
  readonly now: () => number;
}

/**
 * Creates a filter that ends a repetitive answer with the reason "length". It must be the first filter, so that it sees
 * every token of text, reasoning and calls.
 */
export function stopRepetition({ onRepetition, now }: RepetitionOptions): EventFilter {
  const finder = new RepetitionFinder();
  const startedAt = now();
  let firstAt: number | undefined;
  const usage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
  let isStopped = false;
  return (event) => {
    if (isStopped) return [];
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
      isStopped = true;
      onRepetition();
      const timings = { promptMs: firstAt - startedAt, completionMs: now() - firstAt };
      return [firstTokens(event, at + 1), doneEvent(usage, timings)];
    }
    return [event];
  };
}

function doneEvent(usage: Usage, timings: Timings): GenerationEvent {
  return { type: "done", reason: "length", usage: { ...usage }, timings };
}

/** Number of tokens in a row that must recur to start a candidate. */
const WINDOW = 16;

/** Fewer repeats are emphasis or coincidence. */
const MIN_REPEATS = 4;

/** Minimum length of a loop: tables and code have equal lines, but not for this many tokens. */
const MIN_LOOP_TOKENS = 512;

/** Periods up to this, such as repeated line breaks, need fewer tokens. */
const SHORT_PERIOD = 4;
const MIN_SHORT_LOOP_TOKENS = 256;

/** Minimum length of a loop of data, such as zeros in an array, a mask, or a table of bytes. */
const MIN_DATA_LOOP_TOKENS = 4096;

/**
 * Patterns that tell data from text: data has digits and no words, but may have single letters, as hexadecimal does.
 */
const DIGIT = /\d/;
const WORD = /\p{L}{2}/u;

const HASH_FACTOR = 0x01_00_01_93;

interface Candidate {
  /** Tokens from one repeat to the next. */
  readonly period: number;
  /** Tokens that are part of the repetition. */
  tokens: number;
  /** Tokens at which it is a loop; computed once there are enough for the shortest loop. */
  minTokens: number | undefined;
}

/**
 * Detects exact repetition: a span of tokens that recurs at least four times in a row over at least 512 tokens, or 256
 * if the span has up to four tokens, or 4096 if it is data without words. Takes constant time per token: if the last 16
 * tokens occurred before, the distance is a candidate period, which the following tokens confirm or refute.
 */
export class RepetitionFinder {
  readonly #idsByText = new Map<string, number>();
  readonly #texts: string[] = [];
  readonly #tokens: number[] = [];
  /** Last position of a window of tokens, by its hash. */
  readonly #lastPositions = new Map<number, number>();
  #hash = 0;
  readonly #factorOfFirst = power(HASH_FACTOR, WINDOW);
  #candidate: Candidate | undefined;

  /** Adds the next token's text; returns true if the text is in a loop. */
  add(text: string): boolean {
    const at = this.#tokens.length;
    this.#tokens.push(this.#idOf(text));
    const position = this.#previousPosition(at);
    this.#candidate =
      this.#extendCandidate(at) ??
      (position === undefined ? undefined : this.#startCandidate(at, at - position));
    return this.#candidate !== undefined && this.#isLoop(at, this.#candidate);
  }

  #idOf(text: string): number {
    let number = this.#idsByText.get(text);
    if (number === undefined) {
      number = this.#texts.push(text) - 1;
      this.#idsByText.set(text, number);
    }
    return number;
  }

  /** Previous position of the last tokens; may be wrong if hashes collide. */
  #previousPosition(at: number): number | undefined {
    const leaving = at >= WINDOW ? this.#tokens[at - WINDOW]! + 1 : 0;
    this.#hash =
      (Math.imul(this.#hash, HASH_FACTOR) + this.#tokens[at]! + 1 - Math.imul(leaving, this.#factorOfFirst)) |
      0;
    if (at + 1 < WINDOW) return undefined;
    const position = this.#lastPositions.get(this.#hash);
    this.#lastPositions.set(this.#hash, at);
    return position;
  }

  #extendCandidate(at: number): Candidate | undefined {
    const candidate = this.#candidate;
    if (!candidate || this.#tokens[at] !== this.#tokens[at - candidate.period]) return undefined;
    candidate.tokens += 1;
    return candidate;
  }

  #startCandidate(at: number, period: number): Candidate | undefined {
    for (let back = 0; back < WINDOW; back++) {
      if (this.#tokens[at - back] !== this.#tokens[at - back - period]) return undefined;
    }
    return { period, tokens: WINDOW + period, minTokens: undefined };
  }

  /** Reads the span's text only once, after several repeats. */
  #isLoop(at: number, candidate: Candidate): boolean {
    const { tokens, period } = candidate;
    if (tokens < Math.max(MIN_SHORT_LOOP_TOKENS, MIN_REPEATS * period)) return false;
    candidate.minTokens ??= this.#minTokensFor(at, period);
    return tokens >= candidate.minTokens;
  }

  #minTokensFor(at: number, period: number): number {
    const span = this.#tokens.slice(at + 1 - period, at + 1).map((token) => this.#texts[token]);
    const text = span.join("");
    const isData = DIGIT.test(text) && !WORD.test(text);
    const minText = period <= SHORT_PERIOD ? MIN_SHORT_LOOP_TOKENS : MIN_LOOP_TOKENS;
    return Math.max(isData ? MIN_DATA_LOOP_TOKENS : minText, MIN_REPEATS * period);
  }
}

function power(base: number, exponent: number): number {
  let result = 1;
  for (let count = 0; count < exponent; count++) result = Math.imul(result, base);
  return result;
}
