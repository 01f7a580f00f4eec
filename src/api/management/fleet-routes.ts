import type { z } from "zod";
import { defineRoute, type Route } from "../../http/route.ts";
import { fleetSchema, type machineSchema, type modelSchema } from "./machine-schemas.ts";

/** A machine of the fleet, at this moment. */
export interface FleetMachine {
  readonly id: string;
  readonly name: string;
  /** The one that is asked. */
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
  /** Bytes: of the machine, for models, and what models use. */
  readonly memory: { readonly total: number; readonly models: number; readonly used: number };
  readonly running: number;
  readonly waiting: number;
  readonly models: readonly FleetModel[];
}

interface FleetModel {
  readonly alias: string;
  /** SHA-256 of what identifies its files, and of its settings. */
  readonly files: string;
  readonly settings: string;
  readonly sizeBytes: number;
  /** If it is loaded. */
  readonly load?:
    | {
        readonly slots: number;
        readonly running: number;
        readonly waiting: number;
        readonly contextSize: number;
        readonly gpuLayers: number;
      }
    | undefined;
  /** Tokens per second, as measured; 0: not yet. */
  readonly speed?: { readonly decode: number; readonly prefill: number } | undefined;
}

export interface FleetReport {
  /** Of this machine. */
  readonly name: string;
  /** The NATS server is reachable. */
  readonly isConnected: boolean;
  /** Why it is not, as far as that is known. */
  readonly problem?: string | undefined;
  /** What machines do not share although it is reachable, and why. */
  readonly sharingProblem?: string | undefined;
  readonly machines: readonly FleetMachine[];
}

/** The daemon's part in a fleet. */
export interface FleetView {
  /** Settles when the connection is made for the first time. */
  readonly joined: Promise<void>;
  report(): FleetReport;
}

const ALONE: z.infer<typeof fleetSchema> = { joined: false, connected: false, name: "", machines: [] };

/** The machines that work together as one. */
export function fleetRoutes({ fleet }: { readonly fleet?: FleetView | undefined }): readonly Route[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/fleet",
      tag: "System",
      summary: "The machines of the fleet",
      answers: [{ description: "The machines, as this one sees them.", schema: fleetSchema }],
      handle: (context) => context.json(fleet ? fleetJson(fleet.report()) : ALONE),
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

function machineJson(machine: FleetMachine): z.infer<typeof machineSchema> {
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
}: FleetModel): z.infer<typeof modelSchema> {
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
