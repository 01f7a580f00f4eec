import { ServiceError } from "../errors/service-error.ts";
import { FailureWatch } from "../events/failure-watch.ts";
import type { Services } from "../http/services.ts";

/**
 * Loads the models that the configuration names, else the default model when it is on disk. A model that cannot
 * be loaded is logged and reported as an event; the daemon serves without it. Never rejects.
 */
export async function loadFirstModels(services: Services): Promise<void> {
  const { config, models, draining } = services;
  const named = config.models.load ?? (models.defaultAlias === undefined ? [] : [models.defaultAlias]);
  for (const name of named) {
    if (draining.aborted) return;
    using watch = new FailureWatch(services.events);
    try {
      // Not get(): a path that nobody has loaded before is registered by loading it.
      await models.load({ alias: name }, draining);
    } catch (thrown) {
      if (draining.aborted) return;
      const error = ServiceError.from(thrown);
      if (error.code !== "model_already_loaded") report(services, name, error, watch);
    }
  }
}

function report({ logger, events }: Services, name: string, error: ServiceError, watch: FailureWatch): void {
  const advice = error.code === "model_not_found" ? ` Download it with: daybreak pull ${name}` : "";
  logger.error(
    { model: name, code: error.code, err: error },
    `Cannot load ${name}: ${error.message}${advice}`,
  );
  if (watch.hasSeen(error)) return;
  events.emit({ type: "model-failed", model: name, code: error.code, message: error.message });
}
