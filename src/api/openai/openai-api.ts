import { defineRoute, type Api, type Route } from "../../http/route.ts";
import { pathName } from "../../http/input/common-fields.ts";
import { longJson, SSE_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import type { Services } from "../services.ts";
import { collectChoices, generateChoices } from "../../inference/generate-choices.ts";
import { answerHead, toStreamOptions } from "./openai-fields.ts";
import {
  chatCompletionChunkSchema,
  chatCompletionSchema,
  toChatChunks,
  toChatCompletion,
} from "./chat-answer.ts";
import { chatLimit, customNames, toChatRequests, withoutText } from "./chat-request.ts";
import { chatCompletionRequestSchema } from "./chat-schema.ts";
import { decodeCustomCalls } from "./custom-tools.ts";
import { usesFunctions } from "./legacy-functions.ts";
import { completionsRoute } from "./completion-request.ts";
import * as embeddings from "./embeddings.ts";
import { rerankRequestSchema, rerankSchema, toRerank, toRerankRequest } from "./embeddings.ts";
import { openaiModelListSchema, openaiModelSchema, toModel, toModelList } from "./model-list.ts";
import { openaiErrorSchema, openaiEvents, renderOpenaiError } from "./openai-error.ts";
import { transcriptionsRoute } from "./transcriptions.ts";
import { responseRoutes } from "./responses/response-routes.ts";

const tag = "Chat-completions API";
/** Paths of rerank requests. Clients of Cohere request the second one from the same base URL. */
const RERANK_PATHS = ["/v1/rerank", "/v2/rerank"] as const;

/**
 * OpenAI's API under /v1.
 * @param serverRoutes additional routes that only the daemon has
 */
export const openaiApi = (services: Services, serverRoutes: readonly Route[] = []): Api => ({
  name: "OpenAI",
  prefixes: ["/v1", "/v2"],
  routes: [
    chatRoute(services),
    ...responseRoutes(services),
    completionsRoute(services),
    embeddingsRoute(services),
    transcriptionsRoute(services),
    ...RERANK_PATHS.map((path) => rerankRoute(services, path)),
    modelListRoute(services),
    modelRoute(services),
    ...serverRoutes,
  ],
  renderError: renderOpenaiError,
  errorSchema: openaiErrorSchema,
});

function chatRoute({ inference, config }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/chat/completions",
    tag,
    summary: "Create a chat completion",
    description: "Unknown fields are ignored. A streamed answer ends with `data: [DONE]`.",
    body: chatCompletionRequestSchema,
    answers: [
      { description: "The chat completion.", schema: chatCompletionSchema },
      { contentType: SSE_TYPE, description: "With stream: the chunks.", schema: chatCompletionChunkSchema },
    ],
    async handle(context, { body }) {
      const { slots } = config.models;
      const requests = toChatRequests(body);
      const { model, events, warnings } = await generateChoices(
        inference,
        requests,
        slots,
        context.req.raw.signal,
      );
      context.set("warnings", warnings);
      const head = answerHead("chatcmpl", model);
      const customTools = customNames(body);
      const answered = chatLimit(body) === 0 ? withoutText(events) : events;
      const decoded = customTools.size > 0 ? decodeCustomCalls(answered, customTools) : answered;
      const style = { legacyCalls: usesFunctions(body), customTools, ...toStreamOptions(body) };
      if (body.stream) {
        const chunks = toChatChunks(head, decoded, style);
        return streamResponse(context, chunks, openaiEvents);
      }
      return context.json(toChatCompletion(head, await collectChoices(decoded, requests.length), style));
    },
  });
}

function embeddingsRoute({ inference }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/embeddings",
    tag,
    summary: "Create embeddings",
    body: embeddings.embeddingsRequestSchema,
    answers: [{ description: "The embeddings.", schema: embeddings.embeddingsSchema }],
    async handle(context, { body }) {
      const { signal } = context.req.raw;
      const texts = await embeddings.toEmbedRequest(body, (request) =>
        inference.promptFromTokens(request, signal),
      );
      const answer = await inference.embed(texts, signal);
      return longJson(await embeddings.toEmbeddings(answer, body));
    },
  });
}

function rerankRoute({ inference }: Services, path: string): Route {
  return defineRoute({
    method: "POST",
    path,
    tag,
    summary: "Rank documents by their relevance to a query",
    description: "Requires a reranker model.",
    body: rerankRequestSchema,
    answers: [{ description: "The documents' positions and scores.", schema: rerankSchema }],
    async handle(context, { body }) {
      const answer = await inference.rerank(toRerankRequest(body), context.req.raw.signal);
      return context.json(toRerank(answerHead("rerank", answer.model).id, answer, body));
    },
  });
}

function modelListRoute({ models }: Services): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/models",
    tag,
    summary: "List the models",
    answers: [{ description: "The models on disk.", schema: openaiModelListSchema }],
    alwaysOn: true,
    async handle(context) {
      return context.json(toModelList(await models.list()));
    },
  });
}

function modelRoute({ models }: Services): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/models/:name{.+}",
    tag,
    summary: "Show a model",
    answers: [{ description: "The model.", schema: openaiModelSchema }],
    alwaysOn: true,
    async handle(context) {
      const name = pathName(context);
      const listed = toModelList(await models.list()).data.find(({ id }) => id === name);
      return context.json(listed ?? toModel(await models.get(name)));
    },
  });
}
