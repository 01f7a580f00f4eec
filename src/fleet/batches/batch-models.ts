import { ServiceError } from "../../errors/service-error.ts";
import type { Models } from "../../models/models.ts";
import { findIn, isSame, type CandidateMachine } from "../members.ts";
import type { Presence } from "../presence.ts";
import type { SelfDescription } from "../self-description.ts";
import type { LineGroup } from "./batch-record.ts";

interface BatchModelsOptions {
  readonly self: Pick<SelfDescription, "card" | "beat" | "model">;
  readonly presence: Pick<Presence, "machines" | "departed" | "unreachable">;
  /** Of this machine alone. */
  readonly models: Pick<Models, "get" | "defaultAlias">;
}

/** A model of this machine, for lines. */
export interface ModelHere {
  readonly alias: string;
  /** How lines have to call it here, if not as they do. */
  readonly rename: string | undefined;
}

/** Which models lines mean, and whether this machine has them. */
export class BatchModels {
  readonly #options: BatchModelsOptions;

  constructor(options: BatchModelsOptions) {
    this.#options = options;
  }

  /**
   * What a name means here, or else on other machines, also on one that is only being started again; "unsettled" while that
   * is not known.
   */
  async meaning(name: string): Promise<LineGroup["model"] | "unsettled"> {
    const { self, presence, models } = this.#options;
    const wanted = name || models.defaultAlias;
    const own = findIn([self], wanted);
    const found = own ?? (wanted === undefined ? undefined : await this.#ownModel(wanted));
    if (found === "unsettled") return found;
    const present = found ?? findIn(presence.machines, wanted);
    if (!present && presence.unreachable(wanted)) return "unsettled";
    const named = present ?? findIn(presence.departed, wanted);
    if (!named) return undefined;
    const { model, adapter } = named;
    return { files: model.files, settings: model.settings, ...(adapter !== undefined && { adapter }) };
  }

  /** The model of these lines on this machine; undefined if it has none. */
  here({ name, model }: LineGroup): ModelHere | undefined {
    const { self, presence } = this.#options;
    if (!model) return undefined;
    const named = findIn([self], name || undefined);
    if (named && isSame(named.model, model)) return { alias: named.alias, rename: undefined };
    const { adapter } = model;
    const same = self.card.models.find((each) => isSame(each, model));
    if (same) {
      const { alias } = same;
      return { alias, rename: adapter === undefined ? alias : `${alias}:${adapter}` };
    }
    if (!named || presence.unreachable(name || undefined)) return undefined;
    const others = [...presence.machines, ...presence.departed];
    // Nobody has it any longer as it was; what has its name now is what a request would get.
    return others.some((machine) => hasModel(machine, model))
      ? undefined
      : { alias: named.alias, rename: undefined };
  }

  /** Whether these lines wait until a machine comes that has their model. */
  isAway(group: LineGroup): boolean {
    const { name, model } = group;
    const { presence } = this.#options;
    if (!model || this.here(group) || presence.unreachable(name || undefined)) return false;
    if (presence.machines.some((machine) => hasModel(machine, model))) return false;
    const isExpected = presence.departed.some((machine) => hasModel(machine, model));
    return isExpected || !findIn(presence.machines, name || undefined);
  }

  async #ownModel(name: string): Promise<ReturnType<typeof findIn> | "unsettled"> {
    const { models, self } = this.#options;
    try {
      const { alias } = await models.get(name);
      const model = self.model(alias);
      return model ? { model, alias, adapter: undefined } : "unsettled";
    } catch (error) {
      const isUnknown = error instanceof ServiceError && error.code === "model_not_found";
      if (isUnknown) return undefined;
      throw error;
    }
  }
}

function hasModel({ card }: CandidateMachine, model: NonNullable<LineGroup["model"]>): boolean {
  return card.models.some((each) => isSame(each, model));
}
