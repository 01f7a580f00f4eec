import { isRefused, natsTrouble } from "../../dialects/management/nats-trouble.ts";
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
    return problem(
      NAME,
      `the NATS server ${natsTrouble(fleet.problem)}; this machine works alone`,
      isRefused(fleet.problem)
        ? "Correct them in fleet.nats, or fleet.credentials, then run daybreak stop and start it again."
        : "Start the NATS server, or correct fleet.nats.",
    );
  }
  const { length } = fleet.machines;
  const joined = `joined as ${fleet.name}, ${length} ${length === 1 ? "machine" : "machines"}`;
  if (fleet.sharing_problem === undefined) return ok(NAME, joined);
  return note(NAME, `${joined}; ${fleet.sharing_problem}`, "Models are shared all the same.");
}
