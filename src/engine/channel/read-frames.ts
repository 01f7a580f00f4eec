import type { Readable } from "node:stream";
import type { Frame, FrameReader } from "./frame.ts";

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
