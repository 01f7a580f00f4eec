import { z } from "zod";
import { LLAMA_CPP_BUILD } from "../../../wasm/llama-cpp-build.ts";
import type { Model } from "../../models/model.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { FleetReport, ManagementServices } from "./management-services.ts";
import { fleetSchema, gpuJson, gpuSchema } from "../wire/machines.ts";

const tag = "System";

const healthSchema = z.object({ status: z.enum(["ok", "starting", "draining"]) });

const statusSchema = z.object({
  status: z.enum(["ok", "starting", "draining"]),
  version: z.string(),
  uptime_secs: z.int(),
  models_loaded: z.int(),
  active_requests: z.int(),
});

const systemStatusSchema = z
  .object({
    version: z.string(),
    llama_cpp: z.string().describe("Build of llama.cpp in the engines."),
    uptime_secs: z.int(),
    models_loaded: z.int(),
    http_endpoint: z.string().describe("URL of the HTTP endpoint."),
    ipc_endpoint: z.string().describe("ipc://<socket path>; empty when IPC is off."),
    default_model: z.string().describe("Alias of the default model; empty without models."),
    stats: z.object({
      requests_total: z.int(),
      tokens_generated: z.int(),
      active_requests: z.int(),
      gpu_available: z.boolean(),
      memory_used_bytes: z.int().describe("Resident memory of the daemon and its engines."),
      memory_total_bytes: z.int(),
    }),
    gpu: gpuSchema,
    kernels: z
      .enum(["daybreak", "stock"])
      .describe("Matrix kernels on the CPU: Daybreak's, or the stock ones of llama.cpp."),
    sandbox: z.object({
      mode: z.enum(["auto", "require", "off"]).describe("Configured mode."),
      wall: z
        .enum(["bubblewrap", "namespaces", "sandbox-exec", "none", "unknown"])
        .describe(
          "Operating system's sandbox around CPU engines, in addition to Node's permission model; unknown until it has been tested.",
        ),
      parts: z.array(z.string()).describe("The parts of the sandbox."),
      problem: z
        .string()
        .optional()
        .describe("Reason why there is no sandbox or no stronger one, and the remedy."),
    }),
  })
  .meta({ id: "SystemStatus" });

/** Routes of health, status, metrics and shutdown, also served while the daemon starts or drains. */
export function systemRoutes(services: ManagementServices): readonly Route[] {
  const { models, inference, metrics } = services;
  const uptimeSecs = (): number => Math.floor((performance.now() - services.startedAt) / 1000);
  const status = (): z.infer<typeof healthSchema>["status"] =>
    services.life.state === "ready" ? "ok" : services.life.state;

  return [
    defineRoute({
      method: "GET",
      path: "/health",
      tag,
      summary: "Health check",
      answers: [
        { description: "The daemon is ready.", schema: healthSchema },
        { status: 503, description: "The daemon is starting or draining.", schema: healthSchema },
      ],
      alwaysOn: true,
      // Supervisors and load balancers have no key.
      keyless: true,
      handle(context) {
        const state = status();
        return context.json({ status: state }, state === "ok" ? 200 : 503);
      },
    }),
    defineRoute({
      method: "GET",
      path: "/status",
      tag,
      summary: "Short status",
      answers: [{ description: "The status.", schema: statusSchema }],
      alwaysOn: true,
      async handle(context) {
        return context.json({
          status: status(),
          version: services.version,
          uptime_secs: uptimeSecs(),
          models_loaded: countLoaded(await models.list()),
          active_requests: inference.activeRequests,
        });
      },
    }),
    defineRoute({
      method: "GET",
      path: "/api/system/status",
      tag,
      summary: "System status",
      answers: [{ description: "The status.", schema: systemStatusSchema }],
      alwaysOn: true,
      async handle(context) {
        const list = await models.list();
        const memory = await services.machineMemory();
        return context.json({
          version: services.version,
          llama_cpp: LLAMA_CPP_BUILD,
          uptime_secs: uptimeSecs(),
          models_loaded: countLoaded(list),
          http_endpoint: services.endpoints.http,
          ipc_endpoint: services.endpoints.ipc,
          default_model: models.defaultAlias ?? "",
          stats: {
            requests_total: metrics.totals.requests,
            tokens_generated: metrics.totals.tokensGenerated,
            active_requests: inference.activeRequests,
            gpu_available: services.gpu.available,
            memory_used_bytes: memory.usedBytes,
            memory_total_bytes: memory.totalBytes,
          },
          gpu: gpuJson(services.gpu),
          kernels: services.kernels,
          sandbox: services.sandbox.state,
        });
      },
    }),
    defineRoute({
      method: "GET",
      path: "/metrics",
      tag,
      summary: "Prometheus metrics",
      answers: [{ contentType: "text/plain", description: "Prometheus text exposition." }],
      alwaysOn: true,
      async handle(context) {
        return context.body(await metrics.render(), 200, {
          "content-type": "text/plain; version=0.0.4; charset=utf-8",
        });
      },
    }),
    defineRoute({
      method: "POST",
      path: "/api/system/shutdown",
      tag,
      summary: "Drain and stop the daemon (IPC endpoint only)",
      description:
        "Returns immediately. Running requests can finish; new ones get 503. Over TCP this is 404.",
      answers: [
        { description: "The daemon is draining.", schema: z.object({ status: z.literal("shutting_down") }) },
      ],
      alwaysOn: true,
      handle(context) {
        if (context.env?.ipc !== true) {
          throw new ServiceError("route_not_found", "This route is only available on the IPC endpoint.");
        }
        services.shutdown();
        return context.json({ status: "shutting_down" });
      },
    }),
  ];
}

function countLoaded(models: readonly Model[]): number {
  return models.filter((model) => model.state === "loaded").length;
}

const NOT_IN_FLEET: FleetReport = { joined: false, connected: false, name: "", machines: [] };

/** Route that lists the machines of the fleet. */
export function fleetRoutes({ fleet }: ManagementServices): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/fleet",
      tag,
      summary: "List the machines of the fleet",
      answers: [{ description: "The machines, as this one sees them.", schema: fleetSchema }],
      handle: (context) => context.json(fleet?.report() ?? NOT_IN_FLEET),
    }),
  ];
}
