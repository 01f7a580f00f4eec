import { readFileSync } from "node:fs";
import { parse } from "smol-toml";
import { z } from "zod";

/** An entry of configs/defaults.toml and of GET /api/defaults. */
export const defaultModelSchema = z
  .object({
    name: z.string().describe("Name for POST /api/defaults/<name>/use."),
    description: z.string(),
    size_hint: z.string().describe("Size of the download, for people."),
    tags: z.array(z.string()),
    from: z.string().describe("Hub spec: hf:owner/repository[:file or quantization]."),
    has_thinking: z.boolean(),
    has_vision: z.boolean(),
    has_tools: z.boolean(),
  })
  .meta({ id: "DefaultModel" });
export type DefaultModel = z.infer<typeof defaultModelSchema>;

const fileSchema = z.strictObject({ models: z.array(defaultModelSchema) });
const SHIPPED_FILE = new URL("../../configs/defaults.toml", import.meta.url);

/** The models that are suggested to users; the file ships with the daemon. */
export function readDefaultModels(file: string | URL = SHIPPED_FILE): readonly DefaultModel[] {
  return fileSchema.parse(parse(readFileSync(file, "utf8"))).models;
}
