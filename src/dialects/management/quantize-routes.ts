import { nativeNdjson, ndjsonLine } from "../../http/errors/native-error.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { NDJSON_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import type { QuantizedModel } from "../../models/quantize/quantize-options.ts";
import { QuantizeSteps, type QuantizeStep } from "../../models/quantize/quantize-steps.ts";
import type { ManagementServices } from "./management-services.ts";
import {
  type QuantizeLine,
  quantizeLineSchema,
  quantizeRequestSchema,
  quantizeResultSchema,
} from "./quantize-schemas.ts";

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
        return streamResponse(context, lines(steps), nativeNdjson);
      },
    }),
  ];
}

async function* lines(steps: AsyncIterable<QuantizeStep>): AsyncGenerator<string, void, undefined> {
  for await (const step of steps) yield ndjsonLine(toLine(step));
}

function toLine(step: QuantizeStep): QuantizeLine {
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
