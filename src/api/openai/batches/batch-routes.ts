import { z } from "zod";
import type { FilePurpose } from "../../../batches/batch.ts";
import { dictionary } from "../../../http/input/bounded-lists.ts";
import { optional, pageLimit, parseInput, pathId } from "../../../http/input/common-fields.ts";
import { readUpload } from "../../../http/input/form-data.ts";
import { defineRoute, type Route } from "../../../http/route.ts";
import { sendFile } from "../../../http/streaming/send-file.ts";
import type { BatchServices } from "../../services.ts";
import { MAX_LIFETIME_SECS, MIN_LIFETIME_SECS, toBatchObject, toFileObject } from "./batch-objects.ts";
import { toList } from "../openai-fields.ts";
import { OPENAI_BATCHES, OPENAI_ENDPOINTS } from "./openai-batch-format.ts";
import {
  batchListSchema,
  batchSchema,
  fileDeletedSchema,
  fileListSchema,
  fileSchema,
} from "../../wire/openai-batches.ts";

const tag = "Chat-completions API";
/** Limits of OpenAI's API. */
const MAX_PAIRS = 16;
const MAX_KEY_LENGTH = 64;
const MAX_VALUE_LENGTH = 512;
const MAX_LIMIT = 100;

const createSchema = z
  .object({
    input_file_id: z.string().min(1).describe("A file uploaded with the purpose batch."),
    endpoint: z.enum(OPENAI_ENDPOINTS).describe("Path of all its requests."),
    completion_window: z.literal("24h").describe("Time limit, after which unfinished requests expire."),
    metadata: optional(
      dictionary(z.string().max(MAX_VALUE_LENGTH), z.string().max(MAX_KEY_LENGTH)).refine(
        (pairs) => Object.keys(pairs).length <= MAX_PAIRS,
        {
          error: `must have at most ${MAX_PAIRS} pairs`,
        },
      ),
      "Returned with the batch.",
    ),
    output_expires_after: optional(
      z.object({
        anchor: z.literal("created_at"),
        seconds: z.int().min(MIN_LIFETIME_SECS).max(MAX_LIFETIME_SECS),
      }),
      "Lifetime of its output files. Default: batches.retention.",
    ),
  })
  .meta({ id: "OpenAIBatchRequest" });

const listQuerySchema = z.object({
  after: z.string().optional().describe("Return the batches after this one."),
  limit: pageLimit(MAX_LIMIT, "Maximum number of batches per page, newest first."),
});

/** Routes under /v1/batches. */
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
      "Finished answers survive a crash of the daemon, which continues the batch after a restart. See docs/batches.md.",
    body: createSchema,
    answers: [{ description: "The batch, whose lines are validated next.", schema: batchSchema }],
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
      const { items, hasMore } = await batches.batches({
        viewer,
        api: OPENAI_BATCHES,
        after,
        limit,
        descending: true,
      });
      return context.json(toList(items.map(toBatchObject), hasMore));
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
      const batch = await batches.batch(context.get("owner"), OPENAI_BATCHES, pathId(context));
      return context.json(toBatchObject(batch));
    },
  });
}

function cancelRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/batches/:id/cancel",
    tag,
    summary: "Cancel a batch",
    description: "The output will contain the answers so far.",
    answers: [{ description: "The batch, which is being cancelled.", schema: batchSchema }],
    async handle(context) {
      const batch = await batches.cancel(context.get("owner"), OPENAI_BATCHES, pathId(context));
      return context.json(toBatchObject(batch));
    },
  });
}

/** Purposes of this API's files: uploaded requests and batch results. */
const PURPOSES: readonly FilePurpose[] = ["batch", "batch_output"];
/** Page limit of OpenAI's API. */
const MAX_FILES_PER_PAGE = 10_000;

/** Fields of the upload form other than the file. */
const uploadFields = z.object({
  purpose: z.literal("batch", {
    error: ({ input }) =>
      input === undefined ? "is missing" : 'must be "batch": files are only stored for batches',
  }),
  "expires_after[anchor]": z.literal("created_at").optional(),
  "expires_after[seconds]": z.coerce.number().int().min(MIN_LIFETIME_SECS).max(MAX_LIFETIME_SECS).optional(),
});

const fileListQuerySchema = z.object({
  after: z.string().optional().describe("Return the files after this one."),
  limit: pageLimit(MAX_FILES_PER_PAGE, "Maximum number of files per page.", MAX_FILES_PER_PAGE),
  order: z.enum(["asc", "desc"]).default("desc").describe("Order by creation time."),
  purpose: z.string().optional().describe("Return only files of this purpose."),
});

/** Routes under /v1/files: the input and output of batches. */
export function fileRoutes(services: BatchServices): readonly Route[] {
  return [
    uploadRoute(services),
    listFilesRoute(services),
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
      "(`created_at`) and `expires_after[seconds]` set its lifetime.",
    answers: [{ description: "The file has been saved.", schema: fileSchema }],
    async handle(context) {
      const upload = await readUpload(context, {
        field: "file",
        limit: batches.maxFileBytes,
        receive: async (pieces) => await batches.receive(pieces),
      });
      await using file = upload.file;
      const { purpose, "expires_after[seconds]": seconds } = parseInput(uploadFields, upload.fields);
      const lifetimeMs = seconds === undefined ? undefined : seconds * 1000;
      const stored = await file.store({
        viewer: context.get("owner"),
        purpose,
        name: upload.name,
        lifetimeMs,
      });
      return context.json(toFileObject(stored));
    },
  });
}

function listFilesRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/files",
    tag,
    takesFile: true,
    summary: "List files",
    query: fileListQuerySchema,
    answers: [{ description: "A page of files.", schema: fileListSchema }],
    async handle(context, { query: { after, limit, order, purpose } }) {
      const viewer = context.get("owner");
      const purposes = PURPOSES.filter((each) => purpose === undefined || each === purpose);
      const descending = order === "desc";
      const { items, hasMore } =
        purposes.length > 0
          ? await batches.files({ viewer, limit, after, descending, purposes })
          : { items: [], hasMore: false };
      return context.json(toList(items.map(toFileObject), hasMore));
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
      const file = await batches.file(context.get("owner"), pathId(context), PURPOSES);
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
      { contentType: "application/octet-stream", description: "The content of the file; supports ranges." },
    ],
    async handle(context) {
      const content = await batches.content(context.get("owner"), pathId(context), PURPOSES);
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
    answers: [{ description: "The file has been deleted.", schema: fileDeletedSchema }],
    async handle(context) {
      const id = pathId(context);
      await batches.deleteFile(context.get("owner"), id, PURPOSES);
      return context.json({ id, object: "file", deleted: true } as const);
    },
  });
}
