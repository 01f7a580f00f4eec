import { z } from "zod";
import { sha256Hex } from "../../../wasm/engine-image.ts";
import type { Sampling } from "../../engine/protocol/generation.ts";
import { SAMPLING_ENTRIES } from "../../engine/protocol/sampling-fields.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { longJson } from "../../http/streaming/stream-response.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { collectAnswer } from "../../inference/collect-answer.ts";
import { DEFAULT_SAMPLING } from "../../inference/default-sampling.ts";
import type { InferenceRequest } from "../../inference/inference.ts";
import type { Services } from "../services.ts";
import { toChatRequest } from "./native-chat.ts";
import { modelField } from "../../http/input/common-fields.ts";
import { toSampling } from "../request-settings.ts";
import {
  type AnswerToken,
  DEFAULT_ALTERNATIVES,
  DEFAULT_MAX_TOKENS,
  experimentRequestSchema,
  type ExperimentResult,
  experimentResultSchema,
} from "../wire/native.ts";
import { contentOf, summary, toAnswerToken, toFormat, toMaxTokens } from "./native-conversion.ts";

const runRequestSchema = z.object({ model: modelField, ...experimentRequestSchema.shape });

/** Route of experiments. The answer has every token, and all that is needed to reproduce it. */
export function experimentRoute({ inference, models, host }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/api/experiment",
    tag: "Generation",
    summary: "Run an experiment",
    description:
      "Generates like `/api/chat`, with a fixed seed and without reusing the KV cache, and reports every token with its ID and log-probability. Unknown fields are ignored.",
    body: runRequestSchema,
    answers: [{ description: "The result.", schema: experimentResultSchema }],
    async handle(context, { body }) {
      const tokens: AnswerToken[] = [];
      const stream = await inference.generate(
        {
          ...toExperiment(body),
          onLogprobs: (generated) => tokens.push(...generated.map(toAnswerToken)),
        },
        context.req.raw.signal,
      );
      const answer = await collectAnswer(stream.events);
      const { settings, gguf, gpuLayers } = await models.get(stream.model);
      const { cached_tokens: _cached, ...statistics } = summary(answer);
      const remote = stream.remoteMachine?.();
      const layersInUse = remote ? remote.gpuLayers : gpuLayers;
      const template = settings.template ?? gguf.chatTemplate;
      return longJson({
        model: stream.model,
        ...contentOf(answer),
        tokens,
        ...statistics,
        prompt_ms: answer.timings.promptMs,
        completion_ms: answer.timings.completionMs,
        sampling: wireSampling(stream.sampling),
        ...(template !== undefined && {
          template_sha256: await sha256Hex(new TextEncoder().encode(template)),
        }),
        where: host.where,
        machine: remote?.machine ?? host.machine,
        ...(layersInUse !== undefined && { gpu_layers: layersInUse }),
        at: new Date().toISOString(),
        engine_sha256: remote?.engineSha256 ?? host.engineSha256,
      } satisfies ExperimentResult);
    },
  });
}

function toExperiment(body: z.output<typeof runRequestSchema>): InferenceRequest {
  const { messages, prompt } = body;
  const common = {
    logprobs: body.alternatives ?? DEFAULT_ALTERNATIVES,
    cachePrompt: false,
    isBuffered: true,
  };
  const bodyWithSeed = { ...body, seed: body.seed ?? 0 };
  if ((messages == null) === (prompt == null)) {
    throw new ServiceError("invalid_parameter", "Send either messages or a prompt.", { param: "messages" });
  }
  if (messages != null) return { ...toChatRequest({ ...bodyWithSeed, messages }), ...common };
  return {
    endpoint: "generate",
    model: body.model ?? undefined,
    input: { kind: "prompt", prompt: prompt ?? "" },
    maxTokens: toMaxTokens(body),
    stop: body.stop ?? undefined,
    sampling: toSampling(bodyWithSeed),
    format: toFormat(body),
    repetitionGuard: body.repetition_guard ?? undefined,
    defaults: { maxTokens: DEFAULT_MAX_TOKENS, sampling: DEFAULT_SAMPLING },
    ...common,
  };
}

/** Returns the settings under their names in requests. */
function wireSampling(sampling: Sampling): Record<string, unknown> {
  return Object.fromEntries(
    SAMPLING_ENTRIES.map(([key, { name }]) => [name, sampling[key]]).filter(
      ([, value]) => value !== undefined,
    ),
  );
}
