import { ExportResultCode } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from "@opentelemetry/sdk-trace";
import { reasonOf } from "../../errors/reason-of.ts";
import { recordRequest, type TracedRequest } from "./request-spans.ts";

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
