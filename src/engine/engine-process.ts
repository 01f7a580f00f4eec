import type { ChildProcess } from "node:child_process";
import { constants } from "node:os";
import type { ServiceError } from "../errors/service-error.ts";
import { ChildChannel } from "./channel/child-channel.ts";
import { DAEMON_MESSAGE_KINDS, ENGINE_MESSAGE_KINDS } from "./channel/message-limits.ts";
import {
  type DaemonMessage,
  type EngineMessage,
  engineMessageSchema,
  firstProblem,
} from "./protocol/messages.ts";
import { endError, type EndOptions, type EngineConnection, type EngineReceiver } from "./engine-handle.ts";
import type { EngineExit } from "./engine.ts";
import { killGroup, LastLines, UNRESTRICTED_EXIT_CODE, UNRESTRICTED_REASON } from "./child-process.ts";
import { spawnFailure } from "./launch.ts";

/** Exit codes above this one mean signals, as in a shell. */
const SIGNAL_CODES_FROM = 128;

/** Last lines of output that may explain an exit. */
const MAX_OUTPUT_LINES = 20;

/** One engine process: its channel, and how and why it ended. */
export class EngineProcess implements EngineConnection {
  readonly #child: ChildProcess;
  readonly #channel: ChildChannel<EngineMessage, DaemonMessage>;
  readonly #output = new LastLines(MAX_OUTPUT_LINES);
  readonly #exited = Promise.withResolvers<EngineExit>();
  /** Set when the daemon ends the process, or the engine announces that it ends. */
  #ending: { readonly exit: EngineExit; readonly error: ServiceError } | undefined;
  #hasEnded = false;
  readonly #receiver: EngineReceiver;

  constructor(child: ChildProcess, receiver: EngineReceiver) {
    this.#child = child;
    this.#receiver = receiver;
    if (child.stdout) this.#output.watch(child.stdout);
    if (child.stderr) this.#output.watch(child.stderr);
    this.#channel = new ChildChannel<EngineMessage, DaemonMessage>({
      child,
      incoming: ENGINE_MESSAGE_KINDS,
      outgoing: DAEMON_MESSAGE_KINDS,
      onMessage: (message) => this.#receive(message),
      onProblem: (reason) => this.end(reason),
    });
    child.on("error", (error) => {
      if (child.pid === undefined) {
        const failure = spawnFailure("The model's engine", error);
        this.#ending ??= { exit: { expected: false, reason: failure.message }, error: failure };
        this.#finish(null, null);
      } else {
        this.end(`could not be reached: ${error.message}`);
      }
    });
    child.on("exit", () => killGroup(child));
    child.on("close", (code, signal) => this.#finish(code, signal));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get alive(): boolean {
    return !this.#hasEnded && this.#ending === undefined;
  }

  /** Resolves when the process is gone; never rejects. */
  get exited(): Promise<EngineExit> {
    return this.#exited.promise;
  }

  /** @throws ServiceError internal_error when the message cannot be sent as it is */
  post(message: DaemonMessage): void {
    if (this.alive) this.#channel.post(message);
  }

  /** Ends the process. Only the first reason counts. */
  end(reason: string, options: EndOptions = {}): void {
    this.#announceEnd(reason, options);
    this.#channel.stop();
    killGroup(this.#child);
  }

  #announceEnd(reason: string, { expected = false, code }: EndOptions): void {
    this.#ending ??= { exit: { expected, reason }, error: endError(reason, code) };
  }

  #receive(message: unknown): void {
    if (this.#ending) return;
    const parsed = engineMessageSchema.safeParse(message);
    if (!parsed.success) {
      this.end(`sent an invalid message: ${firstProblem(parsed.error)}`);
    } else if (parsed.data.type === "fatal") {
      this.end(parsed.data.reason);
    } else if (!this.#receiver.receive(parsed.data)) {
      this.end(`sent an unexpected message: ${parsed.data.type}`);
    }
  }

  #finish(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#hasEnded) return;
    this.#channel.finish();
    this.#hasEnded = true;
    if (code === UNRESTRICTED_EXIT_CODE)
      this.#announceEnd(UNRESTRICTED_REASON, { code: "model_load_failed" });
    // A process that exits by itself may have printed the reason; a killed one has not.
    const line = this.#output.lastError ?? ((signal ?? signalOf(code)) ? undefined : this.#output.last);
    const killSignal = signal ?? signalOf(code);
    const ending = killSignal ? `killed by ${killSignal}` : `exited with code ${code}`;
    this.#announceEnd(line === undefined ? ending : `${ending} (${line})`, {});
    const { exit, error } = this.#ending!;
    this.#receiver.end(error);
    this.#exited.resolve(exit);
  }
}

/** Signal that an exit code stands for: a sandbox reports signals as exit codes. */
function signalOf(code: number | null): string | undefined {
  const number = (code ?? 0) - SIGNAL_CODES_FROM;
  return Object.entries(constants.signals).find(([, signal]) => signal === number)?.[0];
}
