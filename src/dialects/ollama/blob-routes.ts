import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { assertNotCompressed } from "../../http/input/content-type.ts";
import { bodyOf } from "../../http/input/read-json.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { Models } from "../../models/models.ts";
import { modelField, nameField, streamField } from "./ollama-request-fields.ts";

const tag = "Ollama API";
const PATH = "/ollama/api/blobs/:digest";
/** The body is a file; it goes to the disk piece by piece, and its size is bounded there. */
const FILE_TYPE = "application/octet-stream";

/** POST /api/push of the Ollama API, which is refused whatever the fields say. */
const pushRequestSchema = z
  .object({ model: modelField.nullish(), name: nameField, stream: streamField })
  .meta({ id: "OllamaPushRequest" });

/** The routes for files that clients upload to create models from, and for publishing a model, which is refused. */
export function blobRoutes(models: Pick<Models, "blobs">): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: PATH,
      tag,
      takesFile: true,
      summary: "Check that a file has been uploaded",
      description: "Meant for HEAD. The answer has no body.",
      answers: [{ description: "The file is there." }],
      async handle(context) {
        const digest = context.req.param("digest") ?? "";
        if ((await models.blobs.find(digest)) === undefined) {
          throw new ServiceError("model_file_not_found", `There is no file with the digest ${digest}.`);
        }
        return context.body(null, 200);
      },
    }),
    defineRoute({
      method: "POST",
      path: PATH,
      tag,
      takesFile: true,
      summary: "Upload a file to create a model from",
      description:
        `The body is a GGUF file (${FILE_TYPE}), the digest in the path its SHA-256. ` +
        "A file from which no model is created is removed after a day.",
      answers: [{ status: 201, description: "The file has been saved. An empty body." }],
      async handle(context) {
        assertNotCompressed(context.req.raw.headers);
        await models.blobs.write(context.req.param("digest") ?? "", bodyOf(context));
        return context.body(null, 201);
      },
    }),
    defineRoute({
      method: "POST",
      path: "/ollama/api/push",
      tag,
      summary: "Publish a model",
      description: "Refused: the daemon has no registry to publish to.",
      body: pushRequestSchema,
      answers: [],
      handle() {
        throw new ServiceError(
          "unsupported_feature",
          "The daemon does not publish models; copy the model's GGUF file, or upload it to the hub with the hub's own tools.",
        );
      },
    }),
  ];
}
