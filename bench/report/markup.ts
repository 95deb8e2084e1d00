/** Text as it stands between tags, or between quotes. */
export function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** A sentence of ours, in which backticks stand around what a computer reads. */
export function prose(text: string): string {
  return escapeText(text).replace(/`([^`]*)`/g, '<code>$1</code>')
}

/** A coordinate: a tenth of a pixel is enough for anyone. */
export function at(value: number): string {
  return String(Math.round(value * 10) / 10)
}

/** A number as an axis has it: `1.5k`, `10M`, `0.25`. */
export function short(value: number): string {
  const sizes = [
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const
  for (const [size, letter] of sizes) {
    if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(3))}${letter}`
  }
  return String(Number(value.toPrecision(3)))
}
