import { addWarnings } from "../../http/middleware/answer-warnings.ts";
import { defineRoute, type Api, type Route } from "../../http/route.ts";
import { nativeErrorSchema, nativeNdjson, renderNativeError } from "../../http/errors.ts";
import { longJson, NDJSON_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import type { Services } from "../services.ts";
import { collectAnswer } from "../../inference/collect-answer.ts";
import * as chat from "./native-chat.ts";
import * as embeddings from "./token-routes.ts";
import { detokenizeRoute, tokenizeRoute } from "./token-routes.ts";
import * as generate from "./native-generate.ts";
import { experimentRoute } from "./experiment.ts";

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

function generateRoute({ inference }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/api/generate",
    tag,
    summary: "Generate text from a prompt",
    description: "Applies the model's chat template if it has one. Unknown fields are ignored.",
    body: generate.generateRequestSchema,
    answers: [
      { description: "The complete text.", schema: generate.generateAnswerSchema },
      {
        contentType: NDJSON_TYPE,
        description: "With stream: one line per chunk; the last one has no text but the statistics.",
        schema: generate.generateLineSchema,
      },
    ],
    async handle(context, { body }) {
      const stream = await inference.generate(generate.toGenerateRequest(body), context.req.raw.signal);
      addWarnings(context, stream.warnings);
      if (body.stream) {
        const lines = generate.toGenerateLines(stream, body.return_progress ?? false);
        return streamResponse(context, lines, nativeNdjson);
      }
      return context.json(generate.toGenerateAnswer(stream.model, await collectAnswer(stream.events)));
    },
  });
}

function chatRoute({ inference }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/api/chat",
    tag,
    summary: "Answer a chat",
    description: "Unknown fields are ignored.",
    body: chat.chatRequestSchema,
    answers: [
      { description: "The complete message.", schema: chat.chatAnswerSchema },
      {
        contentType: NDJSON_TYPE,
        description: "With stream: one line per chunk; the last one has no text but the statistics.",
        schema: chat.chatLineSchema,
      },
    ],
    async handle(context, { body }) {
      const request = { ...chat.toChatRequest(body), isBuffered: !body.stream };
      const stream = await inference.generate(request, context.req.raw.signal);
      addWarnings(context, stream.warnings);
      if (body.stream)
        return streamResponse(context, chat.toChatLines(stream, body.return_progress ?? false), nativeNdjson);
      return context.json(chat.toChatAnswer(stream.model, await collectAnswer(stream.events)));
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
