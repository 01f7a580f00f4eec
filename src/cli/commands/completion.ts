import { Argument, Command, type Option } from "commander";
import { type CliIo, write } from "../cli-io.ts";

const SHELLS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

/** daybreak completion <shell> */
export function completionCommand(io: CliIo): Command {
  const command = new Command("completion")
    .description("print a script that completes commands, options and model names in a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SHELLS)))
    .addHelpText(
      "after",
      `
For this session, or as a line of the shell's startup file:
  bash   eval "$(daybreak completion bash)"
  zsh    eval "$(daybreak completion zsh)"
  fish   daybreak completion fish | source`,
    );
  return command.action(async (shell: keyof typeof SHELLS) => {
    const program = command.parent;
    if (program) await write(io.stdout, SHELLS[shell](describeProgram(program)));
  });
}

/** Kind of value that the shell completes; "nothing" is free text. */
type ValueKind = "models" | "files" | "nothing";
/** Value that the shell completes: one of these choices, or of a kind. */
type Completable = readonly string[] | ValueKind;

interface CompletableOption {
  /** All names: "-m", "--model". */
  readonly names: readonly string[];
  readonly description: string;
  /** Undefined if it takes no value. */
  readonly value: Completable | undefined;
}

interface CompletableCommand {
  readonly names: readonly string[];
  readonly description: string;
  readonly options: readonly CompletableOption[];
  /** Kind of its arguments, which is the same for all of them. */
  readonly argument: Completable | undefined;
}

/** Describes the commands for the scripts, from commander's definitions. */
function describeProgram(program: Command): CompletableCommand[] {
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
  if (choices) return choices;
  if (name === "model" || name === "source") return "models";
  return valueName === "file" || valueName === "path" ? "files" : "nothing";
}

/** Script for bash, without the bash-completion package, which not every system has. */
function bashCompletion(commands: readonly CompletableCommand[]): string {
  const cases = commands.map((command) => {
    const options = command.options.flatMap((option) => option.names).join(" ");
    const values = command.options.flatMap((option) =>
      option.value ? [`        ${option.names.join("|")}) ${bashAction(option.value)}; return ;;`] : [],
    );
    return `    ${command.names.join("|")})
      case "$previous" in
${values.join("\n")}
      esac
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "${options}" -- "$current"))
      else
        ${bashAction(command.argument ?? "nothing")}
      fi ;;`;
  });
  const names = commands.flatMap((command) => command.names).join(" ");
  return `# Completion of daybreak for bash.
_daybreak_models() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(daybreak list --quiet 2>/dev/null)" -- "$current"))
  # Bash splits words at colons: what stands before the last one is on the line already.
  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
    local before=\${current%"\${current##*:}"} index
    for index in "\${!COMPREPLY[@]}"; do COMPREPLY[index]=\${COMPREPLY[index]#"$before"}; done
  fi
}
_daybreak() {
  local line=\${COMP_LINE:0:COMP_POINT}
  # From the line: in COMP_WORDS a colon splits a model's name.
  local current=\${line##*[[:space:]]} words
  read -ra words <<<"\${line%"$current"}"
  local previous=\${words[-1]}
  COMPREPLY=()
  if ((\${#words[@]} == 1)); then
    COMPREPLY=($(compgen -W "${names} help --version --help" -- "$current"))
    return
  fi
  case "\${words[1]}" in
    help) COMPREPLY=($(compgen -W "${names}" -- "$current")) ;;
${cases.join("\n")}
  esac
}
complete -F _daybreak daybreak
`;
}

const BASH_ACTIONS: Readonly<Record<ValueKind, string>> = {
  models: "_daybreak_models",
  files: 'compopt -o filenames; COMPREPLY=($(compgen -f -- "$current"))',
  nothing: ":",
};

function bashAction(value: Completable): string {
  return typeof value === "string"
    ? BASH_ACTIONS[value]
    : `COMPREPLY=($(compgen -W "${value.join(" ")}" -- "$current"))`;
}

/** Script for fish. */
function fishCompletion(commands: readonly CompletableCommand[]): string {
  const lines = [
    "# Completion of daybreak for fish.",
    "function __daybreak_models",
    "  daybreak list --quiet 2>/dev/null",
    "end",
    "complete -c daybreak -f",
  ];
  for (const command of commands) {
    for (const name of command.names) {
      lines.push(
        `complete -c daybreak -n __fish_use_subcommand -a ${name} -d ${fishQuote(command.description)}`,
      );
    }
    const condition = `-n ${fishQuote(`__fish_seen_subcommand_from ${command.names.join(" ")}`)}`;
    for (const option of command.options) {
      const names = option.names.map((name) =>
        name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
      );
      const value = option.value ? ` ${fishAction(option.value, "-x", "-r -F")}` : "";
      lines.push(
        `complete -c daybreak ${condition} ${names.join(" ")}${value} -d ${fishQuote(option.description)}`,
      );
    }
    if (command.argument && command.argument !== "nothing") {
      lines.push(`complete -c daybreak ${condition} ${fishAction(command.argument, "", "-F")}`.trimEnd());
    }
  }
  return `${lines.join("\n")}\n`;
}

function fishAction(value: Completable, exclusive: string, files: string): string {
  if (value === "files") return files;
  if (value === "nothing") return exclusive;
  const words = value === "models" ? "'(__daybreak_models)'" : fishQuote(value.join(" "));
  return `${exclusive} -a ${words}`.trim();
}

function fishQuote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** Script for zsh, with _arguments. */
function zshCompletion(commands: readonly CompletableCommand[]): string {
  const described = commands.flatMap((command) =>
    command.names.map((name) => `    ${zshQuote(`${name}:${command.description}`)}`),
  );
  const cases = commands.map((command) => {
    const specs = command.options.flatMap(optionSpecs);
    if (command.argument) specs.push(zshQuote(`*:argument:${zshAction(command.argument)}`));
    return `    ${command.names.join("|")})
      _arguments -s \\
        ${specs.join(" \\\n        ")} ;;`;
  });
  return `#compdef daybreak
# Completion of daybreak for zsh.
_daybreak_models() {
  local -a models
  models=(\${(f)"$(daybreak list --quiet 2>/dev/null)"})
  compadd -a models
}
_daybreak() {
  local -a commands
  commands=(
${described.join("\n")}
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local name=$words[2]
  shift words
  ((CURRENT--))
  case $name in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = "_daybreak" ]; then _daybreak "$@"; else compdef _daybreak daybreak; fi
`;
}

function optionSpecs(option: CompletableOption): string[] {
  const description = option.description.replace(/[[\]:]/g, (character) => `\\${character}`);
  const value = option.value ? `:value:${zshAction(option.value)}` : "";
  return option.names.map((name) => zshQuote(`${name}[${description}]${value}`));
}

const ZSH_ACTIONS: Readonly<Record<ValueKind, string>> = {
  models: "_daybreak_models",
  files: "_files",
  nothing: " ",
};

function zshAction(value: Completable): string {
  return typeof value === "string" ? ZSH_ACTIONS[value] : `(${value.join(" ")})`;
}

function zshQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
