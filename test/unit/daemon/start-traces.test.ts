import { pino } from "pino";
import { expect, test } from "vitest";
import { startTraces } from "../../../src/daemon/create-services.ts";

const logger = pino({ level: "silent" });
const RECEIVER = "http://127.0.0.1:9";

test.each([
  ["nothing is configured", {}],
  ["the variable is empty", { OTEL_EXPORTER_OTLP_ENDPOINT: "" }],
  ["OpenTelemetry is off", { OTEL_EXPORTER_OTLP_ENDPOINT: RECEIVER, OTEL_SDK_DISABLED: "TRUE" }],
  ["its traces are off", { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: RECEIVER, OTEL_TRACES_EXPORTER: "none" }],
])("records no traces if %s", async (_, env) => {
  expect(await startTraces(undefined, "1", logger, env)).toBeUndefined();
});

test.each([
  ["the configuration", RECEIVER, {}],
  ["a variable", undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: RECEIVER }],
  ["the variable for traces", undefined, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: RECEIVER }],
])("records traces if %s names a receiver", async (_, endpoint, env) => {
  const traces = await startTraces(endpoint, "1", logger, env);
  expect(traces).toBeDefined();
  await traces?.close();
});
