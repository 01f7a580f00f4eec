import type { Command } from "commander";
import type { z } from "zod";
import { fleetSchema, describeNatsProblem } from "../../api/wire/machines.ts";
import { type CliIo, writeJson, writeLine, writeLines } from "../cli-io.ts";
import { connect } from "../client/daemon-address.ts";
import { clientCommand, type ClientOptions } from "../options/common-options.ts";
import { formatBytes } from "../../json/quantities.ts";
import { formatTable, printable } from "../terminal/format.ts";

type Machine = z.infer<typeof fleetSchema>["machines"][number];
type FleetModel = Machine["models"][number];

/** daybreak fleet */
export function fleetCommand(io: CliIo): Command {
  return clientCommand("fleet")
    .description("list the machines of the fleet, and what they have and do")
    .action(async (options: ClientOptions) => {
      const fleet = await connect(io, options).json(fleetSchema, "GET", "/api/fleet");
      if (options.json) return await writeJson(io.stdout, fleet);
      if (!fleet.joined) {
        return await writeLine(
          io.stderr,
          "The daemon works alone. Start it with --fleet-nats nats://HOST:4222 on each machine to join them.",
        );
      }
      if (!fleet.connected) {
        await writeLine(
          io.stderr,
          `The NATS server ${printable(describeNatsProblem(fleet.problem))}; this machine works alone.`,
        );
      }
      const machines = formatTable(
        ["MACHINE", "STATE", "VERSION", "ENGINE", "PROCESSORS", "GPU", "MEMORY", "RUNNING", "WAITING"],
        fleet.machines.map(machineRow),
      );
      const models = formatTable(
        ["MACHINE", "MODEL", "SIZE", "LOADED", "RUNNING", "TOKENS/S"],
        fleet.machines.flatMap((machine) => machine.models.map((model) => modelRow(machine, model))),
      );
      await writeLines(io.stdout, [...machines, "", ...models].map(printable));
      const { sharing_problem: sharingProblem } = fleet;
      if (sharingProblem !== undefined) await writeLine(io.stderr, `\nNote: ${printable(sharingProblem)}.`);
      return undefined;
    });
}

function machineRow(machine: Machine): string[] {
  const { processor, gpus, memory } = machine;
  return [
    machine.name + (machine.self ? " (this)" : ""),
    machine.state,
    machine.version,
    machine.engine.slice(0, 8),
    `${processor.usable} × ${processor.name}`,
    gpus.map(({ name }) => name).join(", ") || "-",
    `${formatBytes(memory.used_bytes)} of ${formatBytes(memory.models_bytes)}`,
    String(machine.running),
    String(machine.waiting),
  ];
}

function modelRow(machine: Machine, model: FleetModel): string[] {
  const speed = model.decode_tokens_per_second;
  return [
    machine.name,
    model.alias,
    formatBytes(model.size_bytes),
    model.loaded ? `${model.context_size ?? 0} tokens` : "-",
    model.loaded ? `${model.running ?? 0} of ${model.slots ?? 0}` : "-",
    speed ? speed.toFixed(1) : "-",
  ];
}
