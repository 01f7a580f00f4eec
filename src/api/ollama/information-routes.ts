import { z } from "zod";
import { ignored } from "../../http/input/common-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { Model } from "../../models/model.ts";
import { listParameters } from "../../models/modelfile/parameters.ts";
import {
  type Instruction,
  licenseText,
  parseInstructions,
} from "../../models/modelfile/parse-instructions.ts";
import type { ModelServices } from "../services.ts";
import {
  details,
  findModel,
  requestedName,
  runningListSchema,
  tagListSchema,
  toRunningList,
  toTagList,
} from "./model-entry.ts";
import { modelField, nameField } from "./ollama-fields.ts";

const tag = "Ollama API";
/**
 * Ollama version whose API this matches. Clients check it before they use newer features, such as the responses API
 * (0.13.4). Version 0.14 also has the messages API, thinking levels, tool call IDs, log probabilities and dimensions.
 */
const API_VERSION = "0.14.0";
/** Text that clients check for. */
const GREETING = "Ollama is running";

/** Read-only routes, also served while the daemon starts and drains. */
export function informationRoutes({ models, version }: ModelServices): readonly Route[] {
  return [
    ...["/ollama", "/ollama/"].map((path) =>
      defineRoute({
        method: "GET",
        path,
        tag,
        summary: "Check that the API is available",
        answers: [{ contentType: "text/plain", description: GREETING }],
        alwaysOn: true,
        handle: (context) => context.text(GREETING),
      }),
    ),
    defineRoute({
      method: "GET",
      path: "/ollama/api/version",
      tag,
      summary: "Show the version",
      answers: [
        {
          description: "The versions.",
          schema: z.object({
            version: z.string().describe("Ollama version whose API this matches."),
            daybreak: z.string().describe("Version of the daemon."),
          }),
        },
      ],
      alwaysOn: true,
      handle: (context) => context.json({ version: API_VERSION, daybreak: version }),
    }),
    defineRoute({
      method: "GET",
      path: "/ollama/api/tags",
      tag,
      summary: "List the models on disk",
      answers: [{ description: "All models.", schema: tagListSchema }],
      alwaysOn: true,
      async handle(context) {
        return context.json(await toTagList(await models.list()));
      },
    }),
    defineRoute({
      method: "GET",
      path: "/ollama/api/ps",
      tag,
      summary: "List the models in memory",
      answers: [{ description: "The loaded models.", schema: runningListSchema }],
      alwaysOn: true,
      async handle(context) {
        return context.json(await toRunningList(await models.list()));
      },
    }),
    defineRoute({
      method: "POST",
      path: "/ollama/api/show",
      tag,
      summary: "Show a model",
      body: showRequestSchema,
      answers: [{ description: "The model.", schema: showAnswerSchema }],
      alwaysOn: true,
      async handle(context, { body }) {
        const model = await findModel(models, requestedName(body));
        return context.json(toShowAnswer(model, await models.modelfile(model.alias)));
      },
    }),
  ];
}

/** Column of the values in `parameters`. */
const VALUE_COLUMN = 30;

/** POST /api/show of the Ollama API. Unknown fields are ignored. */
export const showRequestSchema = z
  .object({
    model: modelField.nullish(),
    name: nameField,
    verbose: ignored("the answer does not change"),
    system: ignored(),
    template: ignored(),
    options: ignored(),
  })
  .meta({ id: "OllamaShowRequest" });

const showAnswerSchema = z
  .object({
    modelfile: z.string().describe("A Modelfile that recreates this model."),
    parameters: z.string().describe("PARAMETERs, one per line."),
    template: z.string().describe("Chat template in Jinja, or empty."),
    system: z.string().optional(),
    license: z.string().optional(),
    messages: z
      .array(z.object({ role: z.string(), content: z.string() }))
      .optional()
      .describe("Initial messages of its chats."),
    renderer: z.string().optional().describe("RENDERER, which has no effect here."),
    parser: z.string().optional().describe("PARSER, which has no effect here."),
    requires: z.string().optional().describe("REQUIRES, a version of Ollama."),
    details: tagListSchema.shape.models.element.shape.details,
    model_info: z.record(z.string(), z.unknown()).describe("Metadata from the GGUF header."),
    capabilities: z.array(
      z.enum(["completion", "embedding", "insert", "tools", "vision", "audio", "thinking"]),
    ),
    modified_at: z.string().describe("ISO 8601."),
  })
  .meta({ id: "OllamaShowAnswer" });
type ShowAnswer = z.output<typeof showAnswerSchema>;

function toShowAnswer(model: Model, modelfile: string): ShowAnswer {
  const { gguf, settings } = model;
  const instructions = parseInstructions(modelfile);
  const license = licenseText(instructions);
  return {
    modelfile,
    parameters: listParameters(settings)
      .map(
        ([name, value]) =>
          // JSON quoting keeps a multi-line text on one line.
          `${name.padEnd(VALUE_COLUMN)} ${typeof value === "string" ? JSON.stringify(value) : value}`,
      )
      .join("\n"),
    template: settings.template ?? gguf.chatTemplate ?? "",
    ...(settings.system !== undefined && { system: settings.system }),
    ...(license !== undefined && { license }),
    ...(settings.messages && { messages: [...settings.messages] }),
    ...ollamaDirectives(instructions),
    details: details(model),
    model_info: modelInfo(model),
    capabilities: capabilities(model),
    modified_at: new Date(model.modifiedAt).toISOString(),
  };
}

/** Returns directives of the Modelfile that only affect Ollama. */
function ollamaDirectives(
  instructions: readonly Instruction[],
): Pick<ShowAnswer, "renderer" | "parser" | "requires"> {
  const texts = new Map(instructions.map(({ directive, text }) => [directive, text]));
  const [renderer, parser, requires] = [texts.get("RENDERER"), texts.get("PARSER"), texts.get("REQUIRES")];
  return { ...(renderer && { renderer }), ...(parser && { parser }), ...(requires && { requires }) };
}

function modelInfo({ alias, gguf }: Model): Record<string, string | number> {
  const { architecture } = gguf;
  return {
    "general.architecture": architecture,
    "general.basename": gguf.name ?? alias,
    "general.parameter_count": gguf.parameters,
    [`${architecture}.block_count`]: gguf.blockCount,
    [`${architecture}.context_length`]: gguf.contextLength,
    [`${architecture}.embedding_length`]: gguf.embeddingLength,
    [`${architecture}.vocab_size`]: gguf.vocabSize,
  };
}

function capabilities({ gguf, capabilities: can }: Model): ShowAnswer["capabilities"] {
  return [
    ...(gguf.purpose === "generate" ? (["completion"] as const) : []),
    ...(gguf.purpose === "embed" ? (["embedding"] as const) : []),
    ...(gguf.infill ? (["insert"] as const) : []),
    ...(["tools", "vision", "audio", "thinking"] as const).filter((name) => can[name]),
  ];
}
