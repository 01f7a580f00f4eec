import { z } from "zod";
import type { FilePurpose } from "../../../batches/batch.ts";
import { readUpload } from "../../../http/input/read-upload.ts";
import { parseInput } from "../../../http/input/parse-input.ts";
import { defineRoute, type Route } from "../../../http/route.ts";
import { sendFile } from "../../../http/streaming/send-file.ts";
import type { BatchServices } from "../../services.ts";
import { fileDeletedSchema, fileListSchema, fileSchema, toFileObject } from "./file-object.ts";
import { MAX_LIFE_SECS, MIN_LIFE_SECS, toList } from "./list-fields.ts";

const tag = "Chat-completions API";
/** Files of this API: what clients upload, and what becomes of it. */
const PURPOSES: readonly FilePurpose[] = ["batch", "batch_output"];
/** The API's own. */
const MAX_LIMIT = 10_000;

/** The fields of the form beside the file. */
const uploadFields = z.object({
  purpose: z.literal("batch", {
    error: ({ input }) =>
      input === undefined ? "is missing" : 'must be "batch": files are only kept for batches',
  }),
  "expires_after[anchor]": z.literal("created_at").optional(),
  "expires_after[seconds]": z.coerce.number().int().min(MIN_LIFE_SECS).max(MAX_LIFE_SECS).optional(),
});

const listQuerySchema = z.object({
  after: z.string().optional().describe("Return the files after this one."),
  limit: z.coerce.number().int().min(1).max(MAX_LIMIT).default(MAX_LIMIT).describe("Files on a page."),
  order: z.enum(["asc", "desc"]).default("desc").describe("By creation time."),
  purpose: z.string().optional().describe("Return only files of this purpose."),
});

/** /v1/files: the input and output of batches. */
export function fileRoutes(services: BatchServices): readonly Route[] {
  return [
    uploadRoute(services),
    listRoute(services),
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

function listRoute({ batches }: BatchServices): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/files",
    tag,
    takesFile: true,
    summary: "List files",
    query: listQuerySchema,
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
