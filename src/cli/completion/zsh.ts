import type { Completable, CompletableCommand, CompletableOption } from "./describe-program.ts";

/** Zsh completion by _arguments. */
export function zshCompletion(commands: readonly CompletableCommand[]): string {
  const described = commands.flatMap((command) =>
    command.names.map((name) => `    ${quote(`${name}:${command.description}`)}`),
  );
  const cases = commands.map((command) => {
    const specs = command.options.flatMap(optionSpecs);
    if (command.argument) specs.push(quote(`*:argument:${action(command.argument)}`));
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
  const value = option.value ? `:value:${action(option.value)}` : "";
  return option.names.map((name) => quote(`${name}[${description}]${value}`));
}

function action(value: Completable): string {
  switch (value.kind) {
    case "models":
      return "_daybreak_models";
    case "files":
      return "_files";
    case "choices":
      return `(${value.values.join(" ")})`;
    case "nothing":
      break;
  }
  return " ";
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
