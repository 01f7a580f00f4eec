import { existsSync, readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import { z } from "zod";
import { describeDotProduct } from "../kernels/dot-product.ts";

export const ENGINES = ["stock", "daybreak", "native"] as const;
export type EngineName = (typeof ENGINES)[number];

/** Measured rates in tokens per second, one number per run. */
const FIGURES = {
  prefill: "prefill, tokens/s",
  decode: "decode, tokens/s",
  oneStream: "one of several slots in use, tokens/s",
  fourStreams: "four slots in use, tokens/s of all",
  firstPrefill: "first prefill after loading, tokens/s",
  secondPrefill: "second prefill, tokens/s",
} as const;
export type Figure = keyof typeof FIGURES;

const figuresSchema = z.object({
  prefill: z.array(z.number()),
  decode: z.array(z.number()),
  oneStream: z.array(z.number()),
  fourStreams: z.array(z.number()),
  firstPrefill: z.array(z.number()),
  secondPrefill: z.array(z.number()),
});

const measurementSchema = z.object({
  shape: z.string(),
  quantization: z.string(),
  threads: z.int(),
  engine: z.enum(ENGINES),
  /** Measurements of one version are joined; those of another replace them. */
  version: z.string(),
  /** The same for prompt, generated tokens, step and attention. */
  workload: z.string(),
  figures: figuresSchema,
});
export type Measurement = z.infer<typeof measurementSchema>;
export type MeasurementKey = Omit<Measurement, "figures">;

const resultsSchema = z.object({ machine: z.string(), measurements: z.array(measurementSchema) });

/** Measurements of one machine, kept in a file where one is named, so that they can be taken in pieces. */
export class Results {
  readonly machine = describeMachine();
  readonly measurements: Measurement[] = [];
  readonly #file: string | undefined;

  /** @throws Error when the file is of another machine */
  constructor(file: string | undefined) {
    this.#file = file;
    if (file === undefined || !existsSync(file)) return;
    const { machine, measurements } = resultsSchema.parse(JSON.parse(readFileSync(file, "utf8")));
    if (machine !== this.machine) throw new Error(`${file} holds results of another machine: ${machine}`);
    this.measurements.push(...measurements);
  }

  /** Adds the figures of one run. */
  add(key: MeasurementKey, figures: Partial<Record<Figure, number>>): void {
    const measurement = this.#measurementOf(key);
    for (const figure of Object.keys(figures).filter((name): name is Figure => name in FIGURES)) {
      const value = figures[figure];
      if (value !== undefined) measurement.figures[figure].push(value);
    }
    if (this.#file !== undefined) {
      const { machine, measurements } = this;
      writeFileSync(this.#file, `${JSON.stringify({ machine, measurements }, undefined, 1)}\n`);
    }
  }

  #measurementOf(key: MeasurementKey): Measurement {
    const at = this.measurements.findIndex((each) =>
      isSame(each, key, ["shape", "quantization", "threads", "engine"]),
    );
    const found = this.measurements[at];
    if (found && isSame(found, key, ["version", "workload"])) return found;
    const figures = {
      prefill: [],
      decode: [],
      oneStream: [],
      fourStreams: [],
      firstPrefill: [],
      secondPrefill: [],
    };
    const created = { ...key, figures };
    if (found) this.measurements[at] = created;
    else this.measurements.push(created);
    return created;
  }
}

function isSame(
  one: MeasurementKey,
  other: MeasurementKey,
  fields: readonly (keyof MeasurementKey)[],
): boolean {
  return fields.every((field) => one[field] === other[field]);
}

/** Processors, memory, system, Node, and the dot product of bytes that WebAssembly has here. */
export function describeMachine(): string {
  const cpus = os.cpus();
  const memory = Math.round(os.totalmem() / 1024 ** 3);
  return `${cpus.length} × ${cpus[0]?.model.trim()}, ${memory} GiB, ${os.platform()} ${os.arch()}, Node ${process.versions.node}, ${describeDotProduct()}`;
}
