import type { z } from "zod";
import { defineRoute, type Api, type Route } from "../../http/route.ts";
import { nativeErrorSchema, nativeNdjson, renderNativeError } from "../../http/errors.ts";
import { longJson, NDJSON_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import type { Services } from "../services.ts";
import { collectAnswer } from "../../inference/collect-answer.ts";
import type { InferenceRequest } from "../../inference/inference.ts";
import * as chat from "./native-chat.ts";
import * as embeddings from "./token-routes.ts";
import { detokenizeRoute, tokenizeRoute } from "./token-routes.ts";
import * as generate from "./native-generate.ts";
import {
  chatAnswerSchema,
  chatLineSchema,
  generateAnswerSchema,
  generateLineSchema,
} from "../wire/native.ts";
import { experimentRoute } from "./experiment.ts";
import { type Content, toAnswer, toLines } from "./native-conversion.ts";

const tag = "Generation";

/**
 * The daemon's own API for generation.
 * @param serverRoutes additional routes that only the daemon has
 */
export const nativeApi = (services: Services, serverRoutes: readonly Route[] = []): Api => ({
  name: "Native",
  prefixes: [
    "/api/generate",
    "/api/chat",
    "/api/embeddings",
    "/api/experiment",
    "/tokenize",
    "/detokenize",
    "/ws/chat",
  ],
  routes: [
    generateRoute(services),
    chatRoute(services),
    embeddingsRoute(services),
    experimentRoute(services),
    tokenizeRoute(services),
    detokenizeRoute(services),
    ...serverRoutes,
  ],
  renderError: renderNativeError,
  errorSchema: nativeErrorSchema,
});

const STREAMED = "With stream: one line per chunk; the last one has no text but the statistics.";

function generateRoute(services: Services): Route {
  return generationRoute(services, {
    path: "/api/generate",
    summary: "Generate text from a prompt",
    description: "Applies the model's chat template if it has one. Unknown fields are ignored.",
    body: generate.generateRequestSchema,
    answers: [
      { description: "The complete text.", schema: generateAnswerSchema },
      { contentType: NDJSON_TYPE, description: STREAMED, schema: generateLineSchema },
    ],
    toRequest: generate.toGenerateRequest,
    place: generate.placeInResponse,
  });
}

function chatRoute(services: Services): Route {
  return generationRoute(services, {
    path: "/api/chat",
    summary: "Answer a chat",
    description: "Unknown fields are ignored.",
    body: chat.chatRequestSchema,
    answers: [
      { description: "The complete message.", schema: chatAnswerSchema },
      { contentType: NDJSON_TYPE, description: STREAMED, schema: chatLineSchema },
    ],
    toRequest: chat.toChatRequest,
    place: chat.placeInMessage,
  });
}

type StreamFields = Pick<z.output<typeof chat.chatRequestSchema>, "stream" | "return_progress">;

function generationRoute<Body extends z.ZodType<StreamFields>>(
  { inference }: Services,
  {
    toRequest,
    place,
    ...description
  }: Pick<Route, "path" | "summary" | "description" | "answers"> & {
    readonly body: Body;
    readonly toRequest: (body: z.output<Body>) => InferenceRequest;
    readonly place: (content: Content) => object;
  },
): Route {
  return defineRoute({
    method: "POST",
    tag,
    ...description,
    async handle(context, { body }) {
      const request = { ...toRequest(body), isBuffered: !body.stream };
      const stream = await inference.generate(request, context.req.raw.signal);
      context.set("warnings", stream.warnings);
      if (body.stream)
        return streamResponse(context, toLines(stream, place, body.return_progress ?? false), nativeNdjson);
      return context.json(toAnswer(stream.model, await collectAnswer(stream.events), place));
    },
  });
}

function embeddingsRoute({ inference }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/api/embeddings",
    tag,
    summary: "Create embeddings",
    body: embeddings.embeddingsRequestSchema,
    answers: [{ description: "The embeddings.", schema: embeddings.embeddingsAnswerSchema }],
    async handle(context, { body }) {
      const answer = await inference.embed(embeddings.toEmbedRequest(body), context.req.raw.signal);
      return longJson(embeddings.toEmbeddingsAnswer(answer));
    },
  });
}
