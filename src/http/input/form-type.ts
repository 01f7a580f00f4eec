import { ServiceError } from "../../errors/service-error.ts";

export const FORM_TYPE = "multipart/form-data";
const BOUNDARY = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i;

/** What separates the parts of a form; undefined if the headers do not say. */
export function formBoundary(headers: Headers): string | undefined {
  const [, quoted, plain] = BOUNDARY.exec(headers.get("content-type") ?? "") ?? [];
  return quoted ?? plain;
}

export function notAForm(what: string, cause?: unknown): ServiceError {
  return new ServiceError("invalid_parameter", `The body ${what}.`, { cause });
}
