import { execFile, type ExecFileException } from "node:child_process";
import { CliError, EXIT } from "../cli-error.ts";

/** One program that the system's service manager brings along, with its arguments. */
export type ToolCall = readonly [program: string, ...args: string[]];

export interface ToolResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What the service manager says of the service. */
export interface ServiceState {
  /** It starts by itself, at boot or when the user logs in. */
  readonly enabled: boolean;
  /** Undefined when the service manager does not say. */
  readonly running: boolean | undefined;
  readonly pid?: number;
}

/** What to start as a service; the service manager has an environment of its own. */
export interface ServiceProgram {
  /** Absolute paths of Node and the launcher, then arguments. */
  readonly command: readonly [node: string, launcher: string, ...args: string[]];
  /** Longest time that it may take to stop, in seconds; Infinity for no limit. */
  readonly stopSeconds: number;
  readonly env: Readonly<Record<string, string>>;
}

/** A file that makes the daemon a service of this system, and the system calls that install it. All of it data. */
export interface ServiceManager {
  /** For people: "systemd unit of this account". */
  readonly title: string;
  readonly file: string;
  /** What the file holds. */
  readonly content: string;
  readonly encoding: "utf8" | "utf16le";
  /** Asks for the state. */
  readonly query: ToolCall;
  /** Reads the answer. @throws Error when the service manager cannot be asked */
  readState(answer: ToolResult): ServiceState;
  /** What makes the file's content take effect. */
  activate(state: ServiceState, hasChanged: boolean): readonly ToolCall[];
  /** What comes before the file is removed, and after it. */
  readonly deactivate: readonly ToolCall[];
  readonly forget: readonly ToolCall[];
  /** What the user may want to know or do next; a line each. */
  readonly nextSteps: readonly string[];
}

/** Marks the files that the command writes: it changes and removes no others. */
export const MARK = "Made by: daybreak service install";

/** The service's name, in the way of the system. */
export const SERVICE_NAME = "daybreak";

/** Runs a program of the system's to its end. */
export type RunTool = (call: ToolCall) => Promise<ToolResult>;

/** With the environment given, PATH included. Rejects with a CliError when there is no such program. */
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

/** The service manager failed. */
export function serviceError(message: string): CliError {
  return new CliError(EXIT.error, "service_failed", message);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

/** A text as content of an XML element. */
export function xmlText(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
