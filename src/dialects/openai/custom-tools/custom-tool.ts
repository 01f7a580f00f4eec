import { z } from "zod";
import type { JsonSchema, ToolDefinition } from "../../../engine/protocol/generation.ts";
import { larkPattern } from "./lark-pattern.ts";
import { NotRegularError, toRegularPattern } from "./regular-pattern.ts";

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
export interface CustomTool {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly grammar?: Grammar | undefined;
}

/** A warning is one sentence, whatever a client sends. */
const MAX_SHOWN_NAME = 64;
const MAX_SHOWN_REASON = 120;

/** The only argument of the function that stands for a custom tool. */
export const INPUT = "input";

/**
 * The function that stands for a custom tool: models call functions, so its input is their only argument.
 * @param warn gets a sentence when the input's grammar is only shown to the model
 */
export function toFunction(tool: CustomTool, warn: (sentence: string) => void): ToolDefinition {
  const { name, description, grammar } = tool;
  const input: JsonSchema = { type: "string", description: "The whole input, as it is." };
  if (grammar) {
    try {
      input["pattern"] = `^(?:${toPattern(grammar)})$`;
    } catch (error) {
      if (!(error instanceof NotRegularError)) throw error;
      warn(
        `The grammar of the tool "${name.slice(0, MAX_SHOWN_NAME)}" ${error.message.slice(0, MAX_SHOWN_REASON)}: the model is shown it, but can break it.`,
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
