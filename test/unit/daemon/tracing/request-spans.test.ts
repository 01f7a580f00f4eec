import { SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { expect, test } from "vitest";
import { recordRequest, type TracedRequest } from "../../../../src/daemon/tracing/request-spans.ts";

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

/** Milliseconds from the start of the request. */
function since([seconds, nanos]: readonly [number, number]): number {
  return Math.round(seconds * 1000 + nanos / 1_000_000 - startedAt.getTime());
}

/** The spans of a request by name, with the time from its start in milliseconds. */
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

test("a request is a span, its model's work one below it, and the stages of that below again", () => {
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

test("it belongs to the trace of the client that asked", () => {
  const traceParent = `00-${CALLER.trace}-${CALLER.span}-01`;
  const root = spansOf({ ...chat, head: { ...chat.head, traceParent } }).get("POST /api/chat");
  expect([root?.context.traceId, root?.parent]).toEqual([CALLER.trace, CALLER.span]);
});

test.each(["nonsense", `00-${"0".repeat(32)}-${CALLER.span}-01`, "x".repeat(10_000)])(
  "a header that is not valid (%.12s…) begins a trace of its own",
  (traceParent) => {
    const root = spansOf({ ...chat, head: { ...chat.head, traceParent } }).get("POST /api/chat");
    expect(root?.parent).toBeUndefined();
  },
);

test("a client that does not sample its trace gets no spans", () => {
  const traceParent = `00-${CALLER.trace}-${CALLER.span}-00`;
  expect(spansOf({ ...chat, head: { ...chat.head, traceParent } }).size).toBe(0);
});

test("a failure has the code of its error, and a request without a model no spans below it", () => {
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
  const look = spansOf({ ...chat, head, end: { ...chat.end, route: "/api/models/{name}" }, work: {} });
  expect([...look.keys()]).toEqual(["GET /api/models/{name}"]);
});

test("a path that nobody serves is no name of a span", () => {
  const head = { ...chat.head, path: "/made/up/by/somebody" };
  const spans = spansOf({ ...chat, head, end: { ...chat.end, status: 404, route: undefined }, work: {} });
  expect([...spans.keys()]).toEqual(["POST"]);
  expect(spans.get("POST")?.attributes["url.path"]).toBe("/made/up/by/somebody");
});
