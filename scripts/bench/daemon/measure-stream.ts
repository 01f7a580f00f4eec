import type { EngineCore } from "../../../src/engine/core/engine-core.ts";
import type { GenerationRequest } from "../../../src/engine/protocol/generation.ts";
import { plainClient, type StreamClient } from "./stream-client.ts";
import { generated } from "../../../test/support/generated.ts";

/** How long one answer took, as its reader saw it. */
export interface StreamTiming {
  /** Milliseconds from asking to the first piece of text. */
  readonly firstTokenMs: number;
  /** Tokens a second from the first piece to the last. */
  readonly tokensPerSecond: number;
  readonly tokens: number;
  /** Pieces of text that arrived one by one; fewer than tokens where a model writes halves of characters. */
  readonly pieces: number;
}

export interface Workload {
  readonly prompt: string;
  readonly maxTokens: number;
}

/** Generates on an engine in this very process: no IPC, no queue, no HTTP. */
export async function measureInProcess(engine: EngineCore, workload: Workload): Promise<StreamTiming> {
  const request: GenerationRequest = {
    input: { kind: "prompt", prompt: workload.prompt },
    maxTokens: workload.maxTokens,
    stop: [],
    sampling: { temperature: 0 },
    format: { type: "text" },
    cachePrompt: true,
  };
  const clock = new StreamClock();
  let tokens = 0;
  for await (const event of generated(engine, request, new AbortController().signal)) {
    if (event.type === "text-delta") clock.piece();
    if (event.type === "done") tokens = event.usage.completionTokens;
  }
  return clock.timing(tokens);
}

/** The same with the default model through the daemon's HTTP API, streamed. */
export async function measureOverHttp(
  url: string,
  workload: Workload,
  client: StreamClient = plainClient,
): Promise<StreamTiming> {
  const body = { prompt: workload.prompt, max_tokens: workload.maxTokens, temperature: 0, stream: true };
  const clock = new StreamClock();
  let rest = "";
  let tokens = 0;
  await client(`${url}/api/generate`, body, (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const piece: unknown = JSON.parse(line);
      if (isDone(piece)) tokens = piece.completion_tokens;
      else clock.piece();
    }
  });
  return clock.timing(tokens);
}

function isDone(piece: unknown): piece is { readonly completion_tokens: number } {
  return typeof piece === "object" && piece !== null && "done" in piece && piece.done === true;
}

class StreamClock {
  readonly #start = performance.now();
  #first: number | undefined;
  #last = 0;
  #pieces = 0;

  piece(): void {
    this.#last = performance.now();
    this.#first ??= this.#last;
    this.#pieces++;
  }

  timing(tokens: number): StreamTiming {
    if (this.#first === undefined || this.#pieces < 2) {
      throw new Error(`the model gave ${this.#pieces} pieces of text: nothing can be measured`);
    }
    return {
      firstTokenMs: this.#first - this.#start,
      tokensPerSecond: ((tokens - 1) / (this.#last - this.#first)) * 1000,
      tokens,
      pieces: this.#pieces,
    };
  }
}
