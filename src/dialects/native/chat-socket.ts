import { ServiceError } from "../../errors/service-error.ts";
import { nativeErrorBody } from "../../http/errors/native-error.ts";
import { parseInput } from "../../http/input/parse-input.ts";
import type { HeldBodies } from "../../http/input/held-bodies.ts";
import type { Inference } from "../../inference/inference.ts";
import { PARSED_AT_ONCE, parseJsonText, parseShortJson } from "../../json/parse-json.ts";
import {
  clientFrameSchema,
  MAX_ID_LENGTH,
  toFrames,
  type ClientFrame,
  type ServerFrame,
} from "./chat-frames.ts";
import { toChatRequest } from "./native-chat.ts";

/** Chats of one socket at once; more would only wait in the queue in front of other clients. */
export const MAX_CHATS_PER_SOCKET = 32;
/** What frames are called in errors. */
const FRAME = "The frame";

type ChatFrame = Extract<ClientFrame, { type: "chat" }>;

export interface ChatSocketOptions {
  inference: Pick<Inference, "generate">;
  /** Resolves when the peer has taken enough of what was sent that more may follow; rejects when it is gone. */
  send(frame: ServerFrame): Promise<void>;
  /** Throws when no new work is taken. */
  assertServing(): void;
  /** Counts a frame against the client's rate limit; throws when it is one too many. */
  countMessage(): void;
  /** Where the bytes of frames are counted while their chats are under way. */
  readonly heldBodies: HeldBodies;
  /** No further frame is to be read until {@link resume}; those that are read already may still come. */
  pause(): void;
  resume(): void;
  /** Called with what has no code of its own: an error in the daemon. */
  onError(error: ServiceError): void;
}

/** One client of /ws/chat: any number of chats at once, each cancelled by its id, all ended by {@link close}. */
export class ChatSocket {
  readonly #options: ChatSocketOptions;
  readonly #chats = new Map<string, AbortController>();
  /** Text frames that wait for their turn, the one that is being parsed first. */
  readonly #frames: string[] = [];
  #closed = false;
  #onIdle: (() => void) | undefined;

  constructor(options: ChatSocketOptions) {
    this.#options = options;
  }

  /** Chats under way. */
  get chats(): number {
    return this.#chats.size;
  }

  /** Takes one text frame of the client. Frames take effect in their order; a long one is parsed in steps. */
  receive(text: string): void {
    if (this.#frames.length === 0 && text.length <= PARSED_AT_ONCE) {
      this.#handle(text, () => parseShortJson(text, FRAME));
      return;
    }
    this.#frames.push(text);
    if (this.#frames.length === 1) void this.#handleWaiting();
  }

  /** Never rejects. */
  async #handleWaiting(): Promise<void> {
    this.#options.pause();
    for (let text = this.#frames[0]; text !== undefined && !this.#closed; text = this.#frames[0]) {
      const parsed = await outcome(parseJsonText(text, FRAME));
      this.#handle(text, parsed);
      this.#frames.shift();
    }
    this.#frames.length = 0;
    this.#options.resume();
  }

  #handle(text: string, parse: () => unknown): void {
    let frameId: string | undefined;
    try {
      const value = parse();
      frameId = idOf(value);
      this.#options.countMessage();
      const frame = parseInput(clientFrameSchema, value);
      if (frame.type === "ping") {
        this.#reply({ type: "pong", ...(frame.id !== undefined && { id: frame.id }) });
      } else if (frame.type === "cancel") {
        this.#chats.get(frame.id)?.abort();
      } else this.#start(frame, text.length);
    } catch (error) {
      this.#fail(error, frameId);
    }
  }

  /** Answers a frame that holds no text. */
  receiveBinary(): void {
    this.#fail(new ServiceError("invalid_json", "Frames must be JSON in text frames."), undefined);
  }

  /** Calls back once, when no chat is under way; at once when there is none. */
  whenIdle(callback: () => void): void {
    this.#onIdle = callback;
    this.#checkIdle();
  }

  /** The peer is gone: cancels everything and sends nothing any more. */
  close(): void {
    this.#closed = true;
    for (const chat of this.#chats.values()) chat.abort();
  }

  #start(frame: ChatFrame, size: number): void {
    this.#options.assertServing();
    if (this.#chats.has(frame.id)) {
      throw new ServiceError("invalid_parameter", `id: a chat "${frame.id}" is already in progress.`, {
        param: "id",
      });
    }
    if (this.#chats.size >= MAX_CHATS_PER_SOCKET) {
      throw new ServiceError("overloaded", `One socket may have ${MAX_CHATS_PER_SOCKET} chats at once.`);
    }
    const held = this.#options.heldBodies.begin();
    try {
      held.add(size);
    } catch (error) {
      held.release();
      throw error;
    }
    const chat = new AbortController();
    this.#chats.set(frame.id, chat);
    void this.#run(frame, chat.signal).finally(() => {
      held.release();
      this.#checkIdle();
    });
  }

  /** Never rejects. The id is free again before the last frame leaves, so that the client may use it at once. */
  async #run(frame: ChatFrame, signal: AbortSignal): Promise<void> {
    const { id } = frame;
    try {
      const stream = await this.#options.inference.generate(toChatRequest(frame), signal);
      for await (const serverFrame of toFrames(id, stream)) {
        if (serverFrame.type === "done") this.#chats.delete(id);
        await this.#options.send(serverFrame);
      }
    } catch (error) {
      this.#chats.delete(id);
      if (this.#closed) return;
      if (signal.aborted) this.#reply({ type: "done", id, done_reason: "cancelled" });
      else this.#fail(error, id);
    }
  }

  #fail(thrown: unknown, id: string | undefined): void {
    const error = ServiceError.from(thrown);
    if (error.status >= 500) this.#options.onError(error);
    this.#reply({ type: "error", ...(id !== undefined && { id }), ...nativeErrorBody(error) });
  }

  #reply(frame: ServerFrame): void {
    if (this.#closed) return;
    // A peer that is gone needs no answer; the socket's own close event ends its chats.
    this.#options.send(frame).catch(() => undefined);
  }

  #checkIdle(): void {
    if (this.#chats.size > 0 || !this.#onIdle) return;
    this.#onIdle();
    this.#onIdle = undefined;
  }
}

/** A function that returns what the promise resolves to, or throws what it rejects with. */
function outcome<Value>(promise: Promise<Value>): Promise<() => Value> {
  return promise.then(
    (value) => () => value,
    (error: unknown) => () => {
      throw error;
    },
  );
}

/** The id of a frame that may be faulty otherwise, so that the error can name its chat. */
function idOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("id" in value)) return undefined;
  const { id } = value;
  return typeof id === "string" && id !== "" && id.length <= MAX_ID_LENGTH ? id : undefined;
}
