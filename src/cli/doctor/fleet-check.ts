import type { DaemonLook } from "./daemon-look.ts";
import { type Check, type Finding, note, ok, problem } from "./check.ts";

const NAME = "Fleet";

/**
 * Whether the daemon has joined its fleet, which the configuration or a flag of the daemon names. Nothing where there is
 * none.
 */
export function fleetCheck(daemon: Promise<DaemonLook>, isConfigured: boolean): Check {
  return {
    name: NAME,
    deadlineMs: 8000,
    look: async () => {
      const { fleet } = await daemon;
      return isConfigured || fleet?.joined ? [finding(fleet)] : [];
    },
  };
}

function finding(fleet: DaemonLook["fleet"]): Finding {
  if (!fleet) return note(NAME, "fleet.nats is set, and no daemon tells of it", "Start one: daybreak serve.");
  if (!fleet.joined) {
    return note(
      NAME,
      "fleet.nats is set, but the daemon was started without it",
      "Run daybreak stop, then start it again.",
    );
  }
  if (!fleet.connected) {
    const why = fleet.problem === undefined ? "" : ` (${fleet.problem})`;
    return problem(
      NAME,
      `the NATS server is not reachable${why}; this machine works alone`,
      "Start the NATS server, or correct fleet.nats.",
    );
  }
  const { length } = fleet.machines;
  return ok(NAME, `joined as ${fleet.name}, ${length} ${length === 1 ? "machine" : "machines"}`);
}
