import { ServiceError } from "../../errors/service-error.ts";
import type { GenerationEvent, OutputFormat } from "../protocol/generation.ts";

/**
 * Deepest nesting of JSON in an answer, the same as for requests, because tool calls are sent back in them. llama.cpp
 * parses the whole answer recursively with every token, and deeper nesting would overflow its stack and end the engine.
 */
export const MAX_ANSWER_DEPTH = 100;

/** Tracks the nesting of JSON that arrives in pieces. */
class JsonDepth {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  /** @returns the deepest level in this piece */
  push(piece: string): number {
    let deepest = this.#depth;
    for (const character of piece) {
      if (this.#isInString) this.#readString(character);
      else if (character === '"') this.#isInString = true;
      else if (character === "[" || character === "{") deepest = Math.max(deepest, ++this.#depth);
      else if (character === "]" || character === "}") this.#depth -= 1;
    }
    return deepest;
  }

  #readString(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === "\\") this.#isEscaped = true;
    else if (character === '"') this.#isInString = false;
  }
}

/** Checks an answer while it is generated: text that must be JSON, and the arguments of tool calls. */
export class AnswerDepth {
  readonly #text: JsonDepth | undefined;
  readonly #calls = new Map<number, JsonDepth>();

  constructor(format: OutputFormat) {
    const isJson = format.type === "grammar" ? format.isJson : format.type !== "text";
    if (isJson) this.#text = new JsonDepth();
  }

  /** @throws ServiceError inference_failed when the answer is nested too deeply */
  check(event: GenerationEvent): void {
    if (event.type === "text-delta") checkDepth(this.#text?.push(event.text));
    if (event.type !== "tool-call-delta") return;
    const call = this.#calls.get(event.index) ?? new JsonDepth();
    this.#calls.set(event.index, call);
    checkDepth(call.push(event.arguments));
  }
}

function checkDepth(depth = 0): void {
  if (depth <= MAX_ANSWER_DEPTH) return;
  throw new ServiceError(
    "inference_failed",
    `The model's answer is nested more than ${MAX_ANSWER_DEPTH} levels deep and was stopped: ` +
      "try again, or use a schema with less nesting.",
  );
}
