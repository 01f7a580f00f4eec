import { element } from "./browser.ts";
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
  const host = new URL(address).host;
  const label = name === host ? host : `${name} (${host})`;
  const explanation = isRejected
    ? `The daemon ${label} does not take this key. Give another one.`
    : `The daemon ${label} asks for an API key. Its operator has set one as api_keys.`;
  const key = element("input", { type: "password", id: "key", required: true, autocomplete: "off" });
  const remember = element("input", { type: "checkbox", id: "keep-key", checked: true });
  const decline = element("button", { type: "button" }, "Not now");
  const form = element(
    "form",
    { method: "dialog" },
    element("h2", { id: "key-title" }, "API key"),
    element("p", {}, explanation),
    element("label", {}, "Key ", key),
    element("label", {}, remember, " Keep it in this browser"),
    element("p", { className: "buttons" }, element("button", { id: "use-key" }, "Use this key"), decline),
  );
  const dialog = element("dialog", { id: "key-dialog" }, form);
  dialog.setAttribute("aria-labelledby", "key-title");
  decline.addEventListener("click", () => dialog.close());
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
