import { z } from "zod";
import { ServiceError } from "../../../errors/service-error.ts";
import type { AppContext } from "../../../http/app-env.ts";
import { defineRoute, type Route } from "../../../http/route.ts";
import type { Services } from "../../services.ts";
import { sseEvent } from "../../../http/streaming/sse-frame.ts";
import { SSE_TYPE, streamResponse } from "../../../http/streaming/stream-response.ts";
import { countTokens } from "../../../inference/count-tokens.ts";
import { openaiEvents } from "../openai-error.ts";
import { resolveConversation } from "./resolve-conversation.ts";
import { generateFitting } from "./truncation.ts";
import { inputItemListSchema, inputItemQuerySchema, toInputItemList } from "./input-item-list.ts";
import { beginResponse, responseSchema } from "./response-object.ts";
import { toInferenceRequest } from "./response-request.ts";
import { inputTokensRequestSchema, inputTokensSchema, responseRequestSchema } from "./response-schema.ts";
import { ResponseStore, type StoredResponse } from "./response-store.ts";
import { ResponseWriter, type ResponseEvent } from "./response-writer.ts";

const tag = "Responses API";

const deletedSchema = z.object({
  id: z.string(),
  object: z.literal("response"),
  deleted: z.literal(true),
});

const shownQuerySchema = z.object({
  stream: z
    .literal("false", { error: "is not supported: events are sent once, while the response is made" })
    .optional(),
});

/** The routes under /v1/responses, with a store of their own. */
export function responseRoutes(services: Pick<Services, "inference">): readonly Route[] {
  const store = new ResponseStore();
  return [
    createRoute(services, store),
    inputTokensRoute(services, store),
    showRoute(store),
    inputItemsRoute(store),
    cancelRoute(store),
    deleteRoute(store),
  ];
}

function createRoute({ inference }: Pick<Services, "inference">, store: ResponseStore): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/responses",
    tag,
    summary: "Answer in a conversation that the daemon may remember",
    description: "Unknown fields are ignored. A response is kept in memory unless `store` is false.",
    body: responseRequestSchema,
    answers: [
      { description: "The whole response.", schema: responseSchema },
      {
        contentType: SSE_TYPE,
        description:
          "With stream: response.created and response.in_progress, the events of each output item, then one of " +
          "response.completed, response.incomplete and response.failed, each with its sequence_number.",
      },
    ],
    async handle(context, { body }) {
      const conversation = resolveConversation(body, store);
      const { model, events } = await generateFitting(inference, body, conversation, context.req.raw.signal);
      const writer = new ResponseWriter(beginResponse(body, model), (response) => {
        if (response.store) store.add(response, [...conversation.items, ...response.output]);
      });
      if (body.stream) {
        return streamResponse(context, frames(writer.events(events)), {
          ...openaiEvents,
          errorFrame: (error) => frame(writer.fail(error)),
        });
      }
      return context.json(await writer.collect(events));
    },
  });
}

function inputTokensRoute({ inference }: Pick<Services, "inference">, store: ResponseStore): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/responses/input_tokens",
    tag,
    summary: "Count the tokens of a conversation",
    description:
      "Exact: what the model's template makes of the conversation, tools and images included. The prompt is begun " +
      "for it and left after its first step.",
    body: inputTokensRequestSchema,
    answers: [{ description: "The number of tokens.", schema: inputTokensSchema }],
    async handle(context, { body }) {
      const request = toInferenceRequest(body, resolveConversation(body, store));
      const tokens = await countTokens(inference, request, context.req.raw.signal);
      return context.json({ object: "response.input_tokens", input_tokens: tokens });
    },
  });
}

function showRoute(store: ResponseStore): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/responses/:id",
    tag,
    summary: "Show a kept response",
    query: shownQuerySchema,
    answers: [{ description: "The response.", schema: responseSchema }],
    alwaysOn: true,
    handle(context) {
      return context.json(kept(store, pathId(context)).response);
    },
  });
}

function inputItemsRoute(store: ResponseStore): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/responses/:id/input_items",
    tag,
    summary: "List what a kept response was made from",
    query: inputItemQuerySchema,
    answers: [{ description: "The items of its conversation.", schema: inputItemListSchema }],
    alwaysOn: true,
    handle(context, { query }) {
      return context.json(toInputItemList(kept(store, pathId(context)), query));
    },
  });
}

function cancelRoute(store: ResponseStore): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/responses/:id/cancel",
    tag,
    summary: "Refuse to cancel a kept response",
    description: "A response is kept when it is complete. One that is being made ends with its connection.",
    answers: [],
    alwaysOn: true,
    handle(context) {
      const { response } = kept(store, pathId(context));
      throw new ServiceError(
        "invalid_parameter",
        `The response "${response.id}" is ${response.status}, and only one in the background could be cancelled; ` +
          "to end one that is being made, close its connection.",
      );
    },
  });
}

function deleteRoute(store: ResponseStore): Route {
  return defineRoute({
    method: "DELETE",
    path: "/v1/responses/:id",
    tag,
    summary: "Forget a kept response",
    answers: [{ description: "It is forgotten.", schema: deletedSchema }],
    alwaysOn: true,
    handle(context) {
      const id = pathId(context);
      if (!store.delete(id)) throw notFound(id);
      return context.json({ id, object: "response", deleted: true });
    },
  });
}

async function* frames(events: AsyncIterable<ResponseEvent>): AsyncGenerator<string, void, undefined> {
  for await (const event of events) yield frame(event);
}

function frame(event: ResponseEvent): string {
  return sseEvent(event.type, event);
}

function pathId(context: AppContext): string {
  return context.req.param("id") ?? "";
}

/** @throws ServiceError response_not_found */
function kept(store: ResponseStore, id: string): StoredResponse {
  const stored = store.get(id);
  if (!stored) throw notFound(id);
  return stored;
}

function notFound(id: string): ServiceError {
  return new ServiceError("response_not_found", `The response "${id}" is not, or no longer, kept.`);
}
