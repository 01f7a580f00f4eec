import { ServiceError } from "../../errors/service-error.ts";
import { pathName } from "../../http/input/common-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { sendFile } from "../../http/streaming/send-file.ts";
import type { Model } from "../../models/model.ts";
import type { ManagementServices } from "./management-services.ts";
import { type ModelFile, modelFilesSchema } from "../wire/models.ts";

const tag = "Models";
const FILES = "/api/models/:name{.+}/files";

/** Routes to download models' files, for browsers that run the engine, and for other machines. */
export function modelFileRoutes(services: ManagementServices): readonly Route[] {
  const { models, openFile } = services;
  return [
    defineRoute({
      method: "GET",
      path: FILES,
      tag,
      summary: "List a model's files with their SHA-256",
      description:
        "The first request computes the SHA-256 of each file, which takes a while for large files.",
      answers: [{ description: "The files, with the model's shards in order.", schema: modelFilesSchema }],
      async handle(context) {
        const model = await models.get(pathName(context));
        const files = filesOf(model).map(async ({ role, path, scale }, index) => {
          const { size, etag } = await openFile(path);
          const url = `/api/models/${encodeURIComponent(model.alias)}/files/${index}`;
          // JSON omits an undefined scale.
          return { role, name: path.split(/[/\\]/).at(-1), size_bytes: size, sha256: etag, scale, url };
        });
        const modelfile = await models.modelfile(model.alias);
        return context.json({ alias: model.alias, files: await Promise.all(files), modelfile });
      },
    }),
    defineRoute({
      method: "GET",
      path: `${FILES}/:index{[0-9]+}`,
      tag,
      summary: "Download one of a model's files",
      description: "Supports `Range`, to resume a download.",
      answers: [
        { contentType: "application/octet-stream", description: "The file." },
        { status: 206, contentType: "application/octet-stream", description: "The range of the file." },
        { status: 304, description: "If-None-Match equals its SHA-256." },
        { status: 416, description: "The range begins after the end of the file." },
      ],
      async handle(context) {
        const model = await models.get(pathName(context));
        const index = Number(context.req.param("index"));
        const file = filesOf(model)[index];
        if (!file) {
          throw new ServiceError("model_file_not_found", `The model "${model.alias}" has no file ${index}.`);
        }
        return sendFile(context, await openFile(file.path), { "content-type": "application/octet-stream" });
      },
    }),
  ];
}

function filesOf(model: Model): { role: ModelFile["role"]; path: string; scale?: number }[] {
  return [
    ...model.files.map((path) => ({ role: "model", path }) as const),
    ...(model.projector === undefined ? [] : [{ role: "projector", path: model.projector } as const]),
    ...model.adapters.map(({ path, scale }) => ({ role: "adapter", path, scale }) as const),
  ];
}
