import type { ChildProcess } from "node:child_process";
import { Readable, type Writable } from "node:stream";
import { ServiceError } from "../../errors/service-error.ts";
import { CHILD_OUTPUT_FD, type FrameReading, readFrames } from "./parent-channel.ts";
import { ChannelError, FrameReader } from "./frame.ts";
import { MessageCodec } from "./message-codec.ts";
import type { MessageKinds } from "./message-kinds.ts";

/** Maximum bytes of messages that a child may leave unread. A healthy child reads them quickly. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

interface ChildChannelOptions<Incoming extends { type: string }, Outgoing extends { type: string }> {
  readonly child: ChildProcess;
  readonly incoming: MessageKinds<Incoming>;
  readonly outgoing: MessageKinds<Outgoing>;
  /** Receives the child's messages, which are not validated yet. */
  readonly onMessage: (message: unknown) => void;
  /** Called when communication with the child fails. `reason` is a predicate whose subject is the child. */
  readonly onProblem: (reason: string) => void;
}

/** The parent's end of the pipes to a child process, which may be hostile. */
export class ChildChannel<Incoming extends { type: string }, Outgoing extends { type: string }> {
  readonly #outgoing: MessageCodec<Outgoing>;
  readonly #writable: Writable | null;
  readonly #reading: FrameReading | undefined;
  readonly #onProblem: (reason: string) => void;

  constructor({ child, incoming, outgoing, onMessage, onProblem }: ChildChannelOptions<Incoming, Outgoing>) {
    const codec = new MessageCodec<Incoming>(incoming);
    this.#outgoing = new MessageCodec<Outgoing>(outgoing);
    this.#onProblem = onProblem;
    this.#writable = child.stdin;
    // A broken pipe means that the child has exited, which the owner of `child` handles.
    this.#writable?.on("error", () => {});
    // A process that could not be started has no pipes.
    const readable: unknown = child.stdio?.[CHILD_OUTPUT_FD];
    if (!(readable instanceof Readable)) return;
    readable.on("error", () => {});
    this.#reading = readFrames({
      stream: readable,
      reader: new FrameReader(codec.limitsOf),
      onFrame: (frame) => onMessage(codec.decode(frame)),
      onProblem: (error) => onProblem(describeProblem(error)),
    });
  }

  /** Sends a message. @throws ServiceError internal_error if it is too large or not serializable */
  post(message: Outgoing): void {
    const chunks = this.#encode(message);
    const pipe = this.#writable;
    if (!pipe?.writable) return;
    if (pipe.writableLength > MAX_UNREAD_BYTES) return this.#onProblem("did not read what it was sent");
    pipe.cork();
    for (const chunk of chunks) pipe.write(chunk);
    pipe.uncork();
  }

  /** Handles all messages that have arrived. Call it after the child has exited. */
  finish(): void {
    this.#reading?.finish();
  }

  stop(): void {
    this.#reading?.stop();
  }

  #encode(message: Outgoing): Uint8Array[] {
    try {
      return this.#outgoing.encode(message);
    } catch (error) {
      throw new ServiceError("internal_error", "A message for the engine could not be sent.", {
        cause: error,
      });
    }
  }
}

function describeProblem(error: unknown): string {
  if (error instanceof ChannelError) return `sent a message that ${error.message}`;
  throw error;
}
