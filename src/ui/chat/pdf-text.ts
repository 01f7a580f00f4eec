import { getDocument, GlobalWorkerOptions } from "pdfjs-dist/legacy/build/pdf.mjs";

/** The build puts the worker next to the page's script. */
GlobalWorkerOptions.workerSrc = new URL("pdf-worker.js", import.meta.url).href;

/**
 * Extracts the text of a PDF file, page by page.
 * @throws if the file is damaged or needs a password
 */
export async function pdfText(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const task = getDocument({ data: bytes, disableFontFace: true, useSystemFonts: false });
  try {
    const file = await task.promise;
    const pages: string[] = [];
    for (let number = 1; number <= file.numPages; number += 1) {
      const { items } = await (await file.getPage(number)).getTextContent();
      const text = items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join("");
      pages.push(text.trim());
    }
    return pages.join("\n\n").trim();
  } finally {
    await task.destroy();
  }
}
