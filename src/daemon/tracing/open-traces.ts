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
import { reasonOf } from "../../errors/reason-of.ts";
import type { WorkFigures } from "../../inference/request-accounting.ts";
import type { EndedRequest } from "../activity/activity.ts";

/** Longest wait for spans to leave at shutdown. A collector that is gone refuses them at once; only a silent one takes as long. */
const CLOSE_MS = 5000;

interface TracesOptions {
  /** Base URL of an OTLP receiver, to which /v1/traces is added; absent: the variables OTEL_EXPORTER_OTLP_* say where. */
  readonly endpoint?: string | undefined;
  readonly version: string;
  /** Called when spans cannot be sent, and again only after some were. */
  readonly onProblem: (message: string) => void;
}

export interface Traces {
  add(request: TracedRequest): void;
  /** Sends what is left, for at most {@link CLOSE_MS}. */
  close(): Promise<void>;
}

/** Sends a trace of each request to an OTLP receiver, over HTTP in protobuf, by OpenTelemetry's own packages. */
export function openTraces({ endpoint, version, onProblem }: TracesOptions): Traces {
  const exporter = new OTLPTraceExporter(
    endpoint === undefined ? {} : { url: `${endpoint.replace(/\/+$/, "")}/v1/traces` },
  );
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ "service.name": "daybreak", "service.version": version }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor({ exporter: tellingProblems(exporter, onProblem) })],
  });
  const tracer = provider.getTracer("daybreak", version);
  return {
    add: (request) => recordRequest(tracer, request),
    close: async () => {
      const late = new Promise<void>((resolve) => void setTimeout(resolve, CLOSE_MS).unref());
      // Of what cannot be sent, onProblem has told.
      await Promise.race([provider.shutdown().catch(() => undefined), late]);
    },
  };
}

/** The packages themselves are silent about a receiver that cannot be reached. */
function tellingProblems(exporter: SpanExporter, onProblem: (message: string) => void): SpanExporter {
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

/** What spans tell of a request. */
export type TracedRequest = Pick<EndedRequest, "head" | "startedAt" | "end" | "work">;

/** Names of operations in OpenTelemetry's conventions for generative AI. */
const OPERATIONS = { chat: "chat", generate: "text_completion", embeddings: "embeddings" } as const;

/** The first status of an error of the server; one of a client does not fail the server's span. */
const SERVER_ERROR = 500;

const PROPAGATOR = new W3CTraceContextPropagator();

/**
 * Records a request as a span of the server, its model's work as a span below it, and the stages of that below again. They
 * are made when the request is over, so that nothing is in its way. Names follow OpenTelemetry's semantic conventions for
 * HTTP and generative AI. Nothing of a prompt or an answer is in them.
 */
export function recordRequest(tracer: Tracer, request: TracedRequest): void {
  const { head, startedAt, end, work } = request;
  const at = (ms: number): HrTime => toTime(startedAt.getTime() + ms);
  const root = tracer.startSpan(
    // Names that clients make up would be as many as there are requests.
    end.route === undefined ? head.method : `${head.method} ${end.route}`,
    {
      kind: SpanKind.SERVER,
      startTime: at(0),
      attributes: {
        "http.request.method": head.method,
        "url.path": head.path,
        ...(end.route !== undefined && { "http.route": end.route }),
        "http.response.status_code": end.status,
        "daybreak.request.id": head.id,
        ...(end.isAborted && { "daybreak.request.aborted": true }),
      },
    },
    callerOf(head),
  );
  if (work.endpoint !== undefined) {
    const operation = OPERATIONS[work.endpoint];
    const span = tracer.startSpan(
      work.model === undefined ? operation : `${operation} ${work.model}`,
      { startTime: at(0), attributes: { "gen_ai.operation.name": operation, ...modelAttributes(work) } },
      below(root),
    );
    const stage = (name: string, from: number | undefined, to: number | undefined): void => {
      if (from === undefined || to === undefined) return;
      tracer.startSpan(name, { startTime: at(from) }, below(span)).end(at(to));
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

function modelAttributes(work: WorkFigures): Attributes {
  return {
    "gen_ai.provider.name": "daybreak",
    ...(work.model !== undefined && {
      "gen_ai.request.model": work.model,
      "gen_ai.response.model": work.model,
    }),
    ...(work.promptTokens !== undefined && { "gen_ai.usage.input_tokens": work.promptTokens }),
    ...(work.cachedTokens !== undefined && { "gen_ai.usage.cache_read.input_tokens": work.cachedTokens }),
    ...(work.completionTokens !== undefined && { "gen_ai.usage.output_tokens": work.completionTokens }),
    ...(work.finishReason !== undefined && { "gen_ai.response.finish_reasons": [work.finishReason] }),
    ...(work.firstTokenMs !== undefined && {
      "gen_ai.response.time_to_first_chunk": work.firstTokenMs / 1000,
    }),
  };
}

function fail(span: Span, code: string | undefined): void {
  if (code === undefined) return;
  span.setAttribute("error.type", code);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** The span of the client that asked, if it says so in a valid header. */
function callerOf({ traceParent, traceState }: EndedRequest["head"]): Context {
  const headers = { traceparent: traceParent, tracestate: traceState };
  return PROPAGATOR.extract(ROOT_CONTEXT, headers, {
    get: (_carrier, key) =>
      key === "traceparent" ? traceParent : key === "tracestate" ? traceState : undefined,
    keys: () => Object.keys(headers),
  });
}

function below(span: Span): Context {
  return trace.setSpan(ROOT_CONTEXT, span);
}

/** Seconds and nanoseconds. A plain number would be taken for a time since the start of the process when it is small. */
function toTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1000);
  return [seconds, Math.round((epochMs - seconds * 1000) * 1_000_000)];
}
