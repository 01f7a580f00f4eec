import { ServiceError } from "../../errors/service-error.ts";
import { nativeNdjson, ndjsonLine } from "../../http/errors.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { NDJSON_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import type { ImportStep } from "../../models/import/imported-files.ts";
import { type QuantizeStep, QuantizeSteps } from "../../models/progress-steps.ts";
import type { QuantizedModel } from "../../models/quantize/quantize-options.ts";
import type { ManagementServices } from "./management-services.ts";
import {
  type ImportLine,
  importLineSchema,
  type ImportOutcome,
  importRequestSchema,
  importResultSchema,
  type QuantizeLine,
  quantizeLineSchema,
  quantizeRequestSchema,
  quantizeResultSchema,
} from "./model-schemas.ts";

/** Models that other programs have on this machine. */
export function importRoutes({ models }: Pick<ManagementServices, "models">): readonly Route[] {
  return [
    defineRoute({
      method: "POST",
      path: "/api/models/import",
      tag: "Models",
      summary: "Import the models that other programs have (this machine only)",
      description:
        "Only for clients on the daemon's machine, for it reads folders there. Files are cloned or linked where the file system can, otherwise used where they are. Importing again changes only what has changed.",
      body: importRequestSchema,
      answers: [
        { description: "What has become of each model.", schema: importResultSchema },
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
            "Only programs on the daemon's machine can import models, for that reads folders there; run daybreak import there.",
          );
        }
        const { from, models: names, copy, stream } = body;
        const request = { from, names: names ?? undefined, copy: copy ?? false };
        const steps = models.importFrom(request, context.req.raw.signal);
        // What is wrong with the folder shows before the first step, while a status can still say so.
        const first = await steps.next();
        if (stream) return streamResponse(context, lines(first, steps), nativeNdjson);
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

async function* lines(first: IteratorResult<ImportStep, void>, steps: Steps): AsyncGenerator<string, void> {
  for await (const line of importLines(first, steps)) yield ndjsonLine(line);
  yield ndjsonLine({ status: "success" });
}

async function* importLines(
  first: IteratorResult<ImportStep, void>,
  steps: Steps,
): AsyncGenerator<ImportLine, void> {
  if (first.done) return;
  yield toLine(first.value);
  for await (const step of steps) yield toLine(step);
}

function toLine(step: ImportStep): ImportLine {
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

/** POST /api/models/quantize */
export function quantizeRoutes({ models }: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      method: "POST",
      path: "/api/models/quantize",
      tag: "Models",
      summary: "Quantize a model",
      description:
        "Makes a new model of one whose weights are F32, F16 or BF16, on this machine, with the bytes that llama-quantize writes. One model at a time; disconnecting cancels it, and nothing remains.",
      body: quantizeRequestSchema,
      answers: [
        { description: "The new model is on disk.", schema: quantizeResultSchema },
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
        if (!body.stream) return context.json(result(await steps.finished()));
        await steps.begun();
        return streamResponse(context, quantizeRoutesLines(steps), nativeNdjson);
      },
    }),
  ];
}

async function* quantizeRoutesLines(
  steps: AsyncIterable<QuantizeStep>,
): AsyncGenerator<string, void, undefined> {
  for await (const step of steps) yield ndjsonLine(quantizeRoutesToLine(step));
}

function quantizeRoutesToLine(step: QuantizeStep): QuantizeLine {
  if (step.status === "success") return result(step);
  const { completedBytes, totalBytes } = step;
  return {
    status: "quantizing",
    progress: completedBytes / totalBytes,
    completed_bytes: completedBytes,
    total_bytes: totalBytes,
  };
}

function result(quantized: QuantizedModel): Extract<QuantizeLine, { status: "success" }> {
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
