export const LF = 0x0a
export const CR = 0x0d

/** Whether the bytes between two messages are only line ends. Some firmware sends them; RFC 9112 §2.2 allows to ignore them. */
export function onlyLineEnds(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (bytes[at] !== CR && bytes[at] !== LF) return false
  return true
}
