import { z } from "zod";
import { ServiceError } from "../../../errors/service-error.ts";
import type { AppContext } from "../../../http/app-env.ts";
import { list } from "../../../http/input/bounded-lists.ts";
import { defineRoute, type Route } from "../../../http/route.ts";
import type { BatchServices } from "../../services.ts";
import {
  ANTHROPIC_BATCHES,
  customIdSchema,
  deletedMessageBatchSchema,
  messageBatchListSchema,
  messageBatchSchema,
  MESSAGES_PATH,
  toMessageBatch,
} from "./message-batch-object.ts";
import { invalidField, pageLimit, pathId } from "../../../http/input/common-fields.ts";
import { checkCursors, MAX_PAGE, toPage } from "../model-list.ts";

const tag = "Messages API";
const PATH = "/v1/messages/batches";
/** Limits of Anthropic's API. */
const MAX_REQUESTS = 100_000;

const createSchema = z
  .object({
    requests: list(
      z.object({
        custom_id: customIdSchema,
        params: z
          .looseObject({})
          .refine(({ stream }) => stream !== true, { error: "must not be true in a batch", path: ["stream"] })
          .describe("A message request, validated when it runs."),
      }),
      { min: 1, max: MAX_REQUESTS },
    ),
  })
  .meta({ id: "MessageBatchRequest" });

const listQuerySchema = z.object({
  limit: pageLimit(MAX_PAGE, "Maximum number of batches per page, newest first."),
  after_id: z.string().optional().describe("Return the batches after this one."),
  before_id: z.string().optional().describe("Return the batches right before this one."),
});

/** Routes under /v1/messages/batches. */
export function messageBatchRoutes(services: BatchServices): readonly Route[] {
  return [
    createRoute(services),
    listRoute(services),
    batchRoute(services),
    cancelRoute(services),
    resultsRoute(services),
    deleteRoute(services),
  ];
}

function createRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "POST",
    path: PATH,
    tag,
    summary: "Create a batch of message requests",
    description: "All requests are in one body, whose size http.body_limit limits. See docs/batches.md.",
    body: createSchema,
    answers: [{ description: "The batch.", schema: messageBatchSchema }],
    async handle(context, { body: { requests } }) {
      if (requests.length > batches.maxLines)
        throw invalidField("requests", `must be at most ${batches.maxLines} (batches.max_lines).`);
      checkUniqueIds(requests);
      const viewer = context.get("owner");
      await using received = await batches.receive(jsonLines(requests));
      const inputFile = await received.store({ viewer, purpose: "requests", name: "requests.jsonl" });
      const batch = await batches.create({
        viewer,
        api: ANTHROPIC_BATCHES,
        idKind: "msgbatch",
        endpoint: MESSAGES_PATH,
        inputFile,
        metadata: { requests: String(requests.length) },
      });
      return context.json(toMessageBatch(batch, requestOrigin(context)));
    },
  });
}

function listRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "GET",
    path: PATH,
    tag,
    summary: "List batches of message requests",
    query: listQuerySchema,
    answers: [{ description: "A page of batches.", schema: messageBatchListSchema }],
    async handle(context, { query: { limit, after_id: after, before_id: before } }) {
      checkCursors(after, before);
      const viewer = context.get("owner");
      const { items, hasMore } = await batches.batches({
        viewer,
        api: ANTHROPIC_BATCHES,
        limit,
        after,
        before,
        descending: true,
      });
      const origin = requestOrigin(context);
      const data = items.map((batch) => toMessageBatch(batch, origin));
      return context.json(toPage(data, hasMore));
    },
  });
}

function batchRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "GET",
    path: `${PATH}/:id`,
    tag,
    summary: "Show a batch of message requests",
    answers: [{ description: "The batch.", schema: messageBatchSchema }],
    async handle(context) {
      const batch = await batches.batch(context.get("owner"), ANTHROPIC_BATCHES, pathId(context));
      return context.json(toMessageBatch(batch, requestOrigin(context)));
    },
  });
}

function cancelRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "POST",
    path: `${PATH}/:id/cancel`,
    tag,
    summary: "Cancel a batch of message requests",
    answers: [{ description: "The batch, which is being canceled.", schema: messageBatchSchema }],
    async handle(context) {
      const batch = await batches.cancel(context.get("owner"), ANTHROPIC_BATCHES, pathId(context));
      return context.json(toMessageBatch(batch, requestOrigin(context)));
    },
  });
}

function resultsRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "GET",
    path: `${PATH}/:id/results`,
    tag,
    summary: "Read the results of a batch of message requests",
    answers: [
      {
        contentType: "application/x-jsonl",
        description: "One line of JSON per request, with its custom_id and result.",
      },
    ],
    async handle(context) {
      const viewer = context.get("owner");
      const { outputFile } = await batches.batch(viewer, ANTHROPIC_BATCHES, pathId(context));
      if (outputFile === undefined)
        throw new ServiceError("batch_conflict", "The batch has not ended; it has no results yet.");
      const content = await batches.content(viewer, outputFile, ["results"]);
      const headers = { "content-type": "application/x-jsonl" };
      return new Response(content.read(0, content.size - 1), { headers });
    },
  });
}

function deleteRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "DELETE",
    path: `${PATH}/:id`,
    tag,
    summary: "Delete a batch of message requests that has ended, with its results",
    answers: [{ description: "The batch has been deleted.", schema: deletedMessageBatchSchema }],
    async handle(context) {
      const id = pathId(context);
      await batches.deleteBatch(context.get("owner"), ANTHROPIC_BATCHES, id);
      return context.json({ id, type: "message_batch_deleted" });
    },
  });
}

/** Origin under which the client reaches the daemon. */
function requestOrigin(context: AppContext): string {
  return new URL(context.req.url).origin;
}

function checkUniqueIds(requests: readonly { readonly custom_id: string }[]): void {
  const seen = new Set<string>();
  for (const [index, { custom_id: id }] of requests.entries()) {
    if (seen.has(id)) {
      const param = `requests.${index}.custom_id`;
      throw invalidField(param, `"${id}" is already used by an earlier request.`);
    }
    seen.add(id);
  }
}

function* jsonLines(requests: readonly object[]): Generator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  for (const request of requests) yield encoder.encode(`${JSON.stringify(request)}\n`);
}
