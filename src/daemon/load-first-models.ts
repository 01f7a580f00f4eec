import { ServiceError } from "../errors/service-error.ts";
import { reportFailure } from "../events/report-failure.ts";
import type { ManagementServices } from "../dialects/management/management-services.ts";

/**
 * Loads the models that the configuration names, else the default model when it is on disk. A model that cannot
 * be loaded is logged and reported as an event; the daemon serves without it. Never rejects.
 */
export async function loadFirstModels(services: ManagementServices): Promise<void> {
  const { config, models, draining } = services;
  const named = config.models.load ?? (models.defaultAlias === undefined ? [] : [models.defaultAlias]);
  for (const name of named) {
    if (draining.aborted) return;
    try {
      // Not get(): loading a path for the first time registers it.
      await models.load({ alias: name }, draining);
    } catch (thrown) {
      if (draining.aborted) return;
      const error = ServiceError.from(thrown);
      if (error.code !== "model_already_loaded") report(services, name, error);
    }
  }
}

function report({ logger, events }: ManagementServices, name: string, error: ServiceError): void {
  const advice = error.code === "model_not_found" ? ` Download it with: daybreak pull ${name}` : "";
  logger.error(
    { model: name, code: error.code, err: error },
    `Cannot load ${name}: ${error.message}${advice}`,
  );
  reportFailure(events, name, error);
}
