import type { Reporter, TestCase, TestModule, TestRunEndReason } from "vitest/node";

/** Reason that {@link need} has put into a title. */
const REASON = /\[skipped: ([^\]]+)\]/;

/** Lists at the end of a run why tests were skipped, for vitest itself only counts them. */
export default class SkippedTestsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], _errors: unknown, reason: TestRunEndReason): void {
    if (reason === "interrupted") return;
    const counts = new Map<string, number>();
    for (const module of modules) {
      for (const test of module.children.allTests("skipped")) {
        const why = reasonOf(test);
        counts.set(why, (counts.get(why) ?? 0) + 1);
      }
    }
    if (counts.size === 0) return;
    const rows = [...counts].toSorted(([, one], [, other]) => other - one);
    const lines = rows.map(([why, count]) => `${String(count).padStart(10)}  ${why}`);
    process.stdout.write(`\n   Skipped\n${lines.join("\n")}\n`);
  }
}

function reasonOf(test: TestCase): string {
  const result = test.result();
  const note = result.state === "skipped" ? result.note : undefined;
  return note ?? REASON.exec(test.fullName)?.[1] ?? `without a reason in its title: ${test.fullName}`;
}
