import { z } from "zod";
import { reportFailure } from "../../events/service-events.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { pathName } from "../../http/input/common-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { type DefaultModel, defaultModelSchema } from "../wire/hub.ts";
import type { ManagementServices } from "./management-services.ts";

const tag = "Default models";

/** The recommended models of configs/defaults.toml. */
export function defaultModelRoutes(services: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/defaults",
      tag,
      summary: "List the default models",
      answers: [{ description: "The default models.", schema: z.array(defaultModelSchema) }],
      alwaysOn: true,
      handle: (context) => context.json(services.defaultModels()),
    }),
    defineRoute({
      method: "POST",
      path: "/api/defaults/:name{.+}/use",
      tag,
      summary: "Download a default model, load it and make it the daemon's default",
      description:
        "Returns immediately and continues in the background: GET /api/models shows the progress, GET /api/events the result.",
      answers: [
        {
          description: "Downloading or loading has started.",
          schema: z.object({ status: z.literal("loading"), model: z.string(), message: z.string() }),
        },
      ],
      handle(context) {
        const name = pathName(context);
        const entry = services.defaultModels().find((candidate) => candidate.name === name);
        if (!entry) {
          throw new ServiceError(
            "model_not_found",
            `"${name}" is not a default model; GET /api/defaults lists them.`,
          );
        }
        void useInBackground(services, entry);
        return context.json({
          status: "loading",
          model: entry.name,
          message: `${entry.name} (${entry.size_hint}) is being downloaded and loaded; GET /api/events reports the result.`,
        });
      },
    }),
  ];
}

/** Downloads and loads a model. Never rejects: logs a failure, and reports it as an event. */
async function useInBackground(services: ManagementServices, entry: DefaultModel): Promise<void> {
  const { models, events, logger, draining } = services;
  try {
    const alias =
      (await aliasOnDisk(models, entry.from)) ??
      (await models.pull(entry.from, () => undefined, draining)).alias;
    await loadAsDefault(services, alias);
  } catch (cause) {
    if (draining.aborted) return;
    const error = ServiceError.from(cause);
    logger.error({ err: error, model: entry.name }, "default model could not be used");
    reportFailure(events, entry.name, error);
  }
}

/** Returns the alias of a model that is already on disk, without network access. */
async function aliasOnDisk(models: ManagementServices["models"], spec: string): Promise<string | undefined> {
  try {
    return (await models.get(spec)).alias;
  } catch (error) {
    // model_loading: the model is being downloaded; a pull joins that download.
    const codes = ["model_not_found", "fleet_unreachable", "model_loading"];
    if (error instanceof ServiceError && codes.includes(error.code)) return undefined;
    throw error;
  }
}

async function loadAsDefault({ models, draining }: ManagementServices, alias: string): Promise<void> {
  try {
    await models.load({ alias, setDefault: true }, draining);
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === "model_already_loaded")) throw error;
    await models.setDefault(alias);
  }
}
