import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { nativeNdjson, ndjsonLine } from "../../http/errors.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { NDJSON_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import type { ImportStep } from "../../models/import/imported-files.ts";
import { type QuantizeStep, QuantizeSteps } from "../../models/progress-steps.ts";
import { FILE_TYPES, type QuantizedModel } from "../../models/quantize/quantize-options.ts";
import { list } from "../../http/input/bounded-lists.ts";
import { modelNameSchema, optional } from "../../http/input/common-fields.ts";
import type { ManagementServices } from "./management-services.ts";
import { pathField } from "./model-routes.ts";
import {
  type ImportLine,
  importLineSchema,
  type ImportOutcome,
  importResultSchema,
  type QuantizeLine,
  quantizeLineSchema,
  quantizeResultSchema,
} from "../wire/models.ts";

const importRequestSchema = z.object({
  from: pathField.describe(
    "ollama, lmstudio or hf for the model folder of that program; or the absolute path of a folder.",
  ),
  models: optional(list(modelNameSchema), "Models to import, by their names in the source. Default: all."),
  copy: optional(z.boolean(), "Copy files that cannot be cloned or linked, instead of using them in place."),
  stream: optional(z.boolean(), "Stream progress as lines of JSON."),
});

/** Route to import the models of other programs on this machine. */
export function importRoutes({ models }: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      method: "POST",
      path: "/api/models/import",
      tag: "Models",
      summary: "Import the models of other programs on this machine",
      description:
        "Only for clients on the daemon's machine, because it reads folders there. Files are cloned or linked if the file system supports it, otherwise used in place. A repeated import only updates what has changed.",
      body: importRequestSchema,
      answers: [
        { description: "The result for each model.", schema: importResultSchema },
        {
          contentType: NDJSON_TYPE,
          description: "With stream: one line per step.",
          schema: importLineSchema,
        },
      ],
      async handle(context, { body }) {
        if (!context.get("isLocalClient")) {
          throw new ServiceError(
            "path_not_allowed",
            "Only programs on the daemon's machine can import models, because it reads folders there; run daybreak import there.",
          );
        }
        const { from, models: names, copy, stream } = body;
        const request = { from, names: names ?? undefined, copy: copy ?? false };
        const steps = models.importFrom(request, context.req.raw.signal);
        // An invalid folder is reported before the first step, while the HTTP status can still be set.
        const first = await steps.next();
        if (stream) return streamResponse(context, importFrames(first, steps), nativeNdjson);
        const outcomes: ImportOutcome[] = [];
        for await (const line of importLines(first, steps))
          if ("name" in line && line.status !== "copying") outcomes.push(line);
        const folder = first.value?.status === "reading" ? first.value.folder : from;
        return context.json({ status: "success", folder, models: outcomes });
      },
    }),
  ];
}

type Steps = AsyncGenerator<ImportStep, void>;

async function* importFrames(
  first: IteratorResult<ImportStep, void>,
  steps: Steps,
): AsyncGenerator<string, void> {
  for await (const line of importLines(first, steps)) yield ndjsonLine(line);
  yield ndjsonLine({ status: "success" });
}

async function* importLines(
  first: IteratorResult<ImportStep, void>,
  steps: Steps,
): AsyncGenerator<ImportLine, void> {
  if (first.done) return;
  yield importLine(first.value);
  for await (const step of steps) yield importLine(step);
}

function importLine(step: ImportStep): ImportLine {
  if (step.status === "reading" || step.status === "skipped") return step;
  const { name } = step;
  if (step.status === "copying")
    return { status: step.status, name, copied_bytes: step.copiedBytes, total_bytes: step.totalBytes };
  const { status, alias, placement: files, sizeBytes, notes } = step;
  return {
    status,
    name,
    alias,
    files,
    size_bytes: sizeBytes,
    ...(notes.length > 0 && { notes: [...notes] }),
  };
}

const fileTypeNames = FILE_TYPES.map(({ name }) => name).join(", ");

const quantizeRequestSchema = z.object({
  source: modelNameSchema.describe("Model to quantize: a name, a hub spec, or the path of a GGUF file."),
  destination: modelNameSchema.describe(
    "Name of the new model, which has the settings of the source. Replaces an earlier created model of this name.",
  ),
  quantization: z.string().min(1).describe(`One of ${fileTypeNames}.`),
  allow_requantize: z
    .boolean()
    .nullable()
    .default(false)
    .describe("Allow weights that are already quantized, which reduces quality."),
  stream: z.boolean().nullable().default(false).describe("Stream progress as lines of JSON."),
});

/** POST /api/models/quantize */
export function quantizeRoutes({ models }: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      method: "POST",
      path: "/api/models/quantize",
      tag: "Models",
      summary: "Quantize a model",
      description:
        "Creates a new model from one whose weights are F32, F16 or BF16, on this machine, byte for byte like llama-quantize. One model at a time. Disconnecting cancels it and deletes the partial file.",
      body: quantizeRequestSchema,
      answers: [
        { description: "The new model has been created.", schema: quantizeResultSchema },
        {
          contentType: NDJSON_TYPE,
          description: "With stream: one line of progress.",
          schema: quantizeLineSchema,
        },
      ],
      async handle(context, { body }) {
        const { signal } = context.req.raw;
        const options = {
          alias: body.destination,
          modelfile: `FROM ${body.source}\n`,
          quantization: body.quantization,
          mayRequantize: body.allow_requantize ?? false,
        };
        const steps = new QuantizeSteps((onProgress) => models.quantize(options, onProgress, signal));
        if (!body.stream) return context.json(quantizeResult(await steps.finished()));
        await steps.started();
        return streamResponse(context, quantizeLines(steps), nativeNdjson);
      },
    }),
  ];
}

async function* quantizeLines(steps: AsyncIterable<QuantizeStep>): AsyncGenerator<string, void, undefined> {
  for await (const step of steps) yield ndjsonLine(quantizeLine(step));
}

function quantizeLine(step: QuantizeStep): QuantizeLine {
  if (step.status === "success") return quantizeResult(step);
  const { completedBytes, totalBytes } = step;
  return {
    status: "quantizing",
    progress: completedBytes / totalBytes,
    completed_bytes: completedBytes,
    total_bytes: totalBytes,
  };
}

function quantizeResult(quantized: QuantizedModel): Extract<QuantizeLine, { status: "success" }> {
  const { model, sizeBytes, sourceBytes, bitsPerWeight, fallbackTensors } = quantized;
  return {
    status: "success",
    model: model.alias,
    quantization: model.gguf.quantization,
    size_bytes: sizeBytes,
    source_bytes: sourceBytes,
    bits_per_weight: bitsPerWeight,
    fallback_tensors: fallbackTensors,
  };
}
