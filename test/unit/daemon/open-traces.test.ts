import { once } from "node:events";
import { createServer } from "node:http";
import { SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { openTraces, recordRequest, type TracedRequest } from "../../../src/daemon/open-traces.ts";

const HEALTH_REQUEST: TracedRequest = {
  head: { id: "an-id", method: "GET", path: "/health" },
  startedAt: new Date(),
  end: { status: 200, ms: 1, isAborted: false },
  work: {},
};

const servers: { close(): unknown }[] = [];

/** Starts a receiver that responds after `mayAnswer` and records the paths of requests. */
async function receiver(status: number, mayAnswer: Promise<unknown> = Promise.resolve()) {
  const paths: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url);
    request.resume().once("end", () => void mayAnswer.then(() => response.writeHead(status).end()));
  }).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("no port");
  return { url: `http://127.0.0.1:${address.port}`, paths };
}

describe("openTraces", () => {
  afterEach(() => servers.splice(0).forEach((server) => server.close()));

  test.each(["", "/", "/base/"])("sends spans to /v1/traces below the endpoint (%j)", async (ending) => {
    const { url, paths } = await receiver(200);
    const problems: string[] = [];
    const traces = openTraces({
      endpoint: url + ending,
      version: "1",
      onProblem: (each) => problems.push(each),
    });
    traces.add(HEALTH_REQUEST);
    await traces.close();
    expect(paths).toEqual([`${ending.replace(/\/$/, "")}/v1/traces`]);
    expect(problems).toEqual([]);
  });

  test("reports a receiver that refuses spans once", async () => {
    const { url } = await receiver(400);
    const problems: string[] = [];
    const traces = openTraces({ endpoint: url, version: "1", onProblem: (each) => problems.push(each) });
    // More than one batch.
    for (let i = 0; i < 1000; i += 1) traces.add(HEALTH_REQUEST);
    await traces.close();
    expect(problems).toEqual([expect.any(String)]);
  });

  test.each([
    ["a slow receiver to send the last spans", true],
    ["a silent receiver for a limited time", false],
  ])("close() waits for %s", async (_, answers) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const answer = Promise.withResolvers<void>();
    const { url, paths } = await receiver(200, answer.promise);
    const traces = openTraces({ endpoint: url, version: "1", onProblem: () => undefined });
    traces.add(HEALTH_REQUEST);
    let isClosed = false;
    const closing = traces.close().then(() => (isClosed = true));
    await expect.poll(() => paths).toEqual(["/v1/traces"]);
    await vi.advanceTimersByTimeAsync(4000);
    expect(isClosed).toBe(false);
    if (answers) answer.resolve();
    else await vi.advanceTimersByTimeAsync(2000);
    await closing;
    answer.resolve();
  });
});

const CALLER = { trace: "0af7651916cd43dd8448eb211c80319c", span: "b7ad6b7169203331" };
const startedAt = new Date("2026-01-02T03:04:05.250Z");

const chat: TracedRequest = {
  head: { id: "an-id", method: "POST", path: "/api/chat" },
  startedAt,
  end: { status: 200, ms: 900, isAborted: false, route: "/api/chat" },
  work: {
    endpoint: "chat",
    model: "mini",
    promptTokens: 5,
    cachedTokens: 2,
    completionTokens: 7,
    loadedMs: 100,
    admittedMs: 150,
    firstTokenMs: 400,
    finishReason: "stop",
  },
};

/** Milliseconds since the start of the request. */
function since([seconds, nanos]: readonly [number, number]): number {
  return Math.round(seconds * 1000 + nanos / 1_000_000 - startedAt.getTime());
}

/** Spans of a request by name, with times in milliseconds since its start. */
function spansOf(request: TracedRequest) {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  recordRequest(provider.getTracer("test"), request);
  return new Map(
    exporter.getFinishedSpans().map((span) => [
      span.name,
      {
        ...span,
        context: span.spanContext(),
        from: since(span.startTime),
        to: since(span.endTime),
        parent: span.parentSpanContext?.spanId,
        attributes: span.attributes,
        status: span.status,
        kind: span.kind,
      },
    ]),
  );
}

test("records a request, its generation and the stages of that as nested spans", () => {
  const spans = spansOf(chat);
  expect([...spans].map(([name, { from, to }]) => [name, from, to])).toEqual([
    ["load", 0, 100],
    ["queue", 100, 150],
    ["prefill", 150, 400],
    ["decode", 400, 900],
    ["chat mini", 0, 900],
    ["POST /api/chat", 0, 900],
  ]);
  const root = spans.get("POST /api/chat");
  const work = spans.get("chat mini");
  expect(root).toMatchObject({ kind: SpanKind.SERVER, parent: undefined });
  expect(work?.parent).toBe(root?.context.spanId);
  expect(spans.get("decode")?.parent).toBe(work?.context.spanId);
  expect(work?.attributes).toMatchObject({
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "mini",
    "gen_ai.usage.input_tokens": 5,
    "gen_ai.usage.output_tokens": 7,
    "gen_ai.response.finish_reasons": ["stop"],
  });
});

test("continues the trace of the client", () => {
  const traceParent = `00-${CALLER.trace}-${CALLER.span}-01`;
  const root = spansOf({ ...chat, head: { ...chat.head, traceParent } }).get("POST /api/chat");
  expect([root?.context.traceId, root?.parent]).toEqual([CALLER.trace, CALLER.span]);
});

test.each(["nonsense", `00-${"0".repeat(32)}-${CALLER.span}-01`, "x".repeat(10_000)])(
  "starts a new trace for an invalid header (%.12s…)",
  (traceParent) => {
    const root = spansOf({ ...chat, head: { ...chat.head, traceParent } }).get("POST /api/chat");
    expect(root?.parent).toBeUndefined();
  },
);

test("records no spans for a trace that the client does not sample", () => {
  const traceParent = `00-${CALLER.trace}-${CALLER.span}-00`;
  expect(spansOf({ ...chat, head: { ...chat.head, traceParent } }).size).toBe(0);
});

test("records error codes, and only one span for a request without a model", () => {
  const failed = spansOf({
    ...chat,
    end: { status: 500, ms: 3, isAborted: false, route: "/api/chat" },
    work: { endpoint: "chat", model: "mini", loadedMs: 1, failure: "engine_crashed" },
  });
  expect(failed.get("POST /api/chat")).toMatchObject({
    status: { code: SpanStatusCode.ERROR },
    attributes: { "error.type": "engine_crashed", "http.response.status_code": 500 },
  });
  expect(failed.get("chat mini")?.status.code).toBe(SpanStatusCode.ERROR);
  expect([...failed.keys()]).toEqual(["load", "chat mini", "POST /api/chat"]);

  const head = { ...chat.head, method: "GET", path: "/api/models/some" };
  const withoutModel = spansOf({
    ...chat,
    head,
    end: { ...chat.end, route: "/api/models/{name}" },
    work: {},
  });
  expect([...withoutModel.keys()]).toEqual(["GET /api/models/{name}"]);
});

test("does not name spans by unknown paths", () => {
  const head = { ...chat.head, path: "/made/up/path" };
  const spans = spansOf({ ...chat, head, end: { ...chat.end, status: 404, route: undefined }, work: {} });
  expect([...spans.keys()]).toEqual(["POST"]);
  expect(spans.get("POST")?.attributes["url.path"]).toBe("/made/up/path");
});
