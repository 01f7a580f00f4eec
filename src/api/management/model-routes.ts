import { z } from "zod";
import { nullableLoadSettings, readLoadSettings } from "../../config/load-settings.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { nativeNdjson, ndjsonLine } from "../../http/errors.ts";
import { NDJSON_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import { modelfileNotes } from "../../models/modelfile/parameters.ts";
import { type PullStep, PullSteps } from "../../models/progress-steps.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { modelNameSchema, pathName, optional } from "../../http/input/common-fields.ts";
import { SPECULATIONS } from "../../models/model.ts";
import type { ManagementServices } from "./management-services.ts";
import { modelDetail, modelListEntry, withDownloads } from "./model-json.ts";
import * as schemas from "../wire/models.ts";

const tag = "Models";
/** Hub specs contain slashes, so a name can span several path segments. */
const NAME = "/api/models/:name{.+}";

/** Maximum length of a file path: the limit of operating systems. */
const MAX_PATH_LENGTH = 4096;
/** Path of a file or folder on the daemon's machine. */
export const pathField = z.string().min(1).max(MAX_PATH_LENGTH);

/** Context size in tokens of a model loaded without context_size, as specified for POST /api/models/load. */
const DEFAULT_CONTEXT = 4096;
/** Minimum context size of an engine. */
const SMALLEST_CONTEXT = 16;

const pullRequestSchema = z.object({
  name: modelNameSchema.describe("Alias, or hub spec such as hf:owner/repository:Q4_K_M@revision."),
  stream: z.boolean().nullable().default(false).describe("Stream progress as lines of JSON."),
});

const loadRequestSchema = z.object({
  alias: modelNameSchema.describe("Name of the model."),
  path: optional(pathField, "Path of a GGUF file. Default: the model with this alias."),
  gpu_layers: optional(
    z.int().min(-1),
    "Layers on the GPU, -1 for all. Default: the Modelfile's, otherwise 0.",
  ),
  context_size: optional(
    z.int().refine((tokens) => tokens === 0 || tokens >= SMALLEST_CONTEXT, {
      error: `must be 0 or at least ${SMALLEST_CONTEXT}`,
    }),
    `Context size in tokens; 0: chosen as for a model loaded by a request. Default: the Modelfile's, otherwise models.context_size where it is set, otherwise ${DEFAULT_CONTEXT}.`,
  ),
  ...nullableLoadSettings,
  mmproj: optional(pathField, "Path of a vision projector."),
  set_default: optional(z.boolean(), "Make it the default model."),
  draft: optional(pathField, "Path of a draft model for speculative decoding. Default: the Modelfile's."),
  speculation: optional(
    z.enum(SPECULATIONS),
    "Speculative decoding for requests without their own setting. auto: with the draft model, if there is one; ngram: from repetitions in the text; off. Default: the Modelfile's, otherwise models.speculation.",
  ),
});

const defaultRequestSchema = z.object({ alias: modelNameSchema.describe("Name of the model.") });

const createRequestSchema = z.object({
  alias: modelNameSchema.describe("Name of the new model."),
  modelfile: z.string().min(1).describe("Text of the Modelfile."),
  base_folder: optional(pathField, "Absolute path of the folder for relative paths in the Modelfile."),
});

const copyRequestSchema = z.object({
  source: modelNameSchema,
  destination: modelNameSchema.describe("Name of the copy, which shares the files."),
});

/** Routes for models. Fixed paths come before those with a name, which matches any path. */
export function modelRoutes(services: ManagementServices): readonly Route[] {
  const { models } = services;
  return [
    defineRoute({
      method: "POST",
      path: "/api/models/pull",
      tag,
      summary: "Download a model from the hub",
      description: "Disconnecting pauses the download; the next pull resumes it.",
      body: pullRequestSchema,
      answers: [
        { description: "The model is on disk.", schema: schemas.pullResultSchema },
        {
          contentType: NDJSON_TYPE,
          description: "With stream: one line of progress.",
          schema: schemas.pullLineSchema,
        },
      ],
      async handle(context, { body }) {
        const { signal } = context.req.raw;
        if (!body.stream) {
          const result = await models.pull(body.name, () => undefined, signal);
          return context.json({
            status: "success",
            model: result.alias,
            repo: result.repo,
            size_bytes: result.sizeBytes,
          });
        }
        const steps = new PullSteps((onProgress) => models.pull(body.name, onProgress, signal));
        await steps.started();
        return streamResponse(context, pullLines(steps), nativeNdjson);
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/models/create",
      tag,
      summary: "Create a model from a Modelfile",
      body: createRequestSchema,
      answers: [{ description: "The model is created.", schema: schemas.createResultSchema }],
      async handle(context, { body }) {
        const options = body.base_folder == null ? {} : { baseFolder: body.base_folder };
        const model = await models.create(body.alias, body.modelfile, options);
        const notes = modelfileNotes(body.modelfile);
        return context.json({ status: "created", alias: model.alias, ...(notes.length > 0 && { notes }) });
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/models/copy",
      tag,
      summary: "Copy a model",
      body: copyRequestSchema,
      answers: [{ description: "The model is copied.", schema: schemas.copyResultSchema }],
      async handle(context, { body }) {
        if (body.source === body.destination) {
          throw new ServiceError(
            "model_exists",
            "source and destination are the same; choose another destination.",
          );
        }
        const model = await models.copy(body.source, body.destination);
        return context.json({ status: "copied", alias: model.alias });
      },
    }),
    defineRoute({
      method: "GET",
      path: "/api/models",
      tag,
      summary: "List the models on disk and in memory",
      answers: [{ description: "All models.", schema: schemas.modelListSchema }],
      alwaysOn: true,
      async handle(context) {
        const list = await models.list();
        return context.json({ models: withDownloads(list.map(modelListEntry), models.downloads) });
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/models/load",
      tag,
      summary: "Load a model into memory",
      description: "Returns when the model is loaded. Disconnecting cancels the load.",
      body: loadRequestSchema,
      answers: [{ description: "The model is loaded.", schema: schemas.loadResultSchema }],
      async handle(context, { body }) {
        const model = await models.load(
          {
            alias: body.alias,
            path: body.path ?? undefined,
            gpuLayers: body.gpu_layers ?? undefined,
            contextSize: body.context_size || undefined,
            fallbackContext: body.context_size === 0 ? undefined : DEFAULT_CONTEXT,
            load: readLoadSettings(body),
            mmproj: body.mmproj ?? undefined,
            setDefault: body.set_default ?? undefined,
            draft: body.draft ?? undefined,
            speculation: body.speculation ?? undefined,
          },
          context.req.raw.signal,
        );
        return context.json({
          status: "loaded",
          alias: model.alias,
          parameters: model.gguf.parameters,
          context_size: model.contextSize,
          ...(model.contextSource !== undefined && { context_source: model.contextSource }),
          gpu_layers: model.gpuLayers,
        });
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/models/default",
      tag,
      summary: "Make a model the default, loaded or not",
      body: defaultRequestSchema,
      answers: [{ description: "The model is now the default.", schema: schemas.defaultResultSchema }],
      async handle(context, { body }) {
        const { alias, gguf } = await models.get(body.alias);
        if (gguf.purpose !== "generate")
          throw new ServiceError(
            "unsupported_feature",
            `"${alias}" does not generate text, so requests without a model would fail; choose one that does.`,
          );
        await models.setDefault(alias);
        return context.json({ status: "default", alias });
      },
    }),
    defineRoute({
      method: "POST",
      path: `${NAME}/unload`,
      tag,
      summary: "Unload a model and free its memory",
      answers: [{ description: "The model is unloaded.", schema: schemas.unloadResultSchema }],
      async handle(context) {
        const { alias } = await models.get(pathName(context));
        await models.unload(alias);
        return context.json({ status: "unloaded", alias });
      },
    }),
    defineRoute({
      method: "GET",
      path: `${NAME}/modelfile`,
      tag,
      summary: "Show a Modelfile that recreates the model",
      answers: [{ description: "The Modelfile.", schema: schemas.modelfileSchema }],
      alwaysOn: true,
      async handle(context) {
        const { alias } = await models.get(pathName(context));
        return context.json({ alias, modelfile: await models.modelfile(alias) });
      },
    }),
    defineRoute({
      method: "GET",
      path: NAME,
      tag,
      summary: "Show a model",
      answers: [{ description: "The model.", schema: schemas.modelDetailSchema }],
      alwaysOn: true,
      async handle(context) {
        const model = await models.get(pathName(context));
        return context.json(modelDetail(model, await models.modelfile(model.alias)));
      },
    }),
    defineRoute({
      method: "DELETE",
      path: NAME,
      tag,
      summary: "Delete a model from disk",
      description:
        "Deletes the files of a downloaded model. A local file or a model shipped with the daemon is only removed from the list; the latter reappears when it is loaded or pulled, or when the daemon restarts.",
      answers: [{ description: "The model is deleted.", schema: schemas.deleteResultSchema }],
      async handle(context) {
        const { alias, source } = await models.delete(pathName(context));
        return context.json({ status: "deleted", alias, source });
      },
    }),
  ];
}

async function* pullLines(steps: AsyncIterable<PullStep>): AsyncGenerator<string, void, undefined> {
  for await (const step of steps) yield ndjsonLine(pullLine(step));
}

function pullLine(step: PullStep): schemas.PullLine {
  if (step.status !== "downloading") return step;
  const { status, progress, totalBytes, downloadedBytes, note } = step;
  return {
    status,
    progress,
    total_bytes: totalBytes,
    downloaded_bytes: downloadedBytes,
    ...(note !== undefined && { note }),
  };
}
