import { WebSocket } from "ws";
import { clientFrameSchema, serverFrameSchema } from "../../../../src/api/native/chat-frames.ts";
import type { Findings } from "../kit/findings.ts";
import type { Random } from "../kit/random.ts";
import { mutatedBody } from "./mutate.ts";
import { validValue } from "./valid-value.ts";
import { VICTIM } from "./victim.ts";

const FRAMES = 10;
/** An answer to the last frame comes sooner, unless a chat goes on before. */
const DEADLINE_MS = 3000;

/** Sends damaged frames over one socket; a ping at the end must still be answered. */
export async function talkOverWebSocket(url: string, random: Random, findings: Findings): Promise<void> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/ws/chat`);
  const sent: string[] = [];
  const last = `last-${random.int(0, 1e9)}`;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => {
      findings.count("sockets left");
      resolve();
    }, DEADLINE_MS);
    socket.on("error", () => undefined);
    socket.on("open", () => {
      for (let count = 0; count < FRAMES; count += 1) {
        const valid = Object(validValue(clientFrameSchema, random));
        const frame = mutatedBody(
          "model" in valid ? { ...valid, model: VICTIM, max_tokens: 2 } : valid,
          random,
        );
        sent.push(frame.slice(0, 200));
        socket.send(random.chance(0.05) ? Buffer.from(frame) : frame);
      }
      socket.send(JSON.stringify({ type: "ping", id: last }));
    });
    socket.on("message", (data: Buffer) => {
      const frame = serverFrameSchema.safeParse(JSON.parse(data.toString()));
      if (!frame.success) findings.add("a frame of another shape", data.toString().slice(0, 300));
      else if (frame.data.type === "error" && frame.data.error.type === "internal_error")
        findings.add(
          "a server error over a WebSocket",
          `${data.toString().slice(0, 300)} of ${sent.join("\n")}`,
        );
      else if (frame.data.type === "pong" && frame.data.id === last) {
        clearTimeout(timer);
        findings.count("sockets");
        resolve();
      }
    });
    socket.on("close", () => {
      clearTimeout(timer);
      resolve();
    });
  });
  socket.terminate();
}
