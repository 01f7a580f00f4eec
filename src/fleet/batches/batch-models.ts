import { ServiceError } from "../../errors/service-error.ts";
import type { Models } from "../../models/models.ts";
import { findModel, isSameModel, type Member } from "../members.ts";
import type { Presence } from "../presence.ts";
import type { SelfDescription } from "../self-description.ts";
import type { LineGroup } from "./batch-record.ts";

interface BatchModelsOptions {
  readonly self: Pick<SelfDescription, "info" | "heartbeat" | "model">;
  readonly presence: Pick<Presence, "machines" | "departed" | "unreachableError">;
  /** Models of this machine only. */
  readonly models: Pick<Models, "get" | "defaultAlias">;
}

/** Local model for lines. */
export interface LocalModel {
  readonly alias: string;
  /** Model name to use in requests, if it differs from that in the lines. */
  readonly requestName: string | undefined;
}

/** Resolves the models of lines, and finds them on this machine. */
export class BatchModels {
  readonly #options: BatchModelsOptions;

  constructor(options: BatchModelsOptions) {
    this.#options = options;
  }

  /**
   * Resolves a model name on this machine, or else on others, including those that are restarting. Returns "unsettled"
   * while the result is not known yet.
   */
  async resolve(name: string): Promise<LineGroup["model"] | "unsettled"> {
    const { self, presence, models } = this.#options;
    const requestedName = name || models.defaultAlias;
    const exact = findModel([self], requestedName);
    const found = exact ?? (requestedName === undefined ? undefined : await this.#findLocal(requestedName));
    if (found === "unsettled") return found;
    const present = found ?? findModel(presence.machines, requestedName);
    if (!present && presence.unreachableError(requestedName)) return "unsettled";
    const named = present ?? findModel(presence.departed, requestedName);
    if (!named) return undefined;
    const { model, adapter } = named;
    return { files: model.files, settings: model.settings, ...(adapter !== undefined && { adapter }) };
  }

  /** Returns the local model of a group of lines; undefined if this machine has none. */
  localModel({ name, model }: LineGroup): LocalModel | undefined {
    const { self, presence } = this.#options;
    if (!model) return undefined;
    const named = findModel([self], name || undefined);
    if (named && isSameModel(named.model, model)) return { alias: named.alias, requestName: undefined };
    const { adapter } = model;
    const same = self.info.models.find((each) => isSameModel(each, model));
    if (same) {
      const { alias } = same;
      return { alias, requestName: adapter === undefined ? alias : `${alias}:${adapter}` };
    }
    if (!named || presence.unreachableError(name || undefined)) return undefined;
    const others = [...presence.machines, ...presence.departed];
    // No machine has the original model any longer, so the name now means what it means for requests.
    return others.some((machine) => hasModel(machine, model))
      ? undefined
      : { alias: named.alias, requestName: undefined };
  }

  /** Returns true if the lines wait for a machine that has their model. */
  isMissing(group: LineGroup): boolean {
    const { name, model } = group;
    const { presence } = this.#options;
    if (!model || this.localModel(group) || presence.unreachableError(name || undefined)) return false;
    if (presence.machines.some((machine) => hasModel(machine, model))) return false;
    const isExpected = presence.departed.some((machine) => hasModel(machine, model));
    return isExpected || !findModel(presence.machines, name || undefined);
  }

  async #findLocal(name: string): Promise<ReturnType<typeof findModel> | "unsettled"> {
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

function hasModel({ info }: Member, model: NonNullable<LineGroup["model"]>): boolean {
  return info.models.some((each) => isSameModel(each, model));
}
