import type { TokenLogprob } from "../engine/protocol/generation.ts";
import type { InferenceEvent } from "../inference/inference.ts";

type Kind = "text" | "reasoning" | "call";

/** What an answer has said so far, in one way: a text, reasoning, or the arguments of a call. */
interface Segment {
  readonly kind: Kind;
  /** Of a call. */
  readonly name?: string;
  text: string;
}

/** The answer that was begun on another machine is not the one that this machine gives. */
export class AnswerDiffers extends Error {
  override readonly name = "AnswerDiffers";
}

/**
 * What the client has been sent of an answer. When the answer is given again from its beginning by another machine, it
 * leaves out what has been sent already, and finds out whether it is the same.
 */
export class Transcript {
  readonly #segments: Segment[] = [];
  /** Where the answer that is given again is, in the segments; undefined: it has come to new things. */
  #at: { segment: number; character: number } | undefined;
  #hasStarted = false;
  #tokens = 0;
  #repeatedTokens = 0;
  /** Those that came with the text, and how many of them are still to be repeated. */
  #logprobs = 0;
  #repeatedLogprobs = 0;
  #processed = 0;

  /** Whether the client has seen anything of the answer itself. */
  get isEmpty(): boolean {
    return this.#segments.length === 0;
  }

  /** The answer begins again from its beginning. */
  rewind(): void {
    this.#at = this.#segments.length > 0 ? { segment: 0, character: 0 } : undefined;
    this.#repeatedTokens = this.#tokens;
    this.#repeatedLogprobs = this.#logprobs;
  }

  /** Those of some tokens that have not been told before. */
  newTokens(tokens: readonly TokenLogprob[]): readonly TokenLogprob[] {
    const repeated = Math.min(this.#repeatedTokens, tokens.length);
    this.#repeatedTokens -= repeated;
    this.#tokens += tokens.length - repeated;
    return tokens.slice(repeated);
  }

  /**
   * What is new in an event; undefined: nothing.
   * @throws AnswerDiffers
   */
  take(event: InferenceEvent): InferenceEvent | undefined {
    switch (event.type) {
      case "start":
        if (this.#hasStarted) return undefined;
        this.#hasStarted = true;
        return event;
      case "prompt-progress":
        if (!this.isEmpty || event.processed < this.#processed) return undefined;
        this.#processed = event.processed;
        return event;
      case "text-delta": {
        const skipped = this.#skip("text", event.text);
        const { logprobs = [] } = event;
        const fresh = this.#newLogprobs(logprobs);
        if (skipped === 0 && fresh.length === logprobs.length) return event;
        const text = event.text.slice(skipped);
        if (text === "" && fresh.length === 0) return undefined;
        return { ...event, text, ...(event.logprobs && { logprobs: fresh }) };
      }
      case "reasoning-delta": {
        const text = event.text.slice(this.#skip("reasoning", event.text));
        return text === "" && event.text !== "" ? undefined : { ...event, text };
      }
      case "tool-call-start":
        return this.#begin(event.name) ? event : undefined;
      case "tool-call-delta": {
        const text = event.arguments.slice(this.#skip("call", event.arguments));
        return text === "" && event.arguments !== "" ? undefined : { ...event, arguments: text };
      }
      default:
        if (this.#at) throw new AnswerDiffers("it ends earlier");
        return event;
    }
  }

  /** Tokens without text, such as a part of a character, are only told apart by their number. */
  #newLogprobs(tokens: TokenLogprob[]): TokenLogprob[] {
    const repeated = Math.min(this.#repeatedLogprobs, tokens.length);
    this.#repeatedLogprobs -= repeated;
    this.#logprobs += tokens.length - repeated;
    return tokens.slice(repeated);
  }

  /** How many characters of a text have been sent before; adds the others. */
  #skip(kind: Kind, text: string): number {
    let skipped = 0;
    while (this.#at && skipped < text.length) {
      const segment = this.#segments[this.#at.segment];
      if (segment?.kind !== kind) throw new AnswerDiffers(`it has ${kind} in another place`);
      const before = segment.text.slice(this.#at.character, this.#at.character + text.length - skipped);
      if (before !== text.slice(skipped, skipped + before.length))
        throw new AnswerDiffers("its text differs");
      skipped += before.length;
      this.#at.character += before.length;
      this.#passEnd(segment);
    }
    if (skipped < text.length) this.#add(kind, text.slice(skipped));
    return skipped;
  }

  /** A segment that has been repeated to its end is followed by the next, or by what is new. */
  #passEnd(segment: Segment): void {
    if (!this.#at || this.#at.character < segment.text.length) return;
    const next = this.#at.segment + 1;
    this.#at = next < this.#segments.length ? { segment: next, character: 0 } : undefined;
  }

  /** A call begins; false if the client knows of it. */
  #begin(name: string): boolean {
    if (!this.#at) {
      this.#segments.push({ kind: "call", name, text: "" });
      return true;
    }
    const segment = this.#segments[this.#at.segment];
    if (segment?.kind !== "call" || segment.name !== name || this.#at.character > 0) {
      throw new AnswerDiffers("it calls another tool");
    }
    this.#passEnd(segment);
    return false;
  }

  #add(kind: Kind, text: string): void {
    const last = this.#segments.at(-1);
    if (last?.kind === kind) last.text += text;
    else this.#segments.push({ kind, text });
  }
}
