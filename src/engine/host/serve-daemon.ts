import { DAEMON_MESSAGE_KINDS } from "../channel/daemon-message-kinds.ts";
import { ENGINE_MESSAGE_KINDS } from "../channel/engine-message-kinds.ts";
import { ParentChannel } from "../channel/parent-channel.ts";
import { EngineCore } from "../core/engine-core.ts";
import { fromLoadFailure } from "../core/engine-failure.ts";
import { toError } from "../../errors/to-error.ts";
import { residentBytes } from "../../machine/process-memory.ts";
import { warmUp } from "../core/warm-up.ts";
import {
  type DaemonMessage,
  daemonMessageSchema,
  type EngineMessage,
  firstProblem,
  toReportedError,
} from "../protocol/messages.ts";
import { deviceFlags } from "../gpu/dawn.ts";
import type { LogLevel } from "../core/platform.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import { CallRunner } from "./call-runner.ts";
import { openEngineFiles } from "./engine-files.ts";
import { createNodePlatform } from "./node-platform.ts";
import { Outbox } from "./outbox.ts";
import { sendInParts } from "./send-in-parts.ts";

/** The engine process: serves the daemon. Loaded by engine-main.ts. */

/** Smallest progress that is reported. */
const PROGRESS_STEP = 0.01;

const [, , wasmUrl = "", heapLimit, dawnPath, longestWait] = process.argv;

process.on("uncaughtException", (error) => die(error.message));

const channel = new ParentChannel<DaemonMessage, EngineMessage>({
  incoming: DAEMON_MESSAGE_KINDS,
  outgoing: ENGINE_MESSAGE_KINDS,
  onMessage: (message) => {
    const parsed = daemonMessageSchema.safeParse(message);
    if (parsed.success) receive(parsed.data);
    else die(`the daemon sent an invalid message: ${firstProblem(parsed.error)}`);
  },
  onProblem: (error) => die(`the daemon's messages cannot be read: ${toError(error).message}`),
});
const outbox = new Outbox((message, written) => send(message, written));
let calls: CallRunner | undefined;

function send(message: EngineMessage, written?: () => void): void {
  sendInParts(message, (part, done) => channel.post(part, done), written);
}

function receive(message: DaemonMessage): void {
  switch (message.type) {
    case "load":
      void load(message.spec);
      return;
    case "cancel":
      calls?.cancel(message.call);
      return;
    case "memory":
      send({ type: "memory", call: message.call, bytes: residentBytes() });
      return;
    default:
      if (calls) void calls.run(message);
      else die("the daemon sent a call before the model was loaded");
  }
}

async function load(spec: EngineSpec): Promise<void> {
  let reported = 0;
  const reportProgress = (progress: number): void => {
    if (progress < reported + PROGRESS_STEP && progress < 1) return;
    if (progress === reported) return;
    reported = progress;
    send({ type: "load-progress", progress });
  };
  try {
    const gpu =
      spec.gpu && dawnPath !== undefined
        ? { dawnPath, flags: deviceFlags(spec.gpu), maxWaitMs: Number(longestWait) }
        : undefined;
    const platform = createNodePlatform(wasmUrl, logProblem, { gpu, heapLimitBytes: Number(heapLimit) });
    const files = openEngineFiles(spec, reportProgress);
    const engine = await EngineCore.load(platform, spec, files);
    // No more bytes are read, but the daemon expects messages while the load makes progress.
    const reportAlive = (): void => send({ type: "load-progress", progress: reported });
    const stepMs = engine.info.gpuLayers > 0 ? await warmUp(engine, spec, reportAlive) : undefined;
    calls = new CallRunner(engine, outbox, die);
    send({ type: "loaded", info: { ...engine.info, ...(stepMs !== undefined && { stepMs }) } });
  } catch (error) {
    // Failures during the warm-up are load failures as well.
    const failure = toReportedError(fromLoadFailure(error));
    send({ type: "load-failed", error: failure }, () => process.kill(process.pid, "SIGKILL"));
  }
}

/** The daemon keeps the last lines to explain an exit. */
function logProblem(level: LogLevel, line: string): void {
  if (level === "warn" || level === "error") process.stderr.write(`${line}\n`);
}

/** Reports the reason, then ends the process. */
function die(reason: string): void {
  send({ type: "fatal", reason }, () => process.kill(process.pid, "SIGKILL"));
}
