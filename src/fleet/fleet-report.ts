import type { FleetMachine, FleetReport } from "../dialects/management/fleet-routes.ts";
import type { Beat, Card } from "./card.ts";

/** What a daemon's routes tell of the fleet: this machine first, then the others by name. */
export function fleetReport(
  { isConnected, problem }: { readonly isConnected: boolean; readonly problem?: string | undefined },
  self: { readonly card: Card; readonly beat: Beat },
  others: readonly { readonly card: Card; readonly beat: Beat }[],
): FleetReport {
  const sorted = others.toSorted((a, b) => a.card.name.localeCompare(b.card.name));
  return {
    name: self.card.name,
    isConnected,
    problem,
    machines: [machine(self, true), ...sorted.map((each) => machine(each, false))],
  };
}

function machine({ card, beat }: { card: Card; beat: Beat }, isSelf: boolean): FleetMachine {
  const loaded = new Map(beat.loaded.map((each) => [each.alias, each]));
  const speeds = new Map(beat.speeds.map((each) => [each.alias, each]));
  const { id, name, version, engine, processor, gpus, memory } = card;
  return {
    id,
    name,
    isSelf,
    state: beat.state === "ready" ? "ready" : "draining",
    version,
    engine,
    processor,
    gpus,
    memory: { ...memory, used: beat.memoryUsed },
    running: beat.loaded.reduce((sum, each) => sum + each.running, 0),
    waiting: beat.loaded.reduce((sum, each) => sum + each.waiting, 0),
    models: card.models.map((model) => ({
      ...model,
      sizeBytes: model.bytes,
      load: loaded.get(model.alias),
      speed: speeds.get(model.alias),
    })),
  };
}
