import { type BrowserEngine, createEngine } from "daybreak/browser";

const file = document.querySelector<HTMLInputElement>("[type=file]")!;
const question = document.querySelector<HTMLInputElement>("[type=text]")!;
const output = document.querySelector("pre")!;
let engine: BrowserEngine | undefined;

file.addEventListener("change", async () => {
  engine?.close();
  const onProgress = (share: number) => (output.textContent = `Loading: ${Math.round(share * 100)} %`);
  engine = await createEngine({ model: file.files![0]!, onProgress });
  output.textContent = `${engine.name} is ready.`;
  question.disabled = false;
});

question.addEventListener("change", async () => {
  output.textContent = "";
  const onText = (piece: string) => (output.textContent += piece);
  await engine!.chat([{ role: "user", content: question.value }], { onText });
  output.append("\n(done)");
});
