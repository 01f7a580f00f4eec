import { z } from "zod";
import type { HubOffer, HubOffers } from "../../models/hub/hub-catalog.ts";
import type { HubRepo } from "../../models/hub/remote/list-repo.ts";
import { modelNameSchema, pageLimit } from "../../http/input/common-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { hubFilesSchema, hubSearchSchema } from "../wire/hub.ts";
import type { ManagementServices } from "./management-services.ts";

const tag = "Hub";

const ESTIMATE_BASIS =
  "Estimated from the file sizes, for a typical architecture, with the configured context and no other model loaded.";

/** Maximum length of a search text; longer texts match no name. */
const MAX_QUERY_LENGTH = 200;
const MAX_LIMIT = 100;

const hubSearchQuerySchema = z.object({
  query: z.string().trim().min(1).max(MAX_QUERY_LENGTH).describe("Words, or part of a repository's name."),
  limit: pageLimit(MAX_LIMIT, "Maximum number of repositories."),
});

const hubFilesQuerySchema = z.object({
  repo: z.string().min(1).max(MAX_QUERY_LENGTH).describe("owner/repository."),
});

const discardRequestSchema = z.object({
  name: modelNameSchema.describe("Alias or hub spec with which it was pulled."),
});

const discardResultSchema = z.object({
  status: z.literal("discarded"),
  name: z.string(),
  freed_bytes: z.int(),
});

type RepoJson = z.infer<typeof hubSearchSchema>["repos"][number];

/** Routes to search the hub, and to compare its models with those on this machine. */
export function hubRoutes(services: ManagementServices): readonly Route[] {
  const { hub, models } = services;
  return [
    defineRoute({
      method: "GET",
      path: "/api/hub/search",
      tag,
      summary: "Search the hub for repositories with GGUF files",
      query: hubSearchQuerySchema,
      answers: [{ description: "The repositories.", schema: hubSearchSchema }],
      async handle(context, { query: { query, limit } }) {
        const found = await hub.search(query, limit, context.req.raw.signal);
        const repos = found.map(repoJson);
        return context.json({ repos });
      },
    }),
    defineRoute({
      method: "GET",
      path: "/api/hub/files",
      tag,
      summary: "List the models in a repository of the hub, and whether they fit this machine",
      query: hubFilesQuerySchema,
      answers: [{ description: "The models.", schema: hubFilesSchema }],
      async handle(context, { query: { repo } }) {
        const found = await hub.offers(repo, context.req.raw.signal);
        return context.json(await filesJson(services, found));
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/hub/discard",
      tag,
      summary: "Delete the partial files of an interrupted download",
      body: discardRequestSchema,
      answers: [{ description: "The partial files have been deleted.", schema: discardResultSchema }],
      async handle(context, { body: { name } }) {
        const freed = await models.discard(name, context.req.raw.signal);
        return context.json({ status: "discarded", name, freed_bytes: freed });
      },
    }),
  ];
}

function repoJson({ repo, downloads, likes, updatedAt, isGated, task }: HubRepo): RepoJson {
  return {
    repo,
    downloads,
    likes,
    gated: isGated,
    updated_at: updatedAt,
    task,
  };
}

async function filesJson(
  services: ManagementServices,
  found: HubOffers,
): Promise<z.infer<typeof hubFilesSchema>> {
  const { repo, isGated, task, parameters, trainedContext, offers } = found;
  return {
    repo,
    gated: isGated,
    task,
    page: `${services.hub.url}/${repo}`,
    parameters,
    trained_context_size: trainedContext,
    estimate: ESTIMATE_BASIS,
    models: await Promise.all(offers.map(async (offer) => await offerJson(services, found, offer))),
  };
}

async function offerJson(
  { models }: ManagementServices,
  { parameters, trainedContext }: HubOffers,
  { spec, file, shards, quantization, sizeBytes, partialBytes, isOnDisk }: HubOffer,
): Promise<z.infer<typeof hubFilesSchema>["models"][number]> {
  // A file on disk that is not a usable model has no alias; its spec serves as the name.
  const name = isOnDisk
    ? await models.get(spec).then(
        ({ alias }) => alias,
        () => spec,
      )
    : undefined;
  const fit = await models.fit({ fileBytes: sizeBytes, parameters, trainedContext, quantization });
  return {
    spec,
    file,
    shards,
    quantization,
    size_bytes: sizeBytes,
    partial_bytes: partialBytes,
    on_disk: name,
    fits: fit.fits,
    needed_bytes: Math.ceil(fit.neededBytes),
    context_size: fit.contextSize,
    reason: fit.reason,
    ...(fit.gpu && {
      gpu: { layers: fit.gpu.layers, all_layers: fit.gpu.allLayers, bytes: Math.ceil(fit.gpu.bytes) },
    }),
  };
}
