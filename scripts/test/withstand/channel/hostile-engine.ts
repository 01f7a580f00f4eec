import fs from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CHILD_OUTPUT_FD,
  onParentGone,
  ParentChannel,
} from "../../../../src/engine/channel/parent-channel.ts";
import { DAEMON_MESSAGE_KINDS, ENGINE_MESSAGE_KINDS } from "../../../../src/engine/channel/message-limits.ts";
import {
  type DaemonMessage,
  daemonMessageSchema,
  type EngineMessage,
} from "../../../../src/engine/protocol/messages.ts";
import { Random } from "../kit/random.ts";
import { hostileAnswer } from "./hostile-frames.ts";
import { TINY_ENGINE_INFO as INFO } from "../../../../test/support/tiny-engine-info.ts";

/**
 * In the place of an engine's process: loads, and answers its first call in a hostile way.
 *
 * Argument: the seed of it.
 */

/** Before the next attempt to write into a pipe that is full. */
const FULL_PAUSE_MS = 1;

const random = new Random(Number(process.argv[2]));
onParentGone(() => process.exit());
const channel = new ParentChannel<DaemonMessage, EngineMessage>({
  incoming: DAEMON_MESSAGE_KINDS,
  outgoing: ENGINE_MESSAGE_KINDS,
  onMessage: (value) => {
    const message = daemonMessageSchema.parse(value);
    if (message.type === "load") channel.post({ type: "loaded", info: INFO });
    else if (message.type !== "cancel") void answer(message.call);
    // A hostile engine may let go of a call, or not.
    else if (random.chance(0.5)) channel.post({ type: "cancelled", call: message.call });
  },
  onProblem: () => process.exit(1),
});

async function answer(call: number): Promise<void> {
  const { pieces, next, shouted } = hostileAnswer(call, random);
  for (;;) {
    if (shouted !== undefined) await write(2, Buffer.from(shouted));
    for (const piece of pieces) await write(CHILD_OUTPUT_FD, piece);
    // Lets the daemon's messages in.
    await sleep(0);
    if (next === "exit") process.exit(random.int(0, 3));
    if (next === "wait") return;
  }
}

async function write(descriptor: number, bytes: Buffer): Promise<void> {
  let rest = bytes;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(fs.writeSync(descriptor, rest));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) process.exit(1);
      await sleep(FULL_PAUSE_MS);
    }
  }
}
