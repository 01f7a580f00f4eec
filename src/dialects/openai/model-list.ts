import { z } from "zod";
import type { Model } from "../../models/model.ts";

export const openaiModelSchema = z
  .object({
    id: z.string(),
    object: z.literal("model"),
    created: z.int().describe("When its files last changed, in Unix seconds."),
    owned_by: z.string().describe("Owner of its hub repository, or daybreak."),
  })
  .meta({ id: "OpenAIModel" });

export const openaiModelListSchema = z
  .object({ object: z.literal("list"), data: z.array(openaiModelSchema) })
  .meta({ id: "OpenAIModelList" });

export function toModel({ alias, source, modifiedAt }: Model): z.output<typeof openaiModelSchema> {
  const owner = source.kind === "hub" ? source.repo.split("/", 1)[0] : undefined;
  return {
    id: alias,
    object: "model",
    created: Math.floor(modifiedAt / 1000),
    owned_by: owner ?? "daybreak",
  };
}

export function toModelList(models: readonly Model[]): z.output<typeof openaiModelListSchema> {
  return { object: "list", data: models.filter(({ state }) => state !== "downloading").map(toModel) };
}
