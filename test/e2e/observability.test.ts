import { on as events, once } from "node:events";
import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const CALLER = { trace: "0af7651916cd43dd8448eb211c80319c", span: "b7ad6b7169203331" };
const SECRET = "The password is xylophone";

let receiver: Server;
let daemon: TestDaemon;
/** Data that an OpenTelemetry receiver has received. */
const received: { path: string | undefined; type: string | undefined; body: Buffer }[] = [];

beforeAll(async () => {
  receiver = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      received.push({ path: request.url, type: request.headers["content-type"], body: Buffer.concat(parts) });
      response.end();
    });
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const address = receiver.address();
  if (typeof address !== "object" || !address) throw new Error("no port");
  const url = `http://127.0.0.1:${address.port}`;
  daemon = await startDaemon({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: url } });
});
afterAll(async () => {
  await daemon.stop();
  receiver.close();
});

/** Converts hexadecimal digits to the text of their bytes. */
function bytes(hex: string): string {
  return Buffer.from(hex, "hex").toString("latin1");
}

function chat(): Promise<Response> {
  return fetch(`${daemon.url}/api/chat`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      traceparent: `00-${CALLER.trace}-${CALLER.span}-01`,
      "x-request-id": "from-outside",
    },
    body: JSON.stringify({ messages: [{ role: "user", content: SECRET }], max_tokens: 4 }),
  });
}

async function socketChat(): Promise<void> {
  const socket = new WebSocket(`${daemon.url.replace("http", "ws")}/ws/chat`);
  await once(socket, "open");
  socket.send(
    JSON.stringify({ type: "chat", id: "1", messages: [{ role: "user", content: SECRET }], max_tokens: 4 }),
  );
  for await (const [data] of events(socket, "message")) if (/"type":"done"/.test(String(data))) break;
  socket.close();
}

describe("a daemon with a receiver of traces", () => {
  test("logs the figures of requests and WebSocket chats, and counts them per model", async () => {
    expect((await chat()).status).toBe(200);
    await socketChat();
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    expect(metrics).toMatch(/^service_time_per_output_token_seconds_count 2$/m);
    expect(metrics).toMatch(/^service_model_requests_running\{model="daybreak-mini"\} 0$/m);
    expect(metrics).toMatch(/^service_kv_cache_usage_ratio 0$/m);
  });

  test("sends spans in the caller's trace and without prompts before it ends", async () => {
    await daemon.stop();
    const sent = Buffer.concat(received.map(({ body }) => body)).toString("latin1");
    expect(received[0]).toMatchObject({ path: "/v1/traces", type: "application/x-protobuf" });
    expect(sent.includes(bytes(CALLER.trace))).toBe(true);
    expect(sent.includes(bytes(CALLER.span))).toBe(true);
    const names = [
      "POST /api/chat",
      "WS /ws/chat",
      "chat daybreak-mini",
      "prefill",
      "decode",
      "from-outside",
    ];
    expect(names.filter((name) => !sent.includes(name))).toEqual([]);
    expect(sent.includes("xylophone")).toBe(false);
    const lines = daemon
      .logs()
      .split("\n")
      .filter((line) => line.includes('"msg":"request"'));
    const line = lines.find((each) => each.includes("from-outside"));
    expect(JSON.parse(line ?? "{}")).toMatchObject({
      request_id: "from-outside",
      model: "daybreak-mini",
      prompt_tokens: expect.any(Number),
      completion_tokens: 4,
      first_token_ms: expect.any(Number),
    });
    const overSocket = lines.find((each) => each.includes('"method":"WS"'));
    expect(JSON.parse(overSocket ?? "{}")).toMatchObject({ path: "/ws/chat", completion_tokens: 4 });
  });
});
