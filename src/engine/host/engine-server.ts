import { EngineCore } from "../core/engine-core.ts";
import { fromLoadFailure } from "../core/engine-failure.ts";
import type { EngineFiles, EnginePlatform } from "../core/platform.ts";
import { laterSteps, warmUpFirst } from "../core/warm-up.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import { type DaemonMessage, type EngineMessage, toReportedError } from "../protocol/messages.ts";
import { CallRunner } from "./call-runner.ts";
import { IdleWarmUp } from "./idle-warm-up.ts";
import { Outbox } from "./outbox.ts";

/** A step of progress worth a message. */
const PROGRESS_STEP = 0.01;

/** The place in which an engine runs. */
interface EngineHost {
  /**
   * Opens the files of a model.
   * @param onProgress to be called with 0..1, the part of all bytes that has been read
   */
  open(
    spec: EngineSpec,
    onProgress: (progress: number) => void,
  ): { readonly platform: EnginePlatform; readonly files: EngineFiles };
  /** Sends a message, and calls back when it has been written. */
  send(message: EngineMessage, written?: () => void): void;
  /** Resident bytes of the engine. */
  memoryUsage(): number;
  /** Ends the engine: it is beyond use. */
  kill(): void;
}

/** Does what the messages for an engine say: loads a model, then runs calls. */
export class EngineServer {
  readonly #host: EngineHost;
  #core: EngineCore | undefined;
  #calls: CallRunner | undefined;

  constructor(host: EngineHost) {
    this.#host = host;
  }

  receive(message: DaemonMessage): void {
    switch (message.type) {
      case "load":
        void this.#load(message.spec);
        return;
      case "cancel":
        this.#calls?.cancel(message.call);
        return;
      case "memory":
        this.#host.send({ type: "memory", call: message.call, bytes: this.#host.memoryUsage() });
        return;
      default:
        if (this.#calls) void this.#calls.run(message);
        else this.die("a call came before the model was loaded");
    }
  }

  /** Says why, then ends the engine; whoever started it starts another one. */
  die(reason: string): void {
    this.#host.send({ type: "fatal", reason }, () => this.#host.kill());
  }

  /** Bytes of WebAssembly memory that the loaded model has. */
  get heapBytes(): number {
    return this.#core?.heapBytes ?? 0;
  }

  async #load(spec: EngineSpec): Promise<void> {
    const host = this.#host;
    let reported = 0;
    const reportProgress = (progress: number): void => {
      if (progress < reported + PROGRESS_STEP && progress < 1) return;
      if (progress === reported) return;
      reported = progress;
      host.send({ type: "load-progress", progress });
    };
    try {
      const { platform, files } = host.open(spec, reportProgress);
      const core = await EngineCore.load(platform, spec, files);
      this.#core = core;
      // Nothing is read any more, but silence would be taken for standstill.
      const reportLife = (): void => host.send({ type: "load-progress", progress: reported });
      const usesGpu = core.info.gpuLayers > 0;
      const stepMs = usesGpu ? await warmUpFirst(core, spec, reportLife) : undefined;
      const outbox = new Outbox((message, written) => host.send(message, written));
      const onFatal = (reason: string): void => this.die(reason);
      const { sharedContext } = spec;
      const idle = usesGpu
        ? new IdleWarmUp(core, laterSteps(core, spec), { sharedContext, onFatal })
        : undefined;
      this.#calls = new CallRunner(core, outbox, onFatal, idle);
      host.send({ type: "loaded", info: { ...core.info, ...(stepMs !== undefined && { stepMs }) } });
      idle?.begin();
    } catch (error) {
      // A GPU that fails while its programs are compiled has failed to load the model as well.
      const failure = toReportedError(fromLoadFailure(error));
      host.send({ type: "load-failed", error: failure }, () => host.kill());
    }
  }
}
