import { ServiceError } from "../errors/service-error.ts";
import type { Model } from "../models/model.ts";
import type { InferenceRequest } from "./inference.ts";

/**
 * Checks that the model supports a generation.
 * @throws ServiceError unsupported_feature or invalid_parameter, whose message says what to do instead
 */
export function checkGeneration({ input, format, sampling }: InferenceRequest, model: Model): void {
  const { alias, capabilities, settings } = model;
  checkTextModel(model);
  const unknown = sampling.logitBias?.find(({ token }) => token >= model.gguf.vocabSize);
  if (unknown) {
    const last = model.gguf.vocabSize - 1;
    throw new ServiceError(
      "invalid_parameter",
      `"${alias}" has no token ${unknown.token}; its tokens are 0 to ${last}.`,
      { param: `logit_bias.${unknown.token}` },
    );
  }
  if ((sampling.adaptiveTarget ?? -1) >= 0 && !sampling.samplers?.includes("adaptive_p")) {
    throw new ServiceError(
      "invalid_parameter",
      'adaptive_target: has no effect without "adaptive_p" among the samplers; add it there.',
      { param: "adaptive_target" },
    );
  }
  if (format.type !== "text" && !capabilities.json) {
    refuse(`"${alias}" is marked as unable to answer in JSON (CAPABILITY json false).`, "format");
  }
  if (input.kind === "prompt" || input.kind === "infill") return;
  if (input.thinking === true && !capabilities.thinking) {
    refuse(`"${alias}" does not support thinking; leave it off or choose another model.`, "think");
  }
  if (countImages(input) > 0 && !capabilities.vision) {
    refuse(
      `"${alias}" cannot see images; choose a model with vision, or load it with its projector (mmproj).`,
      "images",
    );
  }
  if (input.kind === "instruct") return;
  if (hasAudio(input) && !capabilities.audio) {
    refuse(
      `"${alias}" cannot hear audio; choose a model that can, or load it with its audio projector (mmproj).`,
      "messages",
    );
  }
  const { tools, toolChoice } = input;
  if (tools.length > 0 && toolChoice !== "none" && !capabilities.tools && !settings.toolFormat) {
    refuse(
      `"${alias}" does not support tools; choose a model that does, or give it a TOOLFORMAT in a Modelfile.`,
      "tools",
    );
  }
  if (toolChoice === "required" && tools.length === 0) {
    invalid("The tool choice requires a call, but the request has no tools.");
  }
  if (typeof toolChoice === "object" && !tools.some(({ name }) => name === toolChoice.name)) {
    invalid(`The tool choice names "${toolChoice.name}", which is not among the request's tools.`);
  }
}

/** Checks that a model generates text. @throws ServiceError unsupported_feature */
export function checkTextModel({ alias, gguf }: Model): void {
  if (gguf.purpose === "generate") return;
  const kind = gguf.purpose === "embed" ? "an embedding model" : "a reranker model";
  refuse(`"${alias}" is ${kind} and cannot generate text; choose a text-generation model.`, "model");
}

/** Checks that a model can embed. @throws ServiceError unsupported_feature */
export function checkEmbedding({ alias, gguf }: Model): void {
  if (gguf.purpose === "rerank") {
    refuse(`"${alias}" is a reranker model and cannot make embeddings; choose an embedding model.`, "model");
  }
}

/** Checks that a model is a reranker. @throws ServiceError unsupported_feature */
export function checkReranking({ alias, gguf }: Model): void {
  if (gguf.purpose !== "rerank") {
    refuse(
      `"${alias}" is not a reranker model; choose one that is, such as the one that "daybreak pull jina-reranker:tiny" gets.`,
      "model",
    );
  }
}

function countImages(input: Exclude<InferenceRequest["input"], { kind: "prompt" | "infill" }>): number {
  if (input.kind === "instruct") return input.images.length;
  return input.messages.flatMap(({ content }) => content).filter(({ type }) => type === "image").length;
}

function hasAudio({ messages }: Extract<InferenceRequest["input"], { kind: "chat" }>): boolean {
  return messages.some(({ content }) => content.some(({ type }) => type === "audio"));
}

function refuse(message: string, param: string): never {
  throw new ServiceError("unsupported_feature", message, { param });
}

function invalid(message: string): never {
  throw new ServiceError("invalid_parameter", message, { param: "tool_choice" });
}
