import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { parameterLines } from "../modelfile/parameter-lines.ts";
import { parseInstructions, quote } from "../modelfile/parse-instructions.ts";
import { readSettings } from "../modelfile/read-settings.ts";
import { modelfileNotes } from "../modelfile/unused-directives.ts";

/** The layers of a model of Ollama that are texts. */
interface OllamaTexts {
  readonly template: string | undefined;
  readonly system: string | undefined;
  /** JSON: values by the names of PARAMETERs. */
  readonly parameters: string | undefined;
  /** JSON: a list of messages. */
  readonly messages: string | undefined;
  readonly licenses: readonly string[];
  /** JSON, with the names of renderer and parser, among others. */
  readonly config: string | undefined;
  /** Whether there is also a draft model, which is no text. */
  readonly hasDraft: boolean;
}

const parametersSchema = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.null()]),
);
const messagesSchema = z.array(
  z.object({ role: z.enum(["system", "user", "assistant"]), content: z.string().default("") }),
);
const configSchema = z.object({
  renderer: z.string().optional(),
  parser: z.string().optional(),
  requires: z.string().optional(),
});

/** Answers are the same without it. */
const DRAFT_NOTE =
  "DRAFT is left out: an import brings no draft model; DRAFT in a Modelfile of yours can name one.";

/** The settings of a model of Ollama as lines of a Modelfile, without those that would not be valid here. */
export function ollamaSettings(texts: OllamaTexts): { settings: string[]; notes: string[] } {
  const notes: string[] = [];
  const settings: string[] = [];
  const keep = (what: string, lines: () => readonly string[]): void => {
    try {
      for (const line of lines()) {
        readSettings(parseInstructions(line));
        settings.push(line);
      }
    } catch (error) {
      if (!(error instanceof ServiceError || error instanceof SyntaxError || error instanceof z.ZodError))
        throw error;
      const why =
        error instanceof ServiceError
          ? error.message.replace(/^Modelfile, line \d+: /, "")
          : "it is damaged.";
      notes.push(`${what} is left out: ${why}`);
    }
  };
  const { renderer, parser, requires } = configOf(texts.config);
  if (renderer === undefined) keep("TEMPLATE", () => textLines("TEMPLATE", texts.template));
  else if (texts.template) notes.push("TEMPLATE is left out: Ollama does not use it beside RENDERER.");
  keep("SYSTEM", () => textLines("SYSTEM", texts.system));
  keep("PARAMETER", () => {
    const entries = Object.entries(parametersSchema.parse(JSON.parse(texts.parameters ?? "{}")));
    for (const [name, value] of entries) keep(`PARAMETER ${name}`, () => parameterLines(name, value));
    return [];
  });
  keep("MESSAGE", () =>
    messagesSchema
      .parse(JSON.parse(texts.messages ?? "[]"))
      .map(({ role, content }) => `MESSAGE ${role} ${quote(content)}`),
  );
  keep("RENDERER", () => textLines("RENDERER", renderer));
  keep("PARSER", () => textLines("PARSER", parser));
  keep("REQUIRES", () => textLines("REQUIRES", requires));
  keep("LICENSE", () => texts.licenses.flatMap((license) => textLines("LICENSE", license)));
  if (texts.hasDraft) notes.push(DRAFT_NOTE);
  return { settings, notes: [...notes, ...modelfileNotes(settings.join("\n"))] };
}

function configOf(text: string | undefined): z.output<typeof configSchema> {
  try {
    return configSchema.parse(JSON.parse(text ?? "{}"));
  } catch {
    // It only says what has no effect here.
    return {};
  }
}

function textLines(directive: string, text: string | undefined): string[] {
  return text ? [`${directive} ${quote(text)}`] : [];
}
