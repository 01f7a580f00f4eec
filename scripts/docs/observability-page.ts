import { createMetrics } from "../../src/metrics/create-metrics.ts";

const HEAD = `# Observability

What a daemon tells of itself: metrics for Prometheus, a line in the log for each request, and traces for OpenTelemetry. None of them has a word of a prompt or an answer. \`GET /api/system/activity\` and the page's monitor show the same of late, without anything installed.

## The log

Each request is one line when its answer has been sent, a chat over the WebSocket as well: \`request_id\` (the client's \`x-request-id\`, or one of ours, which the answer's header has), \`method\`, \`path\`, \`status\` and \`ms\`, with \`error\`, a code, where it failed, and \`aborted\` where the client left before it had all of the answer (\`status\` is 499 if it had not begun); where a model had to do with it, \`model\`, \`prompt_tokens\`, \`cached_tokens\` (of these, found in the KV cache), \`completion_tokens\` and \`first_token_ms\` (from the request's arrival). \`log.format\` chooses JSON or text.

## Traces

\`tracing.otlp_endpoint\`, or OpenTelemetry's own \`OTEL_EXPORTER_OTLP_ENDPOINT\`, names a receiver of OTLP over HTTP, such as a Collector or Jaeger at \`http://localhost:4318\`. Without either, nothing of OpenTelemetry is loaded. Its other variables (\`OTEL_EXPORTER_OTLP_HEADERS\`, \`OTEL_SERVICE_NAME\`, \`OTEL_RESOURCE_ATTRIBUTES\`, …) work too.

Each request is a span such as \`POST /v1/chat/completions\`, in the trace of the client that sends a \`traceparent\` header. Below it is the model's work, such as \`chat qwen3:0.6b\`, with the attributes of OpenTelemetry's conventions for generative AI (model, tokens, finish reason, time to the first token), and below that its stages: \`load\`, \`queue\` (waiting for a slot), \`prefill\` and \`decode\`. A client that does not sample its trace gets no spans.

## Kubernetes: the Gateway API inference extension

The extension's endpoint picker asks model servers for three gauges, whatever their names:

| the protocol's name | Daybreak's metric |
|---|---|
| TotalQueuedRequests | \`service_requests_waiting\` |
| TotalRunningRequests | \`service_requests_running\` |
| KVCacheUtilization | \`service_kv_cache_usage_ratio\` |

[examples/endpoint-picker.yaml](examples/endpoint-picker.yaml) is a configuration of the endpoint picker with that mapping. Its older versions take the names as flags: \`--total-queued-requests-metric=service_requests_waiting\`, \`--total-running-requests-metric=service_requests_running\` and \`--kv-cache-usage-percentage-metric=service_kv_cache_usage_ratio\`.

## Metrics

\`GET /metrics\` has these. Gauges of a model exist while it is loaded.

| metric | type | labels | meaning |
|---|---|---|---|
`;

/** The text of docs/observability.md; its table is made from the registry. */
export async function observabilityPage(): Promise<string> {
  const model = "a model";
  const metrics = createMetrics({
    version: "1",
    uptimeSecs: () => 1,
    isInFleet: true,
    readGauges: async () => ({
      models: [{ model, parameters: 1, contextSize: 1, gpuLayers: 1, memoryBytes: 1, gpuMemoryBytes: 1 }],
      loads: [],
      gpu: { name: "a GPU", vendor: "a vendor", backend: "a backend" },
      memoryUsedBytes: 1,
      daemonMemoryBytes: 1,
    }),
  });
  const text = await metrics.render();
  const rows = [...text.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)\n(\S+?)(?:\{(.*)\})? /gm)].map(
    ([, name, help, type, , labels]) => `| \`${name}\` | ${type} | ${labelNames(labels)} | ${help} |`,
  );
  return `${HEAD}${rows.join("\n")}\n`;
}

function labelNames(labels = ""): string {
  return [...labels.matchAll(/(\w+)="/g)]
    .flatMap(([, name]) => (name === "le" ? [] : `\`${name}\``))
    .join(", ");
}
