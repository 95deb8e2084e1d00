/** A number of bytes for people: `182 MiB`. */
export function inMib(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`
}
