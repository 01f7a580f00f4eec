import { z } from "zod";
import type { AnswerToken } from "../dialects/native/answer-token.ts";
import { experimentRequestSchema, experimentResultSchema } from "../dialects/native/experiment.ts";
import { ServiceError } from "../errors/service-error.ts";

/** Version of the format. */
const VERSION = 1;

const fileSchema = z.strictObject({
  role: z.enum(["model", "projector", "adapter"]),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits"),
  scale: z.number().optional().describe("Of an adapter: how strongly it takes effect."),
});
export type ExperimentModelFile = z.output<typeof fileSchema>;

/** A request to a model that anybody can repeat, and what came out of it. */
const experimentSchema = z
  .strictObject({
    $schema: z.string().optional(),
    experiment: z.literal(VERSION).describe("Version of this format."),
    title: z.string().optional(),
    notes: z.string().optional(),
    model: z.strictObject({
      name: z.string().min(1).describe("Its name where the experiment was recorded."),
      source: z.string().optional().describe("Where to pull it from, such as hf:owner/repository:Q4_K_M."),
      files: z.array(fileSchema).optional().describe("Its files. A model with others is another model."),
    }),
    request: experimentRequestSchema,
    result: experimentResultSchema.optional().describe("What was generated when it was recorded."),
  })
  .meta({ id: "Experiment", title: "Daybreak experiment" });
export type Experiment = z.output<typeof experimentSchema>;

/** The published JSON Schema of the format. */
export function experimentJsonSchema(): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(experimentSchema, { io: "input" });
}

/**
 * Reads an experiment.
 * @throws ServiceError invalid_parameter that names the first field that is wrong
 */
export function parseExperiment(text: string): Experiment {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw invalid("it is not JSON", error);
  }
  const { data, error } = experimentSchema.safeParse(value);
  if (data) return data;
  const [issue] = error.issues;
  const place = issue && issue.path.length > 0 ? `${issue.path.join(".")}: ` : "";
  throw invalid(`${place}${issue?.message ?? "it has another format"}`, error);
}

function invalid(why: string, cause: unknown): ServiceError {
  return new ServiceError("invalid_parameter", `This is not an experiment: ${why}.`, { cause });
}

/** Stands for the tokens while the rest is indented. */
const TOKENS = "\u0000tokens";

/** The file of an experiment: indented, with a line for each token. */
export function printExperiment(experiment: Experiment): string {
  const { result } = experiment;
  if (!result) return `${JSON.stringify(experiment, undefined, 2)}\n`;
  const text = JSON.stringify({ ...experiment, result: { ...result, tokens: TOKENS } }, undefined, 2);
  return `${text.replace(JSON.stringify(TOKENS), () => tokenLines(result.tokens))}\n`;
}

function tokenLines(tokens: readonly AnswerToken[]): string {
  if (tokens.length === 0) return "[]";
  return `[\n      ${tokens.map((token) => JSON.stringify(token)).join(",\n      ")}\n    ]`;
}
