import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { Button, Dialog, Form } from "../controls.tsx";
import { toError } from "../../errors/service-error.ts";
import {
  addDaemon,
  chooseDaemon,
  chosenDaemon,
  type Daemon,
  saveKey,
  keyOf,
  knownDaemons,
  servingDaemon,
  removeDaemon,
} from "../daemons.ts";
import { updateAllowed } from "./allowed-servers.ts";

/** Dialog that chooses where models run: this daemon, another daemon, or the browser. */
export function DaemonDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const daemons = useSignal(knownDaemons());
  const chosen = chosenDaemon()?.address;
  const remove = (address: string): void => {
    removeDaemon(address);
    if (address === chosen) reload();
    daemons.value = knownDaemons();
  };
  return (
    <Dialog id="daemon-dialog" title="Where models run" onClose={onClose}>
      <ul>
        {daemons.value.map((daemon) => (
          <DaemonEntry
            key={daemon.address}
            daemon={daemon}
            isChosen={daemon.address === chosen}
            onRemove={daemon.address === servingDaemon?.address ? undefined : () => remove(daemon.address)}
          />
        ))}
        <li>
          <Button
            class="choice"
            id="browser-only"
            aria-pressed={chosen === undefined}
            onClick={() => choose(undefined)}
          >
            <strong>This browser only</strong>
            <small>No daemon: models that are stored here run in this tab.</small>
          </Button>
        </li>
      </ul>
      <AddForm />
      <p class="buttons">
        <Button id="close-daemons" onClick={onClose}>
          Close
        </Button>
      </p>
    </Dialog>
  );
}

interface DaemonEntryProps {
  readonly daemon: Daemon;
  readonly isChosen: boolean;
  /** Undefined if the entry cannot be removed. */
  readonly onRemove: (() => void) | undefined;
}

function DaemonEntry({ daemon, isChosen, onRemove }: DaemonEntryProps): JSX.Element {
  const { address, name } = daemon;
  const isServing = address === servingDaemon?.address;
  return (
    <li>
      <Button class="choice" aria-pressed={isChosen} onClick={() => choose(address)}>
        <strong>{isServing ? "This daemon" : name}</strong>
        <small>
          {address}
          {keyOf(address) !== undefined && " · with an API key"}
        </small>
      </Button>
      {onRemove && (
        <Button class="remove" title={`Remove ${name}`} onClick={onRemove}>
          ✕
        </Button>
      )}
    </li>
  );
}

function AddForm(): JSX.Element {
  const problem = useSignal("");
  const add = (form: HTMLFormElement): void => {
    const data = new FormData(form);
    const fieldText = (field: string): string => {
      const text = data.get(field);
      return typeof text === "string" ? text.trim() : "";
    };
    try {
      const { address } = addDaemon(fieldText("address"), fieldText("name"));
      if (fieldText("key") !== "") saveKey(address, fieldText("key"), false);
      choose(address);
    } catch (error) {
      problem.value = toError(error).message;
    }
  };
  return (
    <Form id="add-daemon" onSubmit={add}>
      <h3>Another daemon</h3>
      <label>
        Address <input name="address" placeholder="http://box:8080" required autocomplete="off" />
      </label>
      <label>
        Name <input name="name" placeholder="As you like" autocomplete="off" />
      </label>
      <label>
        API key <input name="key" type="password" placeholder="If it has one" autocomplete="off" />
      </label>
      {problem.value !== "" && (
        <p class="failed" role="alert">
          {problem}
        </p>
      )}
      <p class="buttons">
        <button type="submit">Add and use</button>
      </p>
      <p>
        <small>
          Another daemon must accept requests from this page, as it does unless its option http.cors_origins
          lists other pages. Names and keys stay in this browser.
        </small>
      </p>
    </Form>
  );
}

function choose(address: string | undefined): void {
  chooseDaemon(address);
  reload();
}

/** Reloads the page, since the state of all views belongs to one daemon. */
function reload(): void {
  if (!updateAllowed()) location.reload();
}
