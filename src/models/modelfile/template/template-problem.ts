/** A TEMPLATE cannot be read. Only chat-template.ts lets it out, as the error of a Modelfile. */
export class TemplateProblem extends Error {
  /** Characters from the beginning of the template. */
  readonly position: number;

  constructor(position: number, message: string) {
    super(message);
    this.position = position;
  }
}
