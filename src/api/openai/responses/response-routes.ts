import { z } from "zod";
import { ServiceError } from "../../../errors/service-error.ts";
import type { AppContext } from "../../../http/app-env.ts";
import { defineRoute, type Route } from "../../../http/route.ts";
import { SSE_TYPE, sseEvent, streamResponse } from "../../../http/streaming/stream-response.ts";
import { countTokens } from "../../../inference/collect-answer.ts";
import type { Services } from "../../services.ts";
import { openaiEvents } from "../openai-error.ts";
import { toList } from "../openai-fields.ts";
import { type InputItem, isMessage } from "./input-items.ts";
import { beginResponse, responseSchema } from "./response-object.ts";
import { generateWithTruncation, resolveConversation, toInferenceRequest } from "./response-request.ts";
import { inputTokensRequestSchema, inputTokensSchema, responseRequestSchema } from "./response-schema.ts";
import { StoredResponses, ResponseStore, type StoredResponse } from "./response-store.ts";
import { type ResponseEvent, ResponseWriter } from "./response-writer.ts";
import { invalidField, pageLimit, pathId } from "../../../http/input/common-fields.ts";

const tag = "Responses API";

const deletedSchema = z.object({
  id: z.string(),
  object: z.literal("response"),
  deleted: z.literal(true),
});

const shownQuerySchema = z.object({
  stream: z
    .literal("false", {
      error: "is not supported: events are sent only once, while the response is generated",
    })
    .optional()
    .describe("Events are only sent while the response is generated."),
});

/** Routes under /v1/responses, with a common store. */
export function responseRoutes(services: Services): readonly Route[] {
  const store = new StoredResponses(new ResponseStore(), services.shared);
  return [
    createRoute(services, store),
    inputTokensRoute(services, store),
    showRoute(store),
    inputItemsRoute(store),
    cancelRoute(store),
    deleteRoute(store),
  ];
}

function createRoute({ inference }: Services, store: StoredResponses): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/responses",
    tag,
    summary: "Create a response",
    description:
      "Unknown fields are ignored. Unless `store` is false, the response is stored in memory for the API key that created it; in a fleet, all machines can read it.",
    body: responseRequestSchema,
    answers: [
      { description: "The complete response.", schema: responseSchema },
      {
        contentType: SSE_TYPE,
        description:
          "With stream: response.created and response.in_progress, the events of each output item, then " +
          "response.completed, response.incomplete or response.failed, each with its sequence_number.",
      },
    ],
    async handle(context, { body }) {
      const owner = context.get("owner");
      const conversation = await resolveConversation(body, store, owner);
      const { model, events, warnings } = await generateWithTruncation(
        inference,
        body,
        conversation,
        context.req.raw.signal,
      );
      context.set("warnings", warnings);
      const writer = new ResponseWriter(beginResponse(body, model), async (response) => {
        if (response.store) await store.add(response, [...conversation.items, ...response.output], owner);
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

function inputTokensRoute({ inference }: Services, store: StoredResponses): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/responses/input_tokens",
    tag,
    summary: "Count input tokens",
    description:
      "The exact count after the chat template, including tools and images. It costs the first prefill step of the prompt.",
    body: inputTokensRequestSchema,
    answers: [{ description: "The number of tokens.", schema: inputTokensSchema }],
    async handle(context, { body }) {
      const conversation = await resolveConversation(body, store, context.get("owner"));
      const request = toInferenceRequest(body, conversation);
      const tokens = await countTokens(inference, request, context.req.raw.signal);
      return context.json({ object: "response.input_tokens", input_tokens: tokens });
    },
  });
}

function showRoute(store: StoredResponses): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/responses/:id",
    tag,
    summary: "Get a stored response",
    query: shownQuerySchema,
    answers: [{ description: "The response.", schema: responseSchema }],
    alwaysOn: true,
    async handle(context) {
      return context.json((await requireResponse(store, context)).response);
    },
  });
}

function inputItemsRoute(store: StoredResponses): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/responses/:id/input_items",
    tag,
    summary: "List the input items of a stored response",
    query: inputItemQuerySchema,
    answers: [{ description: "The input items.", schema: inputItemListSchema }],
    alwaysOn: true,
    async handle(context, { query }) {
      return context.json(toInputItemList(await requireResponse(store, context), query));
    },
  });
}

function cancelRoute(store: StoredResponses): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/responses/:id/cancel",
    tag,
    summary: "Cancel a stored response (not supported)",
    description:
      "Responses are stored once they are complete. To cancel one in progress, close its connection.",
    answers: [],
    alwaysOn: true,
    async handle(context) {
      const { response } = await requireResponse(store, context);
      throw new ServiceError(
        "invalid_parameter",
        `Response "${response.id}" is already ${response.status}; ` +
          "to cancel a response in progress, close its connection.",
      );
    },
  });
}

function deleteRoute(store: StoredResponses): Route {
  return defineRoute({
    method: "DELETE",
    path: "/v1/responses/:id",
    tag,
    summary: "Delete a stored response",
    answers: [{ description: "The response is deleted.", schema: deletedSchema }],
    alwaysOn: true,
    async handle(context) {
      const id = pathId(context);
      if (!(await store.delete(id, context.get("owner")))) throw notFound(id);
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

/** @throws ServiceError response_not_found */
async function requireResponse(store: StoredResponses, context: AppContext): Promise<StoredResponse> {
  const id = pathId(context);
  const found = await store.get(id, context.get("owner"));
  if (!found) throw notFound(id);
  return found;
}

function notFound(id: string): ServiceError {
  return new ServiceError(
    "response_not_found",
    `Response "${id}" was not found; it may have been removed to free memory.`,
  );
}

const MAX_LIMIT = 100;

/** Query of GET /v1/responses/{id}/input_items. */
const inputItemQuerySchema = z.object({
  limit: pageLimit(MAX_LIMIT, "Maximum number of items to return."),
  order: z.enum(["asc", "desc"]).default("desc").describe("desc: last item first."),
  after: z.string().optional().describe("Return the items after the one with this ID."),
});

const inputItemListSchema = z
  .object({
    object: z.literal("list"),
    data: z.array(z.looseObject({ id: z.string(), type: z.string() })),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .meta({ id: "InputItemList" });

type ListedItem = z.output<typeof inputItemListSchema>["data"][number];

/**
 * Returns the input items of a response, including those of earlier responses.
 * @throws ServiceError invalid_parameter if `after` is not one of them
 */
function toInputItemList(
  { response, items }: StoredResponse,
  { limit, order, after }: z.output<typeof inputItemQuerySchema>,
): z.output<typeof inputItemListSchema> {
  const input = items.slice(0, items.length - response.output.length);
  const listed = input.map((item, index) => toListed(item, `${response.id.replace(/^resp_/, "")}${index}`));
  const ordered = order === "asc" ? listed : listed.toReversed();
  const begin = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  if (begin === 0 && after !== undefined) {
    throw invalidField("after", `the response has no input item "${after}".`);
  }
  return toList(ordered.slice(begin, begin + limit), begin + limit < ordered.length);
}

/** ID prefixes by item type, as in OpenAI's API. */
const PREFIXES: Readonly<Record<string, string>> = {
  function_call: "fc",
  function_call_output: "fco",
  custom_tool_call: "ctc",
  custom_tool_call_output: "ctco",
  reasoning: "rs",
};

/** Adds IDs. Output items of earlier responses have one; items from a client get one from their position. */
function toListed(item: InputItem, position: string): ListedItem {
  if (item.type === "history") return { id: `item_${position}`, ...item.item };
  if (item.type === "reasoning") return { id: `rs_${position}`, ...item };
  if (!isMessage(item)) {
    return { id: `${PREFIXES[item.type] ?? "item"}_${position}`, status: "completed", ...item };
  }
  const text = item.role === "assistant" ? "output_text" : "input_text";
  const content = typeof item.content === "string" ? [{ type: text, text: item.content }] : item.content;
  return { id: `msg_${position}`, status: "completed", ...item, type: "message", content };
}
