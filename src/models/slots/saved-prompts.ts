import path from "node:path";
import type { ModelsOptions } from "../models-options.ts";
import { KeptPrompts } from "./kept-prompts.ts";
import { ModelHashes } from "./model-hashes.ts";
import { ModelSlots, type ModelSlotsOptions } from "./model-slots.ts";
import { SavedFolder } from "./saved-folder.ts";

/** All that saves prompts of a daemon's models: by name for clients, and automatically. */
export class SavedPrompts {
  readonly slots: ModelSlots;
  /** Undefined when saving is turned off. */
  readonly kept: KeptPrompts | undefined;
  /** Undefined when saving is turned off. */
  readonly folder: SavedFolder | undefined;
  readonly #hashes: ModelHashes;

  constructor(
    { config, kernels, logger }: Pick<ModelsOptions, "config" | "kernels" | "logger">,
    models: Pick<ModelSlotsOptions, "aliasOf" | "acquire" | "engineOf">,
  ) {
    const limitBytes = config.models.saved_prompts;
    const root = path.join(config.cache_dir, "prompts");
    this.folder = limitBytes > 0 ? new SavedFolder(root, limitBytes) : undefined;
    this.#hashes = new ModelHashes(path.join(root, "model-hashes.json"));
    const shared = { hashes: this.#hashes, kernels };
    this.slots = new ModelSlots({ ...models, ...shared, folder: this.folder, limitBytes });
    this.kept = this.folder && new KeptPrompts({ ...shared, folder: this.folder, slots: this.slots, logger });
  }

  /** Ends what is still being computed. */
  close(): void {
    this.#hashes.close();
  }
}
