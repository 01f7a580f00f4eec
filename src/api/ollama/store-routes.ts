import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { ndjsonLine } from "../../http/errors.ts";
import { modelName } from "../../http/input/common-fields.ts";
import { assertNotCompressed, bodyOf } from "../../http/input/read-json.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { NDJSON_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import { modelfileNotes } from "../../models/modelfile/parameters.ts";
import type { Models } from "../../models/models.ts";
import { PullSteps, QuantizeSteps } from "../../models/progress-steps.ts";
import type { ModelServices } from "../services.ts";
import { findModel, requestedName, toModelName } from "./model-entry.ts";
import {
  CREATE_STATUSES,
  createRequestSchema,
  pullRequestSchema,
  statusLineSchema,
  toModelfile,
  toPullLines,
  toQuantizeLines,
} from "./ollama-create.ts";
import { ollamaLines } from "./ollama-error.ts";
import { modelField, nameField, streamField } from "./ollama-fields.ts";

const tag = "Ollama API";
const SUCCESS = { status: "success" };

const statusAnswers = [
  { description: "With stream false: status success.", schema: statusLineSchema },
  { contentType: NDJSON_TYPE, description: "One line per step.", schema: statusLineSchema },
];

export const deleteRequestSchema = z
  .object({ model: modelField.nullish(), name: nameField })
  .meta({ id: "OllamaDeleteRequest" });

export const copyRequestSchema = z
  .object({
    source: modelName.min(1).describe("Name of the model to copy."),
    destination: modelName.min(1).describe("Name of the copy, which must not be in use."),
  })
  .meta({ id: "OllamaCopyRequest" });

/** Routes that change models on disk. */
export function storeRoutes({ models }: ModelServices): readonly Route[] {
  return [
    pullRoute(models),
    ...blobRoutes(models),
    defineRoute({
      method: "POST",
      path: "/ollama/api/create",
      tag,
      summary: "Create a model from another, or from uploaded files",
      body: createRequestSchema,
      answers: statusAnswers,
      async handle(context, { body }) {
        const modelfile = await toModelfile(body, (digest) => models.blobs.find(digest));
        const alias = toModelName(requestedName(body));
        const quantization = body.quantize;
        const steps = quantization
          ? new QuantizeSteps((onProgress) =>
              models.quantize(
                { alias, modelfile, quantization, mayRequantize: false },
                onProgress,
                context.req.raw.signal,
              ),
            )
          : undefined;
        if (!steps) await models.create(alias, modelfile, {});
        else if (body.stream === false) await steps.finished();
        else await steps.started();
        context.set("warnings", modelfileNotes(modelfile));
        if (body.stream === false) return context.json(SUCCESS);
        const lines = steps ? toLines(toQuantizeLines(steps)) : statusLines(CREATE_STATUSES);
        return streamResponse(context, lines, ollamaLines);
      },
    }),
    defineRoute({
      method: "POST",
      path: "/ollama/api/copy",
      tag,
      summary: "Copy a model",
      body: copyRequestSchema,
      answers: [{ description: "An empty body." }],
      async handle(context, { body }) {
        const { alias } = await findModel(models, body.source);
        await models.copy(alias, toModelName(body.destination));
        return context.body(null, 200);
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/ollama/api/delete",
      tag,
      summary: "Delete a model from disk",
      body: deleteRequestSchema,
      answers: [{ description: "An empty body." }],
      async handle(context, { body }) {
        const { alias } = await findModel(models, requestedName(body));
        await models.delete(alias);
        return context.body(null, 200);
      },
    }),
  ];
}

function pullRoute(models: Models): Route {
  return defineRoute({
    method: "POST",
    path: "/ollama/api/pull",
    tag,
    summary: "Download a model from the hub",
    description:
      "Accepts aliases and hf.co/owner/repository[:quantization]. Disconnecting pauses the download; the next pull resumes it.",
    body: pullRequestSchema,
    answers: statusAnswers,
    async handle(context, { body }) {
      const { signal } = context.req.raw;
      const name = toModelName(requestedName(body));
      const isOnDisk = await isLocal(models, name);
      if (body.stream === false) {
        if (!isOnDisk) await models.pull(name, () => undefined, signal);
        return context.json(SUCCESS);
      }
      if (isOnDisk) return streamResponse(context, statusLines(["pulling manifest", "success"]), ollamaLines);
      const steps = new PullSteps((onProgress) => models.pull(name, onProgress, signal));
      await steps.started();
      return streamResponse(context, toLines(toPullLines(name, steps)), ollamaLines);
    },
  });
}

/**
 * True if there is nothing to download: the model is shipped, was created here, or is a local file. Clients pull any
 * model before they use it.
 */
async function isLocal(models: Models, name: string): Promise<boolean> {
  const listed = new Set([name, name.replace(/:latest$/, "")]);
  const found = (await models.list()).find(({ alias }) => listed.has(alias));
  return found !== undefined && found.source.kind !== "hub";
}

async function* toLines(values: AsyncIterable<object>): AsyncGenerator<string, void, undefined> {
  for await (const value of values) yield ndjsonLine(value);
}

async function* statusLines(statuses: readonly string[]): AsyncGenerator<string, void, undefined> {
  for (const status of statuses) yield ndjsonLine({ status });
}

const PATH = "/ollama/api/blobs/:digest";
/** Type of an uploaded file. The body is streamed to disk, where its size is limited. */
const FILE_TYPE = "application/octet-stream";

/** POST /api/push of the Ollama API, which is always refused. */
const pushRequestSchema = z
  .object({ model: modelField.nullish(), name: nameField, stream: streamField })
  .meta({ id: "OllamaPushRequest" });

/** Routes to upload files for new models, and to publish a model, which is refused. */
function blobRoutes(models: Models): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: PATH,
      tag,
      takesFile: true,
      summary: "Check that a file has been uploaded",
      description: "For HEAD requests. The answer has no body.",
      answers: [{ description: "The file has been uploaded." }],
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
        "A file that no model uses is removed after a day.",
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
