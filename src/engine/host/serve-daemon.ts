import { residentBytes } from "../../machine/memory.ts";
import { ServiceError, toError } from "../../errors/service-error.ts";
import { MessageTooLargeError } from "../channel/message-codec.ts";
import { DAEMON_MESSAGE_KINDS, ENGINE_MESSAGE_KINDS } from "../channel/message-limits.ts";
import { ParentChannel } from "../channel/parent-channel.ts";
import type { LogLevel } from "../core/platform.ts";
import { deviceFlags } from "../gpu/dawn.ts";
import type { GenerationEvent } from "../protocol/generation.ts";
import {
  type DaemonMessage,
  daemonMessageSchema,
  type EngineMessage,
  firstProblem,
  toReportedError,
} from "../protocol/messages.ts";
import { deltaText, isTextDelta, withText } from "../protocol/text-delta.ts";
import { openEngineFiles } from "./engine-files.ts";
import { EngineServer } from "./engine-server.ts";
import { createNodePlatform } from "./node-platform.ts";

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
  open(spec) {
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
    return { platform, files: openEngineFiles(spec) };
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

type Post = (message: EngineMessage, written?: () => void) => void;

/**
 * Sends a message. Splits events into several messages if they exceed the size of one.
 * @param written called when the last message has been written
 */
function sendInParts(message: EngineMessage, post: Post, written?: () => void): void {
  try {
    post(message, written);
  } catch (error) {
    if (!(error instanceof MessageTooLargeError)) throw error;
    if (message.type !== "events") return sendFailure(message, post, written);
    const [first, second] = message.events.length > 1 ? halves(message.events) : split(message.events[0]);
    if (!first) return sendFailure(message, post, written);
    sendInParts({ ...message, events: first }, post);
    sendInParts({ ...message, events: second }, post, written);
  }
}

function halves<Item>(items: readonly Item[]): [Item[], Item[]] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}

/** Splits one event into two with the same meaning; `[undefined]` if that is not possible. */
function split(event: GenerationEvent | undefined): [GenerationEvent[], GenerationEvent[]] | [undefined] {
  if (!event || !isTextDelta(event)) return [undefined];
  const [text, more] = textHalves(deltaText(event));
  if (event.type !== "text-delta") {
    const part = (half: string): [GenerationEvent] => [{ ...withText(event, half), ends: undefined }];
    return [part(text), part(more)];
  }
  const [logprobs, moreLogprobs] = event.logprobs ? halves(event.logprobs) : [];
  if (text === "" && (logprobs?.length ?? 0) < 2) return [undefined];
  return [
    [{ type: "text-delta", text, ...(logprobs && { logprobs }) }],
    [{ type: "text-delta", text: more, ...(moreLogprobs && { logprobs: moreLogprobs }) }],
  ];
}

/** Splits a text in the middle, but not within a surrogate pair. */
function textHalves(text: string): [string, string] {
  const characters = text.length >> 1;
  const isPair = /[\uD800-\uDBFF]/.test(text[characters - 1] ?? "");
  const middle = isPair ? characters - 1 : characters;
  return [text.slice(0, middle), text.slice(middle)];
}

/** Fails a call whose answer does not fit into a message. */
function sendFailure(message: EngineMessage, post: Post, written?: () => void): void {
  if (!("call" in message)) throw new TypeError(`The message ${message.type} is too large.`);
  const error = new ServiceError("inference_failed", "The answer is too large to be sent.");
  post({ type: "call-failed", call: message.call, error: toReportedError(error) }, written);
}
