import type { TokenLogprob } from "../engine/protocol/generation.ts";
import type { InferenceEvent } from "../inference/inference.ts";

type Kind = "text" | "reasoning" | "call";

/** Continuous part of an answer: text, reasoning, or the arguments of a tool call. */
interface Segment {
  readonly kind: Kind;
  /** Name of the tool. */
  readonly name?: string;
  text: string;
}

/** Thrown if another machine's answer differs from what was already sent. */
export class AnswerDiffers extends Error {
  override readonly name = "AnswerDiffers";
}

/** Number of tokens that were sent; tokens without text, such as parts of a character, can only be counted. */
class SentTokens {
  #count = 0;
  /** Number of tokens still to be repeated. */
  #repeated = 0;

  rewind(): void {
    this.#repeated = this.#count;
  }

  newPart(tokens: readonly TokenLogprob[]): TokenLogprob[] {
    const repeated = Math.min(this.#repeated, tokens.length);
    this.#repeated -= repeated;
    this.#count += tokens.length - repeated;
    return tokens.slice(repeated);
  }
}

/**
 * Record of what the client has received of an answer. When another machine repeats the answer from its beginning, the
 * known parts are skipped and compared.
 */
export class Transcript {
  readonly #segments: Segment[] = [];
  /** Position of the repeated answer in the segments; undefined if it has reached new output. */
  #position: { segment: number; character: number } | undefined;
  #hasStarted = false;
  readonly #tokens = new SentTokens();
  /** Tokens sent with text. */
  readonly #logprobs = new SentTokens();
  #processed = 0;

  /** True if the client has received no output yet. */
  get isEmpty(): boolean {
    return this.#segments.length === 0;
  }

  /** Expects the answer from its beginning again. */
  rewind(): void {
    this.#position = this.#segments.length > 0 ? { segment: 0, character: 0 } : undefined;
    this.#tokens.rewind();
    this.#logprobs.rewind();
  }

  /** Returns the tokens that have not been reported before. */
  newTokens(tokens: readonly TokenLogprob[]): readonly TokenLogprob[] {
    return this.#tokens.newPart(tokens);
  }

  /**
   * Returns the new part of an event; undefined if it is entirely known.
   * @throws AnswerDiffers
   */
  newPart(event: InferenceEvent): InferenceEvent | undefined {
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
        const fresh = this.#logprobs.newPart(logprobs);
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
        return this.#isNewCall(event.name) ? event : undefined;
      case "tool-call-delta": {
        const text = event.arguments.slice(this.#skip("call", event.arguments));
        return text === "" && event.arguments !== "" ? undefined : { ...event, arguments: text };
      }
      default:
        if (this.#position) throw new AnswerDiffers("it ends earlier");
        return event;
    }
  }

  /** Returns the number of known characters at the beginning of a text; records the others. */
  #skip(kind: Kind, text: string): number {
    let skipped = 0;
    while (this.#position && skipped < text.length) {
      const segment = this.#segments[this.#position.segment];
      if (segment?.kind !== kind) throw new AnswerDiffers(`it has ${kind} in another place`);
      const before = segment.text.slice(
        this.#position.character,
        this.#position.character + text.length - skipped,
      );
      if (before !== text.slice(skipped, skipped + before.length))
        throw new AnswerDiffers("its text differs");
      skipped += before.length;
      this.#position.character += before.length;
      this.#nextSegment(segment);
    }
    if (skipped < text.length) this.#append(kind, text.slice(skipped));
    return skipped;
  }

  /** Moves to the next segment, or to new output, at the end of a repeated one. */
  #nextSegment(segment: Segment): void {
    if (!this.#position || this.#position.character < segment.text.length) return;
    const next = this.#position.segment + 1;
    this.#position = next < this.#segments.length ? { segment: next, character: 0 } : undefined;
  }

  /** Records the start of a tool call; returns false if it is known. */
  #isNewCall(name: string): boolean {
    if (!this.#position) {
      this.#segments.push({ kind: "call", name, text: "" });
      return true;
    }
    const segment = this.#segments[this.#position.segment];
    if (segment?.kind !== "call" || segment.name !== name || this.#position.character > 0) {
      throw new AnswerDiffers("it calls another tool");
    }
    this.#nextSegment(segment);
    return false;
  }

  #append(kind: Kind, text: string): void {
    const last = this.#segments.at(-1);
    if (last?.kind === kind) last.text += text;
    else this.#segments.push({ kind, text });
  }
}
