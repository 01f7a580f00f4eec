import { signal as createSignal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { HUB_ORIGINS } from "../../api/wire/page-policy.ts";
import { Button, Form, bound } from "../controls.tsx";
import { chooseModelFiles, chooseProjector, HUB_PREFIX, parseHubSpec } from "../../models/names/hub-spec.ts";
import { hubPaths } from "../../tab/store/hub-files.ts";
import type { StoredModel, StoreOptions } from "../../tab/store/model-store.ts";
import { exportedHub, isExported } from "../daemons.ts";
import { problem, showProblem } from "../page-state.ts";
import { allowServer, isAllowed } from "../page/allowed-servers.ts";
import { pageStore, refreshStored } from "../stored-models.ts";

/** The running download and its progress, 0 to 1. */
const download = createSignal<{ readonly spec: string; readonly share: number } | undefined>(undefined);
let controller = new AbortController();

/** Downloads a model. One download runs at a time, since several would only share the bandwidth. */
async function downloadModel(spec: string): Promise<void> {
  problem.value = "";
  controller = new AbortController();
  const { signal } = controller;
  download.value = { spec, share: 0 };
  try {
    await storeFromHub(spec, { signal, onProgress: (share) => (download.value = { spec, share }) });
  } catch (error) {
    if (!signal.aborted) showProblem(error);
  } finally {
    download.value = undefined;
    await refreshStored();
  }
}

/** Form that downloads models from the hub into the browser, on pages without a daemon. */
export function FromHub(): JSX.Element {
  const spec = useSignal("");
  const isHubAllowed = isExported || isAllowed(HUB_ORIGINS[0]);
  if (download.value) return <Progress {...download.value} />;
  return (
    <Form id="from-hub" onSubmit={() => downloadModel(spec.value.trim())}>
      <label>
        From the hub{" "}
        <input
          name="spec"
          placeholder="hf:owner/repository:Q4_K_M"
          required
          autocomplete="off"
          {...bound(spec)}
        />
      </label>{" "}
      {isHubAllowed ? (
        <button type="submit">Download</button>
      ) : (
        <>
          <Button id="allow-hub" onClick={allowHub}>
            Let this page ask the hub
          </Button>{" "}
          <small>The page loads again, since it asks no other servers until you say so.</small>
        </>
      )}
    </Form>
  );
}

function Progress({ spec, share }: { readonly spec: string; readonly share: number }): JSX.Element {
  return (
    <p id="storing">
      <label>
        Storing {spec} <progress value={share} /> {Math.floor(100 * share)} %
      </label>{" "}
      <Button onClick={() => controller.abort()}>Stop</Button>
    </p>
  );
}

function allowHub(): void {
  try {
    allowServer(...HUB_ORIGINS);
  } catch (error) {
    showProblem(error);
  }
}

/**
 * Downloads a model from the hub into this browser, with its projector if it has one.
 * @param spec [hf:]owner/repository[:file.gguf or quantization][@revision]
 * @throws ServiceError with a message for the user
 */
async function storeFromHub(spec: string, options: StoreOptions): Promise<StoredModel> {
  const text = spec.startsWith(HUB_PREFIX) ? spec : `${HUB_PREFIX}${spec}`;
  const { owner, repo, revision, ...choice } = parseHubSpec(text);
  const name = `${owner}/${repo}`;
  const hub = {
    ...options,
    ...(revision !== undefined && { revision }),
    ...(exportedHub !== undefined && { hub: exportedHub }),
  };
  const paths = await hubPaths(name, hub);
  const [file] = chooseModelFiles(paths, choice) ?? [];
  if (file === undefined) {
    throw new Error(
      `The repository ${name} has no GGUF model${(choice.quant ?? choice.file) ? " of that name or quantization" : ""}. Look at its files on the hub.`,
    );
  }
  const projector = chooseProjector(paths, file);
  return await pageStore().downloadFromHub(name, file, {
    ...hub,
    ...(projector !== undefined && { projector }),
  });
}
