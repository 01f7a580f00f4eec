import net from "node:net";
import { CHILD_LISTENS_ON, CHILD_SPEAKS_ON } from "./descriptors.ts";
import { FrameReader } from "./frame.ts";
import { MessageCodec } from "./message-codec.ts";
import type { MessageKinds } from "./message-kinds.ts";
import { readFrames } from "./read-frames.ts";

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
  readonly #pipe: net.Socket;

  constructor({ incoming, outgoing, onMessage, onProblem }: ParentChannelOptions<Incoming, Outgoing>) {
    const codec = new MessageCodec<Incoming>(incoming);
    this.#outgoing = new MessageCodec<Outgoing>(outgoing);
    this.#pipe = new net.Socket({ fd: CHILD_SPEAKS_ON, readable: false, writable: true });
    // It breaks when the parent is gone, which onParentGone() reports.
    this.#pipe.on("error", () => {});
    readFrames({
      stream: parentInput(),
      reader: new FrameReader(codec.limitsOf),
      onFrame: (frame) => onMessage(codec.decode(frame)),
      onProblem,
    });
  }

  /**
   * Sends a message.
   * @param written called when the operating system has taken it; never when the parent is gone
   * @throws MessageTooLargeError when the message exceeds the limits of its kind
   */
  post(message: Outgoing, written: () => void = () => {}): void {
    const pieces = this.#outgoing.encode(message);
    const last = pieces.length - 1;
    this.#pipe.cork();
    pieces.forEach((piece, index) => {
      this.#pipe.write(piece, (error) => {
        if (!error && index === last) written();
      });
    });
    this.#pipe.uncork();
  }
}

let input: net.Socket | undefined;

/** The pipe from the parent. It ends when the parent does, even if the parent is killed. */
export function parentInput(): net.Socket {
  input ??= new net.Socket({ fd: CHILD_LISTENS_ON, readable: true, writable: false });
  return input;
}

/** Calls back when the parent is gone. Call it before anything else; it does not read from the pipe. */
export function onParentGone(gone: () => void): void {
  const pipe = parentInput();
  pipe.on("end", gone);
  pipe.on("error", gone);
  pipe.on("close", gone);
}
