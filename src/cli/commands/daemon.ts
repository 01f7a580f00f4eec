import type { Command } from "commander";
import { z } from "zod";
import { pause } from "../../async/promises.ts";
import { CliError, EXIT, usageError } from "../cli-error.ts";
import { type CliIo, writeJson, writeLine, writeLines } from "../cli-io.ts";
import { connect, daemonAddress } from "../client/daemon-address.ts";
import { DaemonClient, HEALTH_POLL_INTERVAL_MS } from "../client/daemon-client.ts";
import { clientCommand, type ClientOptions } from "../options/common-options.ts";
import { formatBytes, formatDuration } from "../../json/quantities.ts";
import { formatFields, printable } from "../terminal/format.ts";

/** Part of the response of GET /api/system/status. */
const statusSchema = z.object({
  version: z.string(),
  llama_cpp: z.string().optional(),
  uptime_secs: z.number(),
  models_loaded: z.number(),
  http_endpoint: z.string(),
  ipc_endpoint: z.string(),
  default_model: z.string(),
  stats: z.object({
    requests_total: z.number(),
    tokens_generated: z.number(),
    active_requests: z.number(),
    gpu_available: z.boolean(),
    memory_used_bytes: z.number(),
    memory_total_bytes: z.number(),
  }),
  gpu: z.object({ adapter: z.string().optional() }).optional(),
  kernels: z.enum(["daybreak", "stock"]).optional(),
  sandbox: z
    .object({
      mode: z.string(),
      wall: z.string(),
      parts: z.array(z.string()),
      problem: z.string().optional(),
    })
    .optional(),
});

/** daybreak status */
export function statusCommand(io: CliIo): Command {
  return clientCommand("status")
    .description("show the daemon's status; exit code 3 when no daemon answers")
    .action(async (options: ClientOptions) => {
      const client = connect(io, options);
      const status = await client.json(statusSchema, "GET", "/api/system/status");
      if (options.json) return writeJson(io.stdout, status);
      const { stats } = status;
      const fields = [
        ["Version", status.llama_cpp ? `${status.version} (llama.cpp ${status.llama_cpp})` : status.version],
        ["Running for", formatDuration(status.uptime_secs * 1000)],
        ["HTTP", status.http_endpoint || "off"],
        ["IPC", status.ipc_endpoint || "off"],
        ["Default model", status.default_model || "none"],
        ["Models loaded", String(status.models_loaded)],
        ["Requests", `${stats.requests_total} in total, ${stats.active_requests} active`],
        ["Tokens generated", String(stats.tokens_generated)],
        ["Memory", `${formatBytes(stats.memory_used_bytes)} of ${formatBytes(stats.memory_total_bytes)}`],
        ["CPU kernels", status.kernels === "stock" ? "llama.cpp's (slow)" : "Daybreak's"],
        ["Sandbox", printable(describeSandbox(status.sandbox))],
        ["GPU", printable(status.gpu?.adapter ?? "none (daybreak gpu says why)")],
      ] as const;
      return writeLines(io.stdout, formatFields(fields));
    });
}

/** Sandboxes that confine engines, in words. */
function describeSandbox(sandbox: z.infer<typeof statusSchema>["sandbox"]): string {
  const first = "Node's permission model";
  if (!sandbox || sandbox.wall === "unknown") return `${first}; the system's sandbox is not known yet`;
  const { wall: name, parts, problem } = sandbox;
  const reason = problem === undefined ? "" : ` (${problem})`;
  return name === "none" ? `${first} alone${reason}` : `${first} and ${name}: ${parts.join(", ")}${reason}`;
}

/** daybreak stop */
export function stopCommand(io: CliIo): Command {
  return clientCommand("stop")
    .description("stop the local daemon once its running requests are done")
    .action(async (options: ClientOptions) => {
      const { endpoints, apiKey } = daemonAddress(io.env, options);
      // The route exists over IPC only, so that nobody stops the daemon over the network.
      const local = endpoints.filter((endpoint) => endpoint.kind === "ipc");
      if (local.length === 0) {
        throw usageError(
          "A daemon can only be stopped through its socket, and no socket is configured. End its process instead.",
        );
      }
      const client = new DaemonClient({ endpoints: local, apiKey, signal: io.signal });
      try {
        await client.json(z.unknown(), "POST", "/api/system/shutdown");
      } catch (error) {
        const anywhere = new DaemonClient({ endpoints, apiKey, signal: io.signal });
        const isNoDaemon = error instanceof CliError && error.code === "no_daemon";
        throw isNoDaemon && (await anywhere.health()) !== undefined ? noSocket(error) : error;
      }
      while ((await client.health()) !== undefined) await pause(HEALTH_POLL_INTERVAL_MS, io.signal);
      if (options.json) return writeJson(io.stdout, { status: "stopped" });
      return writeLine(io.stdout, "The daemon is stopped.");
    });
}

function noSocket(cause: unknown): CliError {
  return new CliError(
    EXIT.conflict,
    "no_socket",
    "A daemon answers at its port but not at this socket, and it can only be stopped through its socket. Name its socket with --socket; if it has none, or runs under another account, end its process.",
    cause,
  );
}
