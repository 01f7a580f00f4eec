import { upgradeWebSocket } from "@hono/node-server";
import { WebSocket } from "ws";
import { ServiceError } from "../../errors/service-error.ts";
import { assertServing } from "../../http/errors/serving.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { Services } from "../services.ts";
import { clientFrameSchema, serverFrameSchema, type ServerFrame } from "./chat-frames.ts";
import { ChatSocket, type ChatSocketOptions } from "./chat-socket.ts";

/** With more unsent bytes, chats wait for the client to read: hundreds of pieces of text. */
const MAX_BUFFERED_BYTES = 64 * 1024;
/** With more unsent bytes, a client that sends without reading is disconnected. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;
/** Proxies commonly close connections that are idle for 60 s. */
const KEEP_ALIVE_MS = 30_000;
/** RFC 6455: the endpoint is going away. */
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
      const heldBodies = context.get("heldBodies");
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
  /** Ends its chats; safe to call twice. */
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

/** Resolves immediately while little is unsent, otherwise when this frame has been sent. */
function sendFrame(raw: WebSocket, frame: ServerFrame): Promise<void> {
  return new Promise((resolve, reject) => {
    raw.send(JSON.stringify(frame), (error) => (error ? reject(error) : resolve()));
    if (raw.bufferedAmount > MAX_UNREAD_BYTES) raw.terminate();
    else if (raw.bufferedAmount < MAX_BUFFERED_BYTES) resolve();
  });
}
