import { ServiceError } from "../errors/service-error.ts";
import type { Model } from "../models/model.ts";

/** Scale of a LoRA adapter in a request; the adapter is chosen by index or name. */
export interface AdapterChoice {
  readonly id?: number | undefined;
  readonly name?: string | undefined;
  readonly scale: number;
}

/**
 * Returns the scales of a model's adapters in order: the request's, with 0 for adapters that it does not name, or the
 * model's defaults; undefined if the model has no adapters.
 * @throws ServiceError invalid_parameter for an unknown adapter or one that is named twice
 */
export function adapterScales(
  { alias, adapters }: Pick<Model, "alias" | "adapters">,
  chosen: readonly AdapterChoice[] | undefined,
): readonly number[] | undefined {
  if (adapters.length === 0 && chosen?.length) {
    throw refusal(`"${alias}" has no adapters; create a model with ADAPTER in its Modelfile.`);
  }
  if (adapters.length === 0) return undefined;
  if (!chosen) return adapters.map(({ scale }) => scale);
  const scales = new Map<number, number>();
  for (const { id, name, scale } of chosen) {
    const at = id ?? adapters.findIndex((adapter) => adapter.name === name);
    if (adapters[at] === undefined) {
      const known = adapters.map((adapter, number) => `${number} (${adapter.name})`).join(", ");
      throw refusal(`"${alias}" has no adapter ${id ?? JSON.stringify(name)}; it has ${known}.`);
    }
    if (scales.has(at)) throw refusal(`the adapter ${id ?? JSON.stringify(name)} is named twice.`);
    scales.set(at, scale);
  }
  return adapters.map((_, at) => scales.get(at) ?? 0);
}

/** Admission group of a request's scales: llama.cpp batches only slots with equal scales. */
export function adapterGroup(scales: readonly number[] | undefined): string {
  return scales?.join() ?? "";
}

function refusal(problem: string): ServiceError {
  return new ServiceError("invalid_parameter", `lora: ${problem}`, { param: "lora" });
}
