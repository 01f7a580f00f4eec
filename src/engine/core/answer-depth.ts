import { ServiceError } from "../../errors/service-error.ts";
import type { GenerationEvent, OutputFormat } from "../protocol/generation.ts";

/**
 * Deepest nesting of the JSON that a model writes: as deep as a request may be, to which its tool calls come back.
 * llama.cpp reads the whole answer again with every token, by functions that call themselves, and its stack ends at
 * some hundred levels: with it the engine, and everyone's requests.
 */
export const MAX_ANSWER_DEPTH = 100;

/** How deep a JSON text is nested that comes in pieces. */
class JsonDepth {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  /** @returns the deepest level that this piece reaches */
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

/** Watches an answer while it is written: the text of one that must be JSON, and the arguments of tool calls. */
export class AnswerDepth {
  readonly #text: JsonDepth | undefined;
  readonly #calls = new Map<number, JsonDepth>();

  constructor(format: OutputFormat) {
    if (format.type === "json" || format.type === "json_schema") this.#text = new JsonDepth();
  }

  /** @throws ServiceError inference_failed when the answer is nested too deep to go on */
  check(event: GenerationEvent): void {
    if (event.type === "text-delta") refuseBeyond(this.#text?.push(event.text));
    if (event.type !== "tool-call-delta") return;
    const call = this.#calls.get(event.index) ?? new JsonDepth();
    this.#calls.set(event.index, call);
    refuseBeyond(call.push(event.arguments));
  }
}

function refuseBeyond(depth = 0): void {
  if (depth <= MAX_ANSWER_DEPTH) return;
  throw new ServiceError(
    "inference_failed",
    `The model nests its answer more than ${MAX_ANSWER_DEPTH} levels deep and was stopped: ` +
      "try again, or ask by a schema that ends sooner.",
  );
}
