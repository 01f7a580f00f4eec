import { Watchdog } from "../../async/timers.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { templateTooSlow } from "./failure-text.ts";
import type { BlobLike, LogLevel } from "./platform.ts";

/**
 * Longest time to accept a request: to render the chat template and tokenize the prompt. It does not include a step of
 * the model, so it is normally short.
 */
const START_MS = 15_000;

/** The limit grows by {@link START_MS} for each of this many characters. */
const START_CHARACTERS = 1_000_000;

/** Longest time in milliseconds that llama.cpp may take to accept a request. */
export function startLimitMs(requestJson: string): number {
  return START_MS * (1 + requestJson.length / START_CHARACTERS);
}

/** Error of a request that llama.cpp did not accept in time. */
export function tookTooLong(isChat: boolean, limitMs: number): ServiceError {
  if (isChat) return templateTooSlow(limitMs / 1000);
  return new ServiceError(
    "deadline_exceeded",
    `The text could not be tokenized within ${Math.round(limitMs / 1000)} s, so the model's engine was stopped. Send a shorter text.`,
  );
}

/** llama.cpp's last log line before it tries the model with two tokens, then its chat template. */
const GRAPH_RESERVED = /sched_reserve: reserve took/;

/** Much longer than the trials and the template take for a small model. */
const ENDING_MS = 15_000;

/** Each trial reads all weights; even the slowest kernels are this fast. */
const BYTES_PER_SECOND = 100 * 1024 ** 2;

/** During the trials a GPU's driver compiles shaders, which may take minutes. */
const GPU_ENDING_MS = 180_000;

/**
 * Limits the end of a load. While weights are read, progress is visible; after that only the trials and the chat
 * template are left, and a template may never finish.
 */
export class LoadEnding {
  readonly #limitMs: number;
  readonly #onEndless: (error: ServiceError) => void;
  #watchdog: Watchdog | undefined;
  #isOver = false;

  constructor(
    blobs: readonly Pick<BlobLike, "size">[],
    usesGpu: boolean,
    onEndless: (error: ServiceError) => void,
  ) {
    const bytes = blobs.reduce((sum, { size }) => sum + size, 0);
    this.#limitMs = (usesGpu ? GPU_ENDING_MS : ENDING_MS) + (bytes / BYTES_PER_SECOND) * 1000;
    this.#onEndless = onEndless;
  }

  /** Handles a line of llama.cpp's log. */
  add(line: string): void {
    if (this.#isOver) return;
    this.#watchdog?.reset();
    if (!GRAPH_RESERVED.test(line)) return;
    this.#watchdog ??= new Watchdog(this.#limitMs, () =>
      this.#onEndless(templateTooSlow(this.#limitMs / 1000)),
    );
  }

  /** Call this when the load has ended. */
  over(): void {
    this.#isOver = true;
    this.#watchdog?.stop();
  }
}

/** Lines kept. The first error is often the reason; later ones repeat it for callers further up. */
const KEPT_LINES = 8;

/**
 * Failed assertions, out-of-memory aborts and lost GPUs, which are not logged as errors. Without a GPU llama.cpp always
 * logs that there is no adapter, which is not a failure.
 */
const LAST_WORDS =
  /GGML_ASSERT|Aborted\([^)]|terminating due to|fatal error|ggml_webgpu: (?!failed to get an adapter).*(failed|lost|timed out|exhausted|error)/i;

/** The last line of the report on a failed chat template, which is not logged as an error either. */
const TEMPLATE_REASON = /^Error: /;

/** wllama's stack trace, which says where but not why. */
const STACK_TRACE = /^Stack trace/;

/** Remembers what llama.cpp logged before it failed. */
export class FailureLog {
  #errors: string[] = [];
  #lastWords: string | undefined;

  add(level: LogLevel, line: string): void {
    if (STACK_TRACE.test(line)) return;
    if (LAST_WORDS.test(line)) this.#lastWords = line;
    else if ((level === "error" || TEMPLATE_REASON.test(line)) && this.#errors.length < KEPT_LINES)
      this.#errors.push(line);
  }

  /** Why it failed, the most relevant line first; undefined when nothing was logged. */
  get reason(): string | undefined {
    const lines = this.#lastWords === undefined ? this.#errors : [this.#lastWords, ...this.#errors];
    return lines.length > 0 ? lines.join("\n") : undefined;
  }

  /** Forgets errors of earlier calls. */
  clear(): void {
    this.#errors = [];
  }
}

const USING_DEVICE = /using device WebGPU/;
const OFFLOADED = /offloaded (\d+)\/\d+ layers to GPU/;

/** Finds the number of offloaded layers, including the output layer, which llama.cpp reports only in its log. */
export class OffloadLog {
  #usesDevice = false;
  #layers = 0;

  add(line: string): void {
    this.#usesDevice ||= USING_DEVICE.test(line);
    const match = OFFLOADED.exec(line);
    if (match) this.#layers = Number(match[1]);
  }

  /** Layers on the GPU; 0 when no device was opened. */
  get layers(): number {
    return this.#usesDevice ? this.#layers : 0;
  }
}
