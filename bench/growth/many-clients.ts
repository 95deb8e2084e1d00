/** The address of the `i`th of up to sixteen million clients. */
export function addressOf(i: number): string {
  return `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`
}
