// Expressions for the page that shows the monitor.

/** The value in words beside a line of a chart. */
export function valueOf(chart: string, line: string): string {
  return `[...document.querySelectorAll(".chart")].find((each) => each.querySelector("h3").textContent === ${JSON.stringify(chart)})
    ?.querySelectorAll("li").values().find((each) => each.textContent.trim().startsWith(${JSON.stringify(line)}))
    ?.querySelector("strong").textContent`;
}

/** Moves the pointer over the first chart, near its right end. */
export function movePointer(type: "mouseenter" | "mousemove" | "mouseleave"): string {
  return `(() => {
    const over = document.querySelector(".u-over");
    const { right, top } = over.getBoundingClientRect();
    over.dispatchEvent(new MouseEvent("${type}", { bubbles: true, clientX: right - 20, clientY: top + 5 }));
  })()`;
}

/** True if a pixel of the first chart has exactly the color of its first line. */
export const HAS_ITS_COLOR = `(() => {
  const [red, green, blue] = getComputedStyle(document.querySelector(".line-1")).color.match(/\\d+/g).map(Number);
  const canvas = document.querySelector(".chart canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.length; at += 4)
    if (data[at] === red && data[at + 1] === green && data[at + 2] === blue && data[at + 3] === 255) return true;
  return false;
})()`;
