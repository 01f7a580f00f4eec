import { writeSync } from "node:fs";
import type { Readable } from "node:stream";
import { type Frame, FrameReader } from "./frame.ts";
import { MessageCodec } from "./message-codec.ts";
import type { MessageKinds } from "./message-kinds.ts";

/**
 * File descriptor to which a child process writes its messages; it reads its parent's messages from standard input. Two
 * one-way pipes work on every system, and output of native code on stdout does not interfere.
 */
export const CHILD_OUTPUT_FD = 3;

/** First file descriptor after those of the channel. */
export const FIRST_INPUT_FD = 4;

interface ParentChannelOptions<Incoming extends { type: string }, Outgoing extends { type: string }> {
  readonly incoming: MessageKinds<Incoming>;
  readonly outgoing: MessageKinds<Outgoing>;
  /** Receives the parent's messages, which are not validated yet. */
  readonly onMessage: (message: unknown) => void;
  /** Called when a message of the parent cannot be read, or `onMessage` has thrown. */
  readonly onProblem: (error: unknown) => void;
}

/** The child's end of the pipes to its parent process. */
export class ParentChannel<Incoming extends { type: string }, Outgoing extends { type: string }> {
  readonly #outgoing: MessageCodec<Outgoing>;

  constructor({ incoming, outgoing, onMessage, onProblem }: ParentChannelOptions<Incoming, Outgoing>) {
    const codec = new MessageCodec<Incoming>(incoming);
    this.#outgoing = new MessageCodec<Outgoing>(outgoing);
    readFrames({
      stream: process.stdin,
      reader: new FrameReader(codec.limitsOf),
      onFrame: (frame) => onMessage(codec.decode(frame)),
      onProblem,
    });
  }

  /**
   * Sends a message. Blocks this thread while the pipe is full.
   * @param written called asynchronously when the operating system has accepted the message; never if the parent has
   *   exited
   * @throws MessageTooLargeError if the message exceeds the limits of its kind
   */
  post(message: Outgoing, written?: () => void): void {
    for (const chunk of this.#outgoing.encode(message)) if (!writeToParent(chunk)) return;
    if (written) process.nextTick(written);
  }
}

/** Error codes of a write to a parent that has exited, which {@link onParentGone} reports. */
const PARENT_GONE_CODES: ReadonlySet<unknown> = new Set(["EPIPE", "ECONNRESET", "EOF"]);

/** Milliseconds between two attempts to write to a full non-blocking pipe. */
const FULL_PIPE_PAUSE_MS = 1;

/** Memory to wait on, because Atomics.wait() is the only synchronous sleep. */
const pauseCell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/**
 * Writes bytes to the parent, and blocks until the operating system has accepted all of them. Writes to the descriptor
 * directly, because from Node 26.12 on the permission model does not allow a socket for it, and the writes of a file
 * stream would occupy Node's thread pool.
 * @returns false if the parent has exited
 */
export function writeToParent(bytes: Uint8Array): boolean {
  for (let unwritten = bytes; unwritten.byteLength > 0;) {
    try {
      unwritten = unwritten.subarray(writeSync(CHILD_OUTPUT_FD, unwritten));
    } catch (error) {
      const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
      if (PARENT_GONE_CODES.has(code)) return false;
      if (code !== "EAGAIN") throw error;
      Atomics.wait(pauseCell, 0, 0, FULL_PIPE_PAUSE_MS);
    }
  }
  return true;
}

/**
 * Calls back when the parent has exited, even if it was killed. Call it first in the process; it does not consume any
 * message.
 */
export function onParentGone(gone: () => void): void {
  const pipe = process.stdin;
  pipe.on("end", gone);
  pipe.on("error", gone);
  pipe.on("close", gone);
  // Standard input does not notice the end of its pipe until it is read.
  pipe.read(0);
}

/**
 * Ends this process when the parent has exited, because it must not outlive it. Busy threads would delay a normal exit, but
 * not a signal.
 */
export function endWithParent(): void {
  onParentGone(() => {
    process.kill(process.pid, "SIGKILL");
    // The first process of a PID namespace cannot kill itself with a signal.
    process.abort();
  });
}

/** Maximum milliseconds for which one pipe may block the event loop. */
const MAX_SLICE_MS = 5;

interface ReadFramesOptions {
  readonly stream: Readable;
  readonly reader: FrameReader;
  readonly onFrame: (frame: Frame) => void;
  /** Called when the data is not a frame or `onFrame` has thrown. Reading stops. */
  readonly onProblem: (error: unknown) => void;
}

export interface FrameReading {
  /** Handles all received data immediately: the sender has exited, and its last messages must not be lost. */
  finish(): void;
  stop(): void;
}

/**
 * Reads frames from a pipe in short time slices. While frames are left over from a slice, the pipe is paused, so that a
 * fast sender is slowed down and cannot block the event loop.
 */
export function readFrames({ stream, reader, onFrame, onProblem }: ReadFramesOptions): FrameReading {
  const state = { isWaiting: false, isStopped: false };

  const handleFrames = (until: number): void => {
    try {
      for (let frame = reader.next(); frame && !state.isStopped; frame = reader.next()) {
        onFrame(frame);
        if (performance.now() < until) continue;
        state.isWaiting = true;
        stream.pause();
        setImmediate(runSlice);
        return;
      }
      if (state.isWaiting) stream.resume();
      state.isWaiting = false;
    } catch (error) {
      state.isStopped = true;
      onProblem(error);
    }
  };
  const runSlice = (): void => {
    if (!state.isStopped) handleFrames(performance.now() + MAX_SLICE_MS);
  };

  stream.on("data", (chunk: Buffer) => {
    if (state.isStopped) return;
    reader.push(chunk);
    if (!state.isWaiting) runSlice();
  });
  return {
    finish: () => {
      if (!state.isStopped) handleFrames(Number.POSITIVE_INFINITY);
      state.isStopped = true;
    },
    stop: () => {
      state.isStopped = true;
    },
  };
}
