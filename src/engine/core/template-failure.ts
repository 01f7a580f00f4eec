import { ServiceError } from "../../errors/service-error.ts";
import { isInternal, OUT_OF_MEMORY } from "./plain-reason.ts";

/** llama.cpp's messages when a chat template fails, during a load or for a request. */
const TEMPLATE_FAILED =
  /generate parser for this template|chat template parsing error|common_chat_templates_init|failed to initialize chat template|Jinja Exception|While executing \w+ at line/;

/** The template rejects its input with a message that its author wrote for the user. */
const REFUSAL = /Jinja Exception: (.{1,300})/;

/** The reason of the template engine: the last or only line of its report. */
const REASON = /^(?:Error|common_chat_templates_init: error): (.{1,300})/m;

const STACK_OVERFLOW = /Maximum call stack size exceeded/;

const ADVICE = "Replace it with TEMPLATE in a Modelfile.";

/**
 * The error for a failed chat template; undefined when the text is about something else.
 * @param text llama.cpp's log
 * @param during "load": the template is unusable; "request": it fails for this request
 */
export function templateFailure(text: string, during: "load" | "request"): ServiceError | undefined {
  if (!TEMPLATE_FAILED.test(text)) return undefined;
  if (OUT_OF_MEMORY.test(text)) return templateTooLarge();
  const refusal = REFUSAL.exec(text)?.[1];
  if (refusal !== undefined && during === "request") {
    return new ServiceError("invalid_parameter", `The model's chat template rejects the request: ${refusal}`);
  }
  const reason = refusal ?? REASON.exec(text)?.[1];
  const why = reason === undefined || isInternal(reason) ? "" : `: ${reason.replace(/\.$/, "")}`;
  return during === "request"
    ? new ServiceError("invalid_parameter", `The model's chat template cannot render this request${why}.`)
    : new ServiceError("invalid_template", `The model's chat template cannot be used${why}. ${ADVICE}`);
}

/** The error for a template that overflowed the stack; undefined when the text is about something else. */
export function templateTooDeep(text: string): ServiceError | undefined {
  if (!STACK_OVERFLOW.test(text)) return undefined;
  return new ServiceError(
    "invalid_template",
    `The model's chat template is nested too deeply or recurses endlessly. ${ADVICE}`,
  );
}

function templateTooLarge(): ServiceError {
  return new ServiceError(
    "invalid_template",
    `The model's chat template needs more memory than the model has. ${ADVICE}`,
  );
}

/** @param seconds how long it ran */
export function templateTooSlow(seconds: number): ServiceError {
  return new ServiceError(
    "invalid_template",
    `The model's chat template did not finish within ${Math.round(seconds)} s, so the model's engine was stopped. ${ADVICE}`,
  );
}
