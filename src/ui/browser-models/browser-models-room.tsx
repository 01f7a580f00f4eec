import { signal as value, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { HUB_ORIGINS } from "../../dialects/management/page-policy.ts";
import { fileStem } from "../../models/names/shards.ts";
import type { StoredModel, StoreOptions } from "../../tab/store/model-store.ts";
import { allowServer, mayAsk } from "../page/allowed-servers.ts";
import { isExported } from "../page-kind.ts";
import { problem, refreshStored, showProblem } from "../page-state.ts";
import { pageStore } from "../page-store.ts";
import { storeFromHub } from "./hub-model.ts";

/** The models that this browser stores, for a page without a daemon. */

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

function formatBytes(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const unit = UNITS[power] ?? "byte";
  const format = new Intl.NumberFormat("en", { style: "unit", unit, maximumSignificantDigits: 3 });
  return format.format(bytes / 1000 ** power);
}

const models = value<readonly StoredModel[]>([]);
const space = value<{ readonly used: number; readonly free: number } | undefined>(undefined);
/** What is being stored, and 0 to 1 of it. */
const storing = value<{ readonly what: string; readonly share: number } | undefined>(undefined);
let controller = new AbortController();

async function look(): Promise<void> {
  const store = pageStore();
  [models.value, space.value] = await Promise.all([store.list(), store.usage()]);
  await refreshStored();
}

/** Stores one model at a time; more would only share the connection. */
async function bring(what: string, work: (options: StoreOptions) => Promise<StoredModel>): Promise<void> {
  problem.value = "";
  controller = new AbortController();
  const { signal } = controller;
  storing.value = { what, share: 0 };
  try {
    await work({ signal, onProgress: (share) => (storing.value = { what, share }) });
  } catch (error) {
    if (!signal.aborted) showProblem(error);
  } finally {
    storing.value = undefined;
    await look().catch(showProblem);
  }
}

export function BrowserModelsRoom(): JSX.Element {
  useEffect(() => void look().catch(showProblem), []);
  return (
    <main id="models">
      <h2>Models in this browser</h2>
      {models.value.length === 0 && (
        <p>There is none yet. Take one from the hub or from a file; it stays here, and needs no server.</p>
      )}
      <ul>
        {models.value.map((model) => (
          <Entry key={model.name} model={model} />
        ))}
      </ul>
      {space.value && (
        <p>
          <span>
            {formatBytes(space.value.used)} used, {formatBytes(space.value.free)} free for this page.
          </span>
        </p>
      )}
      {storing.value ? <Progress {...storing.value} /> : <Forms />}
    </main>
  );
}

function Entry({ model }: { readonly model: StoredModel }): JSX.Element {
  const { name, size, stored } = model;
  const remove = async (): Promise<void> => {
    if (!confirm(`Delete "${name}" from this browser?`)) return;
    await pageStore().delete(name);
    await look();
  };
  return (
    <li>
      <strong>{name}</strong>{" "}
      <span>
        {stored < size && `${Math.floor((100 * stored) / size)} % of `}
        {formatBytes(size)}
      </span>{" "}
      <button type="button" class="delete" onClick={() => void remove().catch(showProblem)}>
        Delete
      </button>
    </li>
  );
}

function Progress({ what, share }: { readonly what: string; readonly share: number }): JSX.Element {
  return (
    <p id="storing">
      <label>
        Storing {what} <progress value={share} /> {Math.floor(100 * share)} %
      </label>{" "}
      <button type="button" onClick={() => controller.abort()}>
        Stop
      </button>
    </p>
  );
}

async function addFiles(files: readonly File[]): Promise<void> {
  const shards = files.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const [first] = shards;
  if (!first) return;
  await bring(first.name, async (options) => await pageStore().add(fileStem(first.name), shards, options));
}

function Forms(): JSX.Element {
  const spec = useSignal("");
  const asksHub = isExported || mayAsk(HUB_ORIGINS[0]);
  return (
    <>
      <form
        id="from-hub"
        onSubmit={(event) => {
          event.preventDefault();
          const wanted = spec.value.trim();
          void bring(wanted, async (options) => await storeFromHub(wanted, options));
        }}
      >
        <label>
          From the hub{" "}
          <input
            name="spec"
            placeholder="hf:owner/repository:Q4_K_M"
            required
            autocomplete="off"
            value={spec}
            onInput={({ currentTarget }) => (spec.value = currentTarget.value)}
          />
        </label>
        {asksHub ? (
          <p class="buttons">
            <button type="submit">Download</button>
          </p>
        ) : (
          <p class="buttons">
            <button type="button" id="allow-hub" onClick={() => attempt(() => allowServer(...HUB_ORIGINS))}>
              Let this page ask the hub
            </button>{" "}
            <small>The page loads again, since it asks no other servers until you say so.</small>
          </p>
        )}
      </form>
      <p>
        <label class="file">
          From a file, or all shards
          <input
            id="model-file"
            type="file"
            accept=".gguf"
            multiple
            onChange={({ currentTarget }) => void addFiles([...(currentTarget.files ?? [])])}
          />
        </label>
      </p>
    </>
  );
}

function attempt(work: () => void): void {
  try {
    work();
  } catch (error) {
    showProblem(error);
  }
}
