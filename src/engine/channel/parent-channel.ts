import net from "node:net";
import { CHILD_LISTENS_ON, CHILD_SPEAKS_ON } from "./descriptors.ts";
import { FrameReader } from "./frame.ts";
import { MessageCodec } from "./message-codec.ts";
import type { MessageKinds } from "./message-kinds.ts";
import { readFrames } from "./read-frames.ts";

interface ParentChannelOptions<Incoming extends { type: string }, Outgoing extends { type: string }> {
  readonly incoming: MessageKinds<Incoming>;
  readonly outgoing: MessageKinds<Outgoing>;
  /** Receives what the parent says. */
  readonly onMessage: (message: unknown) => void;
  /** What the parent says cannot be read, or `onMessage` threw. */
  readonly onProblem: (error: unknown) => void;
}

/** A child process's end of the pipes to the process that started it. */
export class ParentChannel<Incoming extends { type: string }, Outgoing extends { type: string }> {
  readonly #outgoing: MessageCodec<Outgoing>;
  readonly #pipe: net.Socket;

  constructor({ incoming, outgoing, onMessage, onProblem }: ParentChannelOptions<Incoming, Outgoing>) {
    const codec = new MessageCodec<Incoming>(incoming);
    this.#outgoing = new MessageCodec<Outgoing>(outgoing);
    this.#pipe = new net.Socket({ fd: CHILD_SPEAKS_ON, readable: false, writable: true });
    // It breaks when the parent is gone, which parentInput() tells.
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
   * @param written called when the system has taken it; never when the parent is gone
   * @throws MessageTooLargeError when its kind may not be as large
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

/** What the parent writes; it ends with the parent, however that ends. */
export function parentInput(): net.Socket {
  input ??= new net.Socket({ fd: CHILD_LISTENS_ON, readable: true, writable: false });
  return input;
}

/** Calls back when the parent is gone. Must be called before anything else is done, and reads nothing. */
export function onParentGone(gone: () => void): void {
  const pipe = parentInput();
  pipe.on("end", gone);
  pipe.on("error", gone);
  pipe.on("close", gone);
}
