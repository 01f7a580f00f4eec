import { tellWarnings } from "../../http/middleware/answer-warnings.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { SSE_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import type { AppContext } from "../../http/app-env.ts";
import { collectChoices, generateChoices } from "../../inference/generate-choices.ts";
import type { InferenceRequest } from "../../inference/inference.ts";
import type { Services } from "../services.ts";
import {
  type CompletionStyle,
  completionChunkSchema,
  completionSchema,
  toCompletion,
  toCompletionChunks,
} from "./completion-answer.ts";
import { alternativesOf, isOnlyRead, promptText, tokenLimitOf, toRequests } from "./completion-request.ts";
import {
  completionRequestSchema,
  type GenerationBody,
  infillRequestSchema,
  promptsOf,
} from "./completion-schema.ts";
import { fitInfill } from "./fit-infill.ts";
import { generationSettings } from "./generation-settings.ts";
import { llamaServerEvents } from "./llama-server-error.ts";
import { requiredModel } from "./required-model.ts";

const tag = "llama-server";
const answers = [
  { description: "The completion; an array of them for several.", schema: completionSchema },
  { contentType: SSE_TYPE, description: "With stream: the chunks.", schema: completionChunkSchema },
];

/** POST /completion, and by its other name. */
export function completionRoute(services: Services, path: "/completion" | "/completions"): Route {
  const { inference } = services;
  return defineRoute({
    method: "POST",
    path,
    tag,
    summary: "Continue a text",
    description: "The prompt is sent to the model without its chat template. Unknown fields are ignored.",
    body: completionRequestSchema,
    answers,
    async handle(context, { body }) {
      const { signal } = context.req.raw;
      const model = body.model ?? undefined;
      const inputs: InferenceRequest["input"][] = [];
      for (const prompt of promptsOf(body)) {
        inputs.push({ kind: "prompt", prompt: await promptText(inference, model, prompt, signal) });
      }
      return await answer(context, services, body, inputs);
    },
  });
}

/** POST /infill. */
export function infillRoute(services: Services): Route {
  const { inference, models } = services;
  return defineRoute({
    method: "POST",
    path: "/infill",
    tag,
    summary: "Fill a gap in a text",
    description:
      "For editors, and models that were trained for it. What does not fit into the context is shortened. Unknown fields are ignored.",
    body: infillRequestSchema,
    answers,
    async handle(context, { body }) {
      const { input_prefix: prefix, input_suffix: suffix, input_extra: files, prompt } = body;
      const model = await requiredModel(models, body.model);
      const extra = (files ?? []).map(({ text, filename }) => ({
        text: text ?? "",
        filename: filename || "tmp",
      }));
      const parts = { prefix, suffix, extra, middle: prompt ?? undefined };
      const { signal } = context.req.raw;
      const fitting = await fitInfill(parts, model, tokenLimitOf(body), inference, signal);
      return await answer(context, services, body, [{ kind: "infill", ...fitting }]);
    },
  });
}

async function answer(
  context: AppContext,
  { inference, config }: Services,
  body: GenerationBody,
  inputs: readonly InferenceRequest["input"][],
): Promise<Response> {
  const requests = toRequests(body, inputs);
  const stream = body.stream ?? false;
  const { signal } = context.req.raw;
  const { model, events, warnings, sampling } = await generateChoices(
    inference,
    requests,
    config.models.slots,
    signal,
  );
  tellWarnings(context, warnings);
  const limit = tokenLimitOf(body);
  const style: CompletionStyle = {
    model,
    settings: generationSettings(sampling, { limit, stop: requests[0]?.stop ?? [], stream }),
    tokens: body.return_tokens ?? false,
    probabilities: alternativesOf(body) !== undefined,
    progress: body.return_progress ?? false,
    onlyRead: isOnlyRead(body),
    fields: body.response_fields ?? undefined,
  };
  if (stream) return streamResponse(context, toCompletionChunks(events, style), llamaServerEvents);
  const completions = (await collectChoices(events, requests.length)).map((each, index) =>
    toCompletion(each, index, style),
  );
  return context.json(completions.length === 1 ? completions[0] : completions);
}
