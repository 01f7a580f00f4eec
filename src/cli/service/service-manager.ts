import { execFile, type ExecFileException } from "node:child_process";
import { CliError, EXIT } from "../cli-error.ts";

/** Command line of a tool of the service manager, such as systemctl. */
export type ToolCall = readonly [program: string, ...args: string[]];

export interface ToolResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ServiceState {
  /** Starts at boot or at login. */
  readonly enabled: boolean;
  /** Undefined if the service manager does not report it. */
  readonly running: boolean | undefined;
  readonly pid?: number;
}

export interface ServiceProgram {
  /** Absolute paths of Node and the launcher, then arguments. */
  readonly command: readonly [node: string, launcher: string, ...args: string[]];
  /** Seconds that it may take to stop; Infinity for no limit. */
  readonly stopSeconds: number;
  /** Variables in addition to the service manager's. */
  readonly env: Readonly<Record<string, string>>;
}

/** File that defines the service, and the tool calls that install it. */
export interface ServiceManager {
  /** Description: "systemd unit of this account". */
  readonly title: string;
  readonly file: string;
  readonly content: string;
  readonly encoding: "utf8" | "utf16le";
  readonly query: ToolCall;
  /** Parses the output of the query. @throws Error if the query failed */
  readState(answer: ToolResult): ServiceState;
  /** Calls that put the file into effect. */
  activationCalls(state: ServiceState, hasChanged: boolean): readonly ToolCall[];
  readonly callsBeforeRemoval: readonly ToolCall[];
  readonly callsAfterRemoval: readonly ToolCall[];
  /** Lines for the user after the installation. */
  readonly nextSteps: readonly string[];
}

/** Text in the files that the command writes; it changes and removes no others. */
export const FILE_MARKER = "Made by: daybreak service install";

/** Name of the service. */
export const SERVICE_NAME = "daybreak";

/** Runs a tool and waits until it exits. */
export type RunTool = (call: ToolCall) => Promise<ToolResult>;

/** Returns a function that runs tools with this environment. It rejects with a CliError if there is no such program. */
export function toolRunner(env: NodeJS.ProcessEnv, signal: AbortSignal): RunTool {
  return async ([program, ...args]) =>
    await new Promise((resolve, reject) => {
      execFile(program, args, { env, signal, windowsHide: true }, (error, stdout, stderr) => {
        if (signal.aborted) reject(signal.reason);
        else if (error === null) resolve({ code: 0, stdout, stderr });
        else if (typeof error.code === "number") resolve({ code: error.code, stdout, stderr });
        else reject(serviceError(`${program} cannot be run: ${toolReason(error)}.`));
      });
    });
}

function toolReason(error: ExecFileException): string {
  return error.code === "ENOENT"
    ? `there is no such program, so Daybreak does not know this system's service manager; configure it to run "daybreak serve"`
    : error.message;
}

/** Error of the service manager. */
export function serviceError(message: string): CliError {
  return new CliError(EXIT.error, "service_failed", message);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

/** Escapes a text for XML. */
export function xmlText(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
