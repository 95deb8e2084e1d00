/** Escapes text for HTML content and attribute values. */
export function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Escapes a sentence and turns backticks into `<code>`. */
export function prose(text: string): string {
  return escapeText(text).replace(/`([^`]*)`/g, '<code>$1</code>')
}

/** A coordinate, rounded to a tenth of a pixel. */
export function at(value: number): string {
  return String(Math.round(value * 10) / 10)
}

/** A number for an axis: `1.5k`, `10M`, `0.25`. */
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
