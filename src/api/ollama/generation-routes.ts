import type { z } from "zod";
import type { ErrorCode } from "../../errors/error-codes.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { longJson, NDJSON_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import { collectAnswer } from "../../inference/collect-answer.ts";
import type { EmbedAnswer, EmbedRequest, InferenceRequest } from "../../inference/inference.ts";
import type { Model } from "../../models/model.ts";
import type { Models, Residency } from "../../models/models.ts";
import type { ModelServices } from "../services.ts";
import { findModel } from "./model-entry.ts";
import { type Content, type ResidencyReason, toAnswer, toLines, toLoadAnswer } from "./ollama-answer.ts";
import * as chat from "./ollama-chat.ts";
import * as embed from "./ollama-embed.ts";
import { ollamaLines } from "./ollama-error.ts";
import * as generate from "./ollama-generate.ts";
import { toResidency } from "./ollama-options.ts";

const tag = "Ollama API";
const STREAMED = "Unless stream is false: one line per chunk; the last one has done true and the statistics.";

export function generationRoutes(services: ModelServices): readonly Route[] {
  return [chatRoute(services), generateRoute(services), embedRoute(services), embeddingsRoute(services)];
}

/** Handles a request without a prompt, which only loads or unloads the model. */
async function loadWithoutPrompt(
  { models, inference }: ModelServices,
  model: Model,
  residency: Residency,
  signal: AbortSignal,
): Promise<ResidencyReason> {
  if (model.source.kind !== "fleet" || residency.keepAliveMs === 0)
    return await loadOrUnload(models, model, residency, signal);
  // Tokenizing an empty text makes the remote machine load the model.
  const options = { addSpecial: false, parseSpecial: false };
  await inference.tokenize({ model: model.alias, text: "", options, residency }, signal);
  return "load";
}

function chatRoute(services: ModelServices): Route {
  return generationRoute(services, {
    path: "/ollama/api/chat",
    summary: "Answer a chat",
    body: chat.chatRequestSchema,
    answers: [
      { description: "The complete message.", schema: chat.chatAnswerSchema },
      { contentType: NDJSON_TYPE, description: STREAMED, schema: chat.chatLineSchema },
    ],
    isEmpty: ({ messages }) => (messages ?? []).length === 0,
    toRequest: chat.toChatRequest,
    place: chat.placeInMessage,
  });
}

function generateRoute(services: ModelServices): Route {
  return generationRoute(services, {
    path: "/ollama/api/generate",
    summary: "Generate text from a prompt",
    body: generate.generateRequestSchema,
    answers: [
      { description: "The complete text.", schema: generate.generateAnswerSchema },
      { contentType: NDJSON_TYPE, description: STREAMED, schema: generate.generateLineSchema },
    ],
    isEmpty: ({ prompt, images }) => !prompt && (images ?? []).length === 0,
    toRequest: generate.toGenerateRequest,
    place: generate.placeInResponse,
  });
}

type CommonBody = Pick<chat.ChatRequest, "model" | "stream" | "options" | "keep_alive">;

function generationRoute<Body extends z.ZodType<CommonBody>>(
  services: ModelServices,
  {
    isEmpty,
    toRequest,
    place,
    ...description
  }: Pick<Route, "path" | "summary" | "answers"> & {
    readonly body: Body;
    /** True if a request only loads or unloads the model. */
    readonly isEmpty: (body: z.output<Body>) => boolean;
    readonly toRequest: (body: z.output<Body>, model: Model) => InferenceRequest;
    readonly place: (content: Content) => object;
  },
): Route {
  const { models, inference } = services;
  return defineRoute({
    method: "POST",
    tag,
    description: "Loads the model if needed. Unknown fields are ignored.",
    ...description,
    async handle(context, { body }) {
      const { signal } = context.req.raw;
      const model = await findModel(models, body.model);
      if (isEmpty(body)) {
        const reason = await loadWithoutPrompt(services, model, toResidency(body, model), signal);
        return context.json(toLoadAnswer(reason, body.model, place));
      }
      const request = toRequest(body, model);
      const { events, loadMs, warnings } = await withRequestedContext(
        models,
        model,
        request.residency ?? {},
        async (residency) => await inference.generate({ ...request, residency }, signal),
      );
      context.set("warnings", warnings);
      const label = { model: body.model, loadMs };
      if (body.stream !== false) return streamResponse(context, toLines(events, label, place), ollamaLines);
      return context.json(toAnswer(await collectAnswer(events), label, place));
    },
  });
}

function embedRoute(services: ModelServices): Route {
  const { models } = services;
  return defineRoute({
    method: "POST",
    path: "/ollama/api/embed",
    tag,
    summary: "Create embeddings",
    description: "Loads the model if needed. Unknown fields are ignored.",
    body: embed.embedRequestSchema,
    answers: [{ description: "The embeddings.", schema: embed.embedAnswerSchema }],
    async handle(context, { body }) {
      const startedAt = performance.now();
      const model = await findModel(models, body.model);
      const request = embed.toEmbedRequest(body, model);
      const answer = await embedWithContext(services, request, model, context.req.raw.signal);
      return longJson(await embed.toEmbedAnswer(answer, body, performance.now() - startedAt));
    },
  });
}

function embeddingsRoute(services: ModelServices): Route {
  const { models } = services;
  return defineRoute({
    method: "POST",
    path: "/ollama/api/embeddings",
    tag,
    summary: "Create one embedding",
    description: "The older version of /ollama/api/embed.",
    body: embed.embeddingsRequestSchema,
    answers: [{ description: "The embedding.", schema: embed.embeddingsAnswerSchema }],
    async handle(context, { body }) {
      const model = await findModel(models, body.model);
      const request = embed.toEmbedRequest({ ...body, input: body.prompt }, model);
      const { vectors } = await embedWithContext(services, request, model, context.req.raw.signal);
      return context.json({ embedding: [...(vectors[0] ?? [])] });
    },
  });
}

async function embedWithContext(
  { inference, models }: ModelServices,
  request: EmbedRequest,
  model: Model,
  signal: AbortSignal,
): Promise<EmbedAnswer> {
  return await withRequestedContext(
    models,
    model,
    request.residency ?? {},
    async (residency) => await inference.embed({ ...request, residency }, signal),
  );
}

/** Codes of load errors that a too large context can cause. */
const LOAD_FAILURES: readonly ErrorCode[] = ["insufficient_memory", "model_load_failed"];

/**
 * Runs a request with its requested context size. An idle model with a smaller context is unloaded first, so that the
 * request reloads it; a model in use keeps its context. A model without expiry is reloaded without expiry, and with its
 * previous context if the larger one fails.
 */
export async function withRequestedContext<Result>(
  models: Pick<Models, "load" | "unload">,
  model: Model,
  residency: Residency,
  run: (residency: Residency) => Promise<Result>,
): Promise<Result> {
  const { contextSize } = residency;
  const fits = contextSize === undefined || model.contextSize >= contextSize;
  if (fits || model.state !== "loaded" || (await tryUnload(models, model)) === "busy") {
    return await run(residency);
  }
  if (model.expiresAt !== undefined) return await run(residency);
  try {
    return await run({ ...residency, keepAliveMs: residency.keepAliveMs ?? Number.POSITIVE_INFINITY });
  } catch (error) {
    if (hasCode(error, LOAD_FAILURES)) await reloadPrevious(models, model);
    throw error;
  }
}

/** Loads a model of this machine, or unloads it if keep_alive is 0. */
export async function loadOrUnload(
  models: Pick<Models, "acquire" | "load" | "unload">,
  model: Model,
  requested: Residency,
  signal: AbortSignal,
): Promise<ResidencyReason> {
  const acquire = async (residency: Residency): Promise<void> =>
    (await models.acquire(model.alias, signal, residency))[Symbol.dispose]();
  if (requested.keepAliveMs === 0) {
    // A model in use is unloaded after its last request.
    if ((await tryUnload(models, model)) === "busy") await acquire({ keepAliveMs: 0 });
    return "unload";
  }
  await withRequestedContext(models, model, requested, acquire);
  return "load";
}

async function tryUnload(models: Pick<Models, "unload">, { alias }: Model): Promise<"unloaded" | "busy"> {
  try {
    await models.unload(alias, { onlyIdle: true });
  } catch (error) {
    if (hasCode(error, ["model_busy"])) return "busy";
    if (!hasCode(error, ["model_already_unloaded"])) throw error;
  }
  return "unloaded";
}

async function reloadPrevious(
  models: Pick<Models, "load">,
  { alias, contextSize, gpuLayers }: Model,
): Promise<void> {
  try {
    await models.load({ alias, contextSize, gpuLayers });
  } catch {
    // The client gets the error of its own request.
  }
}

function hasCode(error: unknown, codes: readonly ErrorCode[]): boolean {
  return error instanceof ServiceError && codes.includes(error.code);
}
