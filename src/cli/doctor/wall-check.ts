import type { WallState } from "../../engine/walls/sandbox-finder.ts";
import { TRIAL_MS } from "../../engine/walls/try-engine-start.ts";
import { type Check, type Finding, note, ok, problem } from "./check.ts";

const NAME = "Sandbox";

/** Longer than two walls are tried for, so that the finding says which one is slow. */
const DEADLINE_MS = 2 * TRIAL_MS + 10_000;

/** The system's wall around engines: as the daemon has it, or as it turns out to be when tried here. */
export function wallCheck(look: () => Promise<WallState>): Check {
  return { name: NAME, deadlineMs: DEADLINE_MS, look: async () => [judge(await look())] };
}

function judge({ mode, wall, parts, problem: why }: WallState): Finding {
  if (wall === "unknown")
    return note(NAME, "not known yet: the daemon has started no engine", "daybreak load <model>");
  if (wall === "none") {
    const what = "only Node's permission model confines engines";
    if (mode === "off")
      return note(NAME, `${what}: ${why}`, "Set sandbox to auto to use the system's sandbox too.");
    if (mode === "require")
      return problem(NAME, "no model can be loaded: a sandbox is required, and none works", why ?? "");
    return note(NAME, what, why);
  }
  const what = `Node's permission model and ${wall}: ${parts.join(", ")}`;
  return why === undefined ? ok(NAME, what) : note(NAME, what, why);
}
