import path from "node:path";
import type { Engine } from "../../engine/engine.ts";
import { type EngineSlot, EngineSlots, type SlotState } from "../../engine/engine-slots.ts";
import type { Kernels } from "../../engine/engine-image.ts";
import { ServiceError } from "../../errors/service-error.ts";
import {
  checkIdentity,
  identityFiles,
  ModelHashes,
  type SlotIdentity,
  slotIdentity,
} from "./slot-identity.ts";
import type { Model } from "../model.ts";
import type { ModelsOptions } from "../models-options.ts";
import { type SavedEntry, SavedFolder } from "./saved-folder.ts";
import { assertSavedName, type SavedHeader } from "./saved-header.ts";

export interface SlotList {
  /** Empty while the model is not loaded. */
  readonly slots: readonly EngineSlot[];
  readonly saved: readonly SavedEntry[];
}

/** Result of saving or restoring a slot. */
export interface SlotTransfer {
  readonly slot: number;
  readonly name: string;
  readonly tokens: number;
  /** Bytes of the slot's state. */
  readonly bytes: number;
  readonly milliseconds: number;
}

interface SlotModels {
  /** Returns the alias of a model. @throws ServiceError model_not_found */
  readonly aliasOf: (name: string) => Promise<string>;
  readonly acquire: (
    name: string,
    signal: AbortSignal,
  ) => Promise<Disposable & { readonly engine: Engine; readonly model: Model }>;
  readonly engineOf: (alias: string) => Engine | undefined;
}

/** Saves the prompts in the slots of models to files, and restores them. */
export class ModelSlots {
  /** Undefined: saving is off. */
  readonly folder: SavedFolder | undefined;
  readonly hashes: ModelHashes;
  readonly #limitBytes: number;
  readonly #kernels: Kernels;
  readonly #models: SlotModels;
  readonly #engines = new WeakMap<Engine, EngineSlots>();

  constructor({ config, kernels }: Pick<ModelsOptions, "config" | "kernels">, models: SlotModels) {
    const root = path.join(config.cache_dir, "prompts");
    this.#limitBytes = config.models.saved_prompts;
    this.folder = this.#limitBytes > 0 ? new SavedFolder(root, this.#limitBytes) : undefined;
    this.hashes = new ModelHashes(path.join(root, "model-hashes.json"));
    this.#kernels = kernels;
    this.#models = models;
  }

  async list(model: string, signal: AbortSignal): Promise<SlotList> {
    const alias = await this.#models.aliasOf(model);
    const engine = this.#models.engineOf(alias);
    return {
      slots: engine ? await this.slotsOf(engine).list(signal) : [],
      saved: (await this.folder?.list(alias)) ?? [],
    };
  }

  /**
   * Saves a slot under a name.
   * @param slot undefined: the one used last
   * @throws ServiceError model_not_loaded, model_busy, slot_state_not_found, unsupported_feature, insufficient_disk
   */
  async save(
    model: string,
    { slot: requestedSlot, name }: { readonly slot?: number | undefined; readonly name: string },
    signal: AbortSignal,
  ): Promise<SlotTransfer> {
    assertSavedName(name, "name");
    const startMs = performance.now();
    const folder = this.#requireFolder();
    using lease = await this.#models.acquire(model, signal);
    const identity = await this.identityOf(lease.engine, signal);
    const slots = this.slotsOf(lease.engine);
    const slot = requestedSlot ?? lastUsedSlot(await slots.list(signal));
    return await slots.save(
      slot,
      async (state) => {
        const header = headerOf(identity, lease.engine, state);
        await folder.write(lease.model.alias, name, header, state);
        return {
          slot,
          name,
          tokens: header.tokens,
          bytes: header.bytes,
          milliseconds: performance.now() - startMs,
        };
      },
      { maxBytes: this.#limitBytes, signal },
    );
  }

  /**
   * Restores a saved prompt to a slot.
   * @param slot undefined: an empty one, or else the least recently used
   * @throws ServiceError model_not_loaded, model_busy, slot_state_not_found, slot_state_mismatch
   */
  async restore(
    model: string,
    { slot: requestedSlot, name }: { readonly slot?: number | undefined; readonly name: string },
    signal: AbortSignal,
  ): Promise<SlotTransfer> {
    const startMs = performance.now();
    const folder = this.#requireFolder();
    using lease = await this.#models.acquire(model, signal);
    const { alias } = lease.model;
    const header = await folder.header(alias, name);
    checkIdentity(name, header, await this.identityOf(lease.engine, signal));
    const slots = this.slotsOf(lease.engine);
    const slot = requestedSlot ?? leastRecentlyUsedSlot(await slots.list(signal));
    await folder.read(alias, name, async (state) => await slots.restore(slot, state, signal));
    const { tokens, bytes } = header;
    return { slot, name, tokens, bytes, milliseconds: performance.now() - startMs };
  }

  /** Empties a slot and returns the number of its tokens. */
  async erase(model: string, slot: number, signal: AbortSignal): Promise<number> {
    using lease = await this.#models.acquire(model, signal);
    return await this.slotsOf(lease.engine).erase(slot, signal);
  }

  /** Deletes a saved prompt. @throws ServiceError slot_state_not_found */
  async delete(model: string, name: string): Promise<void> {
    await this.#requireFolder().remove(await this.#models.aliasOf(model), name);
  }

  /** Returns the slots of an engine, one object per engine, so that its transfers wait for each other. */
  slotsOf(engine: Engine): EngineSlots {
    const known = this.#engines.get(engine) ?? new EngineSlots(engine);
    this.#engines.set(engine, known);
    return known;
  }

  /** @throws ServiceError unsupported_feature for a model whose slots cannot be saved */
  async identityOf({ spec }: Engine, signal: AbortSignal): Promise<SlotIdentity> {
    if (spec.purpose !== "generate")
      throw new ServiceError(
        "unsupported_feature",
        "The model does not generate text, so it has no prompts to save.",
      );
    return slotIdentity(await this.hashes.of(identityFiles(spec), signal), this.#kernels, spec);
  }

  #requireFolder(): SavedFolder {
    if (this.folder) return this.folder;
    throw new ServiceError(
      "unsupported_feature",
      "Saving prompts is turned off; set models.saved_prompts to the bytes that they may take on disk.",
    );
  }
}

export function headerOf(
  identity: SlotIdentity,
  { info: { contextSize } }: Engine,
  { tokens, scales, bytes }: SlotState,
): SavedHeader {
  const ownScales = scales.length > 0 && { scales: [...scales] };
  return { ...identity, ...ownScales, tokens: tokens.length, bytes, contextSize };
}

function lastUsedSlot(slots: readonly EngineSlot[]): number {
  const [last] = slots
    .filter(({ tokens, isBusy }) => tokens > 0 && !isBusy)
    .toSorted((a, b) => b.lastUsed - a.lastUsed);
  if (last) return last.id;
  throw new ServiceError(
    "slot_state_not_found",
    "No idle slot of the model has a conversation to save; have it answer a request first.",
  );
}

function leastRecentlyUsedSlot(slots: readonly EngineSlot[]): number {
  const [first] = slots
    .filter(({ isBusy }) => !isBusy)
    .toSorted((a, b) => Number(a.tokens > 0) - Number(b.tokens > 0) || a.lastUsed - b.lastUsed);
  if (first) return first.id;
  throw new ServiceError("model_busy", "All slots of the model are answering requests; try again later.");
}
