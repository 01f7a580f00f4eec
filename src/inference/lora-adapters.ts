import { ServiceError } from "../errors/service-error.ts";
import type { Model } from "../models/model.ts";

/** How strongly a request has an adapter work, by its number or its name. */
export interface AdapterChoice {
  readonly id?: number | undefined;
  readonly name?: string | undefined;
  readonly scale: number;
}

/**
 * The scales of a model's adapters, in order: those of a request, in which adapters that it does not name are off, or the
 * model's own. Undefined: it has none.
 * @throws ServiceError invalid_parameter for an adapter that the model does not have, or one named twice
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

/** Requests with different scales do not run together: llama.cpp has only slots with the same ones in a step. */
export function adapterGroup(scales: readonly number[] | undefined): string {
  return scales?.join() ?? "";
}

function refusal(what: string): ServiceError {
  return new ServiceError("invalid_parameter", `lora: ${what}`, { param: "lora" });
}
