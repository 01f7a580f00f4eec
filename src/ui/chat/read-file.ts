import type { TextFile } from "./conversation.ts";

/** Image formats that engines decode. */
const SUPPORTED_IMAGE = /^image\/(png|jpeg|gif|bmp)$/;

/** Maximum size of a text file: already more than most contexts hold. */
const MAX_TEXT_BYTES = 2 * 1024 * 1024;

/** Maximum size of a PDF file, most of which is images and fonts. */
const MAX_PDF_BYTES = 64 * 1024 * 1024;

/** Maximum length of a file's text. */
const MAX_TEXT_CHARACTERS = 2_000_000;

export function isImage({ type }: File): boolean {
  return type.startsWith("image/");
}

/**
 * Reads an image as a data URL. Converts formats that engines do not decode to PNG.
 * @throws Error with a message for the user
 */
export async function readImage(file: File): Promise<string> {
  let blob: Blob = file;
  if (!SUPPORTED_IMAGE.test(file.type)) {
    const bitmap = await createImageBitmap(file).catch((error: unknown) => {
      throw new Error(`${file.name} is not an image that this browser can read.`, { cause: error });
    });
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
    blob = await canvas.convertToBlob({ type: "image/png" });
  }
  const reader = new FileReader();
  return await new Promise((resolve, reject) => {
    reader.addEventListener("load", () => resolve(typeof reader.result === "string" ? reader.result : ""));
    reader.addEventListener("error", () => reject(new Error(`${file.name} cannot be read.`)));
    reader.readAsDataURL(blob);
  });
}

/**
 * Reads the text of a text or PDF file.
 * @throws Error with a message for the user
 */
export async function readText(file: File): Promise<TextFile> {
  const { name } = file;
  const isPdf = file.type === "application/pdf" || name.toLowerCase().endsWith(".pdf");
  const limit = isPdf ? MAX_PDF_BYTES : MAX_TEXT_BYTES;
  if (file.size > limit) {
    throw new Error(`${name} is larger than ${limit / 1024 / 1024} MiB. Send the part that matters.`);
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  const text = isPdf ? await readPdf(name, bytes) : decode(name, bytes);
  if (text.trim() === "") {
    throw new Error(
      isPdf ? `${name} has no text, only images of it. Send its pages as images.` : `${name} is empty.`,
    );
  }
  if (text.length > MAX_TEXT_CHARACTERS) throw new Error(`${name} has more text than any context holds.`);
  return { name, text };
}

async function readPdf(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  // The PDF library is large and rarely needed.
  const { pdfText } = await import("./pdf-text.ts");
  try {
    return await pdfText(bytes);
  } catch (error) {
    throw new Error(`${name} cannot be read: it is damaged, protected by a password, or not a PDF file.`, {
      cause: error,
    });
  }
}

function decode(name: string, bytes: Uint8Array): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // Other encodings cannot be detected reliably.
  }
  throw new Error(`${name} is neither text in UTF-8, nor a PDF file, nor an image.`);
}
