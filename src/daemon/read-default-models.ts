import { readFileSync } from "node:fs";
import { parse } from "smol-toml";
import { z } from "zod";
import { defaultModelSchema, type DefaultModel } from "../dialects/management/default-model-routes.ts";

const fileSchema = z.strictObject({ models: z.array(defaultModelSchema) });
const SHIPPED_FILE = new URL("../../configs/defaults.toml", import.meta.url);

/** Reads the suggested models; the file ships with the daemon. */
export function readDefaultModels(): readonly DefaultModel[] {
  return fileSchema.parse(parse(readFileSync(SHIPPED_FILE, "utf8"))).models;
}
