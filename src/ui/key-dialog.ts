import { type Daemon, saveKey, keyOf } from "./daemons.ts";

/** Dialog that asks for the API key of a daemon. It is plain DOM, since the experiments page has no Preact. */

/** Open dialogs by address: concurrent requests wait for the same one. */
const openDialogs = new Map<string, Promise<boolean>>();
/** Addresses whose dialog the user closed. Polling must not open it again every few seconds. */
const declined = new Set<string>();

/**
 * Asks the user for an API key.
 * @param rejectedKey the key that the daemon rejected; undefined if none was sent
 * @returns true if there is a key now that differs from the rejected one
 */
export async function requestKey(daemon: Daemon, rejectedKey: string | undefined): Promise<boolean> {
  const { address } = daemon;
  if (keyOf(address) !== rejectedKey) return true;
  if (declined.has(address)) return false;
  const answer = openDialogs.get(address) ?? showDialog(daemon, rejectedKey !== undefined);
  openDialogs.set(address, answer);
  try {
    return await answer;
  } finally {
    openDialogs.delete(address);
  }
}

/** Lets the next request open the dialog again after the user has closed it. */
export function allowKeyRequest(address: string): void {
  declined.delete(address);
}

async function showDialog({ address, name }: Daemon, isRejected: boolean): Promise<boolean> {
  const dialog = document.createElement("dialog");
  dialog.id = "key-dialog";
  dialog.setAttribute("aria-labelledby", "key-title");
  const form = document.createElement("form");
  form.method = "dialog";
  const title = element("h2", "API key");
  title.id = "key-title";
  const host = new URL(address).host;
  const label = name === host ? host : `${name} (${host})`;
  const explanation = element(
    "p",
    isRejected
      ? `The daemon ${label} does not take this key. Give another one.`
      : `The daemon ${label} asks for an API key. Its operator has set one as api_keys.`,
  );
  const key = document.createElement("input");
  key.type = "password";
  key.id = "key";
  key.required = true;
  key.autocomplete = "off";
  const remember = document.createElement("input");
  remember.type = "checkbox";
  remember.id = "keep-key";
  remember.checked = true;
  const keyLabel = element("label", "Key ");
  keyLabel.append(key);
  const rememberLabel = document.createElement("label");
  rememberLabel.append(remember, " Keep it in this browser");
  const send = element("button", "Use this key");
  send.id = "use-key";
  const decline = element("button", "Not now");
  decline.type = "button";
  decline.addEventListener("click", () => dialog.close());
  const buttons = document.createElement("p");
  buttons.className = "buttons";
  buttons.append(send, decline);
  form.append(title, explanation, keyLabel, rememberLabel, buttons);
  dialog.append(form);
  document.body.append(dialog);
  let entered = "";
  form.addEventListener("submit", () => (entered = key.value.trim()));
  dialog.showModal();
  key.focus();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  dialog.remove();
  if (entered === "") {
    declined.add(address);
    return false;
  }
  saveKey(address, entered, !remember.checked);
  return true;
}

function element<Name extends "h2" | "p" | "label" | "button">(
  name: Name,
  text: string,
): HTMLElementTagNameMap[Name] {
  const created = document.createElement(name);
  created.textContent = text;
  return created;
}
