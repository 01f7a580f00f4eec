import type { Readable } from "node:stream";
import type { Frame, FrameReader } from "./frame.ts";

/** Longest time that one pipe may hold the event loop, in milliseconds. */
const TURN_MS = 5;

interface ReadFramesOptions {
  readonly stream: Readable;
  readonly reader: FrameReader;
  readonly onFrame: (frame: Frame) => void;
  /** What came is not a frame, or `onFrame` threw; nothing is read after it. */
  readonly onProblem: (error: unknown) => void;
}

export interface FrameReading {
  /** Handles what has arrived at once: its sender is gone, and its last words must not be lost. */
  finish(): void;
  /** Nothing more is handled. */
  stop(): void;
}

/**
 * Reads frames from a pipe in turns: while there are more than fit into one, the pipe is not read, so a writer that is
 * faster than we are waits in the end, and everything else goes on.
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
