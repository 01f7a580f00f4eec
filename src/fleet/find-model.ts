import type { CardModel } from "./card.ts";
import type { PlacedMachine } from "./places.ts";

interface NamedModel {
  readonly model: CardModel;
  readonly alias: string;
  readonly adapter: string | undefined;
}

/** The model that a name means on other machines, best one that is loaded; without a name a default model. */
export function findIn(machines: readonly PlacedMachine[], name: string | undefined): NamedModel | undefined {
  const found = machines.flatMap(({ card, beat }) => {
    const named = card.models.map((model) => meant(model, name)).find((each) => each !== undefined);
    if (!named) return [];
    const isLoaded = beat.loaded.some(({ alias }) => alias === named.model.alias);
    return [{ named, isLoaded, id: card.id }];
  });
  // All entrances choose the same one.
  const [best] = found.toSorted((a, b) => Number(b.isLoaded) - Number(a.isLoaded) || (a.id < b.id ? -1 : 1));
  return best?.named;
}

function meant(model: CardModel, name: string | undefined): NamedModel | undefined {
  const { alias, spec, adapters, isDefault } = model;
  if (name === undefined) return isDefault ? { model, alias, adapter: undefined } : undefined;
  if (name === alias || name === spec || name === `${alias}:latest`)
    return { model, alias, adapter: undefined };
  const adapter = adapters.find((each) => name === `${alias}:${each}`);
  return adapter === undefined ? undefined : { model, alias, adapter };
}
