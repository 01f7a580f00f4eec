import { z } from "zod";
import { dictionary, list } from "../../http/input/bounded-lists.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { ignored, modelNameSchema, refused } from "../../http/input/known-fields.ts";
import { MAX_MODELFILE_LENGTH, quote } from "../../models/modelfile/parse-instructions.ts";
import { toModelName } from "./model-name.ts";
import { ignoredOptions } from "./ollama-options.ts";
import { modelField, nameField, streamField } from "./ollama-request-fields.ts";

const BLOBS =
  "files cannot be uploaded; pull the model, or name a file on the daemon's machine in a Modelfile";

/** Text for the Modelfile, whose length limit it shares. */
const modelfileText = z.string().max(MAX_MODELFILE_LENGTH, { abort: true });
/** Far more than models have. */
const MAX_LICENSES = 64;

/** POST /api/create of the Ollama API. Unknown fields are ignored. */
export const createRequestSchema = z
  .object({
    model: modelField.nullish(),
    name: nameField,
    from: modelNameSchema.nullish().describe("Base model; it must be on disk."),
    system: modelfileText.nullish().describe("SYSTEM of the new model."),
    template: modelfileText.nullish().describe("TEMPLATE, in Go template syntax or Jinja."),
    license: z
      .union([modelfileText, list(modelfileText, { most: MAX_LICENSES })])
      .nullish()
      .describe("LICENSE, one or several."),
    parameters: dictionary(z.union([z.string(), z.number(), z.boolean(), list(z.string()), z.null()]))
      .nullish()
      .describe("PARAMETERs by name. Options that requests ignore are ignored here too."),
    modelfile: z
      .string()
      .nullish()
      .describe("A complete Modelfile, which older clients send instead of the fields above."),
    stream: streamField,
    messages: refused("a model cannot store messages; put examples in its system prompt"),
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
 * Builds a Modelfile from the fields of a request.
 * @throws ServiceError invalid_parameter when there is neither `from` nor `modelfile`
 */
export function toModelfile(body: CreateRequest): string {
  if (!body.from) {
    if (body.modelfile) return body.modelfile;
    throw new ServiceError("invalid_parameter", "from: is required, unless there is a modelfile.", {
      param: "from",
    });
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
    throw new ServiceError(
      "invalid_parameter",
      `parameters: ${JSON.stringify(name)} is not a valid parameter name.`,
      {
        param: "parameters",
      },
    );
  }
  if (value === null || Object.hasOwn(ignoredOptions, name) || meansDefault(name, value)) return [];
  if (Array.isArray(value)) return value.flatMap((item) => parameterLines(name, item));
  if (name === "num_gpu") return [`GPU_LAYERS ${scalarText(value)}`];
  return [`PARAMETER ${name} ${scalarText(value)}`];
}

/** Quotes strings, so that a value cannot start a new line. */
function scalarText(value: string | number | boolean): string {
  return typeof value === "string" ? quote(value) : String(value);
}

/** Values below the minimum mean the default: no limit, the daemon's layers, a new seed for each request. */
function meansDefault(name: string, value: NonNullable<ParameterValue>): boolean {
  const number = typeof value === "boolean" || Array.isArray(value) ? Number.NaN : Number(value);
  if (name === "num_predict") return number < 1;
  return (name === "seed" || name === "num_gpu") && number < 0;
}

/** The lines of a streamed answer, sent together: creating a model has no progress. */
export const CREATE_STATUSES = ["parsing modelfile", "writing manifest", "success"] as const;
