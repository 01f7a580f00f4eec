import { z } from "zod";
import { dictionary, list } from "../../http/input/list.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { ignored, modelNameSchema, refused } from "../../http/input/known-fields.ts";
import { MAX_MODELFILE_LENGTH, quote } from "../../models/modelfile/parse-instructions.ts";
import { toModelName } from "./model-name.ts";
import { optionsSchema } from "./ollama-options.ts";
import { modelField, nameField, streamField } from "./ollama-request-fields.ts";

const BLOBS = "files are not uploaded; pull the model, or name a file of the daemon's machine in a Modelfile";

/** A text of the Modelfile that the fields make up, which bounds it. */
const modelfileText = z.string().max(MAX_MODELFILE_LENGTH, { abort: true });
/** A model has the licenses of the one or two that it was made from. */
const MAX_LICENSES = 64;

/** POST /api/create of the Ollama API. Unknown fields are ignored. */
export const createRequestSchema = z
  .object({
    model: modelField.nullish(),
    name: nameField,
    from: modelNameSchema.nullish().describe("The model to start from. It has to be on disk."),
    system: modelfileText.nullish().describe("SYSTEM of the new model."),
    template: modelfileText.nullish().describe("TEMPLATE, in Go's language or Jinja."),
    license: z
      .union([modelfileText, list(modelfileText, { most: MAX_LICENSES })])
      .nullish()
      .describe("LICENSE, one or several."),
    parameters: dictionary(z.union([z.string(), z.number(), z.boolean(), list(z.string()), z.null()]))
      .nullish()
      .describe("PARAMETERs by name. Those that are ignored as options are ignored here too."),
    modelfile: z
      .string()
      .nullish()
      .describe("A whole Modelfile, as older clients send it, instead of the fields above."),
    stream: streamField,
    messages: refused("a model has no conversation of its own; put examples into its system text"),
    files: refused(BLOBS),
    adapters: refused(BLOBS),
    quantize: refused("the daemon does not quantize; pull the model in the quantization you want"),
    path: refused("send the Modelfile's text, or the fields"),
    insecure: ignored(),
  })
  .meta({ id: "OllamaCreateRequest" });
type CreateRequest = z.output<typeof createRequestSchema>;

type ParameterValue = NonNullable<CreateRequest["parameters"]>[string];

/**
 * The Modelfile that a request's fields make up.
 * @throws ServiceError invalid_parameter when nothing says what to start from
 */
export function toModelfile(body: CreateRequest): string {
  if (!body.from) {
    if (body.modelfile) return body.modelfile;
    throw new ServiceError("invalid_parameter", "from: is required (or modelfile).", { param: "from" });
  }
  const lines = [
    `FROM ${toModelName(body.from)}`,
    ...Object.entries(body.parameters ?? {}).flatMap(([name, value]) => parameterLines(name, value)),
    ...textLines("SYSTEM", body.system),
    ...textLines("TEMPLATE", body.template),
    ...[body.license ?? []].flat().flatMap((license) => textLines("LICENSE", license)),
  ];
  return `${lines.join("\n")}\n`;
}

function textLines(directive: string, text: string | null | undefined): string[] {
  return text ? [`${directive} ${quote(text)}`] : [];
}

function parameterLines(name: string, value: ParameterValue): string[] {
  if (!/^\w+$/.test(name)) {
    throw new ServiceError("invalid_parameter", `parameters: ${JSON.stringify(name)} is not a name.`, {
      param: "parameters",
    });
  }
  if (value === null || isIgnored(name) || meansDefault(name, value)) return [];
  if (Array.isArray(value)) return value.flatMap((item) => parameterLines(name, item));
  if (name === "num_gpu") return [`GPU_LAYERS ${scalarText(value)}`];
  return [`PARAMETER ${name} ${scalarText(value)}`];
}

/** In quotes, so that no value can begin another line. */
function scalarText(value: string | number | boolean): string {
  return typeof value === "string" ? quote(value) : String(value);
}

/** What the field `options` of a request ignores, a new model ignores too. */
function isIgnored(name: string): boolean {
  const options = new Map<string, z.ZodType>(Object.entries(optionsSchema.shape));
  return options.get(name)?.description?.startsWith("Accepted and ignored") ?? false;
}

/** Values below the least one say "no limit", "as the daemon says" and "another seed each time". */
function meansDefault(name: string, value: NonNullable<ParameterValue>): boolean {
  const number = typeof value === "boolean" || Array.isArray(value) ? Number.NaN : Number(value);
  if (name === "num_predict") return number < 1;
  return (name === "seed" || name === "num_gpu") && number < 0;
}

/** The lines of a streamed answer; a model is made in one step. */
export const CREATE_STATUSES = ["parsing modelfile", "writing manifest", "success"] as const;
