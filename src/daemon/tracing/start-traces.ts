import type { Logger } from "pino";
import type { Traces } from "./open-traces.ts";

/** Variables that name a receiver. */
const ENDPOINT_VARIABLES = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/**
 * Starts to send traces if the configuration or OpenTelemetry's variables name a receiver; otherwise its packages are
 * not loaded.
 */
export async function startTraces(
  endpoint: string | undefined,
  version: string,
  logger: Logger,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Traces | undefined> {
  if (endpoint === undefined && !isRequested(env)) return undefined;
  const { openTraces } = await import("./open-traces.ts");
  return openTraces({
    endpoint,
    version,
    onProblem: (problem) =>
      logger.warn(
        `Traces cannot be sent (${problem}). Check tracing.otlp_endpoint or OTEL_EXPORTER_OTLP_ENDPOINT; spans are dropped meanwhile.`,
      ),
  });
}

function isRequested(env: NodeJS.ProcessEnv): boolean {
  if (env["OTEL_SDK_DISABLED"]?.toLowerCase() === "true" || env["OTEL_TRACES_EXPORTER"] === "none")
    return false;
  return ENDPOINT_VARIABLES.some((name) => env[name]);
}
