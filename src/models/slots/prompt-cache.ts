import path from "node:path";
import type { SlotState } from "../../engine/engine-slots.ts";
import type { Engine } from "../../engine/engine.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { ModelsOptions } from "../models-options.ts";
import { headerOf, ModelSlots, type ModelSlotsOptions } from "./model-slots.ts";
import { SavedFolder } from "./saved-folder.ts";
import type { SavedHeader } from "./saved-header.ts";
import { computingFiles, isSame, ModelHashes } from "./slot-identity.ts";

/** All that saves prompts of a daemon's models: by name for clients, and automatically. */
export class SavedPrompts {
  readonly slots: ModelSlots;
  /** Undefined when saving is turned off. */
  readonly kept: PromptCache | undefined;
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
    this.kept = this.folder && new PromptCache({ ...shared, folder: this.folder, slots: this.slots, logger });
  }

  /** Ends what is still being computed. */
  close(): void {
    this.#hashes.close();
  }
}

/** Conversations of one model that are kept. */
const MAX_KEPT = 16;

/** Last tokens in which a conversation may differ from its own continuation: templates end an answer in more ways than one. */
const ENDING_TOKENS = 16;

/** Longest time that unloading or loading a model waits for its prompts. */
const MAX_MS = 15_000;

/** An engine that does not answer for so long hangs, and is not waited for; on a busy machine, others take seconds too. */
const ANSWER_MS = 10_000;

/** Shorter prompts are read again as quickly as they are restored. */
const LEAST_TOKENS = 16;

/** The engine holds a state in its memory while it is saved; a larger one could take what another model needs. */
const MAX_STATE_BYTES = 1024 ** 3;

interface Conversation extends Pick<SlotState, "scales"> {
  readonly tokens: Int32Array;
}

interface KeptPromptsOptions {
  readonly folder: SavedFolder;
  readonly hashes: Pick<ModelHashes, "of">;
  readonly slots: Pick<ModelSlots, "of" | "identityOf">;
  readonly logger: ModelsOptions["logger"];
}

/**
 * Keeps the conversations of a model that is unloaded: its slots are saved, and restored when it is loaded again. None of it
 * may fail a request: what cannot be saved or restored is read again.
 */
export class PromptCache {
  readonly #options: KeptPromptsOptions;

  constructor(options: KeptPromptsOptions) {
    this.#options = options;
  }

  /** Saves what the idle slots of an engine have, in place of what those conversations were before. */
  async save(alias: string, engine: Engine): Promise<void> {
    await this.#attempt("save", alias, async (signal) => {
      const { folder, slots } = this.#options;
      const engineSlots = slots.of(engine);
      const soon = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
      const used = (await engineSlots.list(soon)).filter(
        ({ tokens, isBusy }) => !isBusy && tokens >= LEAST_TOKENS,
      );
      if (used.length === 0) return;
      const identity = await slots.identityOf(engine, signal);
      const kept = new Map<string, Conversation>();
      // The conversation that was used last is saved last: it is the newest.
      for (const { id } of used.toSorted((a, b) => a.lastUsed - b.lastUsed)) {
        const save = engineSlots.save(
          id,
          async (state) => {
            const name = SavedFolder.automaticName(state);
            kept.set(name, state);
            const header = headerOf(identity, engine, state);
            if (!(await this.#isKept(alias, name, header))) await folder.write(alias, name, header, state);
          },
          { most: MAX_STATE_BYTES, signal },
        );
        await save.catch((error: unknown) => this.#note("save", alias, error));
      }
      await this.#removeOutdated(alias, kept);
    });
  }

  /** Of what was kept before, what has been continued since, and what is oldest beyond so many. */
  async #removeOutdated(alias: string, kept: ReadonlyMap<string, Conversation>): Promise<void> {
    const { folder } = this.#options;
    const saved = (await folder.list(alias)).filter(({ isAutomatic }) => isAutomatic);
    for (const [place, { name, header }] of saved.entries()) {
      if (kept.has(name)) continue;
      const isOutdated = async (): Promise<boolean> => {
        const tokens = await folder.tokens(alias, name).catch(() => undefined);
        if (tokens === undefined) return true;
        const older = { tokens, scales: header?.scales ?? [] };
        return [...kept.values()].some((newer) => isContinued(older, newer));
      };
      if (place >= MAX_KEPT || (await isOutdated())) await folder.remove(alias, name);
    }
  }

  /** Fills the slots of an engine that has just been loaded. */
  async restore(alias: string, engine: Engine, loading: AbortSignal): Promise<void> {
    await this.#attempt(
      "restore",
      alias,
      async (signal) => {
        const { folder, hashes, slots } = this.#options;
        // Not awaited: it is needed when the model is unloaded, and a large file takes seconds.
        if (engine.spec.purpose === "generate")
          hashes.of(computingFiles(engine.spec), never()).catch(() => undefined);
        const saved = (await folder.list(alias)).filter(({ isAutomatic }) => isAutomatic);
        if (saved.length === 0) return;
        const identity = await slots.identityOf(engine, signal);
        const fitting = saved.filter(
          ({ header }) => header && isSame(header, identity) && header.tokens <= engine.info.contextSize,
        );
        for (const [slot, { name }] of fitting.slice(0, engine.spec.slots).entries()) {
          signal.throwIfAborted();
          const restore = folder.read(
            alias,
            name,
            async (state) => await slots.of(engine).restore(slot, state, signal),
          );
          await restore.catch((error: unknown) => this.#note("restore", alias, error));
        }
      },
      loading,
    );
  }

  /** True when the same conversation is on disk already; it counts as new then. */
  async #isKept(alias: string, name: string, header: SavedHeader): Promise<boolean> {
    const { folder } = this.#options;
    const saved = (await folder.list(alias)).find((each) => each.name === name);
    return saved?.header !== undefined && isSame(saved.header, header) && (await folder.touch(alias, name));
  }

  async #attempt(
    what: "save" | "restore",
    alias: string,
    work: (signal: AbortSignal) => Promise<void>,
    other?: AbortSignal,
  ): Promise<void> {
    const limit = AbortSignal.timeout(MAX_MS);
    try {
      await work(other ? AbortSignal.any([limit, other]) : limit);
    } catch (error) {
      other?.throwIfAborted();
      this.#note(what, alias, error);
    }
  }

  #note(what: "save" | "restore", alias: string, error: unknown): void {
    // Many models cannot be saved, and nothing is lost by that.
    const isUsual = error instanceof ServiceError && error.code === "unsupported_feature";
    const message = `Cannot ${what} the prompts of a model; they are read again`;
    if (isUsual) this.#options.logger.debug({ model: alias, err: error }, message);
    else this.#options.logger.warn({ model: alias, err: error }, message);
  }
}

function never(): AbortSignal {
  return new AbortController().signal;
}

/** Whether a longer conversation with the same adapters begins like an older one, up to its ending. */
function isContinued(older: Conversation, newer: Conversation): boolean {
  if (older.scales.join() !== newer.scales.join()) return false;
  const compared = Math.max(1, older.tokens.length - ENDING_TOKENS);
  return older.tokens.subarray(0, compared).every((token, at) => token === newer.tokens[at]);
}
