import type { ContentPart, GenerationRequest } from "../protocol/generation.ts";
import type { EnginePlatform } from "./platform.ts";
import { toBmp } from "./to-bmp.ts";
import { damagedWebp, isWebp, readWebp } from "./webp.ts";

/**
 * A request whose images llama.cpp can read: it does not know WebP.
 * @throws ServiceError invalid_parameter for a damaged image, and for one with too many pixels
 */
export async function withReadableImages(
  request: GenerationRequest,
  decodeWebp: EnginePlatform["decodeWebp"],
): Promise<GenerationRequest> {
  const { input } = request;
  if (input.kind !== "chat" || !input.messages.some(({ content }) => content.some(isUnreadable)))
    return request;
  const messages: typeof input.messages = [];
  for (const message of input.messages) {
    const content: ContentPart[] = [];
    // One after another, as each takes a hundred megabytes for a moment.
    for (const part of message.content)
      content.push(isUnreadable(part) ? await toReadable(part, decodeWebp) : part);
    messages.push(Object.assign({}, message, { content }));
  }
  return { ...request, input: { ...input, messages } };
}

type ImagePart = Extract<ContentPart, { type: "image" }>;

function isUnreadable(part: ContentPart): part is ImagePart {
  return part.type === "image" && isWebp(part.data);
}

async function toReadable({ data }: ImagePart, decodeWebp: EnginePlatform["decodeWebp"]): Promise<ImagePart> {
  const { file, width, height } = readWebp(Uint8Array.from(data));
  const pixels = await decodeWebp(file).catch((error: unknown) => {
    throw damagedWebp(error);
  });
  // A decoder that has read another size has read something else.
  if (pixels.width !== width || pixels.height !== height) throw damagedWebp();
  return { type: "image", data: toBmp(pixels) };
}
