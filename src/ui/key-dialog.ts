import { type Daemon, keepKey, keyOf } from "./daemons.ts";

/** Asks a person for the API key of a daemon; both pages do, so this is plain DOM. */

/** Requests that need the same key wait for one answer. */
const asking = new Map<string, Promise<boolean>>();
/** Those whose key nobody wanted to give: a page that asks every few seconds would not let its user go on. */
const declined = new Set<string>();

/**
 * Resolves to true when there is another key than the one that was refused; to false when nobody gives one.
 * @param refused the key that the daemon did not take; undefined: it got none
 */
export async function askKey(daemon: Daemon, refused: string | undefined): Promise<boolean> {
  const { address } = daemon;
  if (keyOf(address) !== refused) return true;
  if (declined.has(address)) return false;
  const answer = asking.get(address) ?? showDialog(daemon, refused !== undefined);
  asking.set(address, answer);
  try {
    return await answer;
  } finally {
    asking.delete(address);
  }
}

/** Asks again at the next request, after somebody has closed the dialog without a key. */
export function askKeyAgain(address: string): void {
  declined.delete(address);
}

async function showDialog({ address, name }: Daemon, isRefused: boolean): Promise<boolean> {
  const dialog = document.createElement("dialog");
  dialog.id = "key-dialog";
  dialog.setAttribute("aria-labelledby", "key-title");
  const form = document.createElement("form");
  form.method = "dialog";
  const title = element("h2", "API key");
  title.id = "key-title";
  const host = new URL(address).host;
  const place = name === host ? host : `${name} (${host})`;
  const why = element(
    "p",
    isRefused
      ? `The daemon ${place} does not take this key. Give another one.`
      : `The daemon ${place} asks for an API key. Whoever runs it has set one as api_keys.`,
  );
  const key = document.createElement("input");
  key.type = "password";
  key.id = "key";
  key.required = true;
  key.autocomplete = "off";
  const keep = document.createElement("input");
  keep.type = "checkbox";
  keep.id = "keep-key";
  keep.checked = true;
  const keyLabel = element("label", "Key ");
  keyLabel.append(key);
  const keepLabel = document.createElement("label");
  keepLabel.append(keep, " Keep it in this browser");
  const send = element("button", "Use this key");
  send.id = "use-key";
  const leave = element("button", "Not now");
  leave.type = "button";
  leave.addEventListener("click", () => dialog.close());
  const buttons = document.createElement("p");
  buttons.className = "buttons";
  buttons.append(send, leave);
  form.append(title, why, keyLabel, keepLabel, buttons);
  dialog.append(form);
  document.body.append(dialog);
  let given = "";
  form.addEventListener("submit", () => (given = key.value.trim()));
  dialog.showModal();
  key.focus();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  dialog.remove();
  if (given === "") {
    declined.add(address);
    return false;
  }
  keepKey(address, given, !keep.checked);
  return true;
}

function element<Name extends "h2" | "p" | "label" | "button">(
  name: Name,
  text: string,
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
