import { z } from "zod";
import type { JsonSchema, ToolDefinition } from "../../engine/protocol/generation.ts";
import type { ChoiceEvent } from "../../inference/generate-choices.ts";
import { larkPattern } from "../../grammar/lark/lark-pattern.ts";
import { toRegularPattern, UnenforceableError } from "../../grammar/lark/regular-pattern.ts";

const grammarFields = {
  syntax: z.enum(["lark", "regex"]),
  definition: z.string(),
};

/** The format of a custom tool's input, in the responses API. */
export const customFormatSchema = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("text") }),
    z.object({ type: z.literal("grammar"), ...grammarFields }),
  ])
  .describe(
    "Any text, or the texts of a grammar. It is enforced unless it is recursive, as far as calls are.",
  );

/** The same in chat completions. */
export const nestedFormatSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("grammar"), grammar: z.object(grammarFields) }),
]);

type Grammar = z.output<z.ZodObject<typeof grammarFields>>;

/** A tool whose input is text instead of JSON, however an API writes it. */
interface CustomTool {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly grammar?: Grammar | undefined;
}

/** A warning is one sentence, whatever a client sends. */
const MAX_SHOWN_NAME = 64;
const MAX_SHOWN_REASON = 120;

/** Characters of all grammars of a request: they are converted in one go, which takes tens of milliseconds. */
const MAX_GRAMMARS_LENGTH = 32 * 1024;

/** The only argument of the function that stands for a custom tool. */
const INPUT = "input";

/**
 * Makes the functions that stand for the custom tools of one request: models call functions, so a tool's input is their
 * only argument.
 * @param warn gets a sentence for each grammar that is only shown to the model
 */
export function customFunctions(warn: (sentence: string) => void): (tool: CustomTool) => ToolDefinition {
  let left = MAX_GRAMMARS_LENGTH;
  return ({ name, description, grammar }) => {
    const input: JsonSchema = { type: "string", description: "The whole input, as it is." };
    if (grammar) {
      left -= grammar.definition.length;
      try {
        if (left < 0) throw new UnenforceableError("is too long");
        input["pattern"] = `^(?:${toPattern(grammar)})$`;
      } catch (error) {
        if (!(error instanceof UnenforceableError)) throw error;
        const reason = error.message.slice(0, MAX_SHOWN_REASON);
        warn(
          `The grammar of the tool "${name.slice(0, MAX_SHOWN_NAME)}" ${reason}: the model is shown it, but can break it.`,
        );
      }
    }
    const words = [description ?? "", grammar ? shown(grammar) : ""].filter((text) => text !== "");
    return {
      name,
      ...(words.length > 0 && { description: words.join("\n\n") }),
      parameters: {
        type: "object",
        properties: { [INPUT]: input },
        required: [INPUT],
        additionalProperties: false,
      },
    };
  };
}

function toPattern({ syntax, definition }: Grammar): string {
  return syntax === "regex" ? toRegularPattern(definition) : larkPattern(definition);
}

/** A model reads a grammar more easily than the pattern that it became. */
function shown({ syntax, definition }: Grammar): string {
  if (definition.trim() === "") return "";
  const what = syntax === "regex" ? "regular expression" : "Lark grammar";
  return `The input has to match this ${what}:\n${definition}`;
}

/** The arguments of the function that stands for a custom tool. */
export function encodeInput(input: string): string {
  return JSON.stringify({ [INPUT]: input });
}

/** An event that may be of a call of a custom tool, whose arguments are its input. */
export type AnswerEvent = ChoiceEvent & { readonly isCustom?: true };

interface OpenCall {
  readonly index: number;
  readonly decoder: InputDecoder;
}

/**
 * Turns the arguments of calls of custom tools into the tools' input; all other events stay as they are.
 * @param names those of the custom tools
 */
export async function* decodeCustomCalls(
  events: AsyncIterable<ChoiceEvent>,
  names: ReadonlySet<string>,
): AsyncGenerator<AnswerEvent, void, undefined> {
  /** The last call of each choice, if it is of a custom tool: calls come one after the other. */
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
      const rest = call?.decoder.finish() ?? "";
      open.delete(choice);
      if (call && rest !== "") {
        const delta = {
          type: "tool-call-delta",
          index: call.index,
          arguments: rest,
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

/** The arguments up to the first character of the input. */
const HEAD = new RegExp(String.raw`^\s*\{\s*"${INPUT}"\s*:\s*"`);
const COMPACT_HEAD = `{"${INPUT}":"`;
/** A piece of a JSON string that can be decoded for itself. */
const UNIT = /[^"\\]+|\\[^u]|\\u[\dA-Fa-f]{4}/y;
/** Half of a pair: not text yet. */
const HIGH_SURROGATE = /^\\u[dD][89abAB]/;
/** The beginning of an escape that will not come to its end. */
const CUT_ESCAPE = /^(?:\\u[dD][89abAB][\dA-Fa-f]{2})?(?:\\(?:u[\dA-Fa-f]{0,3})?)?$/;

/** Takes the input of a custom tool out of a function's arguments, piece by piece as they come. */
export class InputDecoder {
  #state: "before" | "inside" | "after" | "other" = "before";
  #held = "";

  /** The text that a piece of the arguments adds. */
  push(piece: string): string {
    if (this.#state === "after") return "";
    this.#held += piece;
    if (this.#state === "before") {
      const head = HEAD.exec(this.#held)?.[0];
      if (head === undefined) {
        if (!COMPACT_HEAD.startsWith(this.#held.replaceAll(/\s/g, ""))) this.#state = "other";
        return "";
      }
      this.#state = "inside";
      this.#held = this.#held.slice(head.length);
    }
    return this.#state === "inside" ? this.#decode() : "";
  }

  /** The rest, once there are no more arguments; all of it, if they are not the ones that were asked for. */
  finish(): string {
    const [state, held] = [this.#state, this.#held];
    this.#state = "after";
    this.#held = "";
    if (state === "other") return otherInput(held);
    return state === "inside" && !CUT_ESCAPE.test(held) ? held : "";
  }

  #decode(): string {
    let [end, ready] = [0, 0];
    UNIT.lastIndex = 0;
    for (let unit = UNIT.exec(this.#held); unit; unit = UNIT.exec(this.#held)) {
      end = unit.index + unit[0].length;
      if (!HIGH_SURROGATE.test(unit[0])) ready = end;
    }
    const isEnd = this.#held.charAt(end) === '"';
    const text = this.#held.slice(0, isEnd ? end : ready);
    this.#held = isEnd ? "" : this.#held.slice(ready);
    if (isEnd) this.#state = "after";
    return unescaped(text);
  }
}

const CONTROLS: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** JSON text without quotes; models that are not held to JSON write line ends and tabs as they are. */
function unescaped(text: string): string {
  const strict = text.replaceAll(/[\n\r\t]/g, (control) => CONTROLS[control] ?? control);
  try {
    return String(JSON.parse(`"${strict}"`));
  } catch {
    return text;
  }
}

/** Arguments in another form: the only text in them, or all of them. */
function otherInput(text: string): string {
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
