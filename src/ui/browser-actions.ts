import { showProblem } from "./page-state.ts";

/** Puts a text on the clipboard; browsers allow that on localhost and over HTTPS alone. */
export function copyText(text: string): void {
  const { clipboard } = navigator as { readonly clipboard?: Clipboard };
  if (clipboard) clipboard.writeText(text).catch(showProblem);
  else showProblem(new Error("The browser lets a page copy only on localhost and over HTTPS."));
}

/** The browser may read a file that late. */
const KEPT_MS = 60_000;

/** Lets the browser save a text, which is JSON, as a file. */
export function saveAs(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
