import { describe, expect, test } from "vitest";
import { createMetrics, type MetricsOptions } from "../../../src/metrics/create-metrics.ts";
import type { LoadedModelGauges } from "../../../src/metrics/scraped-gauges.ts";

const mini: LoadedModelGauges = {
  model: "mini",
  parameters: 12,
  contextSize: 4096,
  gpuLayers: 0,
  memoryBytes: 700,
  gpuMemoryBytes: 30,
};

function make(overrides: Partial<MetricsOptions> = {}) {
  return createMetrics({
    version: "1.2.3",
    uptimeSecs: () => 7,
    readGauges: async () => ({ models: [mini], loads: [], memoryUsedBytes: 1000, daemonMemoryBytes: 300 }),
    ...overrides,
  });
}

describe("the Prometheus registry", () => {
  test.each([
    ["service_info", "gauge"],
    ["service_uptime_seconds", "counter"],
    ["service_models_loaded", "gauge"],
    ["service_requests_total", "counter"],
    ["service_requests_active", "gauge"],
    ["service_tokens_generated_total", "counter"],
    ["service_tokens_per_second", "gauge"],
    ["service_prompt_tokens_total", "counter"],
    ["service_model_parameters", "gauge"],
    ["service_model_context_size", "gauge"],
    ["service_model_gpu_layers", "gauge"],
    ["service_memory_used_bytes", "gauge"],
    ["service_request_duration_seconds", "histogram"],
    ["service_time_to_first_token_seconds", "histogram"],
    ["service_time_per_output_token_seconds", "histogram"],
    ["service_cached_prompt_tokens_total", "counter"],
    ["service_draft_tokens_total", "counter"],
    ["service_draft_tokens_accepted_total", "counter"],
    ["service_requests_running", "gauge"],
    ["service_kv_cache_usage_ratio", "gauge"],
    ["service_model_requests_running", "gauge"],
    ["service_model_requests_waiting", "gauge"],
    ["service_model_kv_cache_usage_ratio", "gauge"],
    ["service_daemon_memory_bytes", "gauge"],
    ["service_model_memory_bytes", "gauge"],
    ["service_model_gpu_memory_bytes", "gauge"],
  ])("%s is a %s with HELP and TYPE", async (name, type) => {
    const text = await make().render();
    expect(text).toContain(`# TYPE ${name} ${type}\n`);
    expect(text).toMatch(new RegExp(`^# HELP ${name} \\S`, "m"));
  });

  test("has metrics of a fleet only in a fleet", async () => {
    expect(await make().render()).not.toContain("service_fleet");
    expect(await make({ isInFleet: true }).render()).toContain("service_fleet_connected 0\n");
  });

  test("counts requests by endpoint, from zero", async () => {
    const metrics = make();
    metrics.requestStarted("chat");
    const text = await metrics.render();
    expect(text).toContain('service_requests_total{endpoint="chat"} 1\n');
    expect(text).toContain('service_requests_total{endpoint="generate"} 0\n');
    expect(text).toContain('service_requests_total{endpoint="embeddings"} 0\n');
    expect(text).toContain("service_requests_active 1\n");
    expect(metrics.totals).toEqual({ requests: 1, tokensGenerated: 0, activeRequests: 1 });
  });

  test("has the number of waiting requests", async () => {
    const metrics = make();
    expect(await metrics.render()).toContain("service_requests_waiting 0\n");
    metrics.requestsWaiting(1);
    metrics.requestsWaiting(1);
    metrics.requestsWaiting(-1);
    expect(await metrics.render()).toContain("service_requests_waiting 1\n");
  });

  test("puts durations into the buckets of the specification", async () => {
    const metrics = make();
    metrics.requestStarted("generate");
    metrics.requestFinished("generate", 0.7);
    const text = await metrics.render();
    const bounds = [...text.matchAll(/service_request_duration_seconds_bucket\{le="([^"]+)"\} (\d)/g)];
    expect(bounds.map(([, bound, count]) => [bound, count])).toEqual([
      ["0.1", "0"],
      ["0.5", "0"],
      ["1.0", "1"],
      ["5.0", "1"],
      ["+Inf", "1"],
    ]);
    expect(text).toContain("service_request_duration_seconds_sum 0.7\n");
    expect(text).toContain("service_request_duration_seconds_count 1\n");
    expect(text).toContain("service_requests_active 0\n");
  });

  test("has buckets up to minutes for the time to first token of slow machines", async () => {
    const metrics = make();
    for (const seconds of [0.3, 40, 200]) metrics.firstToken(seconds);
    const text = await metrics.render();
    const counts = (bound: string) =>
      text.match(new RegExp(`service_time_to_first_token_seconds_bucket\\{le="${bound}"\\} (\\d+)`))?.[1];
    expect(["0.2", "0.35", "30.0", "45.0", "120.0", "300.0"].map(counts)).toEqual([
      "0",
      "1",
      "1",
      "2",
      "2",
      "3",
    ]);
  });

  test("counts the tokens of a running answer", async () => {
    const metrics = make();
    metrics.tokenGenerated();
    metrics.tokenGenerated();
    expect(metrics.totals.tokensGenerated).toBe(2);
    expect(await metrics.render()).toContain("service_tokens_generated_total 2\n");
    metrics.tokensGenerated("mini", 1, 10);
    expect(await metrics.render()).toContain("service_tokens_generated_total 3\n");
  });

  test("has the memory of the daemon and of each engine", async () => {
    const text = await make().render();
    expect(text).toContain("service_daemon_memory_bytes 300\n");
    expect(text).toContain('service_model_memory_bytes{model="mini"} 700\n');
    expect(text).toContain('service_model_gpu_memory_bytes{model="mini"} 30\n');
  });

  test("has the requests of each model, and of all together", async () => {
    const loads = [
      { model: "mini", running: 2, waiting: 3, contextTokens: 100, contextUsage: 0.5 },
      { model: "other", running: 1, waiting: 0, contextTokens: 300, contextUsage: 0.1 },
    ];
    const models = [mini, { ...mini, model: "other" }, { ...mini, model: "idle" }];
    const scrape = async () => ({ models, loads, memoryUsedBytes: 1, daemonMemoryBytes: 1 });
    const text = await make({ readGauges: scrape }).render();
    expect(text).toContain("service_requests_running 3\n");
    expect(text).toContain("service_kv_cache_usage_ratio 0.2\n");
    expect(text).toContain('service_model_requests_running{model="mini"} 2\n');
    expect(text).toContain('service_model_requests_waiting{model="mini"} 3\n');
    expect(text).toContain('service_model_kv_cache_usage_ratio{model="other"} 0.1\n');
    expect(text).toContain('service_model_requests_running{model="idle"} 0\n');
  });

  test("has the time per token, up to minutes, and the tokens found in the KV cache", async () => {
    const metrics = make();
    metrics.tokenInterval(0.04);
    metrics.tokenInterval(59);
    metrics.cachedTokens(0);
    metrics.cachedTokens(12);
    metrics.draftTokens(8, 5);
    const text = await metrics.render();
    expect(text).toContain("service_draft_tokens_total 8\n");
    expect(text).toContain("service_draft_tokens_accepted_total 5\n");
    expect(text).toContain('service_time_per_output_token_seconds_bucket{le="0.05"} 1\n');
    expect(text).toContain('service_time_per_output_token_seconds_bucket{le="60.0"} 2\n');
    expect(text).toContain("service_cached_prompt_tokens_total 12\n");
  });

  test("has the gauges of a model only while it is loaded", async () => {
    let models = [mini];
    const metrics = make({
      readGauges: async () => ({ models, loads: [], memoryUsedBytes: 1, daemonMemoryBytes: 1 }),
    });
    metrics.tokensGenerated("mini", 5, 42.5);
    const loaded = await metrics.render();
    expect(loaded).toContain('service_tokens_per_second{model="mini"} 42.5\n');
    expect(loaded).toContain('service_model_parameters{model="mini"} 12\n');
    expect(loaded).toContain("service_models_loaded 1\n");
    models = [];
    const unloaded = await metrics.render();
    expect(unloaded).not.toContain('model="mini"');
    expect(unloaded).toContain("service_models_loaded 0\n");
    expect(unloaded).toContain("service_tokens_generated_total 5\n");
  });

  test("escapes model names in labels", async () => {
    const model = 'a"} 1\nservice_fake{x="\\';
    const text = await make({
      readGauges: async () => ({
        models: [{ ...mini, model }],
        loads: [],
        memoryUsedBytes: 1,
        daemonMemoryBytes: 1,
      }),
    }).render();
    expect(text).toContain('service_model_parameters{model="a\\"} 1\\nservice_fake{x=\\"\\\\"} 12\n');
    expect(text).not.toMatch(/^service_fake/m);
  });

  test("has an uptime that only rises", async () => {
    let uptime = 3.5;
    const metrics = make({ uptimeSecs: () => uptime });
    expect(await metrics.render()).toContain("service_uptime_seconds 3.5\n");
    uptime = 9;
    expect(await metrics.render()).toContain("service_uptime_seconds 9\n");
  });

  test("omits a speed that is not a number", async () => {
    const metrics = make();
    metrics.tokensGenerated("mini", 1, Number.NaN);
    metrics.tokensGenerated("mini", 1, Number.POSITIVE_INFINITY);
    expect(await metrics.render()).toContain('service_tokens_per_second{model="mini"} 0\n');
  });

  test("counts the answers stopped for repetition, starting at 0", async () => {
    const metrics = make();
    expect(await metrics.render()).toContain("service_repetitions_stopped_total 0\n");
    metrics.repetitionStopped();
    expect(await metrics.render()).toContain("service_repetitions_stopped_total 1\n");
  });

  test("has the GPU, and how often it failed", async () => {
    const without = await make().render();
    expect(without).toContain("service_gpu_available 0\n");
    expect(without).not.toContain("service_gpu_info{");

    const gpu = { name: "Big Card", vendor: "acme", backend: "vulkan" };
    const metrics = make({
      readGauges: async () => ({ models: [], loads: [], memoryUsedBytes: 0, daemonMemoryBytes: 0, gpu }),
    });
    metrics.gpuLost();
    metrics.gpuLost();
    metrics.gpuAbandoned();
    const text = await metrics.render();
    expect(text).toContain("service_gpu_available 1\n");
    expect(text).toContain('service_gpu_info{name="Big Card",vendor="acme",backend="vulkan"} 1\n');
    expect(text).toContain("service_gpu_losses_total 2\n");
    expect(text).toContain("service_gpu_abandonments_total 1\n");
  });
});
