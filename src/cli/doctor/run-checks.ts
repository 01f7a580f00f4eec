import { abortable } from "../../async/abortable.ts";
import { toError } from "../../errors/to-error.ts";
import { type Check, type Finding, note, problem } from "./check.ts";

/**
 * Runs checks beside each other and gives their findings in the order of the checks. A check that fails or is late is a
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
    // Some looks cannot be ended: they are left alone.
    return await abortable(check.look(both), both);
  } catch (error) {
    signal.throwIfAborted();
    if (patience.signal.aborted) {
      const seconds = deadlineMs / 1000;
      return [
        note(name, `not known: it took longer than ${seconds} s`, "Try again when the machine is less busy."),
      ];
    }
    return [
      problem(
        name,
        `cannot be looked at: ${toError(error).message}`,
        "This may be a fault of Daybreak: please report it.",
      ),
    ];
  }
}

function deadline(ms: number): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), ms);
  return { signal: controller.signal, [Symbol.dispose]: () => clearTimeout(timer) };
}
