import type { EngineInfo } from "../engine/protocol/engine-spec.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { AnswerMessage, FetchMessage } from "./fetch-messages.ts";
import type { StartMessage, TabGpu, WorkerMessage } from "./worker-messages.ts";

/** What a running engine says of itself. */
export interface EngineReady {
  readonly alias: string;
  readonly info: EngineInfo;
  readonly gpu: TabGpu;
}

/** What a tab does with what comes from its engine. */
export interface LinkEvents {
  readonly onAnswer: (message: AnswerMessage) => void;
  readonly onProgress: (progress: number) => void;
  /** Requests in flight are lost, but the engine will be there again. */
  readonly onLost: (error: Error) => void;
  /** The engine has ended for good. */
  readonly onEnd: (error: Error) => void;
}

/** The way from a tab to an engine, wherever it runs. */
export interface EngineLink {
  /** Rejects when the engine cannot be started. */
  readonly ready: Promise<EngineReady>;
  send(message: FetchMessage): void;
  end(error: Error): void;
}

/** An engine in a worker of this tab. */
export class WorkerLink implements EngineLink {
  readonly #worker: Worker;
  readonly #ready = Promise.withResolvers<EngineReady>();
  readonly #onEnd: (error: Error) => void;

  constructor(script: string | URL, start: StartMessage, events: Omit<LinkEvents, "onLost">) {
    this.#onEnd = events.onEnd;
    this.#worker = new Worker(script, { type: "module" });
    this.#worker.addEventListener("error", ({ message }) =>
      this.end(
        new ServiceError(
          "engine_crashed",
          `The engine's worker failed: ${message || "it cannot be loaded"}.`,
        ),
      ),
    );
    this.#worker.addEventListener("message", ({ data }: MessageEvent<WorkerMessage | AnswerMessage>) => {
      if (data.type === "progress") events.onProgress(data.progress);
      else if (data.type === "ready") this.#ready.resolve(data);
      else if (data.type === "refused") this.end(new ServiceError(data.code, data.message));
      else events.onAnswer(data);
    });
    this.#worker.postMessage(start, []);
  }

  get ready(): Promise<EngineReady> {
    return this.#ready.promise;
  }

  send(message: FetchMessage): void {
    this.#worker.postMessage(message, []);
  }

  end(error: Error): void {
    this.#worker.terminate();
    this.#ready.reject(error);
    this.#onEnd(error);
  }
}
