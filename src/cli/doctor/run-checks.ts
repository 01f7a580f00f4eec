import { abortable } from "../../async/promises.ts";
import { toError } from "../../errors/to-error.ts";

/** ok: as it should be; note: it works, but worth knowing; problem: something does not work. */
type Verdict = "ok" | "note" | "problem";

/** The result of one check. */
export interface Finding {
  /** For people, and for programs that look for one of them: "Cache folder". */
  readonly name: string;
  readonly verdict: Verdict;
  readonly message: string;
  /** What to do about it. */
  readonly cure?: string;
}

/** One check of the machine or the installation. It changes nothing. */
export interface Check {
  /** Name of the finding when the check failed or took too long. */
  readonly name: string;
  /** Longest time that it may take, in milliseconds. */
  readonly deadlineMs: number;
  look(signal: AbortSignal): Promise<readonly Finding[]>;
}

export function ok(name: string, message: string): Finding {
  return { name, verdict: "ok", message };
}

export function note(name: string, message: string, cure?: string): Finding {
  return { name, verdict: "note", message, ...(cure !== undefined && { cure }) };
}

export function problem(name: string, message: string, cure: string): Finding {
  return { name, verdict: "problem", message, cure };
}

/**
 * Runs checks concurrently and returns their findings in the order of the checks. A check that fails or is late is a
 * finding too. Rejects with the signal's reason only.
 */
export async function runChecks(checks: readonly Check[], signal: AbortSignal): Promise<readonly Finding[]> {
  const findings = await Promise.all(checks.map(async (check) => await runCheck(check, signal)));
  signal.throwIfAborted();
  return findings.flat();
}

async function runCheck(check: Check, signal: AbortSignal): Promise<readonly Finding[]> {
  const { name, deadlineMs } = check;
  using patience = deadline(deadlineMs);
  const both = AbortSignal.any([signal, patience.signal]);
  try {
    // Some checks cannot be canceled: they are abandoned.
    return await abortable(check.look(both), both);
  } catch (error) {
    signal.throwIfAborted();
    if (patience.signal.aborted) {
      const seconds = deadlineMs / 1000;
      return [
        note(name, `unknown: it took longer than ${seconds} s`, "Try again when the machine is less busy."),
      ];
    }
    return [
      problem(
        name,
        `the check failed: ${toError(error).message}`,
        "This may be a bug in Daybreak: please report it.",
      ),
    ];
  }
}

function deadline(ms: number): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), ms);
  return { signal: controller.signal, [Symbol.dispose]: () => clearTimeout(timer) };
}
