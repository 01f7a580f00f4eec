import { showProblem } from "./page-state.ts";

/** Copies a text to the clipboard. Browsers allow that only on localhost and over HTTPS. */
export function copyText(text: string): void {
  const { clipboard } = navigator as { readonly clipboard?: Clipboard };
  if (clipboard) clipboard.writeText(text).catch(showProblem);
  else showProblem(new Error("The browser lets a page copy only on localhost and over HTTPS."));
}

/** The browser may still read the blob after the click. */
const URL_LIFETIME_MS = 60_000;

/** Downloads JSON text as a file. */
export function saveAs(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), URL_LIFETIME_MS);
}
