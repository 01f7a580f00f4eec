import { formatBytes, formatInteger, formatNumber } from "../../json/quantities.ts";
import type { Fleet } from "./monitor-api.ts";

export type FleetMachine = Fleet["machines"][number];
export type FleetModel = FleetMachine["models"][number];

/** Describes the load and the hardware of a machine in the fleet. */
export function machineFacts(machine: FleetMachine): (readonly [name: string, fact: string])[] {
  const { running, waiting, memory, processor, gpus, version, engine } = machine;
  return [
    [
      "Requests",
      `${formatInteger(running)} running${waiting > 0 ? `, ${formatInteger(waiting)} waiting` : ""}`,
    ],
    ["Memory of models", `${formatBytes(memory.used_bytes)} of ${formatBytes(memory.models_bytes)}`],
    ["Processors", `${formatInteger(processor.usable)} × ${processor.name}`],
    ["GPU", gpus.map(({ name }) => name).join(", ") || "none"],
    ["Version", version],
    // Failover continues an answer only on a machine with the same engine build.
    ["Engine", engine.slice(0, 8)],
  ];
}

/** Describes the load of a model on a machine, or its size if it is not loaded. */
export function describeModel(model: FleetModel): string {
  const { loaded, running = 0, waiting = 0, slots = 0, size_bytes: size } = model;
  const { decode_tokens_per_second: speed = 0 } = model;
  const words = loaded
    ? [`${formatInteger(running)} of ${formatInteger(slots)} requests`]
    : [formatBytes(size)];
  if (waiting > 0) words.push(`${formatInteger(waiting)} waiting`);
  if (speed > 0) words.push(`${formatNumber(speed)} tokens/s`);
  return words.join(", ");
}
