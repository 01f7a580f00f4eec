import { ServiceError } from "../errors/service-error.ts";
import { InvalidAudio, readAudio } from "./audio-file.ts";
import { decodeDataUrl } from "./data-url.ts";

/**
 * Longest recording in one request, in seconds. At 16,000 samples per second it takes 230 MB in an engine while it is
 * decoded; no model here has a context for more.
 */
const MOST_SECONDS = 3600;
/** llama.cpp ends the engine over a recording of one sample, also where resampling leaves no more; nobody hears less than this. */
const LEAST_SECONDS = 0.01;

/**
 * Decodes a recording from base64 or a data: URL.
 * @param param path of the field, for the error
 * @throws ServiceError invalid_parameter for a URL (the daemon fetches nothing), and for what is not base64 or not a usable
 *   WAV, MP3 or FLAC file
 */
export function decodeAudio(text: string, param: string): Uint8Array<ArrayBuffer> {
  if (/^https?:/i.test(text))
    throw invalid(param, "the daemon does not fetch URLs; send the recording itself as base64");
  const bytes = decodeDataUrl(text);
  if (!bytes) throw invalid(param, "must be a recording as base64");
  return checkAudio(bytes, param);
}

/**
 * A recording in a form that every engine can decode.
 * @throws ServiceError invalid_parameter
 */
export function checkAudio(bytes: Uint8Array<ArrayBuffer>, param: string): Uint8Array<ArrayBuffer> {
  try {
    const { data, seconds } = readAudio(bytes, MOST_SECONDS);
    if (seconds < LEAST_SECONDS) throw new InvalidAudio("it is shorter than 10 milliseconds");
    if (seconds <= MOST_SECONDS) return data;
    throw new InvalidAudio(`it has more than ${MOST_SECONDS / 60} minutes; send it in parts`);
  } catch (error) {
    if (error instanceof InvalidAudio) throw invalid(param, `the recording cannot be used: ${error.message}`);
    throw error;
  }
}

function invalid(param: string, what: string): ServiceError {
  return new ServiceError("invalid_parameter", `${param}: ${what}.`, { param });
}
