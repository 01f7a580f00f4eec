import { upgradeWebSocket } from "@hono/node-server";
import { WebSocket } from "ws";
import { ServiceError } from "../../errors/service-error.ts";
import { assertServing } from "../../http/errors/serving.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { Services } from "../services.ts";
import { clientFrameSchema, serverFrameSchema, type ServerFrame } from "./chat-frames.ts";
import { ChatSocket, type ChatSocketOptions } from "./chat-socket.ts";

/** Unsent bytes beyond which a chat waits for its reader: some hundred pieces of text. */
const MAX_BUFFERED_BYTES = 64 * 1024;
/** Unsent bytes beyond which a peer that keeps sending without reading is cut off. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;
/** Proxies close a silent connection after 60 s; half of that is safe. */
const KEEP_ALIVE_MS = 30_000;
/** RFC 6455: the endpoint goes away. */
const CLOSE_GOING_AWAY = 1001;

/** Several conversations at once over one WebSocket. */
export function chatSocketRoute(services: Services): Route {
  return defineRoute({
    method: "GET",
    path: "/ws/chat",
    tag: "Generation",
    summary: "Chat over a WebSocket, several conversations at once",
    description:
      "Frames are JSON as text. The client sends chat, cancel and ping; each chat is answered by start, deltas " +
      "and one done or error, all with its id.",
    answers: [
      { status: 101, description: "What the client may send.", schema: clientFrameSchema },
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
          "/ws/chat speaks WebSocket: connect with ws:// or wss://.",
        );
      }
      const countMessage = context.get("countMessage");
      const heldBodies = context.get("heldBodies");
      let opened: OpenedSocket | undefined;
      return await upgradeWebSocket(context, {
        onOpen(_event, { raw }) {
          if (!(raw instanceof WebSocket)) throw new TypeError("the server adapter gave no WebSocket");
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
    onError: (error) => services.logger.error({ err: error }, "chat over WebSocket failed"),
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

/** Resolves at once while little is unsent, else when this frame has left. */
function sendFrame(raw: WebSocket, frame: ServerFrame): Promise<void> {
  return new Promise((resolve, reject) => {
    raw.send(JSON.stringify(frame), (error) => (error ? reject(error) : resolve()));
    if (raw.bufferedAmount > MAX_UNREAD_BYTES) raw.terminate();
    else if (raw.bufferedAmount < MAX_BUFFERED_BYTES) resolve();
  });
}
