import { z } from "zod";
import type { JsonSchema, ToolDefinition } from "../../../engine/protocol/generation.ts";
import { larkPattern } from "../../../schema/lark/lark-pattern.ts";
import { UnenforceableError, toRegularPattern } from "../../../schema/lark/regular-pattern.ts";

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
export const INPUT = "input";

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
