import type { GenerationEvent, JsonSchema, ToolDefinition } from "../../engine/protocol/generation.ts";
import { tryJson } from "../../json/json-values.ts";
import type { EventReader } from "../stream-filters.ts";
import { randomCallId } from "./tool-call-ids.ts";

/** A function without parameters takes none. */
export const NO_ARGUMENTS: JsonSchema = { properties: {}, additionalProperties: false };

/**
 * The JSON Schema of one call of one of the tools: `{"name": …, "arguments": …}` in this order, with arguments that fit
 * the tool's schema; or of an answer in another format.
 */
export function callSchema(tools: readonly ToolDefinition[], answer?: JsonSchema): JsonSchema {
  const calls = callSchemas(tools);
  return { anyOf: answer ? [...calls, moved(answer, `/anyOf/${tools.length}`)] : calls };
}

function callSchemas(tools: readonly ToolDefinition[]): JsonSchema[] {
  return tools.map(({ name, parameters }, index) => ({
    type: "object",
    properties: {
      name: { const: name },
      arguments: moved(
        { type: "object", ...(parameters ?? NO_ARGUMENTS) },
        `/anyOf/${index}/properties/arguments`,
      ),
    },
    required: ["name", "arguments"],
    additionalProperties: false,
  }));
}

/** References start at the root of a document, so they change when the schema becomes part of another. */
function moved(schema: JsonSchema, path: string): JsonSchema {
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, movedValue(key, value, path)]),
  );
}

function movedValue(key: string, value: unknown, path: string): unknown {
  if (key === "$ref" && typeof value === "string") return value.replace(/^#(?=\/|$)/, `#${path}`);
  if (Array.isArray(value)) return value.map((item: unknown) => movedValue("", item, path));
  return isSchema(value) ? moved(value, path) : value;
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null;
}

/** The text before the arguments; the schema fixes the order. */
const HEAD = /^\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*/;
/** Text that may be the end of the call, after its arguments. */
const TAIL = /\s*(?:\}\s*)?$/;

/**
 * Reads an answer in the format of {@link forcedCallSchema} as a tool call. The arguments are passed on as they come. An
 * answer that is cut off before the arguments stays text.
 */
export function readForcedCall(makeId: () => string = randomCallId): EventReader {
  const reader = new ForcedCallReader(makeId);
  return function* (event) {
    if (event.type === "text-delta") yield* reader.push(event.text);
    else if (event.type === "done") {
      yield* reader.flush();
      yield reader.called && event.reason === "stop" ? { ...event, reason: "tool_calls" } : event;
    } else yield event;
  };
}

class ForcedCallReader {
  readonly #makeId: () => string;
  #held = "";
  #arguments = "";
  called = false;

  constructor(makeId: () => string) {
    this.#makeId = makeId;
  }

  *push(text: string): Generator<GenerationEvent> {
    this.#held += text;
    if (!this.called) {
      const head = HEAD.exec(this.#held);
      // More whitespace may follow the colon: wait for the first character of the arguments.
      if (!head?.[1] || head[0].length === this.#held.length) return;
      this.called = true;
      this.#held = this.#held.slice(head[0].length);
      const name = String(JSON.parse(head[1]));
      yield { type: "tool-call-start", index: 0, id: this.#makeId(), name };
    }
    const tail = TAIL.exec(this.#held)?.[0].length ?? 0;
    yield* this.#emit(this.#held.slice(0, this.#held.length - tail));
    this.#held = this.#held.slice(this.#held.length - tail);
  }

  /** The answer has ended: the held text is the end of the call, unless the arguments were cut off. */
  *flush(): Generator<GenerationEvent> {
    if (!this.called) {
      if (this.#held !== "") yield { type: "text-delta", text: this.#held };
    } else if (tryJson(this.#arguments) === undefined) yield* this.#emit(this.#held);
    this.#held = "";
  }

  *#emit(text: string): Generator<GenerationEvent> {
    if (text === "") return;
    this.#arguments += text;
    yield { type: "tool-call-delta", index: 0, arguments: text };
  }
}

/**
 * Reads an answer that is either a call in the format of {@link offeredCallSchema} or an answer in its own format. Its
 * beginning is held back until it is clear which.
 * @param names names of the tools
 */
export function readOfferedCall(names: readonly string[], makeId: () => string = randomCallId): EventReader {
  const heads = names.map((name) => withoutBlanks(`{"name":${JSON.stringify(name)},"arguments":`));
  const held: GenerationEvent[] = [];
  let text = "";
  /** The reader of the answer, once that is clear. */
  let read: EventReader | undefined;
  return function* (event) {
    if (read) {
      yield* read(event);
      return;
    }
    if (event.type !== "text-delta" && held.length === 0) {
      yield event;
      return;
    }
    held.push(event);
    if (event.type === "text-delta") text += event.text;
    const begun = withoutBlanks(text);
    if (heads.some((head) => begun.startsWith(head))) read = readForcedCall(makeId);
    else if (event.type !== "text-delta" || !heads.some((head) => head.startsWith(begun))) {
      read = (other) => [other];
    }
    if (read) for (const each of held) yield* read(each);
  };
}

function withoutBlanks(text: string): string {
  return text.replaceAll(/\s/g, "");
}
