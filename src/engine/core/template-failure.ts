import { ServiceError } from "../../errors/service-error.ts";
import { isInternal, OUT_OF_MEMORY } from "./plain-reason.ts";

/** What llama.cpp says when a chat template failed, while a model is loaded and while a request is taken on. */
const TEMPLATE_FAILED =
  /generate parser for this template|chat template parsing error|common_chat_templates_init|failed to initialize chat template|Jinja Exception|While executing \w+ at line/;

/** The template itself refuses what it is to show: its author wrote this for the user. */
const REFUSAL = /Jinja Exception: (.{1,300})/;

/** What the template language has against it: the last line of its report, or the only one. */
const REASON = /^(?:Error|common_chat_templates_init: error): (.{1,300})/m;

const STACK_OVERFLOW = /Maximum call stack size exceeded/;

const ADVICE = "Give the model another one, with TEMPLATE in a Modelfile.";

/**
 * The error of a chat template that failed; undefined when the text tells of something else.
 * @param text what llama.cpp has logged
 * @param during "load": no chat can be shown; "request": this one cannot
 */
export function templateFailure(text: string, during: "load" | "request"): ServiceError | undefined {
  if (!TEMPLATE_FAILED.test(text)) return undefined;
  if (OUT_OF_MEMORY.test(text)) return templateTooLarge();
  const refusal = REFUSAL.exec(text)?.[1];
  if (refusal !== undefined && during === "request") {
    return new ServiceError("invalid_parameter", `The model's chat template refuses the request: ${refusal}`);
  }
  const reason = refusal ?? REASON.exec(text)?.[1];
  const why = reason === undefined || isInternal(reason) ? "" : `: ${reason.replace(/\.$/, "")}`;
  return during === "request"
    ? new ServiceError("invalid_parameter", `The model's chat template cannot show this request${why}.`)
    : new ServiceError("invalid_template", `The model's chat template cannot be used${why}. ${ADVICE}`);
}

/** The error of a text that ends a template's run by its depth; undefined for other texts. */
export function templateTooDeep(text: string): ServiceError | undefined {
  if (!STACK_OVERFLOW.test(text)) return undefined;
  return new ServiceError(
    "invalid_template",
    `The model's chat template is nested too deeply, or calls itself without an end. ${ADVICE}`,
  );
}

function templateTooLarge(): ServiceError {
  return new ServiceError(
    "invalid_template",
    `The model's chat template needs more memory than the model was given. ${ADVICE}`,
  );
}

/** @param seconds how long it ran */
export function templateTooSlow(seconds: number): ServiceError {
  return new ServiceError(
    "invalid_template",
    `The model's chat template did not come to an end within ${Math.round(seconds)} s, so its engine was ended. ${ADVICE}`,
  );
}
