import {
  type Attributes,
  type Context,
  type HrTime,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import { ExportResultCode, W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from "@opentelemetry/sdk-trace";
import { reasonOf } from "../errors/service-error.ts";
import type { WorkStats } from "../inference/request-accounting.ts";
import type { EndedRequest } from "./activity/activity.ts";

/** Longest wait for the last spans at shutdown. */
const CLOSE_MS = 5000;

interface TracesOptions {
  /**
   * Base URL of an OTLP receiver, to which /v1/traces is added; undefined: as in the variables OTEL_EXPORTER_OTLP_*.
   */
  readonly endpoint?: string | undefined;
  readonly version: string;
  /** Called when sending fails; once until it succeeds again. */
  readonly onProblem: (message: string) => void;
}

export interface Traces {
  add(request: TracedRequest): void;
  /** Sends the remaining spans, for at most {@link CLOSE_MS}. */
  close(): Promise<void>;
}

/** Sends a trace of each request to an OTLP receiver, over HTTP in protobuf. */
export function openTraces({ endpoint, version, onProblem }: TracesOptions): Traces {
  const exporter = new OTLPTraceExporter(
    endpoint === undefined ? {} : { url: `${endpoint.replace(/\/+$/, "")}/v1/traces` },
  );
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ "service.name": "daybreak", "service.version": version }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor({ exporter: reportProblems(exporter, onProblem) })],
  });
  const tracer = provider.getTracer("daybreak", version);
  return {
    add: (request) => recordRequest(tracer, request),
    close: async () => {
      const timeout = new Promise<void>((resolve) => void setTimeout(resolve, CLOSE_MS).unref());
      // onProblem has reported failures.
      await Promise.race([provider.shutdown().catch(() => undefined), timeout]);
    },
  };
}

/** Reports failures of an exporter, about which OpenTelemetry's packages are silent. */
function reportProblems(exporter: SpanExporter, onProblem: (message: string) => void): SpanExporter {
  let isFailing = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const failed = result.code !== ExportResultCode.SUCCESS;
        if (failed && !isFailing)
          onProblem(result.error ? reasonOf(result.error) : "the receiver does not take them");
        isFailing = failed;
        done(result);
      }),
    shutdown: async () => await exporter.shutdown(),
    forceFlush: async () => await exporter.forceFlush?.(),
  };
}

/** Data of a request in its spans. */
export type TracedRequest = Pick<EndedRequest, "head" | "startedAt" | "end" | "work">;

/** Names of operations in OpenTelemetry's conventions for generative AI. */
const OPERATIONS = { chat: "chat", generate: "text_completion", embeddings: "embeddings" } as const;

/** Lowest status of a server error. Client errors do not fail the server's span. */
const SERVER_ERROR = 500;

const PROPAGATOR = new W3CTraceContextPropagator();

/**
 * Records a request as a server span, its generation as a child span, and the stages of the generation as children of
 * that. The spans are created after the request, so that they do not delay it. Names follow OpenTelemetry's semantic
 * conventions for HTTP and generative AI. Spans contain no prompts and answers.
 */
export function recordRequest(tracer: Tracer, request: TracedRequest): void {
  const { head, startedAt, end, work } = request;
  const at = (ms: number): HrTime => toTime(startedAt.getTime() + ms);
  const root = tracer.startSpan(
    // Paths without a route are left out, because their number is unlimited.
    end.route === undefined ? head.method : `${head.method} ${end.route}`,
    {
      kind: SpanKind.SERVER,
      startTime: at(0),
      attributes: {
        "http.request.method": head.method,
        "url.path": head.path,
        "http.route": end.route,
        "http.response.status_code": end.status,
        "daybreak.request.id": head.id,
        ...(end.isAborted && { "daybreak.request.aborted": true }),
      },
    },
    parentContext(head),
  );
  if (work.endpoint !== undefined) {
    const operation = OPERATIONS[work.endpoint];
    const span = tracer.startSpan(
      work.model === undefined ? operation : `${operation} ${work.model}`,
      { startTime: at(0), attributes: { "gen_ai.operation.name": operation, ...modelAttributes(work) } },
      childOf(root),
    );
    const stage = (name: string, from: number | undefined, to: number | undefined): void => {
      if (from === undefined || to === undefined) return;
      tracer.startSpan(name, { startTime: at(from) }, childOf(span)).end(at(to));
    };
    stage("load", 0, work.loadedMs);
    stage("queue", work.loadedMs, work.admittedMs);
    stage("prefill", work.admittedMs, work.firstTokenMs);
    stage("decode", work.firstTokenMs, work.firstTokenMs === undefined ? undefined : end.ms);
    fail(span, work.failure);
    span.end(at(end.ms));
  }
  fail(root, end.status >= SERVER_ERROR ? (work.failure ?? String(end.status)) : undefined);
  root.end(at(end.ms));
}

/** OpenTelemetry leaves out attributes that are undefined. */
function modelAttributes(work: WorkStats): Attributes {
  return {
    "gen_ai.provider.name": "daybreak",
    "gen_ai.request.model": work.model,
    "gen_ai.response.model": work.model,
    "gen_ai.usage.input_tokens": work.promptTokens,
    "gen_ai.usage.cache_read.input_tokens": work.cachedTokens,
    "gen_ai.usage.output_tokens": work.completionTokens,
    "gen_ai.response.finish_reasons": work.finishReason && [work.finishReason],
    "gen_ai.response.time_to_first_chunk": work.firstTokenMs && work.firstTokenMs / 1000,
  };
}

function fail(span: Span, code: string | undefined): void {
  if (code === undefined) return;
  span.setAttribute("error.type", code);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Context with the client's span, if the headers name a valid one. */
function parentContext({ traceParent, traceState }: EndedRequest["head"]): Context {
  const headers = { traceparent: traceParent, tracestate: traceState };
  return PROPAGATOR.extract(ROOT_CONTEXT, headers, {
    get: (_carrier, key) =>
      key === "traceparent" ? traceParent : key === "tracestate" ? traceState : undefined,
    keys: () => Object.keys(headers),
  });
}

function childOf(span: Span): Context {
  return trace.setSpan(ROOT_CONTEXT, span);
}

/**
 * Time in seconds and nanoseconds. OpenTelemetry takes a small plain number as relative to the start of the process.
 */
function toTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1000);
  return [seconds, Math.round((epochMs - seconds * 1000) * 1_000_000)];
}
