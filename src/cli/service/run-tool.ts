import { execFile, type ExecFileException } from "node:child_process";
import { CliError } from "../cli-error.ts";
import { EXIT } from "../exit-codes.ts";
import type { ToolCall, ToolResult } from "./service-manager.ts";

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
