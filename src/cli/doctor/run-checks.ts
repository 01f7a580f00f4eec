import { abortable } from "../../async/abortable.ts";
import { toError } from "../../errors/to-error.ts";
import { type Check, type Finding, note, problem } from "./check.ts";

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
