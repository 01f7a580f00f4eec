import type { Command, Option } from "commander";

/** What can be completed at a place of the command line. */
export type Completable =
  | { readonly kind: "models" }
  | { readonly kind: "files" }
  | { readonly kind: "choices"; readonly values: readonly string[] }
  /** Free text. */
  | { readonly kind: "nothing" };

export interface CompletableOption {
  /** "-m", "--model": all its names. */
  readonly names: readonly string[];
  readonly description: string;
  /** Absent when it takes no value. */
  readonly value: Completable | undefined;
}

export interface CompletableCommand {
  readonly names: readonly string[];
  readonly description: string;
  readonly options: readonly CompletableOption[];
  /** What its arguments are; all of them are alike. */
  readonly argument: Completable | undefined;
}

/** Reads off a program what a shell can complete, so that the scripts cannot differ from the commands. */
export function describeProgram(program: Command): CompletableCommand[] {
  return program.commands.map((command) => ({
    names: [command.name(), ...command.aliases()],
    description: command.description(),
    options: [...command.options.filter((option) => !option.hidden).map(describeOption), HELP],
    argument: describeArgument(command),
  }));
}

const HELP: CompletableOption = { names: ["-h", "--help"], description: "show help", value: undefined };

function describeOption(option: Option): CompletableOption {
  const names = [option.short, option.long].filter((name) => name !== undefined);
  const takesValue = option.required || option.optional;
  const valueName = /[<[]([a-z]+)/.exec(option.flags)?.[1];
  return {
    names,
    description: option.description,
    value: takesValue ? completable(option.argChoices, option.attributeName(), valueName) : undefined,
  };
}

function describeArgument(command: Command): Completable | undefined {
  const [argument] = command.registeredArguments;
  return argument && completable(argument.argChoices, argument.name(), argument.name());
}

function completable(choices: readonly string[] | undefined, name: string, valueName = ""): Completable {
  if (choices) return { kind: "choices", values: choices };
  if (name === "model" || name === "source") return { kind: "models" };
  if (valueName === "file" || valueName === "path") return { kind: "files" };
  return { kind: "nothing" };
}
