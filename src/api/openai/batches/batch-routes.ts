import { z } from "zod";
import type { FilePurpose } from "../../../batches/batch.ts";
import { dictionary } from "../../../http/input/bounded-lists.ts";
import { parseInput } from "../../../http/input/common-fields.ts";
import { readUpload } from "../../../http/input/form-data.ts";
import { defineRoute, type Route } from "../../../http/route.ts";
import { sendFile } from "../../../http/streaming/send-file.ts";
import type { BatchServices } from "../../services.ts";
import {
  batchListSchema,
  batchSchema,
  fileDeletedSchema,
  fileListSchema,
  fileSchema,
  MAX_LIFE_SECS,
  MIN_LIFE_SECS,
  toBatchObject,
  toFileObject,
  toList,
} from "./batch-objects.ts";
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

/** Files of this API: what clients upload, and what becomes of it. */
const PURPOSES: readonly FilePurpose[] = ["batch", "batch_output"];
/** The API's own. */
const FILE_ROUTES_MAX_LIMIT = 10_000;

/** The fields of the form beside the file. */
const uploadFields = z.object({
  purpose: z.literal("batch", {
    error: ({ input }) =>
      input === undefined ? "is missing" : 'must be "batch": files are only kept for batches',
  }),
  "expires_after[anchor]": z.literal("created_at").optional(),
  "expires_after[seconds]": z.coerce.number().int().min(MIN_LIFE_SECS).max(MAX_LIFE_SECS).optional(),
});

const fileRoutesListQuerySchema = z.object({
  after: z.string().optional().describe("Return the files after this one."),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(FILE_ROUTES_MAX_LIMIT)
    .default(FILE_ROUTES_MAX_LIMIT)
    .describe("Files on a page."),
  order: z.enum(["asc", "desc"]).default("desc").describe("By creation time."),
  purpose: z.string().optional().describe("Return only files of this purpose."),
});

/** /v1/files: the input and output of batches. */
export function fileRoutes(services: BatchServices): readonly Route[] {
  return [
    uploadRoute(services),
    fileRoutesListRoute(services),
    fileRoute(services),
    contentRoute(services),
    deleteRoute(services),
  ];
}

function uploadRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/files",
    tag,
    takesFile: true,
    summary: "Upload a file of requests for a batch",
    description:
      "A form (multipart/form-data) with the fields `file` and `purpose`, which must be `batch`; `expires_after[anchor]` " +
      "(`created_at`) and `expires_after[seconds]` say how long it is kept.",
    answers: [{ description: "The file has been saved.", schema: fileSchema }],
    async handle(context) {
      const upload = await readUpload(context, {
        field: "file",
        limit: batches.maxFileBytes,
        receive: async (pieces) => await batches.receive(pieces),
      });
      await using file = upload.file;
      const { purpose, "expires_after[seconds]": seconds } = parseInput(uploadFields, upload.fields);
      const lifeMs = seconds === undefined ? undefined : seconds * 1000;
      const kept = await file.keep({ viewer: context.get("owner"), purpose, name: upload.name, lifeMs });
      return context.json(toFileObject(kept));
    },
  });
}

function fileRoutesListRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/files",
    tag,
    takesFile: true,
    summary: "List files",
    query: fileRoutesListQuerySchema,
    answers: [{ description: "A page of files.", schema: fileListSchema }],
    async handle(context, { query: { after, limit, order, purpose } }) {
      const viewer = context.get("owner");
      const purposes = PURPOSES.filter((each) => purpose === undefined || each === purpose);
      const descending = order === "desc";
      const page =
        purposes.length > 0
          ? await batches.files({ viewer, limit, after, descending, purposes })
          : { items: [], hasMore: false };
      return context.json(toList(page, toFileObject));
    },
  });
}

function fileRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/files/:id",
    tag,
    summary: "Show a file",
    answers: [{ description: "The file.", schema: fileSchema }],
    async handle(context) {
      const file = await batches.file(context.get("owner"), context.req.param("id") ?? "", PURPOSES);
      return context.json(toFileObject(file));
    },
  });
}

function contentRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/files/:id/content",
    tag,
    summary: "Read the content of a file",
    answers: [
      { contentType: "application/octet-stream", description: "The file as it is; ranges are served." },
    ],
    async handle(context) {
      const id = context.req.param("id") ?? "";
      const content = await batches.content(context.get("owner"), id, PURPOSES);
      return sendFile(context, content, { "content-type": "application/octet-stream" });
    },
  });
}

function deleteRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "DELETE",
    path: "/v1/files/:id",
    tag,
    summary: "Delete a file",
    answers: [{ description: "It is gone.", schema: fileDeletedSchema }],
    async handle(context) {
      const id = context.req.param("id") ?? "";
      await batches.deleteFile(context.get("owner"), id, PURPOSES);
      return context.json({ id, object: "file", deleted: true } as const);
    },
  });
}
