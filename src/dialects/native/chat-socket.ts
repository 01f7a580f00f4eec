import { ServiceError } from "../../errors/service-error.ts";
import { nativeErrorBody } from "../../http/errors/native-error.ts";
import { parseInput } from "../../http/input/parse-input.ts";
import type { Inference } from "../../inference/inference.ts";
import { clientFrameSchema, toFrames, type ClientFrame, type ServerFrame } from "./chat-frames.ts";
import { toChatRequest } from "./chat.ts";

/** Chats of one socket at once; more would only wait in the queue in front of other clients. */
export const MAX_CHATS_PER_SOCKET = 32;

type ChatFrame = Extract<ClientFrame, { type: "chat" }>;

export interface ChatSocketOptions {
  inference: Pick<Inference, "generate">;
  /** Resolves when the peer has taken enough of what was sent that more may follow; rejects when it is gone. */
  send(frame: ServerFrame): Promise<void>;
  /** Throws when no new work is taken. */
  assertServing(): void;
  /** Called with what has no code of its own: an error in the daemon. */
  onError(error: ServiceError): void;
}

/** One client of /ws/chat: any number of chats at once, each cancelled by its id, all ended by {@link close}. */
export class ChatSocket {
  readonly #options: ChatSocketOptions;
  readonly #chats = new Map<string, AbortController>();
  #closed = false;
  #onIdle: (() => void) | undefined;

  constructor(options: ChatSocketOptions) {
    this.#options = options;
  }

  /** Chats under way. */
  get chats(): number {
    return this.#chats.size;
  }

  /** Handles one text frame of the client. */
  receive(text: string): void {
    let frameId: string | undefined;
    try {
      const value = parseJson(text);
      frameId = idOf(value);
      const frame = parseInput(clientFrameSchema, value);
      if (frame.type === "ping") {
        this.#reply({ type: "pong", ...(frame.id !== undefined && { id: frame.id }) });
      } else if (frame.type === "cancel") {
        this.#chats.get(frame.id)?.abort();
      } else this.#start(frame);
    } catch (error) {
      this.#fail(error, frameId);
    }
  }

  /** Answers a frame that holds no text. */
  receiveBinary(): void {
    this.#fail(new ServiceError("invalid_json", "Frames must be JSON as text."), undefined);
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

  #start(frame: ChatFrame): void {
    this.#options.assertServing();
    if (this.#chats.has(frame.id)) {
      throw new ServiceError("invalid_parameter", `id: a chat "${frame.id}" is under way already.`, {
        param: "id",
      });
    }
    if (this.#chats.size >= MAX_CHATS_PER_SOCKET) {
      throw new ServiceError("overloaded", `One socket may have ${MAX_CHATS_PER_SOCKET} chats at once.`);
    }
    const chat = new AbortController();
    this.#chats.set(frame.id, chat);
    void this.#run(frame, chat.signal).finally(() => this.#checkIdle());
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

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new ServiceError("invalid_json", "The frame is not valid JSON.", { cause });
  }
}

/** The id of a frame that may be faulty otherwise, so that the error can name its chat. */
function idOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("id" in value)) return undefined;
  return typeof value.id === "string" ? value.id : undefined;
}
