import { ServiceError } from "../../errors/service-error.ts";
import { nativeNdjson, ndjsonLine } from "../../http/errors/native-error.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { ManagementServices } from "./management-services.ts";
import { NDJSON_TYPE, streamResponse } from "../../http/streaming/stream-response.ts";
import { PullSteps, type PullStep } from "../../models/pull-steps.ts";
import * as schemas from "./model-schemas.ts";

const tag = "Models";

/** What brings models to the disk: pulling, making from a Modelfile, copying. */
export function storeRoutes(services: ManagementServices): readonly Route[] {
  const { models } = services;
  return [
    defineRoute({
      method: "POST",
      path: "/api/models/pull",
      tag,
      summary: "Download a model from the hub",
      description: "A client that goes away pauses the download; the next pull goes on from there.",
      body: schemas.pullRequestSchema,
      answers: [
        { description: "The model is on disk.", schema: schemas.pullResultSchema },
        {
          contentType: NDJSON_TYPE,
          description: "With stream true: one line.",
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
        await steps.begun();
        return streamResponse(context, pullLines(steps), nativeNdjson);
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/models/create",
      tag,
      summary: "Make a model from a Modelfile",
      body: schemas.createRequestSchema,
      answers: [{ description: "The model is made.", schema: schemas.createResultSchema }],
      async handle(context, { body }) {
        const options = body.base_folder == null ? {} : { baseFolder: body.base_folder };
        const model = await models.create(body.alias, body.modelfile, options);
        return context.json({ status: "created", alias: model.alias });
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/models/copy",
      tag,
      summary: "Give a model a second name",
      body: schemas.copyRequestSchema,
      answers: [{ description: "The copy is made.", schema: schemas.copyResultSchema }],
      async handle(context, { body }) {
        if (body.source === body.destination) {
          throw new ServiceError("model_exists", "source and destination are the same name.");
        }
        const model = await models.copy(body.source, body.destination);
        return context.json({ status: "copied", alias: model.alias });
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
