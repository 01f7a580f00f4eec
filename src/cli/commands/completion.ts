import { Argument, Command } from "commander";
import type { CliIo } from "../cli-io.ts";
import { bashCompletion } from "../completion/bash.ts";
import { describeProgram } from "../completion/describe-program.ts";
import { fishCompletion } from "../completion/fish.ts";
import { zshCompletion } from "../completion/zsh.ts";
import { write } from "../terminal/write.ts";

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
