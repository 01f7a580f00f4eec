import type { z } from "zod";
import { defineRoute, type Route } from "../../http/route.ts";
import { fleetSchema, type fleetMachineSchema, type fleetModelSchema } from "./machine-schemas.ts";

/** Current state of a machine in the fleet. */
export interface FleetMachine {
  readonly id: string;
  readonly name: string;
  /** True for the machine that produces the report. */
  readonly isSelf: boolean;
  readonly state: "ready" | "draining";
  readonly version: string;
  /** SHA-256 of its engine's WebAssembly. */
  readonly engine: string;
  readonly processor: {
    readonly name: string;
    readonly system: string;
    readonly usable: number;
    readonly cores: number;
  };
  readonly gpus: readonly {
    readonly name: string;
    readonly backend: string;
    readonly memory?: number | undefined;
  }[];
  /** Bytes of memory: of the machine, available for models, and used by models. */
  readonly memory: { readonly total: number; readonly models: number; readonly used: number };
  readonly running: number;
  readonly waiting: number;
  readonly models: readonly FleetModel[];
}

interface FleetModel {
  readonly alias: string;
  /** SHA-256 of the files' identity; `settings`: of the model's settings. */
  readonly files: string;
  readonly settings: string;
  readonly sizeBytes: number;
  /** Absent if the model is not loaded. */
  readonly load?:
    | {
        readonly slots: number;
        readonly running: number;
        readonly waiting: number;
        readonly contextSize: number;
        readonly gpuLayers: number;
      }
    | undefined;
  /** Measured tokens per second; 0: not measured yet. */
  readonly speed?: { readonly decode: number; readonly prefill: number } | undefined;
}

export interface FleetReport {
  /** Name of this machine. */
  readonly name: string;
  /** The NATS server is reachable. */
  readonly isConnected: boolean;
  /** Known reason why the server is not reachable. */
  readonly problem?: string | undefined;
  /** Data that machines do not share although the server is reachable, and the reason. */
  readonly sharingProblem?: string | undefined;
  readonly machines: readonly FleetMachine[];
}

/** View of the fleet from this machine. */
export interface FleetView {
  /** Settles when the connection is made for the first time. */
  readonly joined: Promise<void>;
  report(): FleetReport;
}

const NOT_IN_FLEET: z.infer<typeof fleetSchema> = { joined: false, connected: false, name: "", machines: [] };

/** Route that lists the machines of the fleet. */
export function fleetRoutes({ fleet }: { readonly fleet?: FleetView | undefined }): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/fleet",
      tag: "System",
      summary: "List the machines of the fleet",
      answers: [{ description: "The machines, as this one sees them.", schema: fleetSchema }],
      handle: (context) => context.json(fleet ? fleetJson(fleet.report()) : NOT_IN_FLEET),
    }),
  ];
}

function fleetJson({
  name,
  isConnected,
  problem,
  sharingProblem,
  machines,
}: FleetReport): z.infer<typeof fleetSchema> {
  return {
    joined: true,
    connected: isConnected,
    ...(problem !== undefined && { problem }),
    ...(sharingProblem !== undefined && { sharing_problem: sharingProblem }),
    name,
    machines: machines.map(machineJson),
  };
}

function machineJson(machine: FleetMachine): z.infer<typeof fleetMachineSchema> {
  const { isSelf, gpus, memory, models, ...rest } = machine;
  return {
    ...rest,
    self: isSelf,
    gpus: gpus.map(({ name, backend, memory: bytes }) => ({ name, backend, memory_bytes: bytes })),
    memory: { total_bytes: memory.total, models_bytes: memory.models, used_bytes: memory.used },
    models: models.map(modelJson),
  };
}

function modelJson({
  alias,
  files,
  settings,
  sizeBytes,
  load,
  speed,
}: FleetModel): z.infer<typeof fleetModelSchema> {
  return {
    alias,
    loaded: load !== undefined,
    size_bytes: sizeBytes,
    files,
    settings,
    ...(load && {
      slots: load.slots,
      running: load.running,
      waiting: load.waiting,
      context_size: load.contextSize,
      gpu_layers: load.gpuLayers,
    }),
    ...(speed && {
      decode_tokens_per_second: speed.decode,
      prefill_tokens_per_second: speed.prefill,
    }),
  };
}
