import type { GenerationEvent, JsonSchema, ToolDefinition } from "../../engine/protocol/generation.ts";
import { tryJson } from "../../json/json-values.ts";
import type { EventFilter } from "../stream-filters.ts";
import { randomCallId } from "./tool-call-ids.ts";

/** Schema of the arguments of a function without parameters. */
export const NO_ARGUMENTS: JsonSchema = { properties: {}, additionalProperties: false };

/**
 * Builds the JSON Schema of one call of any of the tools: `{"name": …, "arguments": …}` in this order, with arguments
 * by the tool's schema; or of an answer with its own schema.
 */
export function callSchema(tools: readonly ToolDefinition[], answer?: JsonSchema): JsonSchema {
  const calls = callSchemas(tools);
  return { anyOf: answer ? [...calls, withMovedRefs(answer, `/anyOf/${tools.length}`)] : calls };
}

function callSchemas(tools: readonly ToolDefinition[]): JsonSchema[] {
  return tools.map(({ name, parameters }, index) => ({
    type: "object",
    properties: {
      name: { const: name },
      arguments: withMovedRefs(
        { type: "object", ...(parameters ?? NO_ARGUMENTS) },
        `/anyOf/${index}/properties/arguments`,
      ),
    },
    required: ["name", "arguments"],
    additionalProperties: false,
  }));
}

/** Rewrites references, which start at the root of the document, for a schema that becomes part of another one. */
function withMovedRefs(schema: JsonSchema, path: string): JsonSchema {
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, moveRefsIn(key, value, path)]),
  );
}

function moveRefsIn(key: string, value: unknown, path: string): unknown {
  if (key === "$ref" && typeof value === "string") return value.replace(/^#(?=\/|$)/, `#${path}`);
  if (Array.isArray(value)) return value.map((item: unknown) => moveRefsIn("", item, path));
  return isSchema(value) ? withMovedRefs(value, path) : value;
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null;
}

/** Text before the arguments; the schema fixes the order. */
const HEAD = /^\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*/;
/** Text that may be the end of the call after its arguments. */
const TAIL = /\s*(?:\}\s*)?$/;

/**
 * Creates a filter that turns an answer in the format of {@link callSchema} into a tool call. The arguments are
 * streamed. An answer that is truncated before the arguments stays text.
 */
export function readForcedCall(makeId: () => string = randomCallId): EventFilter {
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
  #buffered = "";
  #arguments = "";
  called = false;

  constructor(makeId: () => string) {
    this.#makeId = makeId;
  }

  *push(text: string): Generator<GenerationEvent> {
    this.#buffered += text;
    if (!this.called) {
      const head = HEAD.exec(this.#buffered);
      // More whitespace may follow the colon, so this waits for the first character of the arguments.
      if (!head?.[1] || head[0].length === this.#buffered.length) return;
      this.called = true;
      this.#buffered = this.#buffered.slice(head[0].length);
      const name = String(JSON.parse(head[1]));
      yield { type: "tool-call-start", index: 0, id: this.#makeId(), name };
    }
    const tail = TAIL.exec(this.#buffered)?.[0].length ?? 0;
    yield* this.#emit(this.#buffered.slice(0, this.#buffered.length - tail));
    this.#buffered = this.#buffered.slice(this.#buffered.length - tail);
  }

  /** Handles the end of the answer: the buffered text is the end of the call, unless the arguments were truncated. */
  *flush(): Generator<GenerationEvent> {
    if (!this.called) {
      if (this.#buffered !== "") yield { type: "text-delta", text: this.#buffered };
    } else if (tryJson(this.#arguments) === undefined) yield* this.#emit(this.#buffered);
    this.#buffered = "";
  }

  *#emit(text: string): Generator<GenerationEvent> {
    if (text === "") return;
    this.#arguments += text;
    yield { type: "tool-call-delta", index: 0, arguments: text };
  }
}

/**
 * Creates a filter for an answer that is either a call in the format of {@link callSchema} or has its own format. Its
 * beginning is buffered until that is clear.
 * @param names names of the tools
 */
export function readOfferedCall(names: readonly string[], makeId: () => string = randomCallId): EventFilter {
  const heads = names.map((name) => withoutBlanks(`{"name":${JSON.stringify(name)},"arguments":`));
  const buffered: GenerationEvent[] = [];
  let text = "";
  /** Filter of the answer, once its kind is clear. */
  let filter: EventFilter | undefined;
  return function* (event) {
    if (filter) {
      yield* filter(event);
      return;
    }
    if (event.type !== "text-delta" && buffered.length === 0) {
      yield event;
      return;
    }
    buffered.push(event);
    if (event.type === "text-delta") text += event.text;
    const start = withoutBlanks(text);
    if (heads.some((head) => start.startsWith(head))) filter = readForcedCall(makeId);
    else if (event.type !== "text-delta" || !heads.some((head) => head.startsWith(start))) {
      filter = (other) => [other];
    }
    if (filter) for (const each of buffered) yield* filter(each);
  };
}

function withoutBlanks(text: string): string {
  return text.replaceAll(/\s/g, "");
}
