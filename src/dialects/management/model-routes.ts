import { defineRoute, type Route } from "../../http/route.ts";
import { pathName } from "../../http/input/path-name.ts";
import type { ManagementServices } from "./management-services.ts";
import { modelDetail, modelListEntry, withDownloads } from "./model-json.ts";
import * as schemas from "./model-schemas.ts";

const tag = "Models";
/** A hub spec holds slashes, so a name may span several segments. */
const NAME = "/api/models/:name{.+}";

/** Listing and inspecting, loading and unloading. */
export function modelRoutes(services: ManagementServices): readonly Route[] {
  const { models } = services;
  return [
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
      description: "Answers when the model is loaded. A client that goes away cancels the load.",
      body: schemas.loadRequestSchema,
      answers: [{ description: "The model is loaded.", schema: schemas.loadResultSchema }],
      async handle(context, { body }) {
        const model = await models.load(
          {
            alias: body.alias,
            path: body.path ?? undefined,
            gpuLayers: body.gpu_layers ?? undefined,
            contextSize: body.context_size ?? undefined,
            mmproj: body.mmproj ?? undefined,
            setDefault: body.set_default ?? undefined,
          },
          context.req.raw.signal,
        );
        return context.json({
          status: "loaded",
          alias: model.alias,
          parameters: model.gguf.parameters,
          context_size: model.contextSize,
          gpu_layers: model.gpuLayers,
        });
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
      summary: "Show a Modelfile that would make this model again",
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
      summary: "Show one model",
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
        "Removes the files of a pulled model; only forgets one that is the user's own file or ships with the daemon. The latter comes back when it is loaded or pulled, or with the next start.",
      answers: [{ description: "The model is gone.", schema: schemas.deleteResultSchema }],
      async handle(context) {
        const { alias, source } = await models.delete(pathName(context));
        return context.json({ status: "deleted", alias, source });
      },
    }),
  ];
}
