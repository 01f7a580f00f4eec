import { z } from "zod";
import type { StoredFile } from "../../../batches/batch.ts";
import { listSchema, toSeconds } from "./list-fields.ts";

export const fileSchema = z
  .object({
    id: z.string(),
    object: z.literal("file"),
    bytes: z.int(),
    created_at: z.int().describe("Unix seconds."),
    expires_at: z.int().optional().describe("Unix seconds; absent: never."),
    filename: z.string(),
    purpose: z.string().describe("batch: uploaded requests; batch_output: what became of them."),
    status: z.literal("processed"),
  })
  .meta({ id: "OpenAIFile" });

export const fileListSchema = listSchema(fileSchema).meta({ id: "OpenAIFileList" });

export const fileDeletedSchema = z
  .object({ id: z.string(), object: z.literal("file"), deleted: z.literal(true) })
  .meta({ id: "OpenAIFileDeleted" });

export function toFileObject(file: StoredFile): z.output<typeof fileSchema> {
  const { id, bytes, createdAt, expiresAt, name, purpose } = file;
  return {
    id,
    object: "file",
    bytes,
    created_at: toSeconds(createdAt),
    ...(Number.isFinite(expiresAt) && { expires_at: toSeconds(expiresAt) }),
    filename: name,
    purpose,
    status: "processed",
  };
}
