import type OpenAI from "openai";

/** The ids of the lines that a file of a batch's answers has. */
export async function answeredLines(client: OpenAI, file: string | null | undefined): Promise<string[]> {
  const text = await (await client.files.content(file ?? "")).text();
  return text
    .trimEnd()
    .split("\n")
    .map((each) => {
      const { custom_id: id }: { custom_id: string } = JSON.parse(each);
      return id;
    });
}
