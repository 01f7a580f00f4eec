import type { Completable, CompletableCommand } from "./describe-program.ts";

/** Bash completion that does not need the bash-completion package, which not every system has. */
export function bashCompletion(commands: readonly CompletableCommand[]): string {
  const cases = commands.map((command) => {
    const options = command.options.flatMap((option) => option.names).join(" ");
    const values = command.options.flatMap((option) =>
      option.value ? [`        ${option.names.join("|")}) ${action(option.value)}; return ;;`] : [],
    );
    return `    ${command.names.join("|")})
      case "$previous" in
${values.join("\n")}
      esac
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "${options}" -- "$current"))
      else
        ${action(command.argument ?? { kind: "nothing" })}
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

function action(value: Completable): string {
  switch (value.kind) {
    case "models":
      return "_daybreak_models";
    case "files":
      return 'compopt -o filenames; COMPREPLY=($(compgen -f -- "$current"))';
    case "choices":
      return `COMPREPLY=($(compgen -W "${value.values.join(" ")}" -- "$current"))`;
    case "nothing":
      break;
  }
  return ":";
}
