import { showProblem } from "./page-state.ts";

/** Puts a text on the clipboard; browsers allow that on localhost and over HTTPS alone. */
export function copyText(text: string): void {
  const { clipboard } = navigator as { readonly clipboard?: Clipboard };
  if (clipboard) clipboard.writeText(text).catch(showProblem);
  else showProblem(new Error("The browser lets a page copy only on localhost and over HTTPS."));
}
