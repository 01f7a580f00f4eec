import { defineRoute, type Api, type Route } from "../../http/route.ts";
import { pathName } from "../../http/input/common-fields.ts";
import type { Services } from "../services.ts";
import { SSE_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import { collectAnswer, countTokens } from "../../inference/collect-answer.ts";
import { anthropicErrorSchema, anthropicEvents, renderAnthropicError } from "./anthropic-error.ts";
import { newId } from "../answer-fields.ts";
import { messageSchema, toMessage, toMessageEvents } from "./message-answer.ts";
import { omitsThinking, toMessageRequest } from "./message-request.ts";
import {
  anthropicModelListSchema,
  anthropicModelSchema,
  modelListQuerySchema,
  toModel,
  toModelList,
} from "./model-list.ts";
import { countTokensRequestSchema, messageRequestSchema, tokenCountSchema } from "./message-schema.ts";

const tag = "Messages API";

/**
 * Anthropic's messages API under /v1/messages.
 * @param serverRoutes additional routes that only the daemon has
 */
export const anthropicApi = (services: Services, serverRoutes: readonly Route[] = []): Api => ({
  name: "Anthropic",
  prefixes: ["/v1/messages"],
  shared: { prefixes: ["/v1/models"], matches: isAnthropicClient },
  routes: [
    messagesRoute(services),
    countTokensRoute(services),
    modelListRoute(services),
    modelRoute(services),
    ...serverRoutes,
  ].map(withRequestId),
  renderError: renderAnthropicError,
  errorSchema: anthropicErrorSchema,
});

/** Tells Anthropic clients from OpenAI clients, which share /v1/models and send none of these headers. */
function isAnthropicClient(headers: Headers): boolean {
  return headers.has("anthropic-version") || (headers.has("x-api-key") && !headers.has("authorization"));
}

/** Adds the header that this API's clients show with errors. */
function withRequestId(route: Route): Route {
  return {
    ...route,
    async handle(context) {
      const response = await route.handle(context);
      response.headers.set("request-id", context.get("requestId"));
      return response;
    },
  };
}

function messagesRoute({ inference }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/messages",
    tag,
    summary: "Create a message",
    description: "Unknown fields and the headers anthropic-version and anthropic-beta are ignored.",
    body: messageRequestSchema,
    answers: [
      { description: "The message.", schema: messageSchema },
      {
        contentType: SSE_TYPE,
        description:
          "With stream: message_start, for each block content_block_start, content_block_delta and " +
          "content_block_stop, then message_delta and message_stop; ping events in between.",
      },
    ],
    async handle(context, { body }) {
      const { model, events, warnings } = await inference.generate(
        toMessageRequest(body),
        context.req.raw.signal,
      );
      context.set("warnings", warnings);
      const options = {
        id: newId("msg"),
        model,
        stopSequences: body.stop_sequences ?? [],
        omitsThinking: omitsThinking(body),
        contextManagement: body.context_management,
      };
      return body.stream
        ? streamResponse(context, toMessageEvents(options, events), anthropicEvents)
        : context.json(toMessage(options, await collectAnswer(events)));
    },
  });
}

function countTokensRoute({ inference }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/messages/count_tokens",
    tag,
    summary: "Count the tokens of a message request",
    description:
      "The exact count after the chat template, including system, tools and images. It costs the first prefill step of " +
      "the prompt.",
    body: countTokensRequestSchema,
    answers: [{ description: "The number of tokens.", schema: tokenCountSchema }],
    async handle(context, { body }) {
      const request = toMessageRequest({ ...body, max_tokens: 1 });
      const tokens = await countTokens(inference, request, context.req.raw.signal);
      return context.json({
        input_tokens: tokens,
        ...(body.context_management != null && { context_management: { original_input_tokens: tokens } }),
      });
    },
  });
}

function modelListRoute({ models }: Services): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/models",
    tag,
    summary: "List the models, for clients of the messages API",
    description:
      "A request with the header anthropic-version, or with x-api-key and without authorization, gets a page in the " +
      "format of the messages API.",
    query: modelListQuerySchema,
    answers: [{ description: "A page of models.", schema: anthropicModelListSchema }],
    alwaysOn: true,
    async handle(context, { query }) {
      return context.json(toModelList(await models.list(), query));
    },
  });
}

function modelRoute({ models }: Services): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/models/:name{.+}",
    tag,
    summary: "Show a model, for clients of the messages API",
    answers: [
      {
        description: "The model, in the format that the request's headers select.",
        schema: anthropicModelSchema,
      },
    ],
    alwaysOn: true,
    async handle(context) {
      return context.json(toModel(await models.get(pathName(context))));
    },
  });
}
