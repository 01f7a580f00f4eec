import { residentBytes } from "../../machine/memory.ts";
import { toError } from "../../errors/to-error.ts";
import { DAEMON_MESSAGE_KINDS, ENGINE_MESSAGE_KINDS } from "../channel/message-limits.ts";
import { ParentChannel } from "../channel/parent-channel.ts";
import type { LogLevel } from "../core/platform.ts";
import { deviceFlags } from "../gpu/dawn.ts";
import {
  type DaemonMessage,
  daemonMessageSchema,
  type EngineMessage,
  firstProblem,
} from "../protocol/messages.ts";
import { openEngineFiles } from "./engine-files.ts";
import { EngineServer } from "./engine-server.ts";
import { createNodePlatform } from "./node-platform.ts";
import { sendInParts } from "./send-in-parts.ts";

/** Serves the daemon in an engine process. Loaded by engine-main.ts. */

const [, , wasmUrl = "", heapLimit, dawnPath, maxGpuWait] = process.argv;

const channel = new ParentChannel<DaemonMessage, EngineMessage>({
  incoming: DAEMON_MESSAGE_KINDS,
  outgoing: ENGINE_MESSAGE_KINDS,
  onMessage: (message) => {
    const parsed = daemonMessageSchema.safeParse(message);
    if (parsed.success) server.receive(parsed.data);
    else server.fail(`the daemon sent an invalid message: ${firstProblem(parsed.error)}`);
  },
  onProblem: (error) => server.fail(`the daemon's messages cannot be read: ${toError(error).message}`),
});

const server: EngineServer = new EngineServer({
  open(spec, onProgress) {
    const gpu =
      spec.gpu && dawnPath !== undefined
        ? {
            dawnPath,
            flags: deviceFlags(spec.gpu),
            maxWaitMs: Number(maxGpuWait),
            replays: spec.gpu.replay,
          }
        : undefined;
    const platform = createNodePlatform(wasmUrl, logProblem, { gpu, heapLimitBytes: Number(heapLimit) });
    return { platform, files: openEngineFiles(spec, onProgress) };
  },
  send: (message, written) => sendInParts(message, (part, done) => channel.post(part, done), written),
  memoryUsage: residentBytes,
  kill: () => process.kill(process.pid, "SIGKILL"),
});

// An earlier error ends the process, and Node prints it.
process.on("uncaughtException", (error) => server.fail(error.message));

/** Prints warnings and errors. The daemon includes the last lines in its report on an exit. */
function logProblem(level: LogLevel, line: string): void {
  if (level === "warn" || level === "error") process.stderr.write(`${line}\n`);
}
