import { abortable } from "../../async/promises.ts";
import { toError } from "../../errors/service-error.ts";

/** note: works, but the user should know; problem: does not work. */
type Verdict = "ok" | "note" | "problem";

export interface Finding {
  /** Title: "Cache folder". Programs can select findings by it. */
  readonly name: string;
  readonly verdict: Verdict;
  readonly message: string;
  /** Advice for the user. */
  readonly cure?: string;
}

/** Check of the machine or the installation. It changes nothing. */
export interface Check {
  /** Name of the finding if the check throws or exceeds its deadline. */
  readonly name: string;
  /** Milliseconds after which the check is abandoned. */
  readonly deadlineMs: number;
  run(signal: AbortSignal): Promise<readonly Finding[]>;
}

/** A finding of a check, with the name of the check unless it has its own. */
export type Result = Omit<Finding, "name"> & { readonly name?: string };

export function ok(message: string): Result {
  return { verdict: "ok", message };
}

export function note(message: string, cure?: string): Result {
  return { verdict: "note", message, ...(cure !== undefined && { cure }) };
}

export function problem(message: string, cure: string): Result {
  return { verdict: "problem", message, cure };
}

/** Creates a check of a name. */
export function createCheck(
  name: string,
  find: (signal: AbortSignal) => Promise<Result | readonly Result[]> | Result | readonly Result[],
  deadlineMs = 5000,
): Check {
  const run = async (signal: AbortSignal): Promise<readonly Finding[]> =>
    [await find(signal)].flat().map((result) => Object.assign({ name }, result));
  return { name, deadlineMs, run };
}

/**
 * Runs checks concurrently and returns their findings in the order of the checks. A check that throws or exceeds its
 * deadline becomes a finding. Rejects with the signal's reason only.
 */
export async function runChecks(checks: readonly Check[], signal: AbortSignal): Promise<readonly Finding[]> {
  const findings = await Promise.all(checks.map(async (check) => await runCheck(check, signal)));
  signal.throwIfAborted();
  return findings.flat();
}

async function runCheck(check: Check, signal: AbortSignal): Promise<readonly Finding[]> {
  const { name, deadlineMs } = check;
  using timeout = deadline(deadlineMs);
  const both = AbortSignal.any([signal, timeout.signal]);
  try {
    // Some checks cannot be canceled: they are abandoned.
    return await abortable(check.run(both), both);
  } catch (error) {
    signal.throwIfAborted();
    const result = timeout.signal.aborted
      ? note(
          `unknown: it took longer than ${deadlineMs / 1000} s`,
          "Try again when the machine is less busy.",
        )
      : problem(
          `the check failed: ${toError(error).message}`,
          "This may be a bug in Daybreak: please report it.",
        );
    return [{ name, ...result }];
  }
}

function deadline(ms: number): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), ms);
  return { signal: controller.signal, [Symbol.dispose]: () => clearTimeout(timer) };
}
