import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { toError } from "../../errors/to-error.ts";
import {
  addDaemon,
  chooseDaemon,
  chosenDaemon,
  type Daemon,
  keepKey,
  keyOf,
  knownDaemons,
  ownDaemon,
  removeDaemon,
} from "../daemons.ts";
import { keepAllowed } from "./allowed-servers.ts";

/** Chooses where models run: this daemon, another one, or the browser alone. */
export function DaemonDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const daemons = useSignal(knownDaemons());
  useEffect(() => dialog.current?.showModal(), []);
  const chosen = chosenDaemon()?.address;
  const remove = (address: string): void => {
    removeDaemon(address);
    if (address === chosen) loadAgain();
    daemons.value = knownDaemons();
  };
  return (
    <dialog id="daemon-dialog" ref={dialog} aria-labelledby="daemon-title" onClose={onClose}>
      <h2 id="daemon-title">Where models run</h2>
      <ul>
        {daemons.value.map((daemon) => (
          <Entry
            key={daemon.address}
            daemon={daemon}
            isChosen={daemon.address === chosen}
            onRemove={daemon.address === ownDaemon?.address ? undefined : () => remove(daemon.address)}
          />
        ))}
        <li>
          <button
            type="button"
            class="choice"
            id="browser-only"
            aria-pressed={chosen === undefined}
            onClick={() => choose(undefined)}
          >
            <strong>This browser only</strong>
            <small>No daemon: models that are stored here run in this tab.</small>
          </button>
        </li>
      </ul>
      <AddForm />
      <p class="buttons">
        <button type="button" id="close-daemons" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </p>
    </dialog>
  );
}

interface EntryProps {
  readonly daemon: Daemon;
  readonly isChosen: boolean;
  /** Undefined: it cannot be removed. */
  readonly onRemove: (() => void) | undefined;
}

function Entry({ daemon, isChosen, onRemove }: EntryProps): JSX.Element {
  const { address, name } = daemon;
  const isOwn = address === ownDaemon?.address;
  return (
    <li>
      <button type="button" class="choice" aria-pressed={isChosen} onClick={() => choose(address)}>
        <strong>{isOwn ? "This daemon" : name}</strong>
        <small>
          {address}
          {keyOf(address) !== undefined && " · with an API key"}
        </small>
      </button>
      {onRemove && (
        <button type="button" class="remove" title={`Remove ${name}`} onClick={onRemove}>
          ✕
        </button>
      )}
    </li>
  );
}

function AddForm(): JSX.Element {
  const problem = useSignal("");
  const add = (form: HTMLFormElement): void => {
    const given = new FormData(form);
    const of = (field: string): string => {
      const text = given.get(field);
      return typeof text === "string" ? text.trim() : "";
    };
    try {
      const { address } = addDaemon(of("address"), of("name"));
      if (of("key") !== "") keepKey(address, of("key"), false);
      choose(address);
    } catch (error) {
      problem.value = toError(error).message;
    }
  };
  return (
    <form
      id="add-daemon"
      onSubmit={(event) => {
        event.preventDefault();
        add(event.currentTarget);
      }}
    >
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
    </form>
  );
}

function choose(address: string | undefined): void {
  chooseDaemon(address);
  loadAgain();
}

/** What rooms show belongs to one daemon. */
function loadAgain(): void {
  if (!keepAllowed()) location.reload();
}
