import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { pathName } from "../../http/input/common-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { sendFile, type ServedFile } from "../../http/streaming/send-file.ts";
import type { Model } from "../../models/model.ts";
import type { ManagementServices } from "./management-services.ts";

const tag = "Models";
const FILES = "/api/models/:name{.+}/files";

/** What a file is to its model. */
type Role = "model" | "projector" | "adapter";

export const modelFilesSchema = z.object({
  alias: z.string(),
  files: z.array(
    z.object({
      role: z.enum(["model", "projector", "adapter"]),
      name: z.string().describe("Name of the file, without its folder."),
      size_bytes: z.int(),
      sha256: z.string().describe("In hexadecimal; also the ETag of the file."),
      scale: z.number().optional().describe("Of an adapter: how strongly it takes effect."),
      url: z.string().describe("Path of the file's bytes on this server."),
    }),
  ),
  modelfile: z.string().describe("A Modelfile that would make this model again."),
});

/** The files of models, for a browser that runs the engine itself, or another machine. */
export function modelFileRoutes(services: ManagementServices): readonly Route[] {
  const { models, openFile } = services;
  return [
    defineRoute({
      method: "GET",
      path: FILES,
      tag,
      summary: "List a model's files with their SHA-256",
      description: "A large file's SHA-256 takes a while the first time it is asked for.",
      answers: [{ description: "The files, the shards of the model in order.", schema: modelFilesSchema }],
      async handle(context) {
        const model = await models.get(pathName(context));
        const files = filesOf(model).map(async ({ role, path, scale }, index) => {
          const { size, etag } = await openFile(path);
          const url = `/api/models/${encodeURIComponent(model.alias)}/files/${index}`;
          // An absent scale is not written.
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
      description: "Takes a `Range`, so that a download can go on where it stopped.",
      answers: [
        { contentType: "application/octet-stream", description: "The file." },
        { status: 206, contentType: "application/octet-stream", description: "The range of it." },
        { status: 304, description: "The client has it: If-None-Match names its SHA-256." },
        { status: 416, description: "The file ends before the range begins." },
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

function filesOf(model: Model): { role: Role; path: string; scale?: number }[] {
  return [
    ...model.files.map((path) => ({ role: "model", path }) as const),
    ...(model.projector === undefined ? [] : [{ role: "projector", path: model.projector } as const]),
    ...model.adapters.map(({ path, scale }) => ({ role: "adapter", path, scale }) as const),
  ];
}

/** Opens a file of a model: its size, its SHA-256 as the tag, its bytes. */
export type OpenFile = (path: string) => Promise<ServedFile>;
