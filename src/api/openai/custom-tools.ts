import { z } from "zod";
import type { ToolDefinition } from "../../engine/protocol/generation.ts";
import type { ChoiceEvent } from "../../inference/generate-choices.ts";
import type { ToolGrammar } from "../../inference/inference.ts";

const grammarFields = {
  syntax: z.enum(["lark", "regex"]),
  definition: z.string(),
};

/** Input format of a custom tool in the responses API. */
export const customFormatSchema = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("text") }),
    z.object({ type: z.literal("grammar"), ...grammarFields }),
  ])
  .describe(
    "Any text, or text that matches a grammar. A grammar is enforced like tool calls, unless it is recursive.",
  );

/** Input format of a custom tool in chat completions. */
export const nestedFormatSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("grammar"), grammar: z.object(grammarFields) }),
]);

type Grammar = z.output<z.ZodObject<typeof grammarFields>>;

/** Tool whose input is text instead of JSON, independent of the API. */
interface CustomTool {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly grammar?: Grammar | undefined;
}

/** Name of the only argument of the function that represents a custom tool. */
const INPUT = "input";

/**
 * Converts the custom tools of one request to functions, because models only call functions. The tool's input is the
 * only argument.
 * @param grammars receives the grammars of tools
 */
export function customFunctions(grammars: ToolGrammar[]): (tool: CustomTool) => ToolDefinition {
  return ({ name, description, grammar }) => {
    const parts = [description ?? "", grammar ? describeGrammar(grammar) : ""].filter((text) => text !== "");
    const tool = {
      name,
      ...(parts.length > 0 && { description: parts.join("\n\n") }),
      parameters: {
        type: "object",
        properties: { [INPUT]: { type: "string", description: "The whole input, as it is." } },
        required: [INPUT],
        additionalProperties: false,
      },
    };
    if (grammar)
      grammars.push({ tool, argument: INPUT, language: grammar.syntax, source: grammar.definition });
    return tool;
  };
}

/** Describes a grammar to the model, which understands it better than the converted pattern. */
function describeGrammar({ syntax, definition }: Grammar): string {
  if (definition.trim() === "") return "";
  const what = syntax === "regex" ? "regular expression" : "Lark grammar";
  return `The input has to match this ${what}:\n${definition}`;
}

/** Returns the arguments of the function that represents a custom tool. */
export function encodeInput(input: string): string {
  return JSON.stringify({ [INPUT]: input });
}

/** Event that may belong to a custom tool call, in which case `arguments` is the tool's input. */
export type AnswerEvent = ChoiceEvent & { readonly isCustom?: true };

interface OpenCall {
  readonly index: number;
  readonly decoder: InputDecoder;
}

/**
 * Converts the arguments of custom tool calls to the tools' input. Other events are unchanged.
 * @param names names of the custom tools
 */
export async function* decodeCustomCalls(
  events: AsyncIterable<ChoiceEvent>,
  names: ReadonlySet<string>,
): AsyncGenerator<AnswerEvent, void, undefined> {
  // Last call of each choice, if it is of a custom tool. Calls do not overlap.
  const open = new Map<number | undefined, OpenCall>();
  for await (const event of events) {
    const { choice } = event;
    const call = open.get(choice);
    if (event.type === "tool-call-delta" && call) {
      const text = call.decoder.push(event.arguments);
      if (text !== "") yield { ...event, arguments: text, isCustom: true };
      continue;
    }
    if (event.type === "tool-call-start" || event.type === "done") {
      const remaining = call?.decoder.finish() ?? "";
      open.delete(choice);
      if (call && remaining !== "") {
        const delta = {
          type: "tool-call-delta",
          index: call.index,
          arguments: remaining,
          isCustom: true,
        } as const;
        yield choice === undefined ? delta : { ...delta, choice };
      }
    }
    const isCustom = event.type === "tool-call-start" && names.has(event.name);
    yield isCustom ? { ...event, isCustom } : event;
    if (isCustom) {
      open.set(choice, { index: event.index, decoder: new InputDecoder() });
    }
  }
}

/** Arguments up to the first character of the input. */
const ARGUMENTS_START = new RegExp(String.raw`^\s*\{\s*"${INPUT}"\s*:\s*"`);
const COMPACT_START = `{"${INPUT}":"`;
/** Part of a JSON string that can be decoded separately. */
const STRING_UNIT = /[^"\\]+|\\[^u]|\\u[\dA-Fa-f]{4}/y;
/** First half of a surrogate pair. */
const HIGH_SURROGATE = /^\\u[dD][89abAB]/;
/** Start of an incomplete escape sequence at the end of truncated arguments. */
const TRUNCATED_ESCAPE = /^(?:\\u[dD][89abAB][\dA-Fa-f]{2})?(?:\\(?:u[\dA-Fa-f]{0,3})?)?$/;

/** Extracts the input of a custom tool from a function's streamed arguments. */
export class InputDecoder {
  #state: "before" | "inside" | "after" | "other" = "before";
  #buffer = "";

  /** Adds a part of the arguments, and returns the text that it adds to the input. */
  push(part: string): string {
    if (this.#state === "after") return "";
    this.#buffer += part;
    if (this.#state === "before") {
      const head = ARGUMENTS_START.exec(this.#buffer)?.[0];
      if (head === undefined) {
        if (!COMPACT_START.startsWith(this.#buffer.replaceAll(/\s/g, ""))) this.#state = "other";
        return "";
      }
      this.#state = "inside";
      this.#buffer = this.#buffer.slice(head.length);
    }
    return this.#state === "inside" ? this.#decode() : "";
  }

  /**
   * Returns the rest of the input at the end of the arguments; the whole input if they do not have the expected form.
   */
  finish(): string {
    const [state, buffer] = [this.#state, this.#buffer];
    this.#state = "after";
    this.#buffer = "";
    if (state === "other") return inputFromOtherArguments(buffer);
    return state === "inside" && !TRUNCATED_ESCAPE.test(buffer) ? buffer : "";
  }

  #decode(): string {
    let [end, ready] = [0, 0];
    STRING_UNIT.lastIndex = 0;
    for (let unit = STRING_UNIT.exec(this.#buffer); unit; unit = STRING_UNIT.exec(this.#buffer)) {
      end = unit.index + unit[0].length;
      if (!HIGH_SURROGATE.test(unit[0])) ready = end;
    }
    const isEnd = this.#buffer.charAt(end) === '"';
    const text = this.#buffer.slice(0, isEnd ? end : ready);
    this.#buffer = isEnd ? "" : this.#buffer.slice(ready);
    if (isEnd) this.#state = "after";
    return unescape(text);
  }
}

const CONTROLS: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Decodes JSON text without quotes. Models whose output is not constrained write newlines and tabs unescaped. */
function unescape(text: string): string {
  const strict = text.replaceAll(/[\n\r\t]/g, (control) => CONTROLS[control] ?? control);
  try {
    return String(JSON.parse(`"${strict}"`));
  } catch {
    return text;
  }
}

/** Returns the input from arguments in another form: their only string, or all of their text. */
function inputFromOtherArguments(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "string") return value;
    const [only, ...more]: unknown[] =
      typeof value === "object" && value !== null ? Object.values(value) : [];
    return typeof only === "string" && more.length === 0 ? only : text;
  } catch {
    return text;
  }
}
