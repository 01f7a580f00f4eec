import { writeSync } from "node:fs";
import type { Readable } from "node:stream";
import { type Frame, FrameReader } from "./frame.ts";
import { MessageCodec } from "./message-codec.ts";
import type { MessageKinds } from "./message-kinds.ts";

/**
 * A child process reads its parent's messages from standard input and writes its own to this descriptor. Two one-way pipes
 * work on every system, and what native code prints on stdout does not interfere.
 */
export const CHILD_SPEAKS_ON = 3;

/** First descriptor after those of the channel. */
export const FIRST_INPUT_ON = 4;

interface ParentChannelOptions<Incoming extends { type: string }, Outgoing extends { type: string }> {
  readonly incoming: MessageKinds<Incoming>;
  readonly outgoing: MessageKinds<Outgoing>;
  /** Receives the parent's messages, not validated yet. */
  readonly onMessage: (message: unknown) => void;
  /** A message of the parent cannot be read, or `onMessage` threw. */
  readonly onProblem: (error: unknown) => void;
}

/** A child process's end of the pipes to its parent. */
export class ParentChannel<Incoming extends { type: string }, Outgoing extends { type: string }> {
  readonly #outgoing: MessageCodec<Outgoing>;

  constructor({ incoming, outgoing, onMessage, onProblem }: ParentChannelOptions<Incoming, Outgoing>) {
    const codec = new MessageCodec<Incoming>(incoming);
    this.#outgoing = new MessageCodec<Outgoing>(outgoing);
    readFrames({
      stream: parentInput(),
      reader: new FrameReader(codec.limitsOf),
      onFrame: (frame) => onMessage(codec.decode(frame)),
      onProblem,
    });
  }

  /**
   * Sends a message. Waits while the pipe is full, so a parent that does not read stops this thread.
   * @param written called when the operating system has taken it, after the caller; never when the parent is gone
   * @throws MessageTooLargeError when the message exceeds the limits of its kind
   */
  post(message: Outgoing, written?: () => void): void {
    for (const piece of this.#outgoing.encode(message)) if (!writeToParent(piece)) return;
    if (written) process.nextTick(written);
  }
}

/** A parent that cannot be reached any more; {@link onParentGone} reports its end. */
const PARENT_IS_GONE: ReadonlySet<unknown> = new Set(["EPIPE", "ECONNRESET", "EOF"]);

/** How long to wait before another try when a pipe that does not wait by itself is full, in milliseconds. */
const FULL_PIPE_PAUSE_MS = 1;

const pauses = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/**
 * Writes bytes to the pipe to the parent, and waits until the operating system has taken all of them. Uses the
 * descriptor itself: Node's permission model refuses to make a socket of it from 26.12 on, and a file stream's writes
 * would wait in Node's thread pool.
 * @returns false when the parent is gone
 */
export function writeToParent(bytes: Uint8Array): boolean {
  for (let rest = bytes; rest.byteLength > 0;) {
    try {
      rest = rest.subarray(writeSync(CHILD_SPEAKS_ON, rest));
    } catch (error) {
      const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
      if (PARENT_IS_GONE.has(code)) return false;
      if (code !== "EAGAIN") throw error;
      Atomics.wait(pauses, 0, 0, FULL_PIPE_PAUSE_MS);
    }
  }
  return true;
}

/** The pipe from the parent: standard input. It ends when the parent does, even if the parent is killed. */
export function parentInput(): Readable {
  return process.stdin;
}

/** Calls back when the parent is gone. Call it before anything else; what arrives is kept for whoever reads it. */
export function onParentGone(gone: () => void): void {
  const pipe = parentInput();
  pipe.on("end", gone);
  pipe.on("error", gone);
  pipe.on("close", gone);
  // Standard input does not look at its pipe until it is read.
  pipe.read(0);
}

/** Longest time that one pipe may block the event loop, in milliseconds. */
const TURN_MS = 5;

interface ReadFramesOptions {
  readonly stream: Readable;
  readonly reader: FrameReader;
  readonly onFrame: (frame: Frame) => void;
  /** The data is not a frame, or `onFrame` threw; reading stops. */
  readonly onProblem: (error: unknown) => void;
}

export interface FrameReading {
  /** Handles everything that has arrived right away: the sender is gone, and its last messages must not be lost. */
  finish(): void;
  /** Stops reading. */
  stop(): void;
}

/**
 * Reads frames from a pipe in short turns. The pipe is paused while frames are left over from a turn, so that a fast
 * writer is slowed down and cannot block the event loop.
 */
export function readFrames({ stream, reader, onFrame, onProblem }: ReadFramesOptions): FrameReading {
  const state = { isWaiting: false, isStopped: false };

  const work = (until: number): void => {
    try {
      for (let frame = reader.next(); frame && !state.isStopped; frame = reader.next()) {
        onFrame(frame);
        if (performance.now() < until) continue;
        state.isWaiting = true;
        stream.pause();
        setImmediate(takeTurn);
        return;
      }
      if (state.isWaiting) stream.resume();
      state.isWaiting = false;
    } catch (error) {
      state.isStopped = true;
      onProblem(error);
    }
  };
  const takeTurn = (): void => {
    if (!state.isStopped) work(performance.now() + TURN_MS);
  };

  stream.on("data", (piece: Buffer) => {
    if (state.isStopped) return;
    reader.push(piece);
    if (!state.isWaiting) takeTurn();
  });
  return {
    finish: () => {
      if (!state.isStopped) work(Number.POSITIVE_INFINITY);
      state.isStopped = true;
    },
    stop: () => {
      state.isStopped = true;
    },
  };
}
