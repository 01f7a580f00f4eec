import { bytes, count, short } from "./format.ts";
import type { Fleet } from "./monitor-api.ts";

export type FleetMachine = Fleet["machines"][number];
export type FleetModel = FleetMachine["models"][number];

/** What a machine of the fleet is and does, in words. */
export function factsOf(machine: FleetMachine): (readonly [name: string, fact: string])[] {
  const { running, waiting, memory, processor, gpus, version, engine } = machine;
  return [
    ["Requests", `${count(running)} running${waiting > 0 ? `, ${count(waiting)} waiting` : ""}`],
    ["Memory of models", `${bytes(memory.used_bytes)} of ${bytes(memory.models_bytes)}`],
    ["Processors", `${count(processor.usable)} × ${processor.name}`],
    ["GPU", gpus.map(({ name }) => name).join(", ") || "none"],
    ["Version", version],
    // Only machines with the same one continue each other's answers.
    ["Engine", engine.slice(0, 8)],
  ];
}

/** What a machine does with a model, or would have to load for it, in words. */
export function modelInWords(model: FleetModel): string {
  const { loaded, running = 0, waiting = 0, slots = 0, size_bytes: size } = model;
  const { decode_tokens_per_second: speed = 0 } = model;
  const words = loaded ? [`${count(running)} of ${count(slots)} requests`] : [bytes(size)];
  if (waiting > 0) words.push(`${count(waiting)} waiting`);
  if (speed > 0) words.push(`${short(speed)} tokens/s`);
  return words.join(", ");
}
