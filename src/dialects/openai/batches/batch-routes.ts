import { z } from "zod";
import { dictionary } from "../../../http/input/bounded-lists.ts";
import { defineRoute, type Route } from "../../../http/route.ts";
import type { BatchServices } from "../../services.ts";
import { batchListSchema, batchSchema, toBatchObject } from "./batch-object.ts";
import { MAX_LIFE_SECS, MIN_LIFE_SECS, toList } from "./list-fields.ts";
import { OPENAI_BATCHES, OPENAI_ENDPOINTS } from "./openai-batch-format.ts";

const tag = "Chat-completions API";
/** The API's own limits. */
const MAX_PAIRS = 16;
const MAX_KEY = 64;
const MAX_VALUE = 512;
const MAX_LIMIT = 100;
const DEFAULT_LIMIT = 20;

const createSchema = z
  .object({
    input_file_id: z.string().min(1).describe("A file uploaded with the purpose batch."),
    endpoint: z.enum(OPENAI_ENDPOINTS).describe("The path that all its requests are for."),
    completion_window: z.literal("24h").describe("What is not done by then expires."),
    metadata: dictionary(z.string().max(MAX_VALUE), z.string().max(MAX_KEY))
      .refine((pairs) => Object.keys(pairs).length <= MAX_PAIRS, {
        error: `must have at most ${MAX_PAIRS} pairs`,
      })
      .nullish()
      .describe("Kept with the batch."),
    output_expires_after: z
      .object({
        anchor: z.literal("created_at"),
        seconds: z.int().min(MIN_LIFE_SECS).max(MAX_LIFE_SECS),
      })
      .nullish()
      .describe("How long its output files are kept. Default: batches.retention."),
  })
  .meta({ id: "OpenAIBatchRequest" });

const listQuerySchema = z.object({
  after: z.string().optional().describe("Return the batches after this one."),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_LIMIT)
    .default(DEFAULT_LIMIT)
    .describe("Batches on a page; the newest come first."),
});

/** /v1/batches. */
export function batchRoutes(services: BatchServices): readonly Route[] {
  return [createRoute(services), listRoute(services), batchRoute(services), cancelRoute(services)];
}

function createRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/batches",
    tag,
    summary: "Create a batch of requests",
    description:
      "What has been answered survives any end of the daemon, which goes on when it is started again. See docs/batches.md.",
    body: createSchema,
    answers: [{ description: "The batch, whose lines are checked next.", schema: batchSchema }],
    async handle(context, { body }) {
      const viewer = context.get("owner");
      const inputFile = await batches.file(viewer, body.input_file_id, ["batch"]);
      const batch = await batches.create({
        viewer,
        api: OPENAI_BATCHES,
        idKind: "batch",
        endpoint: body.endpoint,
        inputFile,
        metadata: body.metadata ?? null,
        outputLifeMs: body.output_expires_after ? body.output_expires_after.seconds * 1000 : undefined,
      });
      return context.json(toBatchObject(batch));
    },
  });
}

function listRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/batches",
    tag,
    summary: "List batches",
    query: listQuerySchema,
    answers: [{ description: "A page of batches.", schema: batchListSchema }],
    async handle(context, { query: { after, limit } }) {
      const viewer = context.get("owner");
      const page = await batches.batches({ viewer, api: OPENAI_BATCHES, after, limit, descending: true });
      return context.json(toList(page, toBatchObject));
    },
  });
}

function batchRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/batches/:id",
    tag,
    summary: "Show a batch",
    answers: [{ description: "The batch.", schema: batchSchema }],
    async handle(context) {
      const id = context.req.param("id") ?? "";
      return context.json(toBatchObject(await batches.batch(context.get("owner"), OPENAI_BATCHES, id)));
    },
  });
}

function cancelRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/batches/:id/cancel",
    tag,
    summary: "Cancel a batch",
    description: "What has been answered will be in its output.",
    answers: [{ description: "The batch, which is about to end.", schema: batchSchema }],
    async handle(context) {
      const id = context.req.param("id") ?? "";
      return context.json(toBatchObject(await batches.cancel(context.get("owner"), OPENAI_BATCHES, id)));
    },
  });
}
