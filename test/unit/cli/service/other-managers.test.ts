import { describe, expect, it } from "vitest";
import { findManager } from "../../../../src/cli/service/find-manager.ts";
import { launchd } from "../../../../src/cli/service/launchd.ts";
import { taskScheduler } from "../../../../src/cli/service/task-scheduler.ts";
import type { ToolResult } from "../../../../src/cli/service/service-manager.ts";

const program = {
  command: ["/opt/<node>/node", "/opt/daybreak/daybreak.mjs", "serve"],
  stopSeconds: 60,
  env: { SERVICE_LOG_FORMAT: "text" },
} as const;

const answer = (code: number, stdout = ""): ToolResult => ({ code, stdout, stderr: "" });

const agent = launchd({ program, home: "/Users/ada", uid: 501 });

/** What launchctl is told to do. */
function steps(enabled: boolean, hasChanged: boolean): (string | undefined)[] {
  return agent.activate({ enabled, running: enabled }, hasChanged).map(([, what]) => what);
}

function find(scope: "user" | "system", platform: NodeJS.Platform): unknown {
  return findManager({ scope, program, env: { HOME: "/home/ada" }, platform });
}

describe("an agent of launchd", () => {
  it("is a property list in the account's own folder", () => {
    expect(agent.file).toBe("/Users/ada/Library/LaunchAgents/daybreak.plist");
    expect(agent.content).toContain(
      "<string>/opt/&lt;node&gt;/node</string>\n    <string>/opt/daybreak/daybreak.mjs",
    );
    expect(agent.content).toContain("<key>ExitTimeOut</key>\n  <integer>60</integer>");
    expect(agent.content).toContain("<key>SuccessfulExit</key>\n    <false/>");
    expect(agent.content).toContain("<string>/Users/ada/Library/Logs/daybreak.log</string>");
  });

  it("is loaded once, and loaded anew when it has changed", () => {
    expect(steps(false, true)).toEqual(["bootstrap"]);
    expect(steps(true, true)).toEqual(["bootout", "bootstrap"]);
    expect(steps(true, false)).toEqual(["kickstart"]);
  });

  it("is seen to run by its process", () => {
    expect(agent.readState(answer(113))).toEqual({ enabled: false, running: false });
    const running = answer(0, "gui/501/daybreak = {\n\tstate = running\n\tpid = 77\n}");
    expect(agent.readState(running)).toEqual({ enabled: true, running: true, pid: 77 });
    expect(agent.readState(answer(0, "\tstate = not running"))).toEqual({ enabled: true, running: false });
  });
});

describe("a task of Windows", () => {
  const task = taskScheduler({
    program: { ...program, command: ["C:\\Program Files\\nodejs\\node.exe", "C:\\d\\daybreak.mjs", "serve"] },
    dataFolder: "C:\\Users\\Ada\\AppData\\Local",
    account: "BOX\\Ada & Co",
  });

  it("is a description in the scheduler's encoding, with the program quoted within", () => {
    expect(task.encoding).toBe("utf16le");
    expect(task.content).toContain('encoding="UTF-16"');
    expect(task.content).toContain("<UserId>BOX\\Ada &amp; Co</UserId>");
    expect(task.content).toContain(
      "&quot;C:\\Program Files\\nodejs\\node.exe&quot; &quot;C:\\d\\daybreak.mjs&quot; &quot;serve&quot; &gt;&gt; &quot;C:\\Users\\Ada\\AppData\\Local\\daybreak\\service.log&quot; 2&gt;&amp;1",
    );
  });

  it("is never ended for having run long, and not on batteries either", () => {
    expect(task.content).toContain("<ExecutionTimeLimit>PT0S</ExecutionTimeLimit>");
    expect(task.content).toContain("<StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>");
  });

  it("is drained before it is deleted", () => {
    expect(task.deactivate.map(([, what, last]) => [what, last])).toEqual([
      ["C:\\d\\daybreak.mjs", "stop"],
      ["/Delete", "/TN"],
    ]);
  });
});

describe("on other systems", () => {
  it("says what to do where no service manager is known", () => {
    expect(() => find("user", "freebsd")).toThrow(/daybreak serve/);
  });

  it("has no service of the system beside systemd's", () => {
    expect(() => find("system", "darwin")).toThrow(/--system needs systemd/);
  });
});
