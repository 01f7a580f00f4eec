import { Watchdog } from "../../async/timers.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { templateTooSlow } from "./failure-text.ts";
import type { LogLevel } from "./platform.ts";

/**
 * Time limit for accepting a request: llama.cpp renders the chat template and tokenizes the prompt. The model does not
 * compute yet, so this is normally fast.
 */
const ACCEPT_LIMIT_MS = 15_000;

/** The limit grows by {@link ACCEPT_LIMIT_MS} for each of this many characters. */
const ACCEPT_LIMIT_CHARACTERS = 1_000_000;

/** Returns the time limit in milliseconds for llama.cpp to accept a request. */
export function acceptLimitMs(requestJson: string): number {
  return ACCEPT_LIMIT_MS * (1 + requestJson.length / ACCEPT_LIMIT_CHARACTERS);
}

/** Error for a request that llama.cpp did not accept in time. */
export function acceptTimeout(isChat: boolean, limitMs: number): ServiceError {
  if (isChat) return templateTooSlow(limitMs / 1000);
  return new ServiceError(
    "deadline_exceeded",
    `The text could not be tokenized within ${Math.round(limitMs / 1000)} s, so the model's engine was stopped. Send a shorter text.`,
  );
}

/** llama.cpp's last log line before the end of a load: it runs trial batches, then parses the chat template. */
const GRAPH_RESERVED = /sched_reserve: reserve took/;

/** Time limit for the end of the load of a small model. */
const LOAD_END_LIMIT_MS = 15_000;

/** Minimum speed of a trial batch, which reads all weights. */
const BYTES_PER_SECOND = 100 * 1024 ** 2;

/** Time limit with a GPU, whose driver compiles shaders for the trial batches, which may take minutes. */
const GPU_LOAD_END_LIMIT_MS = 180_000;

/**
 * Limits the duration of the end of a load. While weights are read, progress is visible. After that llama.cpp runs
 * trial batches and parses the chat template, which may never finish.
 */
export class LoadEndWatchdog {
  readonly #limitMs: number;
  readonly #onTimeout: (error: ServiceError) => void;
  #watchdog: Watchdog | undefined;
  #isOver = false;

  constructor(bytes: number, usesGpu: boolean, onTimeout: (error: ServiceError) => void) {
    this.#limitMs = (usesGpu ? GPU_LOAD_END_LIMIT_MS : LOAD_END_LIMIT_MS) + (bytes / BYTES_PER_SECOND) * 1000;
    this.#onTimeout = onTimeout;
  }

  add(line: string): void {
    if (this.#isOver) return;
    this.#watchdog?.reset();
    if (!GRAPH_RESERVED.test(line)) return;
    this.#watchdog ??= new Watchdog(this.#limitMs, () =>
      this.#onTimeout(templateTooSlow(this.#limitMs / 1000)),
    );
  }

  stop(): void {
    this.#isOver = true;
    this.#watchdog?.stop();
  }
}

/** Maximum number of recorded lines. The first error is usually the cause; the next ones come from its callers. */
const MAX_ERROR_LINES = 8;

/**
 * Failed assertions, out-of-memory aborts and lost GPUs, which llama.cpp does not log as errors. Without a GPU it
 * always logs that there is no adapter, which is not a failure.
 */
const FATAL_LINE =
  /GGML_ASSERT|Aborted\([^)]|terminating due to|fatal error|ggml_webgpu: (?!failed to get an adapter).*(failed|lost|timed out|exhausted|error)/i;

/** Last line of the report on a failed chat template, which llama.cpp does not log as an error either. */
const TEMPLATE_REASON = /^Error: /;

/** wllama's stack trace, which does not contain the cause. */
const STACK_TRACE = /^Stack trace/;

/** Records llama.cpp's log lines that explain a failure. */
export class FailureLog {
  #errors: string[] = [];
  #fatalLine: string | undefined;

  add(level: LogLevel, line: string): void {
    if (STACK_TRACE.test(line)) return;
    if (FATAL_LINE.test(line)) this.#fatalLine = line;
    else if ((level === "error" || TEMPLATE_REASON.test(line)) && this.#errors.length < MAX_ERROR_LINES)
      this.#errors.push(line);
  }

  /** Recorded lines, the most relevant line first; undefined if there are none. */
  get reason(): string | undefined {
    const lines = this.#fatalLine === undefined ? this.#errors : [this.#fatalLine, ...this.#errors];
    return lines.length > 0 ? lines.join("\n") : undefined;
  }

  clear(): void {
    this.#errors = [];
  }
}

const USING_DEVICE = /using device WebGPU/;
const OFFLOADED = /offloaded (\d+)\/\d+ layers to GPU/;

/** Reads the number of offloaded layers, including the output layer, from llama.cpp's log. */
export class OffloadLog {
  #usesDevice = false;
  #layers = 0;

  add(line: string): void {
    this.#usesDevice ||= USING_DEVICE.test(line);
    const match = OFFLOADED.exec(line);
    if (match) this.#layers = Number(match[1]);
  }

  /** Layers on the GPU; 0 if no device was opened. */
  get layers(): number {
    return this.#usesDevice ? this.#layers : 0;
  }
}
