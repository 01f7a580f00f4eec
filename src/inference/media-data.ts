import type { MediaPart } from "../engine/protocol/generation.ts";
import { checkAudio } from "./audio-data.ts";
import { isAudio } from "./audio-file.ts";
import { decodeDataUrl } from "./data-url.ts";
import { checkImage, decodeImage } from "./image-data.ts";

/**
 * Decodes an image or a recording, whichever it is, from base64 or a data: URL.
 * @param param path of the field, for the error
 * @throws ServiceError invalid_parameter
 */
export function decodeMedia(text: string, param: string): MediaPart {
  const bytes = decodeDataUrl(text);
  if (!bytes) return { type: "image", data: decodeImage(text, param) };
  return isAudio(bytes)
    ? { type: "audio", data: checkAudio(bytes, param) }
    : { type: "image", data: checkImage(bytes, param) };
}
