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
