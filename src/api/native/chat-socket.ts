import { upgradeWebSocket } from "@hono/node-server";
import { WebSocket } from "ws";
import { ServiceError } from "../../errors/service-error.ts";
import type { BodyMemory } from "../../http/app-env.ts";
import { assertServing, nativeErrorBody } from "../../http/errors.ts";
import { parseInput, invalidField } from "../../http/input/common-fields.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { Inference } from "../../inference/inference.ts";
import { MAX_IMMEDIATE_LENGTH, parseJsonText, parseShortJson } from "../../json/parse-json.ts";
import type { Services } from "../services.ts";
import {
  type ClientFrame,
  clientFrameSchema,
  MAX_ID_LENGTH,
  type ServerFrame,
  serverFrameSchema,
  toFrames,
} from "./chat-frames.ts";
import { toChatRequest } from "./native-chat.ts";

/** Unsent bytes above which chats wait for the client to read. */
const MAX_BUFFERED_BYTES = 64 * 1024;
/** Unsent bytes above which a client that does not read is disconnected. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;
/** Interval of pings. Many proxies close connections that are idle for 60 s. */
const KEEP_ALIVE_MS = 30_000;
/** Close code of RFC 6455 for an endpoint that is going away. */
const CLOSE_GOING_AWAY = 1001;

/** Runs several chats at once over one WebSocket. */
export function chatSocketRoute(services: Services): Route {
  return defineRoute({
    method: "GET",
    path: "/ws/chat",
    tag: "Generation",
    summary: "Chat over a WebSocket",
    description:
      "Frames are JSON text. The client sends chat, cancel and ping frames, and can run several chats at once; the " +
      "daemon answers each chat with start, deltas, and done or error, all with the chat's id.",
    answers: [
      { status: 101, description: "What the client can send.", schema: clientFrameSchema },
      {
        status: 101,
        contentType: "application/json; frames",
        description: "What the daemon sends.",
        schema: serverFrameSchema,
      },
    ],
    async handle(context) {
      if (context.req.header("upgrade")?.toLowerCase() !== "websocket") {
        throw new ServiceError(
          "invalid_parameter",
          "/ws/chat requires a WebSocket: connect with ws:// or wss://.",
        );
      }
      const countMessage = context.get("countMessage");
      const heldBodies = context.get("bodyMemory");
      let opened: OpenedSocket | undefined;
      return await upgradeWebSocket(context, {
        onOpen(_event, { raw }) {
          if (!(raw instanceof WebSocket))
            throw new TypeError("the server adapter did not provide a WebSocket");
          opened = openChatSocket(services, raw, { countMessage, heldBodies });
        },
        onMessage({ data }) {
          if (typeof data === "string") opened?.socket.receive(data);
          else opened?.socket.receiveBinary();
        },
        onClose: () => opened?.end(),
        onError: () => opened?.end(),
      });
    },
  });
}

interface OpenedSocket {
  readonly socket: ChatSocket;
  /** Cancels its chats; may be called repeatedly. */
  end(): void;
}

function openChatSocket(
  services: Services,
  raw: WebSocket,
  limits: Pick<ChatSocketOptions, "countMessage" | "heldBodies">,
): OpenedSocket {
  const socket = new ChatSocket({
    ...limits,
    inference: services.inference,
    send: (frame) => sendFrame(raw, frame),
    pause: () => raw.pause(),
    resume: () => raw.resume(),
    assertServing: () => assertServing(services),
    onError: (error) => services.logger.error({ err: error }, "WebSocket chat failed"),
  });
  const keepAlive = setInterval(() => raw.ping(), KEEP_ALIVE_MS);
  keepAlive.unref();
  const onDraining = (): void =>
    socket.whenIdle(() => raw.close(CLOSE_GOING_AWAY, "The daemon is shutting down."));
  services.draining.addEventListener("abort", onDraining, { once: true });
  return {
    socket,
    end: () => {
      clearInterval(keepAlive);
      services.draining.removeEventListener("abort", onDraining);
      socket.close();
    },
  };
}

/** Sends a frame. Resolves immediately while few bytes are unsent, otherwise when this frame has been sent. */
function sendFrame(raw: WebSocket, frame: ServerFrame): Promise<void> {
  return new Promise((resolve, reject) => {
    raw.send(JSON.stringify(frame), (error) => (error ? reject(error) : resolve()));
    if (raw.bufferedAmount > MAX_UNREAD_BYTES) raw.terminate();
    else if (raw.bufferedAmount < MAX_BUFFERED_BYTES) resolve();
  });
}

/** Maximum number of concurrent chats per socket; more would only fill the queue ahead of other clients. */
export const MAX_CHATS_PER_SOCKET = 32;
/** Name of a frame in error messages. */
const FRAME = "The frame";

type ChatFrame = Extract<ClientFrame, { type: "chat" }>;

interface ChatSocketOptions {
  inference: Inference;
  /** Sends a frame. Resolves when the client has read enough to send more; rejects if it has disconnected. */
  send(frame: ServerFrame): Promise<void>;
  /** Throws if the daemon does not accept requests. */
  assertServing(): void;
  /** Counts a frame against the client's rate limit; throws if the limit is exceeded. */
  countMessage(): void;
  /** Memory budget for frames, whose bytes count while their chats run. */
  readonly heldBodies: BodyMemory;
  /** Stops reading frames until {@link resume}; frames already read may still arrive. */
  pause(): void;
  resume(): void;
  /** Reports internal errors of the daemon. */
  onError(error: ServiceError): void;
}

/**
 * Connection of a client of /ws/chat. Its chats run concurrently, are cancelled by ID, and all end with {@link close}.
 */
export class ChatSocket {
  readonly #options: ChatSocketOptions;
  readonly #chats = new Map<string, AbortController>();
  /** Queue of text frames; the first is being parsed. */
  readonly #frames: string[] = [];
  #closed = false;
  #onIdle: (() => void) | undefined;

  constructor(options: ChatSocketOptions) {
    this.#options = options;
  }

  /** Number of running chats. */
  get chats(): number {
    return this.#chats.size;
  }

  /** Handles a text frame. Frames are handled in order; long ones are parsed in time slices. */
  receive(text: string): void {
    if (this.#frames.length === 0 && text.length <= MAX_IMMEDIATE_LENGTH) {
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
      const parsed = await settle(parseJsonText(text, FRAME));
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

  /** Rejects a binary frame. */
  receiveBinary(): void {
    this.#fail(
      new ServiceError("invalid_json", "Binary frames are not supported; send JSON in text frames."),
      undefined,
    );
  }

  /** Calls `callback` once, as soon as no chat is running. */
  whenIdle(callback: () => void): void {
    this.#onIdle = callback;
    this.#checkIdle();
  }

  /** Cancels all chats and stops sending, because the client has disconnected. */
  close(): void {
    this.#closed = true;
    for (const chat of this.#chats.values()) chat.abort();
  }

  #start(frame: ChatFrame, size: number): void {
    this.#options.assertServing();
    if (this.#chats.has(frame.id)) {
      throw invalidField("id", `a chat "${frame.id}" is already in progress.`);
    }
    if (this.#chats.size >= MAX_CHATS_PER_SOCKET) {
      throw new ServiceError(
        "overloaded",
        `A socket can run at most ${MAX_CHATS_PER_SOCKET} chats at once; wait for one to end.`,
      );
    }
    const reservation = this.#options.heldBodies.begin();
    try {
      reservation.add(size);
    } catch (error) {
      reservation.release();
      throw error;
    }
    const chat = new AbortController();
    this.#chats.set(frame.id, chat);
    void this.#run(frame, chat.signal).finally(() => {
      reservation.release();
      this.#checkIdle();
    });
  }

  /**
   * Runs a chat. Never rejects. Frees the ID before the last frame is sent, so that the client can reuse it
   * immediately.
   */
  async #run(frame: ChatFrame, signal: AbortSignal): Promise<void> {
    const { id } = frame;
    try {
      const stream = await this.#options.inference.generate(toChatRequest(frame), signal);
      for await (const serverFrame of toFrames(id, stream, frame.return_progress ?? false)) {
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
    // When the client has disconnected, the socket's close event ends its chats.
    this.#options.send(frame).catch(() => undefined);
  }

  #checkIdle(): void {
    if (this.#chats.size > 0 || !this.#onIdle) return;
    this.#onIdle();
    this.#onIdle = undefined;
  }
}

/** Resolves to a function that returns the promise's value or throws its error. */
function settle<Value>(promise: Promise<Value>): Promise<() => Value> {
  return promise.then(
    (value) => () => value,
    (error: unknown) => () => {
      throw error;
    },
  );
}

/** Returns the ID of a possibly invalid frame, so that the error can name its chat. */
function idOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("id" in value)) return undefined;
  const { id } = value;
  return typeof id === "string" && id !== "" && id.length <= MAX_ID_LENGTH ? id : undefined;
}
