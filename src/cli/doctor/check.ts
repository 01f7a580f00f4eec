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
